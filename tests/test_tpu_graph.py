"""The graph of a pretraining step holds only what XLA compiles for a TPU, at static shapes."""

import made_records
import programs
import pytest
import tensorflow as tf
import toy_training as toy

from benchmarks import contestants
from data import input_pipeline
from modeling.config import AlbertConfig

BATCH = 4
# Ops that stay on the host have no place in a step: strings, Python, files, printing, and those
# whose result's shape depends on values.
FORBIDDEN = (
    *("String", "StaticRegex", "AsString", "DecodeRaw", "Substr", "Sentencepiece"),
    *("PyFunc", "EagerPyFunc", "NumpyFunction", "Print", "Logging", "Save", "Restore", "Parse"),
    *("Where", "Unique", "NonMaxSuppression", "BooleanMask", "Ragged", "Sparse", "Lookup"),
    *("RandomUniform", "RandomStandardNormal", "TruncatedNormal", "Timestamp", "Iterator"),
)
ALLOWED_SPARSE = {"SparseSoftmaxCrossEntropyWithLogits"}  # Its labels are dense ids.


@pytest.fixture(scope="module")
def replica_step(tmp_path_factory):
    """The concrete function of one replica's part of a step, from real batches."""
    folder = tmp_path_factory.mktemp("graph")
    files = made_records.write_shards(folder, 8, with_metadata=True)
    config = AlbertConfig.from_json_file(programs.write_config(folder, made_records.V))
    train_step = contestants.make_step(toy.settings(train_batch_size=BATCH), config)
    lengths = {"max_seq_length": made_records.T, "max_predictions_per_seq": made_records.P}
    dataset = input_pipeline.pretraining_dataset(
        files, batch_size=BATCH, training=True, vocab_size=made_records.V, **lengths
    )
    return train_step, dataset.element_spec


def test_batches_have_static_shapes_and_int32_ids(replica_step):
    _, specs = replica_step
    assert all(spec.shape.is_fully_defined() for spec in specs.values())
    assert {spec.dtype for spec in specs.values()} == {tf.int32, tf.float32}


def test_a_step_holds_no_op_that_stays_on_the_host(replica_step):
    train_step, specs = replica_step
    concrete = train_step._one_step.get_concrete_function(specs)
    definition = concrete.graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    ops = {node.op for node in nodes}
    assert len(ops) > 50  # The walk has been through the model.
    found = {op for op in ops if op.startswith(FORBIDDEN)}
    assert found <= ALLOWED_SPARSE, found


def test_xla_takes_the_whole_step(replica_step):
    """What lowers it is the TPU's bridge, but for the last part; it refuses shapes left open."""
    train_step, specs = replica_step
    compiled = tf.function(train_step._distributed_step, jit_compile=True)
    batch = {name: tf.zeros(spec.shape, spec.dtype) for name, spec in specs.items()}
    hlo = compiled.experimental_get_compiler_ir(batch)(stage="hlo")
    assert "while" in hlo and "custom-call" not in hlo

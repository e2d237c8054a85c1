"""The program that one core of a TPU runs for a pretraining step, as XLA's text.

TPUStrategy needs a TPU to trace anything. Here the same `TrainStep` runs in a replica context
whose sum over replicas is the operation that XLA turns into an all-reduce, and is lowered without
being run. Needs TensorFlow alone.
"""

import dataclasses
import re

import command_line
from benchmarks import contestants
from modeling import config
from training.config import TrainConfig

VOCAB_SIZE, LENGTH, NUM_PREDICTIONS = 30_000, 512, 77  # The paper's: 15 % of 512 are predicted.


@dataclasses.dataclass(frozen=True)
class CoreStep:
    """What a core does in a step.

    Attributes:
        size: key of `modeling.config.SIZES`.
        batch_size: sequences of 512 on each core, B.
        recompute: as `run_pretraining.py --recompute`.
        num_hidden_layers: in place of the size's own number, or None.
    """

    size: str
    batch_size: int
    recompute: bool = False
    num_hidden_layers: int | None = None

    def model_config(self):
        layers = self.num_hidden_layers
        others = {} if layers is None else {"num_hidden_layers": layers}
        return config.size(self.size, VOCAB_SIZE, **others)


def lower(core_step, num_replicas):
    """Traces a step with LAMB in bfloat16 and lowers it; nothing is computed.

    Args:
        core_step: CoreStep.
        num_replicas: cores that the gradients are summed over.

    Returns:
        str, XLA's text of the module before any optimization.
    """
    command_line.prepare_tensorflow()
    import tensorflow as tf

    class Replica(tf.distribute.ReplicaContext):
        """A core among its like: sums by an operation that XLA knows on every device."""

        instance = 0

        def all_reduce(self, reduce_op, value, options=None):
            del options
            assert reduce_op == tf.distribute.ReduceOp.SUM
            return tf.nest.map_structure(self._sum, value)

        def _sum(self, value):
            self.instance += 1
            return tf.raw_ops.CollectiveReduceV2(
                input=value,
                group_size=num_replicas,
                group_key=1,
                instance_key=self.instance,
                ordering_token=[],
                merge_op="Add",
                final_op="Id",
            )

    settings = TrainConfig(
        optimizer="lamb",
        learning_rate=1e-3,
        train_batch_size=core_step.batch_size,
        precision="bfloat16",
        recompute=core_step.recompute,
    )
    model_config = core_step.model_config()
    train_step = contestants.make_step(settings, model_config)

    @tf.function(jit_compile=True)
    def replica_step(batch, replica):
        with Replica(train_step.strategy, replica):
            return train_step.replica_step(batch)

    sizes = core_step.batch_size, LENGTH, NUM_PREDICTIONS
    work = contestants.Work(model_config, *sizes, num_threads=1)
    batch = tf.nest.map_structure(tf.constant, work.batch())
    return replica_step.experimental_get_compiler_ir(batch, tf.constant(0))(stage="hlo")


def count(text, operation):
    """Returns how many times an operation such as "all-reduce" stands in XLA's text."""
    return len(re.findall(rf" {operation}(?:-start)?\(", text))


def num_instructions(text):
    """Returns the instructions in XLA's text, those of loops and other computations included."""
    return len(re.findall(r"^ +(?:ROOT )?%\S+ = ", text, flags=re.MULTILINE))

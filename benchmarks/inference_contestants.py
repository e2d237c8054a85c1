"""ALBERT's encoder at inference, by each library: ids in, the mean over each text's tokens out.

A contestant is a row: in which batches it takes the texts, how long it pads each, and a function
that builds it and returns its step. All compute in float32 with the same sizes; ids are ready
before the clock runs. As in contestants.py, nothing heavy is imported before a worker asks for it.

Shapes: B batch, T tokens, H hidden.
"""

import dataclasses
import os
import tempfile
import warnings

import numpy as np

from benchmarks.contestants import Contestant, hugging_face_config, limit_tensorflow
from data.features import Features
from modeling.config import AlbertConfig

INPUTS = ("input_ids", "input_mask", "segment_ids")
ONNX_NAMES = dict(zip(INPUTS, ("input_ids", "attention_mask", "token_type_ids"), strict=True))
ONNX_OPSET = 17


@dataclasses.dataclass(frozen=True)
class Work:
    """What every contestant encodes in one step: the texts, `repeats` times."""

    config: AlbertConfig
    features: Features
    batch_size: int
    num_threads: int
    repeats: int = 1

    @property
    def num_tokens(self):
        """Returns the real tokens of a full batch, in the mean: rows of the limit's products."""
        rows = min(self.batch_size, len(self.features))
        return max(1, round(rows * self.features.lengths().mean()))

    @property
    def flops(self):
        """Floating-point operations of the texts, once: products alone, without padding."""
        c, lengths = self.config, self.features.lengths().astype(float)
        dense = 4 * c.hidden_size**2 + 2 * c.hidden_size * c.intermediate_size
        terms = lengths * c.embedding_size * c.hidden_size
        terms += c.num_hidden_layers * (lengths * dense + 2 * lengths**2 * c.hidden_size)
        return 2 * float(terms.sum())


@dataclasses.dataclass(frozen=True)
class TextEncoder(Contestant):
    """A contestant, and the batches it takes.

    Attributes:
        by_length: whether texts of like length share a batch, the longest first.
        pads_to_few: whether batches are padded to one of a few lengths, as our programs pad them,
            whose graphs XLA compiles in part; or to the longest text, as the text signature does.
    """

    by_length: bool = False
    pads_to_few: bool = False

    def plan(self, work):
        """Returns (which texts each batch holds, T of each batch)."""
        lengths = work.features.lengths()
        order = np.arange(len(lengths))
        order = np.argsort(-lengths, kind="stable") if self.by_length else order
        plan = np.split(order, range(work.batch_size, len(order), work.batch_size))
        longest = [int(lengths[texts].max()) for texts in plan]
        return plan, [self.padded_length(work, length) for length in longest]

    def padded_length(self, work, longest):
        if not self.pads_to_few:
            return longest
        from data import static_lengths

        return static_lengths.padded_length(longest, work.config.max_position_embeddings)

    def num_positions(self, work):
        """Returns how many tokens, padding and all, the model sees."""
        return sum(len(texts) * length for texts, length in zip(*self.plan(work), strict=True))

    def batches(self, work):
        """Returns a list of dicts of INPUTS, int32[B, T]."""
        return [pad(work.features, *batch) for batch in zip(*self.plan(work), strict=True)]


def pad(features, texts, length):
    """Pads some texts to one batch: dict of INPUTS, int32[B, T]."""
    batch = {name: np.zeros((len(texts), length), np.int32) for name in INPUTS}
    for row, text in enumerate(texts):
        ids = features.sequence("input_ids", text)
        batch["input_ids"][row, : len(ids)] = ids
        batch["input_mask"][row, : len(ids)] = 1
        batch["segment_ids"][row, : len(ids)] = features.sequence("segment_ids", text)
    return batch


def repeated(encode, batches, work):
    """Returns the step: encodes every batch, and returns the mean of the last vectors' squares."""

    def step():
        for _ in range(work.repeats):
            for batch in batches:
                vectors = encode(batch)
        return float(np.square(vectors).mean())

    return step


def our_model(work):
    """Returns (tensorflow, our encoder's function of a batch)."""
    tf = limit_tensorflow(work.num_threads)
    from modeling import models
    from serving import warm_model

    model = models.PretrainingModel(work.config)
    return tf, model, lambda batch: warm_model.embeddings("mean", -1)(model, batch)["vectors"]


def ours(work):
    """Builds what predict.py runs: one graph for batches of any size."""
    tf, _, encode = our_model(work)
    signature = {name: tf.TensorSpec([None, None], tf.int32) for name in INPUTS}
    graph = tf.function(encode, input_signature=[signature])
    batches = [
        {name: tf.constant(values) for name, values in batch.items()}
        for batch in CONTESTANTS["ours_encoding"].batches(work)
    ]
    return repeated(lambda batch: graph(batch).numpy(), batches, work)


def ours_compiled(work):
    """Builds our encoder compiled by XLA, once for each shape; layers one after another."""
    tf, model, _ = our_model(work)
    from serving import exported_model, warm_model

    model = exported_model.unrolled(model)
    graph = tf.function(
        lambda batch: warm_model.embeddings("mean", -1)(model, batch)["vectors"], jit_compile=True
    )
    batches = [
        {name: tf.constant(values) for name, values in batch.items()}
        for batch in CONTESTANTS["ours_compiled"].batches(work)
    ]
    return repeated(lambda batch: graph(batch).numpy(), batches, work)


def ours_exported(work, name="ours_exported", constant_weights=False):
    """Builds what export_model.py writes, loaded again; without XLA."""
    tf, model, _ = our_model(work)
    from serving import export_formats, exported_model, warm_model

    module, model = tf.Module(), exported_model.unrolled(model)

    def encode(batch):
        return warm_model.embeddings("mean", -1)(model, batch)

    if constant_weights:
        encode = exported_model.with_constants(model, encode)
    else:
        module.weights = list(model.named_variables().values())
    inputs = {name: tf.TensorSpec([None, None], tf.int32) for name in INPUTS}
    with tempfile.TemporaryDirectory() as folder:
        export_formats.save(module, folder, {"ids": (lambda **batch: encode(batch), inputs)})
        loaded = tf.saved_model.load(folder)
    graph = loaded.signatures["ids"]
    batches = [
        {name: tf.constant(values) for name, values in batch.items()}
        for batch in CONTESTANTS[name].batches(work)
    ]
    return repeated(lambda batch: graph(**batch)["vectors"].numpy(), batches, work)


def ours_constant(work):
    """Builds what export_model.py --constant_weights writes."""
    return ours_exported(work, "ours_constant", constant_weights=True)


def their_model(work, activation):
    """Returns (torch, a module from ids to the mean over tokens, float32[B, H])."""
    import torch
    import transformers

    torch.set_num_threads(work.num_threads)
    config = hugging_face_config(work.config, hidden_act=activation)

    class MeanOfTokens(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = transformers.AlbertModel(config, add_pooling_layer=False)

        def forward(self, input_ids, attention_mask, token_type_ids):
            states = self.encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
            weights = attention_mask.unsqueeze(-1).to(states.dtype)
            return (states * weights).sum(1) / weights.sum(1)

    return torch, MeanOfTokens().eval()


def hugging_face(work, name="sdpa"):
    """Builds the model in PyTorch, with its fused attention, and GELU in one operation."""
    torch, model = their_model(work, "gelu_pytorch_tanh")
    batches = [
        tuple(torch.from_numpy(batch[name]).long() for name in INPUTS)
        for batch in CONTESTANTS[name].batches(work)
    ]

    def encode(batch):
        with torch.inference_mode():
            return model(*batch).numpy()

    return repeated(encode, batches, work)


def hugging_face_by_length(work):
    """Builds the same, for texts sorted by length."""
    return hugging_face(work, "sdpa_by_length")


def onnx_runtime(work, name="onnx_runtime"):
    """Builds Hugging Face's model in ONNX Runtime, with all of its optimisations."""
    import onnxruntime

    torch, model = their_model(work, "gelu_new")
    example = tuple(torch.ones([2, 8], dtype=torch.int64) for _ in INPUTS)
    axes = {name: {0: "batch", 1: "length"} for name in ONNX_NAMES.values()}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = work.num_threads, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(
            model,
            example,
            path,
            input_names=list(axes),
            output_names=["vectors"],
            dynamic_axes=axes | {"vectors": {0: "batch"}},
            opset_version=ONNX_OPSET,
            dynamo=False,
        )
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    batches = [
        {ONNX_NAMES[name]: values.astype(np.int64) for name, values in batch.items()}
        for batch in CONTESTANTS[name].batches(work)
    ]
    return repeated(lambda batch: session.run(None, batch)[0], batches, work)


def onnx_runtime_by_length(work):
    """Builds the same, for texts sorted by length."""
    return onnx_runtime(work, "onnx_runtime_by_length")


OUR_MODULES = ("data.length_batches", "modeling.models", "serving.exported_model")
THEIR_MODULES = ("torch", "transformers.models.albert.modeling_albert")
OURS = {"by_length": True, "pads_to_few": True}
CONTESTANTS = {
    "ours_encoding": TextEncoder("ours, tf.function", OUR_MODULES, ours, **OURS),
    "ours_compiled": TextEncoder("ours, XLA", OUR_MODULES, ours_compiled, **OURS),
    "ours_exported": TextEncoder("ours, exported", OUR_MODULES, ours_exported, by_length=True),
    "ours_constant": TextEncoder(
        "ours, exported --constant_weights", OUR_MODULES, ours_constant, by_length=True
    ),
    "sdpa": TextEncoder(
        "Hugging Face, PyTorch, sdpa", THEIR_MODULES, hugging_face, uses_tensorflow=False
    ),
    "sdpa_by_length": TextEncoder(
        "the same, by length",
        THEIR_MODULES,
        hugging_face_by_length,
        uses_tensorflow=False,
        by_length=True,
    ),
    "onnx_runtime": TextEncoder(
        "ONNX Runtime",
        ("onnxruntime", "onnx", *THEIR_MODULES),
        onnx_runtime,
        uses_tensorflow=False,
    ),
    "onnx_runtime_by_length": TextEncoder(
        "the same, by length",
        ("onnxruntime", "onnx", *THEIR_MODULES),
        onnx_runtime_by_length,
        uses_tensorflow=False,
        by_length=True,
    ),
}

"""Writes a served model: a SavedModel, TFLite, ONNX; and compares what they give with the model.

Only programs import this module.
"""

import contextlib
import logging
import os
import sys
import tempfile
import warnings

import absl.logging
import numpy as np
import tensorflow as tf

from data import files, length_batches
from modeling import fusion
from serving import prediction_features
from serving.exported_model import POSITIONS

SAVED_MODEL, TFLITE, ONNX = FORMATS = ("saved_model", "tflite", "onnx")
FILES = {TFLITE: "model.tflite", ONNX: "model.onnx"}
TOLERANCES = {SAVED_MODEL: 1e-5, TFLITE: 1e-3, ONNX: 1e-4}  # Of outputs, in float32.
ONNX_OPSET = 18
LENGTHS = (5, 12, 27, 40)  # Pieces of the inputs that formats are checked with.
BATCH, NUM_CHOICES = 5, 3  # Four batches of five: 20 inputs.
TEXTS = (  # Odd in ways that tokenizers differ in.
    "The capital of France is Paris.",
    "In 2,013 runners, 1,000 more; naïve cafés cost 3,50 €.",
    "ΟΔΥΣΣΕΥΣ, ﬁne ½ ＡＢ (x-y) `quoted' ''twice''",
    "北京是中国的首都。 हिन्दी 한국어",
    "tabs\tand\u00a0blanks \u200b <b> 👩\u200d👩",
)


def concrete(function, inputs):
    """Returns a function traced for inputs, dict of tf.TensorSpec, without XLA."""
    with fusion.without_xla():
        return tf.function(function, autograph=False).get_concrete_function(**inputs)


def save(module, folder, signatures):
    """Writes a SavedModel.

    Args:
        module: tf.Module that holds all that the graphs need.
        folder: path.
        signatures: dict of name to (function, dict of tf.TensorSpec).
    """
    traced = {name: concrete(*signature) for name, signature in signatures.items()}
    with fusion.without_xla(), quiet():
        tf.saved_model.save(module, folder, signatures=traced)


@contextlib.contextmanager
def quiet():
    """Keeps TensorFlow's converters from telling what they are about; faults are still raised."""
    verbosity = absl.logging.get_verbosity()
    absl.logging.set_verbosity(absl.logging.ERROR)
    loggers = [logging.getLogger(name) for name in ("tensorflow", "tf2onnx")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    sys.stderr.flush()
    listener = os.dup(2)  # Much is told by C++.
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(listener, 2)
        os.close(listener)
        absl.logging.set_verbosity(verbosity)
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def write(exported, folder, form, quantize=False):
    """Writes a model in one of FORMATS, and returns a function that runs what was written.

    Args:
        exported: exported_model.ExportedModel.
        folder: path.
        form: one of FORMATS.
        quantize: whether TFLite's weights are int8, with a scale each.

    Returns:
        function of a dict of arrays, the inputs of the ids signature, to a dict of arrays.
    """
    if form == SAVED_MODEL:
        save(exported, folder, functions(exported, form))
        return saved_runner(folder, "ids")
    path = os.path.join(folder, FILES[form])
    if form == ONNX:
        return write_onnx(exported, path)
    files.write_bytes(path, to_tflite(exported, quantize))
    with quiet():
        runner = tf.lite.Interpreter(path).get_signature_runner("ids")

    def run(batch):
        with quiet():
            return runner(**batch)

    return run


def functions(exported, form):
    """Returns the signatures of a format: dict of name to (function, dict of tf.TensorSpec)."""
    found = {"ids": (exported.from_ids, exported.id_inputs())}
    if form == SAVED_MODEL and exported.reads_text:
        found["text"] = (exported.from_text, exported.text_inputs())
    return found


def signatures_of(exported, form):
    """Says what the signatures of a format take: dict of name to dict of name to str."""
    return {
        name: {
            key: f"{spec.dtype.name}[{', '.join('?' for _ in spec.shape)}]"
            for key, spec in sorted(specs.items())
        }
        for name, (_, specs) in functions(exported, form).items()
    }


def saved_runner(folder, signature):
    """Returns a function that runs a signature of a SavedModel, from and to dicts of arrays."""
    loaded = tf.saved_model.load(folder)

    def run(batch):
        tensors = {name: tf.constant(values) for name, values in batch.items()}
        return {n: t.numpy() for n, t in loaded.signatures[signature](**tensors).items()}

    return run


def to_tflite(exported, quantize):
    """Returns the bytes of a TFLite model of the ids signature.

    It is made from a SavedModel: TFLite's other ways give NaN or inputs of another type.
    """
    alone = tf.Module()
    alone.weights = exported.weights
    with tempfile.TemporaryDirectory() as folder:
        save(alone, folder, {"ids": (exported.from_ids, exported.id_inputs())})
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=["ids"])
        converter.optimizations = [tf.lite.Optimize.DEFAULT] if quantize else []
        with quiet():
            return converter.convert()


def write_onnx(exported, path):
    """Writes an ONNX model of the ids signature, and returns a function that runs it."""
    import onnxruntime
    import tf2onnx

    inputs = exported.id_inputs()
    names = sorted(inputs)
    specs = [tf.TensorSpec(inputs[n].shape, inputs[n].dtype, name=n) for n in names]

    def from_ids(*tensors):
        return exported.from_ids(**dict(zip(names, tensors, strict=True)))

    with fusion.without_xla(), quiet():
        traced = tf.function(from_ids, autograph=False)
        model, _ = tf2onnx.convert.from_function(traced, specs, opset=ONNX_OPSET)
    files.write_bytes(path, model.SerializeToString())
    session = onnxruntime.InferenceSession(path)
    outputs = [output.name for output in session.get_outputs()]
    return lambda batch: dict(zip(outputs, session.run(None, batch), strict=True))


def fixed_batches(exported):
    """Yields 20 inputs of the ids signature in batches of several lengths: dicts of arrays."""
    config, inputs = exported.model.settings["config"], exported.id_inputs()
    generator = np.random.default_rng(0)
    for length in (min(length, config["max_position_embeddings"]) for length in LENGTHS):
        shape = (BATCH, length) if exported.kind != "choice" else (BATCH, NUM_CHOICES, length)
        lengths = generator.integers(3, length + 1, (*shape[:-1], 1))
        mask = np.arange(length) < lengths
        batch = {
            "input_ids": generator.integers(0, config["vocab_size"], shape) * mask,
            "input_mask": mask,
            "segment_ids": (np.arange(length) > lengths // 2) * mask,
            "p_mask": ~mask,
            POSITIONS: generator.integers(0, 3, (BATCH, 2)),
        }
        batch = {name: values.astype(np.int32) for name, values in batch.items()}
        batch["choice_mask"] = np.ones(shape[:-1], np.float32)
        yield {name: batch[name] for name in inputs}


def difference(run, exported):
    """Returns the largest difference between what was written and the model, on 20 inputs.

    Args:
        run: function of `write`.
        exported: exported_model.ExportedModel.

    Returns:
        float; infinity where a number is none, or an integer differs.
    """
    worst = 0.0
    for batch in fixed_batches(exported):
        expected = of_model(exported, batch)
        worst = max(worst, largest(run(batch), expected))
    return worst


def of_model(exported, batch):
    """Returns what the model in memory gives: dict of array. It runs as predict.py runs it."""
    tensors = {name: tf.constant(values) for name, values in batch.items()}
    return {name: tensor.numpy() for name, tensor in exported.from_ids(**tensors).items()}


def largest(found, expected):
    """Returns the largest difference over what two dicts of arrays share, and all must."""
    if missing := expected.keys() - found.keys():
        raise ValueError(f"Outputs must be {sorted(expected)}. Received: none of {missing}.")
    gaps = [0.0]
    for name, values in expected.items():
        given = np.asarray(found[name])
        if given.shape != values.shape or not np.isfinite(given).all():
            return float("inf")
        gaps.append(float(np.abs(given.astype(np.float64) - values).max(initial=0)))
    return max(gaps)


def text_difference(folder, exported):
    """Returns the largest difference between the text signature and the tokenizer with the model.

    Args:
        folder: the SavedModel.
        exported: exported_model.ExportedModel.
    """
    trained, reading, texts = exported.trained, exported.reading, list(TEXTS)
    others = [*texts[1:], ""]
    if exported.kind == "choice":
        others[-1] = texts[0]  # An empty option is none.
        options = [[a, b, "both"] for a, b in zip(others, texts, strict=True)]
        asked = prediction_features.choice_questions(texts, options, others)
        made = prediction_features.of_choices(asked, trained.tokenizer, reading)
        given = {"question": texts, "options": options, "context": others}
    else:
        pairs = list(zip(texts, others, strict=True))
        made = prediction_features.of_texts(pairs, trained.tokenizer, reading)
        given = {"text": texts, "text_b": others}
    batch = length_batches.pad(
        made,
        np.arange(len(made)),
        len(made),
        trained.model.settings["config"]["max_position_embeddings"],
    )
    inputs = {name: batch[name] for name in exported.id_inputs() if name in batch}
    if exported.fills_masks:
        inputs[POSITIONS] = np.zeros((len(made), 0), np.int32)
    expected = of_model(exported, inputs)
    expected.pop("masked_lm_logits", None)
    encoded = {n: np.char.encode(np.array(values), "utf-8") for n, values in given.items()}
    return largest(saved_runner(folder, "text")(encoded), expected)

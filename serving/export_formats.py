"""Writes a served model: a SavedModel, TFLite, ONNX.

Only programs import this module.
"""

import contextlib
import logging
import os
import sys
import tempfile
import warnings

import absl.logging
import tensorflow as tf

from data import files
from modeling import fusion

SAVED_MODEL, TFLITE, ONNX = FORMATS = ("saved_model", "tflite", "onnx")
FILES = {TFLITE: "model.tflite", ONNX: "model.onnx"}
TOLERANCES = {SAVED_MODEL: 1e-5, TFLITE: 1e-3, ONNX: 1e-4}  # Of outputs, in float32.
ONNX_OPSET = 18


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
        save(needed_by_graphs(exported), folder, functions(exported, form))
        return saved_runner(folder, "ids")
    path = os.path.join(folder, FILES[form])
    if form == ONNX:
        return write_onnx(exported, path)
    files.write_bytes(path, to_tflite(exported, quantize))
    with quiet():
        interpreter = tf.lite.Interpreter(model_content=files.read_bytes(path))
        runner = interpreter.get_signature_runner("ids")

    def run(batch):
        with quiet():
            return runner(**batch)

    return run


def needed_by_graphs(exported):
    """Returns a tf.Module of what graphs read: Keras's layers would save graphs of their own."""
    module = tf.Module()
    module.weights, module.tokenizer = exported.weights, exported.tokenizer
    return module


def functions(exported, form):
    """Returns the signatures of a format: dict of name to (function, dict of tf.TensorSpec)."""
    found = {"ids": (exported.from_ids, exported.id_inputs())}
    if form == SAVED_MODEL:
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
    with tempfile.TemporaryDirectory() as folder:
        save(needed_by_graphs(exported), folder, {"ids": (exported.from_ids, exported.id_inputs())})
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
    session = onnxruntime.InferenceSession(files.read_bytes(path))
    outputs = [output.name for output in session.get_outputs()]
    return lambda batch: dict(zip(outputs, session.run(None, batch), strict=True))

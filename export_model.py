"""Exports a trained model, so that it is served without this code.

    python export_model.py --model_folder=output --output_dir=exported
    python export_model.py --model_folder=output --output_dir=exported --constant_weights
    python export_model.py --model_folder=output --output_dir=lite --format=tflite --quantize
    python export_model.py --model_folder=output --output_dir=onnx --format=onnx

saved_model  a SavedModel with two signatures, for batches and texts of any size: `text`, from
             strings to predictions, and `ids`; it is loaded with TensorFlow and tensorflow_text
tflite       the `ids` signature for TFLite; with --quantize the weights are int8
onnx         the `ids` signature for ONNX; needs requirements-onnx.txt

Beside it go config, tokenizer, labels and `export.json`: inputs, outputs, versions, and how
far what was written is from the model, on inputs of several lengths.
"""

import dataclasses
import os
from importlib.util import find_spec

import command_line
from training.config import setting

EXTRA = {"onnx": ("tf2onnx", "onnxruntime")}  # Packages of requirements-onnx.txt.
FORMATS = ("saved_model", "tflite", "onnx")


@dataclasses.dataclass(frozen=True)
class ExportConfig:
    """What to export and where; each field is a command-line flag too."""

    model_folder: str | None = setting(
        None, "A training run's --output_dir, or Google's or Hugging Face's folder."
    )
    output_dir: str | None = setting(None, "Folder for all that is written.")
    format: str = setting("saved_model", "What to write.", choices=FORMATS)
    quantize: bool = setting(False, "tflite: whether weights are int8, a quarter of the size.")
    constant_weights: bool = setting(
        False,
        "saved_model: put the weights into the graph; small batches take less time on a CPU, "
        "for more memory.",
    )
    top_k: int = setting(5, "Pieces for each [MASK] that the text signature gives.")

    def __post_init__(self):
        for name in ("model_folder", "output_dir"):
            if not getattr(self, name):
                raise ValueError(f"`{name}` must name a folder. Received: nothing.")
        if os.path.realpath(self.model_folder) == os.path.realpath(self.output_dir):
            raise ValueError(
                "`output_dir` must be another folder than `model_folder`. Received: "
                f"{self.output_dir} for both."
            )
        if self.quantize and self.format != "tflite":
            raise ValueError(f"`quantize` is for tflite. Received: format={self.format}.")
        if self.constant_weights and self.format != "saved_model":
            raise ValueError(
                "`constant_weights` is for saved_model; others have no variables. Received: "
                f"format={self.format}."
            )
        missing = [name for name in EXTRA.get(self.format, ()) if not find_spec(name)]
        if missing:
            raise ValueError(
                f"`format` onnx needs {' and '.join(EXTRA[self.format])}. Received: "
                f"{' and '.join(missing)} not installed. "
                "`pip install -r requirements-onnx.txt` installs them."
            )
        if self.top_k < 1:
            raise ValueError(f"`top_k` must be at least 1. Received: {self.top_k}.")


command_line.define_flags(ExportConfig)


def versions():
    """Returns the versions an export was made and tested with."""
    import tensorflow_text

    from folders import model_folder

    return {**model_folder.versions(), "tensorflow_text": tensorflow_text.__version__}


def write_parts(trained, folder):
    """Writes what belongs to the weights: config, tokenizer, task and labels."""
    from data import files
    from folders import model_folder
    from modeling.config import AlbertConfig

    config = AlbertConfig.from_dict(trained.model.settings["config"])
    config.to_json_file(os.path.join(folder, model_folder.CONFIG))
    trained.tokenizer.save(os.path.join(folder, model_folder.TOKENIZER))
    if trained.task:
        files.write_json(os.path.join(folder, model_folder.TASK), trained.task)
        labels = "".join(f"{label}\n" for label in trained.task["labels"])
        files.write_bytes(os.path.join(folder, model_folder.LABELS), labels.encode())


def measure(run, exported, settings):
    """Compares what was written with the model: dict of signature to largest difference.

    Raises:
        ValueError: it differs by more than rounding, or a number is none.
    """
    from serving import export_checks, export_formats

    found = {"ids": export_checks.difference(run, exported)}
    if settings.format == "saved_model":
        found["text"] = export_checks.text_difference(settings.output_dir, exported)
    most = export_formats.TOLERANCES[settings.format]
    for signature, gap in found.items():
        if gap == float("inf") or (gap > most and not settings.quantize):
            raise ValueError(
                f"What was written must give what the model gives, within {most:g}. Received: "
                f"a difference of {gap:g} in the outputs from {signature}."
            )
    return found


def main():
    settings = command_line.from_flags(ExportConfig)
    command_line.prepare_tensorflow()
    command_line.compile_quietly()
    from data import files
    from serving import export_formats, trained_models
    from serving.exported_model import ExportedModel

    files.check_folder(settings.output_dir)
    trained = trained_models.load(settings.model_folder)
    print(f"{settings.model_folder} {trained.described()}")
    exported = ExportedModel(trained, settings.top_k, settings.constant_weights)
    run = export_formats.write(exported, settings.output_dir, settings.format, settings.quantize)
    found = measure(run, exported, settings)
    write_parts(trained, settings.output_dir)
    report = {
        "format": settings.format,
        "quantized": settings.quantize,
        "constant_weights": settings.constant_weights,
        "model": trained.described(),
        "labels": list(trained.task["labels"]) if trained.task else [],
        "max_seq_length": exported.reading.max_seq_length,
        "signatures": export_formats.signatures_of(exported, settings.format),
        "versions": versions(),
        "check": {"inputs": 20, "largest_difference": found},
    }
    files.write_json(os.path.join(settings.output_dir, "export.json"), report)
    for signature, gap in found.items():
        print(f"largest difference from the model, {signature}: {gap:.1e}")
    print(f"{settings.format} in {settings.output_dir}")


if __name__ == "__main__":
    command_line.run(main)

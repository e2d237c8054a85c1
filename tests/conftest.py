"""Where the tests find the original's numbers, and real text for the few tests that want it."""

import os
import pathlib

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("ALBERT_SHARED", REPOSITORY.parent / "shared"))
TESTDATA = REPOSITORY / "tests" / "testdata"


def golden_folder(name):
    """Returns the folder of one kind of golden numbers: the full set, or the part copied here.

    Args:
        name: "tf1_checkpoint", "optimizer", "tokenization" or "pretraining_data".

    Returns:
        A pathlib.Path.
    """
    full = SHARED / "golden" / name
    return full if full.is_dir() else TESTDATA / "golden" / name


def shared_data(relative):
    """Returns a file of real data; skips the test, saying so, where it is absent."""
    path = SHARED / "data" / relative
    if not path.exists():
        pytest.skip(f"needs {relative} in the folder `shared/data` beside the checkout")
    return path


def spm_model_file():
    """Returns the SentencePiece model of the released English models, or skips."""
    return shared_data("spm/30k-clean.model")

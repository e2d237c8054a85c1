import json
import subprocess
import sys

import keras
import made_folders
import made_tokenizers
import numpy as np
import programs
import pytest
import tensorflow as tf

from data import text_normalization
from predictor import from_folder
from serving import export_formats, exported_model, trained_models

SHAPES = [(1, 5), (3, 5), (1, 40), (3, 40)]
KINDS = list(made_folders.TASKS)
ODD = [text_normalization.without_surrogates(text) for text in made_tokenizers.odd_strings(1000)]
STORY = "the old fox finds the river . then the young sailor opens the letter ."
# In a process that knows nothing of this code.
SERVE = """
import sys
import numpy as np
import tensorflow as tf
import tensorflow_text
folder, given, found = sys.argv[1:]
assert not {"modeling", "data", "model_folder"} & sys.modules.keys()
served = tf.saved_model.load(folder).signatures
results = {}
with np.load(given) as arrays:
    cases = sorted({name.split("/")[0] for name in arrays})
    for case in cases:
        batch = {n.split("/")[1]: arrays[n] for n in arrays if n.split("/")[0] == case}
        outputs = served[case.split("-")[0]](**{n: tf.constant(v) for n, v in batch.items()})
        results |= {f"{case}/{n}": t.numpy().astype(str if t.dtype == tf.string else None)
                    for n, t in outputs.items()}
np.savez(found, **results)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A function from a kind to its model folder, its export, and the served model."""
    kept = {}

    def make(kind):
        if kind not in kept:
            folder = tmp_path_factory.mktemp(kind)
            made_folders.write(folder, kind)
            result = programs.call("export_model", model_folder=folder, output_dir=folder / "out")
            programs.succeed(result)
            exported = exported_model.ExportedModel(trained_models.load(folder))
            kept[kind] = folder, folder / "out", exported
        return kept[kind]

    return make


def strings(texts):
    return tf.constant([text.encode() for text in texts])


def ids_of(exported, batch_size, length, seed=0):
    """Returns random inputs of the ids signature: dict of array."""
    generator = np.random.default_rng(seed)
    shape = (batch_size, 3, length) if exported.kind == "choice" else (batch_size, length)
    mask = np.arange(length) < generator.integers(4, length + 1, (*shape[:-1], 1))
    batch = {
        "input_ids": generator.integers(0, programs.VOCAB_SIZE, shape) * mask,
        "input_mask": mask,
        "segment_ids": generator.integers(0, 2, shape) * mask,
        "p_mask": ~mask,
        "masked_lm_positions": generator.integers(0, 4, (batch_size, 2)),
    }
    batch = {name: array.astype(np.int32) for name, array in batch.items()}
    batch["choice_mask"] = np.ones(shape[:-1], np.float32)
    return {name: batch[name] for name in exported.id_inputs()}


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_any_batch_and_length_give_the_models_outputs(kind, made):
    _, out, exported = made(kind)
    run = export_formats.saved_runner(str(out), "ids")
    for shape in SHAPES:
        batch = ids_of(exported, *shape)
        inputs = {name: tf.constant(values) for name, values in batch.items()}
        # The model itself wants as many places as its beams; what is served does not.
        fits = kind != "answerable" or shape[1] > 6
        expected = exported.trained.model(inputs) if fits else exported.from_ids(**inputs)
        found = run(batch)
        for name in expected.keys() & found.keys():
            if kind == "answerable" and "end" in name:
                continue  # Ties among impossible beams; the legal ones are compared below.
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5, rtol=1e-5)
        assert expected.keys() & found.keys()


@pytest.mark.parametrize("kind", ["classes", "number"])
def test_odd_strings_give_what_predict_gives(kind, made):
    folder, out, _ = made(kind)
    served = tf.saved_model.load(str(out)).signatures["text"]
    predictor = from_folder(folder, long_texts="cut")
    for texts in (ODD[:1], ODD[:3], ODD):
        others = ["", *texts[:-1]]
        found = served(text=strings(texts), text_b=strings(others))
        expected = predictor.classify(list(zip(texts, others, strict=True)))
        if kind == "number":
            numbers = [row["number"] for row in expected]
            np.testing.assert_allclose(found["number"], numbers, atol=1e-5)
            continue
        wanted = [
            [row["probabilities"][label] for label in made_folders.LABELS] for row in expected
        ]
        np.testing.assert_allclose(found["probabilities"], wanted, atol=1e-5)
        assert [label.decode() for label in found["label"].numpy()] == [
            row["label"] for row in expected
        ]


def test_a_fresh_process_with_tensorflow_alone_gives_the_same_from_ids_and_text(made, tmp_path):
    _, out, exported = made("classes")
    cases = {
        f"ids-{number}/{name}": values
        for number, shape in enumerate(SHAPES)
        for name, values in ids_of(exported, *shape).items()
    }
    words = STORY.split()
    for number, (batch_size, length) in enumerate(SHAPES):
        text = " ".join((words * 3)[:length])
        cases[f"text-{number}/text"] = np.array([text] * batch_size, bytes)
        cases[f"text-{number}/text_b"] = np.array([STORY] * batch_size, bytes)
    np.savez(tmp_path / "given.npz", **cases)
    command = [sys.executable, "-c", SERVE, out, tmp_path / "given.npz", tmp_path / "found.npz"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    found = np.load(tmp_path / "found.npz")
    for number, shape in enumerate(SHAPES):
        inputs = {n: tf.constant(v) for n, v in ids_of(exported, *shape).items()}
        logits = exported.trained.model(inputs)["logits"]
        np.testing.assert_allclose(found[f"ids-{number}/logits"], logits, atol=1e-5)
        texts = {n: tf.constant(cases[f"text-{number}/{n}"]) for n in ("text", "text_b")}
        logits = exported.trained.model(exported.features(**texts))["logits"]
        np.testing.assert_allclose(found[f"text-{number}/logits"], logits, atol=1e-5)
        assert set(found[f"text-{number}/label"]) <= set(made_folders.LABELS)
    assert "custom gradients" not in result.stderr


def test_several_labels_are_told_apart(made):
    folder, out, _ = made("multilabel")
    texts = [STORY, "the fox .", "a river"]
    found = tf.saved_model.load(str(out)).signatures["text"](
        text=strings(texts), text_b=strings([""] * 3)
    )
    names = np.array([label.decode() for label in found["labels"].numpy()])
    for row, expected in zip(
        found["is_label"].numpy(), from_folder(folder).classify(texts), strict=True
    ):
        assert names[row].tolist() == expected["labels"]


def test_masks_vectors_and_order_are_those_of_predict(made):
    folder, out, _ = made("pretraining")
    served = tf.saved_model.load(str(out)).signatures["text"]
    predictor = from_folder(folder)
    texts = ["the old [MASK] .", "[MASK] fox [MASK][MASK] river .", "the fox ."]
    found = {n: t.numpy() for n, t in served(text=strings(texts), text_b=strings([""] * 3)).items()}
    assert found["num_masks"].tolist() == [1, 3, 0]
    for number, masks in enumerate(predictor.fill_mask(texts[:2])):
        for place, ranked in enumerate(masks):
            pieces = [piece.decode() for piece in found["mask_pieces"][number, place]]
            assert pieces == [row["piece"] for row in ranked]
            np.testing.assert_allclose(
                found["mask_probabilities"][number, place],
                [row["probability"] for row in ranked],
                atol=1e-6,
            )
    for pooling in ("mean", "pooled"):
        vectors = predictor.embed(["the fox ."], pooling)
        np.testing.assert_allclose(found[pooling][2:], vectors, atol=1e-5)
    pair = ("the fox .", "the river .")
    order = served(text=strings(pair[:1]), text_b=strings(pair[1:]))["order"][0, 1]
    assert float(order) == pytest.approx(predictor.order([pair])[0], abs=1e-6)


def test_choices_are_those_of_predict_in_blanks_and_behind(made):
    folder, out, _ = made("choice")
    questions = [
        "the _ fox",
        " what does ___ find and __ ? ",
        "who opens the letter ?",
        "\u3000_\uff3f",
    ]
    options = [[" old ", "young", "red"], ["the fox", "sailor", "a"], ["the sailor", "fox", ""]]
    options.append(["river", "b _ c", "\t9"])
    contexts = [STORY, STORY * 4, "the fox .", ""]
    served = tf.saved_model.load(str(out)).signatures["text"]
    found = served(
        context=strings(contexts),
        question=strings(questions),
        options=tf.stack([strings(row) for row in options]),
    )
    predictor = from_folder(folder, long_texts="cut")
    there = [[option for option in row if option] for row in options]
    for number, row in enumerate(predictor.choose(questions, there, contexts)):
        size = len(there[number])
        probabilities = found["probabilities"].numpy()[number]
        np.testing.assert_allclose(probabilities[:size], row["probabilities"], atol=1e-5)
        assert not probabilities[size:].any()
        assert int(found["choice"][number]) == row["choice"]


def test_the_export_holds_what_belongs_to_the_model_and_no_xla(made):
    _, out, _ = made("classes")
    for name in ("albert_config.json", "tokenizer/settings.json", "labels.txt", "task.json"):
        assert (out / name).exists(), name
    report = json.loads((out / "export.json").read_text())
    assert report["labels"] == list(made_folders.LABELS)
    assert report["versions"]["tensorflow"] == tf.__version__
    assert set(report["signatures"]) == {"ids", "text"}
    assert max(report["check"]["largest_difference"].values()) < 1e-5
    assert b"XlaMustCompile" not in (out / "saved_model.pb").read_bytes()


@pytest.mark.parametrize("kind", ["classes", "answerable"])
def test_tflite_gives_what_the_model_gives(kind, made, tmp_path):
    folder, _, _ = made(kind)
    flags = {"model_folder": folder, "format": "tflite"}
    programs.succeed(programs.call("export_model", output_dir=tmp_path / "float", **flags))
    report = json.loads((tmp_path / "float" / "export.json").read_text())
    assert report["check"]["inputs"] == 20
    assert report["check"]["largest_difference"]["ids"] < 1e-3


def test_tflite_in_int8_is_smaller_and_near(made, tmp_path):
    _, _, exported = made("classes")
    whole = export_formats.to_tflite(exported, quantize=False)
    run = export_formats.write(exported, str(tmp_path), "tflite", quantize=True)
    assert (tmp_path / "model.tflite").stat().st_size < len(whole)
    assert 1e-6 < export_formats.difference(run, exported) < 0.5


def test_onnx_gives_what_the_model_gives_or_names_the_extra(made, tmp_path):
    folder, _, _ = made("classes")
    result = programs.call("export_model", model_folder=folder, output_dir=tmp_path, format="onnx")
    if result.exit_code:
        assert "requirements-onnx.txt" in result.stderr
        pytest.skip("needs tf2onnx and onnxruntime (requirements-onnx.txt)")
    report = json.loads((tmp_path / "export.json").read_text())
    assert report["check"]["largest_difference"]["ids"] < 1e-4


def test_a_checkpoint_without_the_tasks_head_says_so(tmp_path):
    made_folders.write(tmp_path, "pretraining")
    task = {"task": "custom", "kind": "classes", "labels": ["a", "b"], "metrics": ["accuracy"]}
    (tmp_path / "task.json").write_text(json.dumps(task))
    result = programs.call("export_model", model_folder=tmp_path, output_dir=tmp_path / "out")
    assert result.exit_code == 1 and "train first" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "flags, part",
    [
        ({"output_dir": "x"}, "`model_folder`"),
        ({"model_folder": "x"}, "`output_dir`"),
        ({"model_folder": "x", "output_dir": "./x"}, "another folder"),
        ({"model_folder": "x", "output_dir": "y", "quantize": True}, "`quantize`"),
        ({"model_folder": "x", "output_dir": "y", "top_k": 0}, "`top_k`"),
    ],
)
def test_a_mistake_costs_one_line(flags, part):
    result = programs.call("export_model", **flags)
    assert result.exit_code == 1 and part in result.stderr and result.stderr.count("\n") == 1


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_a_model_in_mixed_precision_is_exported_and_read_again(policy, tmp_path):
    made_folders.write(tmp_path, "classes")
    whole = exported_model.ExportedModel(trained_models.load(tmp_path))
    keras.config.set_dtype_policy(policy)
    try:
        mixed = exported_model.ExportedModel(trained_models.load(tmp_path))
        run = export_formats.write(mixed, str(tmp_path / "out"), "saved_model")
    finally:
        keras.config.set_dtype_policy("float32")
    assert mixed.model.compute_dtype == policy.removeprefix("mixed_")
    assert export_formats.difference(run, mixed) < 0.1
    assert 1e-6 < export_formats.difference(run, whole) < 0.5


def test_a_sequence_longer_than_the_table_of_positions_is_an_error(made):
    _, out, exported = made("classes")
    run = export_formats.saved_runner(str(out), "ids")
    with pytest.raises(tf.errors.InvalidArgumentError, match="48"):
        run(ids_of(exported, 1, made_folders.LONGEST + 1))

import json
import sys

import keras
import made_exports
import made_folders
import made_rows
import numpy as np
import programs
import pytest
import tensorflow as tf
from made_exports import FILES, SERVE, STORY, ids_of, succeed

from serving import export_checks, export_formats, exported_model, trained_models

SHAPES = [(1, 5), (3, 5), (1, 40), (3, 40)]
KINDS = list(made_folders.TASKS)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_exports.maker(tmp_path_factory)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_of_any_batch_and_length_give_the_models_outputs(kind, made):
    _, out, exported = made(kind)
    run = export_formats.saved_runner(str(out), "ids")
    for shape in SHAPES:
        batch = ids_of(exported, *shape)
        inputs = {name: tf.constant(values) for name, values in batch.items()}
        expected = exported.trained.model(inputs)
        found = run(batch)
        for name in expected.keys() & found.keys():
            if kind == "answerable" and "end" in name:
                continue  # Ties among impossible beams; the legal ones are compared below.
            np.testing.assert_allclose(found[name], expected[name], atol=1e-5, rtol=1e-5)
        assert expected.keys() & found.keys()


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
    command = [sys.executable, "-c", SERVE, out, *(tmp_path / f"{name}.npz" for name in FILES)]
    stderr = succeed(command, tmp_path)
    found = np.load(tmp_path / "found.npz")
    for number, shape in enumerate(SHAPES):
        inputs = {n: tf.constant(v) for n, v in ids_of(exported, *shape).items()}
        logits = exported.trained.model(inputs)["logits"]
        np.testing.assert_allclose(found[f"ids-{number}/logits"], logits, atol=1e-5)
        texts = {n: tf.constant(cases[f"text-{number}/{n}"]) for n in ("text", "text_b")}
        logits = exported.trained.model(exported.features(**texts))["logits"]
        np.testing.assert_allclose(found[f"text-{number}/logits"], logits, atol=1e-5)
        assert set(found[f"text-{number}/label"]) <= set(made_folders.LABELS)
    assert "custom gradients" not in stderr


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


@pytest.mark.parametrize("kind", ["classes", "answerable", "choice", "pretraining"])
def test_weights_in_the_graph_stand_in_it_once_and_give_the_same(kind, made, tmp_path):
    folder, _, exported = made(kind)
    flags = {"model_folder": folder, "output_dir": tmp_path, "constant_weights": True}
    programs.succeed(programs.call("export_model", **flags))
    report = json.loads((tmp_path / "export.json").read_text())
    assert report["constant_weights"]
    assert set(report["check"]["largest_difference"]) == {"ids", "text"}
    assert max(report["check"]["largest_difference"].values()) < 1e-5
    kernel = max((v.numpy() for v in exported.model.variables), key=lambda values: values.nbytes)
    assert (tmp_path / "saved_model.pb").read_bytes().count(kernel.tobytes()) == 1
    stored = tf.train.list_variables(str(tmp_path / "variables" / "variables"))
    assert [name for name, _ in stored] == ["_CHECKPOINTABLE_OBJECT_GRAPH"]


def test_weights_beyond_what_a_graph_can_hold_are_refused(made, tmp_path, monkeypatch):
    folder, _, _ = made("classes")
    monkeypatch.setattr(exported_model, "LARGEST_GRAPH", 1000)
    flags = {"model_folder": folder, "output_dir": tmp_path, "constant_weights": True}
    result = programs.call("export_model", **flags)
    assert result.exit_code == 1 and "`constant_weights` must be" in result.stderr
    assert result.stderr.count("\n") == 1 and not any(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["classes", "answerable"])
def test_tflite_in_a_remote_folder_gives_what_the_model_gives(kind, made, tmp_path):
    folder, _, _ = made(kind)
    flags = {"model_folder": folder, "format": "tflite"}
    programs.succeed(programs.call("export_model", output_dir=f"file://{tmp_path}/float", **flags))
    report = json.loads((tmp_path / "float" / "export.json").read_text())
    assert report["check"]["inputs"] == 20
    assert report["check"]["largest_difference"]["ids"] < 1e-3


def test_tflite_in_int8_is_smaller_and_near(made, tmp_path):
    _, _, exported = made("classes")
    whole = export_formats.to_tflite(exported, quantize=False)
    run = export_formats.write(exported, str(tmp_path), "tflite", quantize=True)
    assert (tmp_path / "model.tflite").stat().st_size < len(whole)
    assert 1e-6 < export_checks.difference(run, exported) < 0.5


def test_onnx_gives_what_the_model_gives_or_names_the_extra(made, tmp_path):
    folder, _, _ = made("classes")
    flags = {"model_folder": folder, "output_dir": f"file://{tmp_path}", "format": "onnx"}
    result = programs.call("export_model", **flags)
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
        (
            {"model_folder": "x", "output_dir": "y", "format": "onnx", "constant_weights": True},
            "`constant_weights`",
        ),
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
    assert export_checks.difference(run, mixed) < 0.1
    assert 1e-6 < export_checks.difference(run, whole) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_what_was_trained_in_half_precision_is_exported_in_float32(precision, tmp_path):
    """Row X08 of user-demands.md."""
    own, encoder = made_rows.write_own(tmp_path), made_rows.encoder(tmp_path)
    settings = {**own, **encoder, **made_rows.TWO_STEPS, "num_train_steps": 5}
    settings |= {"precision": precision, "output_dir": tmp_path / "run"}
    programs.succeed(programs.call("run_classifier", **settings))
    flags = {"model_folder": tmp_path / "run", "output_dir": tmp_path / "out"}
    programs.succeed(programs.call("export_model", **flags))
    report = json.loads((tmp_path / "out" / "export.json").read_text())
    assert max(report["check"]["largest_difference"].values()) < 1e-5


def test_a_sequence_longer_than_the_table_of_positions_is_an_error(made):
    _, out, exported = made("classes")
    run = export_formats.saved_runner(str(out), "ids")
    with pytest.raises(tf.errors.InvalidArgumentError, match="48"):
        run(ids_of(exported, 1, made_folders.LONGEST + 1))

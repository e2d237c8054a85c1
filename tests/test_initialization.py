import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from conftest import golden_folder
from made_weights import BERT, HEAD, tensors, variables, write_checkpoint, write_safetensors

from training import initialization

EXTRA = {"bert/encoder/kernel/adam_m": (3, 2), "bert/encoder/kernel/adam_v": (3, 2)}


def translation(sources, **others):
    return {"sources": sources, "ignored": (), "optional": (), "notes": (), **others}


def test_slots_and_counters_are_ignored_and_counted(tmp_path):
    values = {**tensors({**BERT, **HEAD, **EXTRA}), "global_step": np.int64(5)}
    loaded = variables({**BERT, **HEAD})
    line = initialization.initialize(loaded, write_checkpoint(tmp_path / "m", values))
    for name, variable in loaded.items():
        np.testing.assert_array_equal(variable, values[name])
    assert line.endswith(
        "matched 3 of 3, ignored 2 optimizer slots and 1 (global_step), missing 0, unused 0."
    )


def test_a_renamed_scope_is_an_error_that_counts_nothing_matched(tmp_path):
    values = {name.replace("bert", "xbert"): v for name, v in tensors(BERT).items()}
    loaded = variables(BERT)
    with pytest.raises(ValueError, match=r"matched 0 of 2.*unused 2 \(xbert/encoder/bias"):
        initialization.initialize(loaded, write_checkpoint(tmp_path / "m", values), "bert/")
    for variable in loaded.values():
        np.testing.assert_array_equal(variable, 0)


def test_a_missing_head_is_listed_by_name_and_allowed_where_only_the_encoder_is_required(tmp_path):
    prefix = write_checkpoint(tmp_path / "m", tensors(BERT))
    line = initialization.initialize(variables({**BERT, **HEAD}), prefix, "bert/")
    assert "matched 2 of 3" in line and "missing 1 (cls/predictions/output_bias)" in line
    for required in ("", ("bert/", "cls/predictions/")):
        with pytest.raises(ValueError, match=r"trained first.*missing 1 \(cls/predictions/output"):
            initialization.initialize(variables({**BERT, **HEAD}), prefix, required)


def test_what_is_left_keeps_its_values_and_may_have_another_shape(tmp_path):
    values = tensors({**BERT, **HEAD})
    prefix = write_checkpoint(tmp_path / "m", values)
    loaded = variables({**BERT, "cls/predictions/output_bias": (7,)})
    with pytest.raises(ValueError, match=r"output_bias \(model \[7\], checkpoint \[5\]\)"):
        initialization.initialize(loaded, prefix)
    line = initialization.initialize(loaded, prefix, leave=("cls/predictions/",))
    assert "matched 2 of 3" in line and "missing 0, unused 0" in line
    assert "left as they were 1 (cls/predictions/output_bias)" in line
    np.testing.assert_array_equal(loaded["cls/predictions/output_bias"], 0)
    np.testing.assert_array_equal(loaded["bert/encoder/bias"], values["bert/encoder/bias"])


def test_a_mismatched_shape_is_named_with_both_values_and_nothing_is_loaded(tmp_path):
    prefix = write_checkpoint(tmp_path / "m", tensors({**BERT, "bert/encoder/bias": (768,)}))
    loaded = variables({**BERT, "bert/encoder/bias": (128,)})
    expected = r"bert/encoder/bias \(model \[128\], checkpoint \[768\]\)"
    with pytest.raises(ValueError, match=expected):
        initialization.initialize(loaded, prefix)
    np.testing.assert_array_equal(loaded["bert/encoder/kernel"], 0)


def test_weights_are_found_and_turned_as_the_translation_says(tmp_path):
    values = {"w": tensors(BERT)["bert/encoder/kernel"].T, "b": np.ones(2, np.float32)}
    path = write_safetensors(tmp_path / "model.safetensors", {**values, "c": np.ones(1)})
    asked = []

    def translate(weights, shapes):
        asked.append((sorted(weights.shapes), shapes))
        sources = {"bert/encoder/kernel": ("w", True), "bert/encoder/bias": ("b", False)}
        return translation(sources, ignored=["c"], optional=("cls/",), notes=["Said."])

    loaded = variables({**BERT, **HEAD})
    line = initialization.initialize(loaded, path, translate=translate)
    np.testing.assert_array_equal(loaded["bert/encoder/kernel"], values["w"].T)
    np.testing.assert_array_equal(loaded["bert/encoder/bias"], values["b"])
    assert line == (
        f"{path}: matched 2 of 3, ignored 0 optimizer slots and 1 (c), "
        "missing 1 (cls/predictions/output_bias), unused 0. Said."
    )
    assert asked == [(["b", "c", "w"], {n: list(s) for n, s in {**BERT, **HEAD}.items()})]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_weights_of_other_precisions_come_as_the_models(dtype, tmp_path):
    values = {name: value.astype(dtype) for name, value in tensors(BERT).items()}
    loaded = variables(BERT)
    initialization.initialize(loaded, write_safetensors(tmp_path / "model.safetensors", values))
    for name, variable in loaded.items():
        np.testing.assert_array_equal(variable, values[name].astype(np.float32))


def test_quantized_weights_are_refused(tmp_path):
    values = {**tensors(BERT), "bert/encoder/kernel": np.ones((3, 2), np.int8)}
    path = write_safetensors(tmp_path / "model.safetensors", values)
    with pytest.raises(ValueError, match=r"int8 for bert/encoder/kernel in .*quantized"):
        initialization.initialize(variables(BERT), path)


FULL_STATES = sorted(golden_folder("tf1_checkpoint").glob("*/*-model.ckpt-*.index"))


@pytest.mark.parametrize("index", FULL_STATES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_full_states_load_their_weights_and_count_their_slots(index):
    reader = tf.train.load_checkpoint(str(index.with_suffix("")))
    shapes = reader.get_variable_to_shape_map()
    slots = [name for name in shapes if name.endswith(("/adam_m", "/adam_v"))]
    loaded = variables({n: s for n, s in shapes.items() if n not in slots and n != "global_step"})
    assert len(slots) == 2 * len(loaded)
    line = initialization.initialize(loaded, index)
    assert f"matched {len(loaded)} of {len(loaded)}, ignored {len(slots)} optimizer slots" in line
    for name, variable in loaded.items():
        np.testing.assert_array_equal(variable, reader.get_tensor(name))

"""What convert_checkpoint.py writes is what it read, in every form and through all of them."""

import itertools
import json
import shutil

import made_sources
import made_tokenizers
import numpy as np
import programs
import pytest
import tensorflow as tf
from conftest import golden_folder
from made_weights import write_checkpoint

from conversion import model_comparison, model_sources
from folders import model_folder
from runs import question_answers

PRETRAINED = golden_folder("tf1_checkpoint")
HEADS = golden_folder("finetune_heads")
GOLDENS = sorted([*PRETRAINED.glob("*/*.index"), *HEADS.glob("*.index")])
TOLD_KINDS = {"race": {"kind": "choice"}, "regression": {"kind": "number"}}
FORMS = ("google", "huggingface", "keras", "folder")
KINDS = {  # With a plan of sharing each, so that both vary.
    "encoder": {"num_hidden_groups": 2, "num_hidden_layers": 5},
    "pretraining": {},
    "classes": {"inner_group_num": 2},
    "number": {"hidden_act": "relu", "hidden_dropout_prob": 0.1},
    "multilabel": {"embedding_size": 16},
    "choice": {"sharing": "none"},
    "span": {"type_vocab_size": 3},
    "answerable": {"hidden_act": "tanh"},
}


def convert(source, to, folder, **flags):
    """Converts with the program, and returns what it prints."""
    flags = {"init_checkpoint": source, "to": to, "output_dir": folder, **flags}
    return programs.succeed(programs.call("convert_checkpoint", **flags)).stdout


def refused(*words, **flags):
    """Returns the message of the program, which must fail."""
    result = programs.call("convert_checkpoint", *words, **flags)
    assert result.exit_code == 1
    return result.stderr


def arrays_in(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def assert_equal_files(found, expected):
    found, expected = arrays_in(found), arrays_in(expected)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)


def kind_flags(index):
    return TOLD_KINDS.get(index.name.split("-")[0], {})


@pytest.mark.parametrize("index", GOLDENS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_checkpoints_to_hugging_face_and_back_are_bit_equal(index, tmp_path):
    prefix = index.with_suffix("")
    if "start_logits/dense/kernel" in arrays_in(prefix):
        flags = {"init_checkpoint": prefix, "to": "huggingface", "output_dir": tmp_path / "hf"}
        assert "XLNet's beam search" in refused(**flags) and not (tmp_path / "hf").exists()
        return
    printed = convert(prefix, "huggingface", tmp_path / "hf", **kind_flags(index))
    assert "sequence_output: largest difference 0\n" in printed
    convert(tmp_path / "hf", "google", tmp_path / "back")
    expected = {
        name: array
        for name, array in arrays_in(prefix).items()
        if name.split("/")[-1] not in ("adam_m", "adam_v", "global_step")
    }
    write_checkpoint(tmp_path / "weights", expected)
    assert_equal_files(tmp_path / "back" / "model.ckpt-best", tmp_path / "weights")


TRAINED = [index for index in GOLDENS if index.name.startswith(("lamb", "adamw"))]


@pytest.mark.parametrize("index", TRAINED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_golden_slots_and_counter_are_kept_where_asked_for(index, tmp_path):
    """K01: left alone, they are counted and stay behind."""
    prefix = index.with_suffix("")
    convert(prefix, "folder", tmp_path / "folder", with_slots=True)
    convert(tmp_path / "folder", "google", tmp_path / "back", with_slots=True)
    assert_equal_files(tmp_path / "back" / "model.ckpt-best", prefix)
    number = sum(name.endswith(("adam_m", "adam_v")) for name in arrays_in(prefix))
    printed = convert(prefix, "google", tmp_path / "without")
    assert number and f"ignored {number} optimizer slots and 1 (global_step)" in printed
    kept = arrays_in(tmp_path / "without" / "model.ckpt-best")
    assert len(kept) == number // 2 + 1 and kept["global_step"] == 10


def every_hop(forms):
    """Returns a closed walk on which each form follows each other once (Hierholzer)."""
    left = {form: [other for other in forms if other != form] for form in forms}
    stack, walk = [forms[0]], []
    while stack:
        if left[stack[-1]]:
            stack.append(left[stack[-1]].pop())
        else:
            walk.append(stack.pop())
    return walk


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_passes_from_every_form_into_every_other_and_is_bit_equal(kind, tmp_path):
    tokenizer = made_tokenizers.wordpiece_tokenizer(lower=False, keep_accents=True)
    first = made_sources.random_source(kind, tokenizer, **KINDS[kind])
    refusing = {"encoder": {"keras"}, "answerable": {"huggingface"}}.get(kind, set())
    forms = [form for form in FORMS if form not in refusing]
    source, walk = first, every_hop(forms)
    assert len(set(itertools.pairwise(walk))) == len(forms) * (len(forms) - 1) == len(walk) - 1
    for number, form in enumerate(walk):
        source = made_sources.hop(source, form, tmp_path / str(number))
        made_sources.assert_same_model(source, first)
    for form in refusing:
        with pytest.raises(ValueError, match="whole model|XLNet"):
            made_sources.hop(first, form, tmp_path / form)


def test_a_bert_passes_to_hugging_face_and_a_folder_and_not_to_google(tmp_path):
    first = made_sources.random_source("pretraining", **made_sources.BERT_LIKE)
    there = made_sources.hop(first, "huggingface", tmp_path / "hf")
    assert model_sources.weight_files.open_weights(tmp_path / "hf").shapes[
        "bert.encoder.layer.2.attention.self.query.weight"
    ] == [16, 16]
    back = made_sources.hop(there, "folder", tmp_path / "folder")
    made_sources.assert_same_model(back, first)
    with pytest.raises(ValueError, match="gelu_erf.*huggingface"):
        made_sources.hop(first, "google", tmp_path / "google")


def test_blocks_that_only_this_repository_shares_are_refused_elsewhere(tmp_path):
    source = made_sources.random_source("encoder", sharing="attention")
    for form in ("google", "huggingface"):
        with pytest.raises(ValueError, match="sharing=attention, 3 layers.*to=folder"):
            made_sources.hop(source, form, tmp_path / form)
    made_sources.assert_same_model(made_sources.hop(source, "folder", tmp_path / "f"), source)


@pytest.mark.parametrize("without", [["cls/seq_relationship"], ["bert/pooler", "cls/seq"]])
def test_what_a_model_lacks_is_lacking_after_every_hop(without, tmp_path):
    source = made_sources.random_source("pretraining", without=without)
    there = made_sources.hop(source, "huggingface", tmp_path / "hf")
    made_sources.assert_same_model(there, source)
    names = model_comparison.outputs(there, model_comparison.fixed_batch(there.config))
    pooled = {"pooled_output"} - ({"pooled_output"} if "bert/pooler" in without else set())
    assert names.keys() == {"sequence_output", "masked_lm_logits", *pooled}
    with pytest.raises(ValueError, match="without .*`--to=folder`"):
        made_sources.hop(source, "keras", tmp_path / "keras")


def test_masked_lm_logits_are_the_goldens_after_conversion(tmp_path):
    """K11: the head is loaded, and its output is the embedding table."""
    golden = PRETRAINED / "a_shared"
    convert(golden / "model.ckpt-best", "huggingface", tmp_path / "hf")
    source = model_sources.read(tmp_path / "hf")
    stored = np.load(golden / "forward.npz")
    names = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")
    logits = model_sources.build(source)({name: tf.constant(stored[name]) for name in names})
    found = tf.nn.log_softmax(logits["masked_lm_logits"]).numpy()
    expected = stored["mlm_log_probs"].reshape(found.shape)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_googles_form_is_read_by_the_originals_own_means(tmp_path):
    """K16: `tf.compat.v1.train.Saver` restores graph variables of the original's names."""
    source = made_sources.with_slots(made_sources.random_source("pretraining"))
    made_sources.hop(source, "google", tmp_path / "google")
    latest = tf.train.latest_checkpoint(str(tmp_path / "google"))
    expected = {**source.arrays, **source.slots, "global_step": np.int64(7)}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {
            name: tf.compat.v1.get_variable(name, array.shape, tf.as_dtype(array.dtype))
            for name, array in expected.items()
        }
        tf.compat.v1.train.Saver().restore(session, latest)
        restored = session.run(variables)
    for name, array in expected.items():
        np.testing.assert_array_equal(restored[name], array, err_msg=name)


@pytest.fixture(scope="module")
def odd_checkpoint(tmp_path_factory):
    """A whole encoder with both heads, and a head that nobody knows."""
    folder = tmp_path_factory.mktemp("odd")
    source = made_sources.random_source("pretraining")
    made_sources.hop(source, "google", folder / "google")
    extra = {"my_head/kernel": np.ones((16, 2), np.float32)}
    write_checkpoint(folder / "google" / "model.ckpt-best", {**source.arrays, **extra})
    return folder / "google"


def test_a_head_that_is_unknown_is_listed_and_refused_if_all_must_be_kept(odd_checkpoint, tmp_path):
    """K02."""
    printed = convert(odd_checkpoint, "huggingface", tmp_path / "hf")
    assert "missing 0, unused 1 (my_head/kernel)" in printed
    flags = {"init_checkpoint": odd_checkpoint, "to": "google", "output_dir": tmp_path / "g"}
    assert "Received: 1 (my_head/kernel)" in refused(**flags, strict=True)
    assert not (tmp_path / "g").exists()


def test_verify_prints_the_largest_difference_of_each_output_and_fails_on_one(
    odd_checkpoint, tmp_path
):
    """K10, K15."""
    convert(odd_checkpoint, "huggingface", tmp_path / "same")
    words = ("--verify", str(odd_checkpoint), str(tmp_path / "same"))
    printed = programs.succeed(programs.call("convert_checkpoint", *words)).stdout
    for name in ("masked_lm_logits", "pooled_output", "sentence_order_logits", "sequence_output"):
        assert f"{name}: largest difference 0\n" in printed
    source = model_sources.read(odd_checkpoint)
    source.arrays["cls/seq_relationship/output_bias"][1] += 0.01
    made_sources.hop(source, "google", tmp_path / "other")
    result = programs.call(
        "convert_checkpoint", "--verify", str(odd_checkpoint), str(tmp_path / "other")
    )
    assert result.exit_code == 1 and "sentence_order_logits: largest difference 0.01" in (
        result.stdout
    )
    assert "which differ in sentence_order_logits." in result.stderr


def test_two_models_of_one_encoder_are_compared_as_far_as_they_go(odd_checkpoint, tmp_path):
    convert(odd_checkpoint, "folder", tmp_path / "encoder", kind="encoder")
    words = ("--verify", str(odd_checkpoint), str(tmp_path / "encoder"))
    printed = programs.succeed(programs.call("convert_checkpoint", *words)).stdout
    assert "sequence_output: largest difference 0\n" in printed and "masked_lm" not in printed
    assert "weights: 25 of 32 equal bit by bit" in printed


def test_verify_takes_a_config_for_the_source_that_has_none(odd_checkpoint, tmp_path):
    convert(odd_checkpoint, "folder", tmp_path / "grown")
    shutil.copytree(odd_checkpoint, tmp_path / "bare")
    config = (tmp_path / "bare" / "albert_config.json").rename(tmp_path / "config.json")
    words = ("--verify", str(tmp_path / "bare"), str(tmp_path / "grown"))
    assert "`albert_config_file` names another" in refused(*words)
    result = programs.call("convert_checkpoint", *words, albert_config_file=config)
    assert "sequence_output: largest difference 0\n" in programs.succeed(result).stdout


def test_models_of_other_sizes_are_told_apart_and_not_compared(odd_checkpoint, tmp_path):
    made_sources.hop(
        made_sources.random_source("encoder", hidden_size=32), "google", tmp_path / "wide"
    )
    message = refused("--verify", str(odd_checkpoint), str(tmp_path / "wide"))
    assert "pooled_output" in message or "sequence_output" in message


@pytest.mark.parametrize(
    ("words", "flags", "message"),
    [
        ((), {"init_checkpoint": "x"}, "no `to`, `output_dir`"),
        (("a",), {"init_checkpoint": "x"}, "two sources, with --verify"),
        (("--verify", "a"), {}, "two sources, with --verify"),
        (("--verify", "--check", "a", "b"), {}, "one folder, with --check"),
        (
            ("--verify", "a", "b"),
            {"to": "folder", "add_tokens": "mrna", "kind": "span"},
            "--verify must come with `kind` and `albert_config_file` alone. Received: to, add_",
        ),
        (("--check", "a"), {"kind": "span"}, "--check must come with no other flag alone"),
    ],
)
def test_a_command_line_must_say_one_thing_to_do(words, flags, message):
    assert message in refused(*words, **flags)


def test_a_folder_that_holds_something_is_not_written_to(odd_checkpoint):
    flags = {"init_checkpoint": odd_checkpoint, "to": "folder", "output_dir": odd_checkpoint}
    assert "`output_dir` must be empty or new" in refused(**flags)


def test_safetensors_go_to_a_local_disk_and_nothing_is_written_before(odd_checkpoint, tmp_path):
    flags = {"init_checkpoint": odd_checkpoint, "to": "huggingface"}
    message = refused(**flags, output_dir=f"file://{tmp_path}/hf")
    assert "must be written to a local disk" in message and not any((tmp_path / "hf").iterdir())


def test_slots_go_where_they_can_and_must_be_there(odd_checkpoint, tmp_path):
    flags = {"init_checkpoint": odd_checkpoint, "output_dir": tmp_path / "out", "with_slots": True}
    assert "Leave out `with_slots`" in refused(to="google", **flags)
    with pytest.raises(ValueError, match="google and folder alone"):
        source = made_sources.with_slots(made_sources.random_source("encoder"))
        made_sources.hop(source, "huggingface", tmp_path / "hf")


def test_a_head_of_one_output_must_be_told_what_it_is_for(tmp_path):
    prefix = tmp_path / "google" / "model.ckpt-best"
    source = made_sources.random_source("number")
    made_sources.hop(source, "google", tmp_path / "google")
    (tmp_path / "google" / "task.json").unlink()
    flags = {"init_checkpoint": prefix, "to": "huggingface", "output_dir": tmp_path / "hf"}
    assert "`kind` number or choice" in refused(**flags)
    assert "`kind` must be that of the weights, number" not in refused(**flags, kind="span")
    convert(prefix, "huggingface", tmp_path / "hf", kind="choice")
    assert model_sources.read(tmp_path / "hf").kind == "choice"
    convert(prefix, "folder", tmp_path / "encoder", kind="encoder")
    assert not model_sources.read(tmp_path / "encoder").has("output_")


def test_any_head_is_left_behind_where_the_encoder_is_asked_for(tmp_path):
    made_sources.hop(made_sources.random_source("number"), "keras", tmp_path / "keras")
    convert(tmp_path / "keras", "google", tmp_path / "google", kind="encoder")
    assert model_sources.read(tmp_path / "google").kind == "encoder"
    flags = {"init_checkpoint": tmp_path / "keras", "to": "google", "output_dir": tmp_path / "g"}
    assert "must be that of the weights, classes or number or mult" in refused(**flags, kind="span")


@pytest.mark.parametrize("to", ["google", "keras", "folder"])
def test_the_threshold_of_squad_2_goes_with_its_head(to, tmp_path):
    made_sources.hop(made_sources.random_source("answerable"), "folder", tmp_path / "squad")
    kept = {"value": -3.25, "source": "tuned on dev.json"}
    (tmp_path / "squad" / model_folder.THRESHOLD).write_text(json.dumps(kept))
    convert(tmp_path / "squad", to, tmp_path / "out")
    found = question_answers.kept_threshold(str(tmp_path / "out"))
    assert found == (-3.25, "kept with the model, tuned on dev.json", False)
    if to != "keras":  # Its files are of whole models.
        convert(tmp_path / "squad", to, tmp_path / "encoder", kind="encoder")
        assert not (tmp_path / "encoder" / model_folder.THRESHOLD).exists()

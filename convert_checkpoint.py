"""Turns a model into another form: Google's TF1, Hugging Face's, Keras's, or a run's folder.

    python convert_checkpoint.py --init_checkpoint=albert_base --to=huggingface --output_dir=out
    python convert_checkpoint.py --verify albert_base out
    python convert_checkpoint.py --check out

A source is a run's --output_dir, Google's archive, prefix or file, Hugging Face's folder
(safetensors), or a .keras file. What was written is read again and compared: weights bit by bit,
and what both compute of a fixed input. --verify compares two sources, and ends with an error where
they differ; --check lists what a folder lacks.
"""

import os

from absl import flags

import command_line

INIT_CHECKPOINT = flags.DEFINE_string("init_checkpoint", None, "The model to be converted.")
TO = flags.DEFINE_enum("to", None, ["google", "huggingface", "keras", "folder"], "The form.")
OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Folder to write; new, or empty.")
KIND = flags.DEFINE_enum(
    "kind",
    None,
    ["encoder", "pretraining", "classes", "number", "multilabel", "choice", "span", "answerable"],
    "What the model is for, where its files do not tell; encoder leaves any head behind.",
)
WITH_SLOTS = flags.DEFINE_boolean(
    "with_slots", False, "Keep the optimizer's slots, to google and folder."
)
STRICT = flags.DEFINE_boolean(
    "strict", False, "Refuse a source that lacks a weight or has one that no form of it keeps."
)
ADD_TOKENS = flags.DEFINE_list(
    "add_tokens", [], "Pieces to add to vocabulary and model, with commas between."
)
TOKENIZER = flags.DEFINE_string(
    "tokenizer", None, "Tokenizer to use instead of the source's; pieces beyond its are added."
)
ALBERT_CONFIG_FILE = flags.DEFINE_string(
    "albert_config_file", None, "Config, where none lies beside the weights."
)
VERIFY = flags.DEFINE_boolean("verify", False, "Compare the two sources that are named.")
CHECK = flags.DEFINE_boolean("check", False, "List what the folder that is named lacks.")
BESIDE = {"verify": ("kind", "albert_config_file"), "check": ()}  # What they take, too.


def check_words(words):
    """Refuses a command line that does not say one thing to do."""
    wanted = 2 * VERIFY.value + CHECK.value
    if VERIFY.value and CHECK.value or len(words) != wanted:
        raise ValueError(
            "Words may be two sources, with --verify, or one folder, with --check. Received: "
            f"{' '.join(words) or 'none'}."
        )
    needed = {"init_checkpoint": INIT_CHECKPOINT, "to": TO, "output_dir": OUTPUT_DIR}
    missing = [f"`{name}`" for name, flag in needed.items() if not flag.value]
    if not words and missing:
        raise ValueError(
            f"A conversion needs {' and '.join(f'`{name}`' for name in needed)}. Received: no "
            f"{', '.join(missing)}."
        )
    if words:
        check_beside("verify" if VERIFY.value else "check")


def check_beside(what):
    """Refuses flags that mean nothing beside a key of BESIDE."""
    taken = (*BESIDE, *BESIDE[what])
    flags_given = filter(command_line.is_given, command_line.program_flags())
    idle = [name for name in flags_given if name not in taken]
    if idle:
        others = " and ".join(f"`{name}`" for name in BESIDE[what]) or "no other flag"
        raise ValueError(f"--{what} must come with {others} alone. Received: {', '.join(idle)}.")


def check(folder):
    """Prints what a folder lacks.

    Raises:
        ValueError: something is missing.
    """
    from folders import folder_gaps

    found = folder_gaps.gaps(folder)
    for gap in found:
        print(f"missing: {gap}")
    if found:
        raise ValueError(f"{folder} lacks {len(found)} of what a model's folder must hold.")
    print(f"{folder} holds weights, config, vocabulary and all that says what they mean.")


def compare(source_a, source_b):
    """Prints how far two models differ.

    Raises:
        ValueError: by more than float32 allows.
    """
    from conversion import model_comparison

    equal, number = model_comparison.equal_arrays(source_a, source_b)
    print(f"weights: {equal} of {number} equal bit by bit")
    print(model_comparison.compare_tokenizers(source_a, source_b))
    differences = model_comparison.largest_differences(source_a, source_b)
    for name, difference in sorted(differences.items()):
        print(f"{name}: largest difference {difference:.2g}")
    worst = [n for n, d in differences.items() if not d <= model_comparison.TOLERANCE]
    if worst:
        raise ValueError(
            f"Outputs must agree within {model_comparison.TOLERANCE:g}. Received: {source_a.path} "
            f"and {source_b.path}, which differ in {', '.join(sorted(worst))}."
        )


def verify(path_a, path_b):
    """Compares any two sources; the config that is given is that of one without its own."""
    from conversion import model_sources
    from folders import model_folder

    given, sources = given_config(), []
    for path in (path_a, path_b):
        config = None if model_folder.read_config(path) else given
        sources.append(model_sources.read(path, kind=KIND.value, config=config))
        print(sources[-1].line)
    compare(*sources)


def given_config():
    """Returns the AlbertConfig that a flag names, or None."""
    from modeling.config import AlbertConfig

    path = ALBERT_CONFIG_FILE.value
    return AlbertConfig.from_json_file(path) if path else None


def given_tokenizer():
    """Returns the Tokenizer that a flag names, a file or what a folder holds, or None."""
    from data import files, tokenization
    from folders import model_folder

    path = TOKENIZER.value
    if not path:
        return None
    is_ours = files.exists(os.path.join(path, tokenization.SETTINGS_FILE))
    held = None if is_ours or not files.is_folder(path) else model_folder.read_tokenizer(path)
    return held or tokenization.load(path)


def read_source():
    """Reads what is to be converted, with the pieces that are to be added."""
    from conversion import model_sources, vocabulary_growth

    tokenizer = given_tokenizer()
    source = model_sources.read(
        INIT_CHECKPOINT.value,
        kind=KIND.value,
        with_slots=WITH_SLOTS.value,
        config=given_config(),
    )
    print(source.line)
    if STRICT.value and source.left_over:
        raise ValueError(
            "With `strict` every weight must be converted. Received: "
            f"{model_sources.initialization.listed(source.left_over)}."
        )
    if tokenizer:
        source = vocabulary_growth.with_tokenizer(source, tokenizer)
    if ADD_TOKENS.value:
        source = vocabulary_growth.with_tokens(source, ADD_TOKENS.value)
    return source


def convert(source, form, folder):
    """Writes a model, reads it again, compares, and says what the folder lacks."""
    from conversion import model_sources, model_writers
    from folders import folder_gaps

    model_writers.write(source, form, folder)
    print(f"{folder}: {form}, {source.kind}, {len(source.arrays)} weights. Read again:")
    again = model_sources.read(folder, kind=source.kind, with_slots=bool(source.slots))
    compare(source, again)
    for gap in folder_gaps.gaps(folder):
        print(f"warning: {folder} lacks {gap}")


def main(words):
    check_words(words)
    command_line.prepare_tensorflow()
    command_line.compile_quietly()
    if VERIFY.value:
        verify(*words)
    elif CHECK.value:
        check(*words)
    else:
        convert(read_source(), TO.value, OUTPUT_DIR.value)


if __name__ == "__main__":
    command_line.run(main, takes_arguments=True)

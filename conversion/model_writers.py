"""Writes a whole model in each of the forms that `model_sources` reads.

Only programs import this module.
"""

import os

import numpy as np

from conversion import model_kinds, model_sources
from data import files, hugging_face_tokenizers
from folders import foreign_folders, model_folder
from modeling import foreign_configs, hugging_face_states
from training import checkpoint_files, weight_writing

GOOGLE_PREFIX = "model.ckpt-best"  # As in Google's releases.
GOOGLE_PIECES = {"sentencepiece": "spm.model", "wordpiece": "vocab.txt"}
HUGGING_FACE_WEIGHTS = "model.safetensors"
CLASSIFIER_DROPOUT, BERT_CLASSIFIER_DROPOUT = model_kinds.DROPOUT_KEYS
PROBLEM_TYPES = {
    kind: problem for problem, kind in model_kinds.HUGGING_FACE_KINDS.items() if kind != "choice"
}


def write(source, form, folder):
    """Writes a model.

    Args:
        source: model_sources.Source.
        form: a key of FORMS.
        folder: path, of an empty folder or of none.

    Raises:
        ValueError: the form cannot hold the model, or the folder holds something.
    """
    if files.exists(folder) and files.names_in(folder):
        raise ValueError(f"`output_dir` must be empty or new. Received: {folder}, which is not.")
    if source.slots and form not in WITH_SLOTS:
        raise ValueError(
            f"Optimizer slots can be kept in {' and '.join(WITH_SLOTS)} alone. Received: {form}."
        )
    CHECKS[form](source)
    files.check_folder(folder)
    FORMS[form](source, folder)


def check_google(source):
    foreign_configs.check_google(source.config)


def check_hugging_face(source):
    foreign_configs.to_hugging_face(source.config)
    hugging_face_states.class_name(source.kind, source.arrays)


def check_keras(source):
    """Refuses a model that is not whole: a `.keras` file has all its weights."""
    names = model_sources.build(source).named_variables()
    missing = sorted(set(names) - set(source.arrays))
    if missing:
        raise ValueError(
            "A .keras file must hold a whole model. Received: one without "
            f"{', '.join(missing[:3])}{', ...' if missing[3:] else ''}. `--to=folder` takes it."
        )


def write_google(source, folder):
    """Writes a TF1 checkpoint under the original's names, its config and its vocabulary."""
    counter = {} if source.step is None else {model_sources.STEP: np.int64(source.step)}
    prefix = os.path.join(folder, GOOGLE_PREFIX)
    weight_writing.write_checkpoint(prefix, {**source.arrays, **source.slots, **counter})
    state = f'model_checkpoint_path: "{GOOGLE_PREFIX}"\n'
    files.write_bytes(os.path.join(folder, "checkpoint"), state.encode())
    write_beside(source, folder)
    if tokenizer := source.tokenizer:
        name = GOOGLE_PIECES[tokenizer.kind]
        files.write_bytes(os.path.join(folder, name), tokenizer.model_bytes)
        # Google's form has no place for these; we read them from here.
        described = hugging_face_tokenizers.own_settings(tokenizer)
        files.write_json(os.path.join(folder, foreign_folders.TOKENIZER_SETTINGS), described)


def write_hugging_face(source, folder):
    """Writes safetensors, config.json, and what AutoTokenizer loads."""
    config = source.config
    is_bert = foreign_configs.is_bert(config)
    state = hugging_face_states.state_dict(source.arrays, is_bert)
    weight_writing.write_safetensors(os.path.join(folder, HUGGING_FACE_WEIGHTS), state)
    family = "Bert" if is_bert else "Albert"
    values = {
        "architectures": [family + hugging_face_states.class_name(source.kind, source.arrays)],
        **foreign_configs.to_hugging_face(config),
        BERT_CLASSIFIER_DROPOUT if is_bert else CLASSIFIER_DROPOUT: classifier_dropout(source),
        **special_ids(source.tokenizer),
        **labels(source),
    }
    files.write_json(os.path.join(folder, foreign_folders.HUGGING_FACE), values)
    if source.tokenizer:
        longest = config.max_position_embeddings
        hugging_face_tokenizers.write(folder, source.tokenizer, longest)


def classifier_dropout(source):
    """Returns the dropout before the head: the run's, or the original's default."""
    return source.settings.get(CLASSIFIER_DROPOUT, 0.1)


def special_ids(tokenizer):
    """Returns the ids that transformers keeps in a config, as far as there is a tokenizer."""
    if tokenizer is None:
        return {}
    ids = {"pad": tokenizer.pad_id, "bos": tokenizer.cls_id, "eos": tokenizer.sep_id}
    return {f"{role}_token_id": number for role, number in ids.items()}


def labels(source):
    """Returns the keys that say what a classifier's outputs are; {} for another model."""
    if source.kind not in PROBLEM_TYPES:
        return {}
    number = len(source.arrays["output_weights"])
    names = source.labels or [f"LABEL_{i}" for i in range(number)]
    return {
        "problem_type": PROBLEM_TYPES[source.kind],
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


def write_keras(source, folder):
    """Writes what `keras.saving.load_model` loads, and the tokenizer beside it."""
    model = model_sources.build(source)
    model.save(os.path.join(folder, model_sources.KERAS_FILE))
    write_beside(source, folder)
    if source.tokenizer:
        source.tokenizer.save(os.path.join(folder, model_folder.TOKENIZER))


def write_folder(source, folder):
    """Writes a run's folder whose best weights these are."""
    model_folder.seal(
        folder,
        config=source.config,
        tokenizer=source.tokenizer,
        settings={**source.settings, model_folder.CONVERTED_FROM: source.path},
    )
    step = source.step or 0
    counter = {} if source.step is None else {model_sources.STEP: np.int64(step)}
    best = os.path.join(folder, "best", f"step-{step}")
    checkpoint_files.write(best, step, {**source.arrays, **source.slots, **counter})
    write_beside(source, folder)


def write_beside(source, folder):
    """Writes the config, the names of the classes, what the model is for, and its threshold."""
    source.config.to_json_file(os.path.join(folder, model_folder.CONFIG))
    model_folder.write_task(folder, model_kinds.describe(source), source.labels)
    threshold = model_folder.find(source.path, model_folder.THRESHOLD)
    if source.kind == "answerable" and threshold:
        kept = files.read_bytes(threshold)
        files.write_bytes(os.path.join(folder, model_folder.THRESHOLD), kept)


FORMS = {
    "google": write_google,
    "huggingface": write_hugging_face,
    "keras": write_keras,
    "folder": write_folder,
}
CHECKS = {
    "google": check_google,
    "huggingface": check_hugging_face,
    "keras": check_keras,
    "folder": lambda source: None,
}
WITH_SLOTS = ("google", "folder")

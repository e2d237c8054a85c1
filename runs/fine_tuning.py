"""What the programs of fine-tuning share: their flags, the encoder they begin with, a run.

Only programs import this module.
"""

import dataclasses
import math

from absl import flags

import command_line
from training.config import TrainConfig, setting

NUM_EVALUATIONS = 10  # In a run; the best of them is kept.
MANY_TRUNCATED = 0.5  # Share of the examples from which on it is warned of.
BY_RECIPE = (  # Of TrainConfig; see `choose_settings`.
    "optimizer",
    "learning_rate",
    "bias_correction",
    "train_batch_size",
    "num_train_steps",
    "num_warmup_steps",
    "save_checkpoints_steps",
    "iterations_per_loop",
    "keep_checkpoint_max",
    "best_metric",
    "eval_batch_size",
)
flags.disclaim_key_flags()  # They belong to the program that asks for them.


@dataclasses.dataclass(frozen=True)
class FineTuneConfig:
    """What to fine-tune and where; each field is a command-line flag too."""

    output_dir: str | None = setting(None, "Folder for all that the run writes.")
    init_checkpoint: str | None = setting(
        None,
        "Encoder to begin with: a run's folder, Google's checkpoint (prefix, file or folder), or a "
        "Hugging Face folder, of ALBERT or BERT. Its config and tokenizer are taken too.",
    )
    from_scratch: bool = setting(False, "Begin with random weights; needs --albert_config_file.")
    albert_config_file: str | None = setting(None, "Config, where --init_checkpoint has none.")
    tokenizer: str | None = setting(
        None, "Tokenizer folder, SentencePiece model or vocab.txt, where it has none."
    )
    do_lower_case: bool | None = setting(
        None, "Lower-case the text; not given: as the tokenizer folder says, else true."
    )
    do_train: bool = setting(True, "Whether to train.")
    do_eval: bool = setting(True, "Whether to score; in training, at each checkpoint.")
    do_predict: bool = setting(False, "Whether to write predictions for the test file(s).")
    max_seq_length: int | None = setting(
        None, "Longest sequence in pieces. Not given: the recipe's, or what the model takes."
    )
    num_train_epochs: float | None = setting(
        None, "Passes over the training set, in place of --num_train_steps."
    )
    warmup_proportion: float = setting(
        0.1, "Share of warm-up in the steps; not given, a recipe's in steps comes before it."
    )
    hidden_dropout_prob: float | None = setting(
        None, "Dropout of embeddings and block outputs. Not given: the recipe's."
    )
    attention_probs_dropout_prob: float | None = setting(
        None, "Dropout of attention probabilities. Not given: the recipe's."
    )
    classifier_dropout_prob: float = setting(0.1, "Dropout before the head.")
    seeds: int = setting(
        1, "Runs with seeds of their own, from --seed on; more than one prints median and spread."
    )

    def __post_init__(self):
        if not (self.do_train or self.do_eval or self.do_predict):
            raise ValueError(
                "`do_train`, `do_eval` or `do_predict` must be true. Received: none of them."
            )
        if not self.output_dir:
            raise ValueError("`output_dir` must name a folder. Received: nothing.")
        if self.seeds < 1:
            raise ValueError(f"`seeds` must be at least 1. Received: {self.seeds}.")
        if self.seeds > 1 and not self.do_train:
            raise ValueError(
                "`seeds` are of runs that train; `output_dir` may name the folder of one of them. "
                f"Received: seeds={self.seeds}, do_train=False."
            )
        epochs = self.num_train_epochs
        if epochs is not None and not 0 < epochs < math.inf:
            raise ValueError(f"`num_train_epochs` must be greater than 0. Received: {epochs}.")
        if not 0 <= self.warmup_proportion <= 1:
            raise ValueError(
                f"`warmup_proportion` must lie in [0, 1]. Received: {self.warmup_proportion}."
            )
        if not 0 <= self.classifier_dropout_prob < 1:
            raise ValueError(
                "`classifier_dropout_prob` must lie in [0, 1). Received: "
                f"{self.classifier_dropout_prob}."
            )
        if self.do_train and not self.init_checkpoint and not self.from_scratch:
            raise ValueError(
                "`init_checkpoint` must name the encoder to begin with. Received: nothing. "
                "`--from_scratch` begins with random weights, which learn far less."
            )
        if self.init_checkpoint and self.from_scratch:
            raise ValueError(
                "`from_scratch` begins with random weights. Received: from_scratch and "
                f"init_checkpoint={self.init_checkpoint}; give one of them."
            )


def define_flags():
    """Defines the flags of FineTuneConfig and TrainConfig."""
    command_line.define_flags(FineTuneConfig)
    command_line.define_flags(TrainConfig, BY_RECIPE, without=("max_eval_steps",))


def choose_encoder(tuning, recipe):
    """Returns the config and tokenizer to use: the flags', the trained run's, the encoder's.

    Args:
        tuning: FineTuneConfig.
        recipe: dict with `dropout`, of hidden states and attention, for where no flag says.

    Returns:
        (AlbertConfig, Tokenizer).

    Raises:
        FileNotFoundError, ValueError: there is none, or they do not fit each other.
    """
    from data import tokenization
    from folders import model_folder
    from modeling.config import AlbertConfig

    if tuning.do_train:
        model_folder.check_goes_on(tuning.output_dir, is_fine_tuning=True)
    sources = [tuning.init_checkpoint] if tuning.do_train else [trained_folder(tuning)]
    config = tokenizer = None
    if tuning.albert_config_file:
        config = AlbertConfig.from_json_file(tuning.albert_config_file)
    if tuning.tokenizer:
        tokenizer = tokenization.load(tuning.tokenizer, lower=tuning.do_lower_case)
    for source in filter(None, sources):
        config = config or model_folder.read_config(source)
        tokenizer = tokenizer or model_folder.read_tokenizer(source, lower=tuning.do_lower_case)
    if config is None or tokenizer is None:
        flag, part = (
            ("albert_config_file", "config") if config is None else ("tokenizer", "tokenizer")
        )
        raise FileNotFoundError(
            f"`{flag}` must be given where the encoder's folder has no {part}. Received: "
            f"init_checkpoint={tuning.init_checkpoint}."
        )
    check_vocabulary(config, tokenizer)
    if not tuning.do_train:
        return config, tokenizer
    rates = {
        name: recipe["dropout"] if getattr(tuning, name) is None else getattr(tuning, name)
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob")
    }
    return dataclasses.replace(config, **rates), tokenizer


def check_vocabulary(config, tokenizer):
    """Refuses a tokenizer whose ids the model has no rows for; warns of rows left over."""
    sizes = f"vocab_size={config.vocab_size}, a tokenizer of {tokenizer.vocab_size} pieces"
    if tokenizer.vocab_size > config.vocab_size:
        raise ValueError(f"The config's vocabulary must hold the tokenizer's. Received: {sizes}.")
    if tokenizer.vocab_size < config.vocab_size:
        print(f"warning: the model's table has rows that no piece uses: {sizes}")


def trained_folder(tuning):
    """Returns where the weights of evaluation and prediction are: those trained here, or given."""
    from folders import model_folder

    if model_folder.has_weights(tuning.output_dir):
        return tuning.output_dir
    if not tuning.init_checkpoint:
        raise FileNotFoundError(
            "Evaluation and prediction need a trained model in `output_dir`, or one that "
            f"`init_checkpoint` names. Received: {tuning.output_dir}, with none."
        )
    return tuning.init_checkpoint


def as_trained(folder, names):
    """Returns what a run's folder keeps of some settings: dict of name to value."""
    from folders import model_folder

    kept = model_folder.read_json(folder, model_folder.SETTINGS)
    return {name: kept[name] for name in names if name in kept}


def choose_length(tuning, recipe, config):
    """Returns the longest sequence, in pieces: the flag's, the trained run's, the recipe's.

    Raises:
        ValueError: the model's table of positions is shorter than the flag's.
    """
    length, most = tuning.max_seq_length, config.max_position_embeddings
    if length is None and not tuning.do_train:
        length = as_trained(trained_folder(tuning), ["max_seq_length"]).get("max_seq_length")
    if length is None:
        return min(recipe["max_seq_length"], most)
    if not 1 <= length <= most:
        raise ValueError(
            "`max_seq_length` must lie within what the model was trained for. Received: "
            f"max_seq_length={length}, max_position_embeddings={most}."
        )
    return length


def choose_settings(recipe, tuning, num_examples):
    """Returns TrainConfig: the user's flags, then the task's recipe, fitted to the training set.

    With `num_train_epochs` the steps are those of that many passes. The warm-up is
    `warmup_proportion` of the steps where that flag or epochs are given, else the recipe's
    share of them. Unless flags say otherwise, ten evaluations share the run.

    Args:
        recipe: dict of `recipes.fine_tuning`.
        tuning: FineTuneConfig.
        num_examples: int, of the training set.

    Raises:
        ValueError: both steps and epochs are given.
    """
    from data import length_batches

    names = {field.name for field in dataclasses.fields(TrainConfig)}
    settings = {name: value for name, value in recipe.items() if name in names}
    given = command_line.from_flags(TrainConfig, **settings)
    steps_are_given = command_line.is_given("num_train_steps")
    if steps_are_given and tuning.num_train_epochs is not None:
        raise ValueError(
            "The length of training is told by `num_train_steps` or by `num_train_epochs`. "
            f"Received: both, {given.num_train_steps} and {tuning.num_train_epochs}."
        )
    epochs = tuning.num_train_epochs
    if epochs is None and not steps_are_given:
        epochs = recipe.get("epochs")
    num_steps, warmup_share = given.num_train_steps, tuning.warmup_proportion
    if epochs is not None:
        per_epoch = length_batches.num_batches(num_examples, given.train_batch_size)
        num_steps = max(1, round(per_epoch * epochs))
    elif "num_train_steps" in recipe and not command_line.is_given("warmup_proportion"):
        warmup_share = recipe["num_warmup_steps"] / recipe["num_train_steps"]
    settings |= {
        "num_train_steps": num_steps,
        "num_warmup_steps": round(num_steps * warmup_share),
        "save_checkpoints_steps": -(-num_steps // NUM_EVALUATIONS),
        "iterations_per_loop": -(-num_steps // (2 * NUM_EVALUATIONS)),
    }
    return command_line.from_flags(TrainConfig, **settings)


def check_best_metric(metrics):
    """Refuses a `best_metric` that no evaluation gives, before there is one.

    Args:
        metrics: names that an evaluation gives beside `loss`.

    Raises:
        ValueError: the flag is given, and names another.
    """
    given, names = command_line.program_flags()["best_metric"], [*metrics, "loss"]
    if given is not None and given not in names:
        raise ValueError(f"`best_metric` must be one of {names}. Received: {given}.")


def describe_features(features, split, max_seq_length):
    """Prints how long the examples of one set are, and warns where most are cut."""
    print(
        f"{split}: {len(features):,} examples of {features.lengths().mean():.0f} pieces in the "
        f"mean, {features.truncated_share:.1%} of them cut at {max_seq_length}"
    )
    if features.truncated_share > MANY_TRUNCATED:
        print(
            f"warning: most examples of {split} are cut at `max_seq_length` {max_seq_length}: "
            f"{features.truncated_share:.0%}"
        )


def describe(config, settings, tuning, max_seq_length):
    """Prints what is about to run."""
    print(
        f"model: {config.num_hidden_layers} layers of hidden size {config.hidden_size}, sharing "
        f"{config.sharing}; at most {max_seq_length} pieces"
    )
    if not tuning.do_train:
        return
    print(
        f"{settings.optimizer}: learning rate {settings.learning_rate:.3g}, "
        f"{settings.num_train_steps:,} steps of {settings.train_batch_size} examples, "
        f"{settings.num_warmup_steps:,} of them warm-up; dropout: hidden "
        f"{config.hidden_dropout_prob:g}, attention {config.attention_probs_dropout_prob:g}, "
        f"classifier {tuning.classifier_dropout_prob:g}; an evaluation every "
        f"{settings.save_checkpoints_steps:,} steps"
    )

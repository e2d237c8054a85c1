"""Pretrains ALBERT on records of `python -m data.create_pretraining_data`, and evaluates it.

    python run_pretraining.py --model=tiny --input_file='records/train*.tfrecord' \\
        --eval_input_file='records/heldout*.tfrecord' --do_eval --output_dir=output

Killed and started again with the same command, it goes on where it was. Everything it
writes is in --output_dir, which any other program takes as --init_checkpoint.
"""

import dataclasses

from absl import flags

import command_line
import recipes
from data import pretraining_examples
from data.sentence_pairs import OBJECTIVES
from modeling.config import SIZES, AlbertConfig, size
from training.config import TrainConfig

INPUT_FILE = flags.DEFINE_string("input_file", None, "Records: paths or patterns, comma between.")
EVAL_INPUT_FILE = flags.DEFINE_string(
    "eval_input_file", None, "Held-out records. Not given, with --nodo_train: --input_file's."
)
OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "Folder for all that the run writes.")
MODEL = flags.DEFINE_enum("model", None, list(SIZES), "A size by name.")
ALBERT_CONFIG_FILE = flags.DEFINE_string(
    "albert_config_file", None, "JSON file of the model's config, in place of --model."
)
INIT_CHECKPOINT = flags.DEFINE_string(
    "init_checkpoint", None, "Weights to begin with: a run's folder, Google's or Hugging Face's."
)
DO_TRAIN = flags.DEFINE_bool("do_train", True, "Whether to train.")
DO_EVAL = flags.DEFINE_bool(
    "do_eval", False, "Whether to evaluate; in training, at each checkpoint."
)
MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length", None, "T. Not given: the records'.", lower_bound=1
)
MAX_PREDICTIONS_PER_SEQ = flags.DEFINE_integer(
    "max_predictions_per_seq", None, "P. Not given: the records'.", lower_bound=1
)
BATCH_BY_LENGTH = flags.DEFINE_bool(
    "batch_by_length",
    False,
    "Batches of examples of like length, each as long as they ask, so that padding costs little.",
)
TOKENIZER = flags.DEFINE_string(
    "tokenizer", None, "The records' tokenizer. Not given: the folder beside them, if any."
)
DYNAMIC_MASKING = flags.DEFINE_bool(
    "dynamic_masking",
    False,
    "Draw masks, and the order of the segments, each time a record is read. It is masked as when "
    "it was made, where its metadata.json tells how; the flags below tell otherwise.",
)
command_line.define_flags(
    pretraining_examples.ExampleSettings, without=pretraining_examples.NOT_OF_MASKING
)
SENTENCE_OBJECTIVE = flags.DEFINE_enum(
    "sentence_objective", None, list(OBJECTIVES), "Of the records. Not given: theirs, or sop."
)
command_line.define_flags(TrainConfig)


def check_flags():
    """Refuses combinations that leave nothing to do or nothing to do it with."""
    if not (DO_TRAIN.value or DO_EVAL.value):
        raise ValueError("`do_train` or `do_eval` must be true. Received: neither.")
    if not OUTPUT_DIR.value:
        raise ValueError("`output_dir` must name a folder. Received: nothing.")
    if not INPUT_FILE.value and (DO_TRAIN.value or not EVAL_INPUT_FILE.value):
        raise ValueError("`input_file` must name record files. Received: nothing.")
    if DO_TRAIN.value and DO_EVAL.value and not EVAL_INPUT_FILE.value:
        raise ValueError(
            "`eval_input_file` must name held-out records when a run trains and evaluates. "
            "Received: nothing."
        )
    if DYNAMIC_MASKING.value and not DO_TRAIN.value:
        raise ValueError("`dynamic_masking` is for training. Received: it and --nodo_train.")
    given = [name for name in pretraining_examples.OF_MASKING if command_line.is_given(name)]
    if given and not DYNAMIC_MASKING.value:
        raise ValueError(
            f"`{given[0]}` is for `dynamic_masking`: records have the masks that they were made "
            f"with. Received: {given[0]} without it."
        )
    on_tpu = flags.FLAGS.use_tpu or flags.FLAGS.strategy == "tpu"
    if BATCH_BY_LENGTH.value and on_tpu:
        raise ValueError(
            "`batch_by_length` must be off on TPUs, which want batches of one shape. Received: it "
            "and a TPU."
        )
    if MODEL.value and ALBERT_CONFIG_FILE.value:
        raise ValueError(
            "The model is told by `model` or by `albert_config_file`. Received: both, "
            f"{MODEL.value} and {ALBERT_CONFIG_FILE.value}."
        )


def choose_settings():
    """Returns TrainConfig by flags and recipe, with the rate that its batch size asks for."""
    from training import schedules

    recipe = recipes.pretraining(MODEL.value)
    base_rate, base_batch = recipe["learning_rate"], recipe["train_batch_size"]
    settings = command_line.from_flags(TrainConfig, **{**recipe, "learning_rate": None})
    if settings.learning_rate is not None:
        return settings
    if settings.optimizer != recipe["optimizer"]:
        raise ValueError(
            f"`learning_rate` must be given: the recipe's is for {recipe['optimizer']}. Received: "
            f"optimizer={settings.optimizer} and no learning_rate."
        )
    batch = settings.train_batch_size
    rate = schedules.scaled_learning_rate(base_rate, base_batch, batch, settings.optimizer)
    if rate != base_rate:
        print(
            f"learning_rate: {base_rate:g} x sqrt({batch}/{base_batch}) = {rate:.4g} "
            "(LAMB's rule for other batch sizes; --learning_rate overrides it)"
        )
    return dataclasses.replace(settings, learning_rate=rate)


def choose_config(vocab_size):
    """Returns the AlbertConfig of the flags, or that of the folder the weights come from.

    Args:
        vocab_size: of the records' tokenizer, or None where nothing tells it.
    """
    from folders import model_folder

    if ALBERT_CONFIG_FILE.value:
        return AlbertConfig.from_json_file(ALBERT_CONFIG_FILE.value)
    held = model_folder.read_config(OUTPUT_DIR.value) or model_folder.read_config(
        INIT_CHECKPOINT.value
    )
    if MODEL.value is None and held:
        return held
    if MODEL.value is None:
        raise ValueError(
            "`model` or `albert_config_file` must tell what to train. Received: neither."
        )
    if vocab_size is None:
        raise ValueError(
            "`albert_config_file` or `tokenizer` must be given where the records have no "
            "metadata.json, which tells the vocabulary's size. Received: "
            f"model={MODEL.value}."
        )
    return size(MODEL.value, vocab_size)


def find_records():
    """Returns the pretraining_records.Records that the flags name."""
    from runs import pretraining_records

    asked = (MAX_SEQ_LENGTH, MAX_PREDICTIONS_PER_SEQ, SENTENCE_OBJECTIVE)
    return pretraining_records.find(
        INPUT_FILE.value if DO_TRAIN.value else None,
        (EVAL_INPUT_FILE.value or INPUT_FILE.value) if DO_EVAL.value else None,
        asked={flag.name: flag.value for flag in asked},
        tokenizer=TOKENIZER.value,
    )


def choose_masking(records, seed):
    """Says how records are masked.

    Returns:
        (DynamicMasking or None, dict of the settings, None where they are not known).
    """
    from runs import pretraining_records

    told = records.masking_settings()
    if not DYNAMIC_MASKING.value:
        return None, dict.fromkeys(pretraining_examples.OF_MASKING) | told
    chosen = command_line.from_flags(
        pretraining_examples.ExampleSettings, **told, **records.lengths
    )
    masking = pretraining_records.dynamic(records, chosen, seed)
    print(
        f"masks{' and the order of segments' * masking.swaps} are drawn each time a record is "
        f"read: {chosen.masked_lm_prob:.0%} of the pieces, n-grams of up to {chosen.ngram} words"
    )
    return masking, {name: getattr(chosen, name) for name in pretraining_examples.OF_MASKING}


def seal_folder(config, records, settings):
    """Writes config, settings (a dict) and the records' tokenizer into the output folder."""
    from folders import model_folder

    told = records.lengths | {"sentence_objective": records.sentence_objective}
    model_folder.seal(
        OUTPUT_DIR.value,
        config=config,
        tokenizer=records.tokenizer,
        settings=command_line.program_flags() | settings | told,
    )


def main():
    check_flags()
    command_line.prepare_tensorflow()
    import tensorflow as tf

    from data import input_pipeline, record_verification
    from folders import model_folder
    from modeling import losses, models, precision
    from runs import pretraining_records, pretraining_report
    from training import distribution, loop, run, step

    settings = choose_settings()
    if settings.deterministic:
        distribution.make_deterministic(settings.seed)
    records = find_records()
    config = choose_config(records.vocab_size)
    weights = INIT_CHECKPOINT.value or (None if DO_TRAIN.value else OUTPUT_DIR.value)
    pretraining_records.check_config(config, records, weights)
    masking, masking_settings = choose_masking(records, settings.seed)
    strategy = distribution.create_strategy(settings.strategy, settings.tpu_name)
    command_line.compile_quietly()
    if DO_TRAIN.value:
        parts = {"num_micro_batches": settings.gradient_accumulation_steps}
        distribution.check_divisible(settings.train_batch_size, strategy, **parts)
    if DO_EVAL.value:
        distribution.check_divisible(settings.eval_batch_size, strategy, "eval_batch_size")
    if DO_TRAIN.value and distribution.is_chief(strategy):
        seal_folder(config, records, dataclasses.asdict(settings) | masking_settings)

    with strategy.scope(), precision.scope(settings.precision):
        model = models.PretrainingModel(config, seed=settings.seed)
        model.encoder.recompute = settings.recompute
        variables = model.named_variables()
        state = run.create_state(variables, settings) if DO_TRAIN.value else None
    pretraining_report.print_run(
        config,
        settings,
        model=model,
        files={"training": records.train, "held out": records.heldout},
        strategy=strategy,
        lengths=records.lengths,
    )

    def forward(batch, dropout_seed):
        outputs = model(batch, training=dropout_seed is not None, dropout_seed=dropout_seed)
        return losses.pretraining_losses(outputs, batch)

    def dataset(files, **options):
        options |= records.lengths | {"vocab_size": config.vocab_size}
        return lambda *part: input_pipeline.pretraining_dataset(files, part=part, **options)

    def training_data(skip_examples):
        return dataset(
            records.train,
            training=True,
            batch_size=settings.train_batch_size,
            seed=settings.seed,
            skip_examples=skip_examples,
            by_length=BATCH_BY_LENGTH.value,
            masking=masking,
        )

    def begin():
        if weights:
            print(model_folder.load_weights(variables, weights))

    def evaluate():
        batches = dataset(records.heldout, training=False, batch_size=settings.eval_batch_size)
        return loop.evaluate(evaluation_step, batches, settings.max_eval_steps)

    objectives = losses.OBJECTIVES[records.sentence_objective]
    evaluation_step = step.EvaluationStep(forward, objectives, strategy)
    try:
        if DO_TRAIN.value:
            units = {"examples": settings.train_batch_size}
            if not BATCH_BY_LENGTH.value:
                units["tokens"] = units["examples"] * records.lengths["max_seq_length"]
            train_step = step.TrainStep(
                forward, objectives, state=state, config=settings, strategy=strategy
            )
            run.train_in_folder(
                train_step,
                OUTPUT_DIR.value,
                begin=begin,
                make_dataset=training_data,
                units=units,
                evaluate=evaluate if DO_EVAL.value else None,
            )
        else:
            print(model_folder.load_weights(variables, weights, required_prefix=""))
            print("  ".join(f"{name} {value:.4f}" for name, value in evaluate().items()))
    except (tf.errors.DataLossError, tf.errors.InvalidArgumentError) as error:
        files = records.train + records.heldout
        problem = record_verification.describe_data_error(files, error, config.vocab_size)
        raise ValueError(problem) from error


if __name__ == "__main__":
    command_line.run(main)

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
from runs import pretraining_flags
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
    "max_predictions_per_seq",
    None,
    "P. Not given: the records', or what --masked_lm_prob asks for where masks are drawn anew.",
    lower_bound=1,
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
    """Refuses flags that leave nothing to do, contradict one another or do nothing."""
    values = command_line.program_flags()
    pretraining_flags.check(values, {name for name in values if command_line.is_given(name)})


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

    flags_asked = (MAX_SEQ_LENGTH, MAX_PREDICTIONS_PER_SEQ, SENTENCE_OBJECTIVE)
    asked = {flag.name: flag.value for flag in flags_asked}
    if DYNAMIC_MASKING.value:
        asked[MAX_PREDICTIONS_PER_SEQ.name] = None  # Tells what is masked, not what was.
    return pretraining_records.find(
        INPUT_FILE.value if DO_TRAIN.value else None,
        (EVAL_INPUT_FILE.value or INPUT_FILE.value) if DO_EVAL.value else None,
        asked=asked,
        tokenizer=TOKENIZER.value,
    )


def choose_masking(records, seed):
    """Says how the training records are masked.

    Returns:
        (DynamicMasking or None, dict of the settings and of P, None where they are not known).
    """
    from runs import pretraining_records

    told, lengths = records.masking_settings(), dict(records.lengths)
    limit = MAX_PREDICTIONS_PER_SEQ.name
    if not DYNAMIC_MASKING.value:
        known = told | {limit: lengths[limit]}
        return None, dict.fromkeys(pretraining_examples.OF_MASKING) | known
    if command_line.is_given("masked_lm_prob"):
        lengths[limit] = 0  # As many as the share asks for, unless the user says how many.
    chosen = command_line.from_flags(pretraining_examples.ExampleSettings, **told, **lengths)
    masking = pretraining_records.dynamic(records, chosen, seed)
    print(pretraining_records.describe(masking, chosen.max_seq_length))
    settings = {name: getattr(chosen, name) for name in pretraining_examples.OF_MASKING}
    return masking, settings | {limit: chosen.max_predictions}


def seal_folder(config, records, settings, strategy):
    """Writes config, settings (a dict) and the records' tokenizer into the output folder.

    Every worker checks the folder, so that a mistake ends each of them as such; one writes.
    """
    from folders import model_folder
    from training import distribution

    model_folder.check_goes_on(OUTPUT_DIR.value, is_fine_tuning=False)
    model_folder.check_model(OUTPUT_DIR.value, config, records.tokenizer)
    distribution.largest(strategy, [0])  # All have read what is now replaced.
    if not distribution.is_chief(strategy):
        return
    told = records.lengths | {"sentence_objective": records.sentence_objective}
    model_folder.seal(
        OUTPUT_DIR.value,
        config=config,
        tokenizer=records.tokenizer,
        settings=command_line.program_flags() | told | settings,
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
    # Before any operation: workers meet at the start of TensorFlow or not at all.
    strategy = distribution.create_strategy(settings.strategy, settings.tpu_name)
    records = find_records()
    config = choose_config(records.vocab_size)
    weights = INIT_CHECKPOINT.value or (None if DO_TRAIN.value else OUTPUT_DIR.value)
    pretraining_records.check_config(config, records, weights)
    if DO_TRAIN.value:
        records = pretraining_records.with_tokenizer(records, weights, OUTPUT_DIR.value)
    masking, masking_settings = choose_masking(records, settings.seed)
    command_line.compile_quietly()
    if DO_TRAIN.value:
        parts = {"num_micro_batches": settings.gradient_accumulation_steps}
        distribution.check_divisible(settings.train_batch_size, strategy, **parts)
    if DO_EVAL.value:
        pretraining_flags.check_best_metric(settings.best_metric, records.sentence_objective)
        distribution.check_divisible(settings.eval_batch_size, strategy, "eval_batch_size")
    if DO_TRAIN.value:
        seal_folder(config, records, dataclasses.asdict(settings) | masking_settings, strategy)

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
        length=records.lengths["max_seq_length"],
        num_predictions=masking_settings["max_predictions_per_seq"],
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

"""Tells what a pretraining run is about to do.

Only programs import this module.
"""

from data import record_checks
from runs import memory_report


def print_run(config, settings, *, model, files, strategy, length, num_predictions):
    """Prints model, records, optimizer and memory.

    Args:
        config: AlbertConfig.
        settings: TrainConfig.
        model: PretrainingModel.
        files: dict of use to record files; those of "training", where there are any.
        strategy: tf.distribute.Strategy.
        length: T.
        num_predictions: P, in training.
    """
    num_parameters = sum(v.shape.num_elements() for v in model.named_variables().values())
    print(
        f"model: {num_parameters:,} parameters; {config.num_hidden_layers} layers of hidden size "
        f"{config.hidden_size}, sharing {config.sharing}; embeddings of {config.embedding_size} "
        f"for {config.vocab_size:,} pieces"
    )
    for use, paths in files.items():
        if paths:
            # Files of others are not counted: that reads them whole before the first step.
            told = record_checks.told_examples(paths)
            examples = "records" if told is None else f"{told:,} examples"
            print(f"{use}: {examples} in {len(paths)} file(s)")
    if files["training"]:
        print(
            f"{settings.optimizer}: peak learning rate {settings.learning_rate:.3g}, "
            f"{settings.num_train_steps:,} steps, {settings.num_warmup_steps:,} of them warm-up"
        )
        memory_report.print_memory(
            model,
            settings,
            strategy=strategy,
            max_seq_length=length,
            max_predictions_per_seq=num_predictions,
        )

"""Tells how much memory a training run is about to take.

Only programs import this module.
"""

from modeling import memory
from modeling.config import AlbertConfig

READS_ALL = ("SpanModel", "AnswerableSpanModel")  # Models whose heads read every position.


def print_memory(
    model, settings, *, strategy, max_seq_length, max_predictions_per_seq=0, num_choices=1
):
    """Prints an estimate for one replica, part by part.

    Args:
        model: of `modeling`.
        settings: TrainConfig.
        strategy: tf.distribute.Strategy.
        max_seq_length: longest T.
        max_predictions_per_seq: P.
        num_choices: sequences that an example has.
    """
    parts = strategy.num_replicas_in_sync * settings.gradient_accumulation_steps
    sizes = memory.StepSizes(
        batch_size=settings.train_batch_size // parts * num_choices,
        length=max_seq_length,
        num_predictions=max_predictions_per_seq,
        reads_all=type(model).__name__ in READS_ALL,
        precision=settings.precision,
        recompute=settings.recompute,
    )
    config = AlbertConfig.from_dict(model.settings["config"])
    num_parameters = sum(v.shape.num_elements() for v in model.named_variables().values())
    found = memory.estimate(config, sizes, num_parameters)
    shown = ", ".join(f"{name} {megabytes(size)}" for name, size in found.items())
    print(
        f"memory on each replica: about {megabytes(sum(found.values()))}: {shown} "
        f"({sizes.batch_size} x {sizes.length} pieces at a time, {sizes.precision}"
        f"{', recomputed' if sizes.recompute else ''})"
    )


def megabytes(size):
    return f"{size / 2**20:,.0f} MiB"

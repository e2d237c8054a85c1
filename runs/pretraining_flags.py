"""Refuses flags of pretraining that leave nothing to do, contradict one another or do nothing.

Only programs import this module.
"""

from data import pretraining_examples

# Flags, the one without which they do nothing, and what they are for.
NEEDED = (
    (
        pretraining_examples.OF_MASKING,
        "dynamic_masking",
        "`dynamic_masking`: records have the masks that they were made with",
    ),
    (("dynamic_masking", "batch_by_length"), "do_train", "training"),
    (("eval_input_file", "best_metric", "early_stopping_patience"), "do_eval", "evaluation"),
)
OF_MASKED_LM = ("loss", "masked_lm_loss", "masked_lm_accuracy")  # What an evaluation gives,
OF_SENTENCE_ORDER = ("sentence_order_loss", "sentence_order_accuracy")  # and with its objective.


def check(values, given):
    """Refuses flags before anything starts.

    Args:
        values: dict of every flag of the program.
        given: set of the names of those that the user gave.

    Raises:
        ValueError: there is nothing to do or to do it with, or flags contradict one another.
    """
    do_train, do_eval = values["do_train"], values["do_eval"]
    input_file, eval_input_file = values["input_file"], values["eval_input_file"]
    if not (do_train or do_eval):
        raise ValueError("`do_train` or `do_eval` must be true. Received: neither.")
    if not values["output_dir"]:
        raise ValueError("`output_dir` must name a folder. Received: nothing.")
    if not input_file and (do_train or not eval_input_file):
        raise ValueError("`input_file` must name record files. Received: nothing.")
    if do_train and do_eval and not eval_input_file:
        raise ValueError(
            "`eval_input_file` must name held-out records when a run trains and evaluates. "
            "Received: nothing."
        )
    check_needed(values, given)
    if values["batch_by_length"] and (values["use_tpu"] or values["strategy"] == "tpu"):
        raise ValueError(
            "`batch_by_length` must be off on TPUs, which want batches of one shape. Received: it "
            "and a TPU."
        )
    if values["model"] and values["albert_config_file"]:
        raise ValueError(
            "The model is told by `model` or by `albert_config_file`. Received: both, "
            f"{values['model']} and {values['albert_config_file']}."
        )


def check_needed(values, given):
    """Refuses flags that would do nothing; a switch set off, or nothing for a name, is no flag."""
    for names, needed, use in NEEDED:
        idle = [name for name in names if name in given]
        idle = [n for n in idle if values[n] or n in pretraining_examples.OF_MASKING]
        if idle and not values[needed]:
            raise ValueError(f"`{idle[0]}` is for {use}. Received: {idle[0]} without {needed}.")


def check_best_metric(best_metric, sentence_objective):
    """Refuses a `best_metric` that no evaluation gives, or of a head that is not trained."""
    names = OF_MASKED_LM
    if sentence_objective != "none":
        names += OF_SENTENCE_ORDER
    if best_metric not in names:
        raise ValueError(
            f"`best_metric` must be one of {', '.join(names)}. Received: {best_metric!r}, with "
            f"records of sentence_objective={sentence_objective}."
        )

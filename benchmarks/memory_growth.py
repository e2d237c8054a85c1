"""How much the memory of a process grows over a training step, and what is estimated for it.

Measured once weights and slots are there and the graph is built: gradients and activations.
Needs Linux.
"""

import gc
import multiprocessing

import command_line
from benchmarks import contestants
from modeling import memory
from training.config import TrainConfig

MASKED_SHARE = 0.15
SHORT_LENGTHS = (16, 24)  # Two, since the graph of any length is built on the second.


def num_predictions(length):
    return round(length * MASKED_SHARE)


def resident_memory(field):
    """Returns a field of /proc/self/status, such as VmRSS or its peak VmHWM, in bytes."""
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024


def forget_peak():
    """Makes the present resident size the peak so far."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def step_growth(model_config, batch_size, length, **settings):
    """Trains in this process.

    Args:
        model_config: AlbertConfig.
        batch_size: B.
        length: T.
        **settings: of TrainConfig: `precision`, `recompute`.

    Returns:
        (bytes that its memory grows by over a step, what is estimated for it).
    """
    command_line.prepare_tensorflow()
    import numpy as np
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    chosen = TrainConfig(
        learning_rate=1e-3, num_warmup_steps=0, train_batch_size=batch_size, **settings
    )
    train_step = contestants.make_step(chosen, model_config)
    masked = batch_size, num_predictions(length)

    def batch(length):
        ids = np.ones([batch_size, length], np.int32)
        return {
            **dict.fromkeys(("input_ids", "input_mask", "segment_ids"), ids),
            **dict.fromkeys(("masked_lm_positions", "masked_lm_ids"), np.ones(masked, np.int32)),
            "masked_lm_weights": np.ones(masked, np.float32),
            "next_sentence_labels": np.ones(batch_size, np.int32),
            "example_weights": np.ones(batch_size, np.float32),
        }

    signature = {
        name: tf.TensorSpec([batch_size, *[None] * (array.ndim - 1)], array.dtype)
        for name, array in batch(length).items()
    }
    lengths = [*SHORT_LENGTHS, length, length]
    batches = tf.data.Dataset.from_generator(
        lambda: map(batch, lengths), output_signature=signature
    )
    iterator = iter(batches)
    train_step.run(iterator, len(SHORT_LENGTHS))
    gc.collect()
    before = resident_memory("VmRSS")
    forget_peak()
    train_step.run(iterator, 2)
    grown = resident_memory("VmHWM") - before
    sizes = memory.StepSizes(batch_size, length, num_predictions(length), **settings)
    num_parameters = sum(v.shape.num_elements() for v in train_step.state.named_variables.values())
    estimated = memory.estimate(model_config, sizes, num_parameters)
    return grown, estimated["gradients"] + estimated["activations"]


def measure(*arguments, **settings):
    """Returns `step_growth` of a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(step_growth, arguments, settings)

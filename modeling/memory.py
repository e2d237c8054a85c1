"""An estimate of what a training step holds in memory, from sizes alone.

Activations are what the backward pass reads of the forward one: the tensors that TensorFlow
keeps for these models, as measured by `benchmarks/memory.py`. Imports no TensorFlow.

Shapes: B batch, T tokens, P masked positions, H hidden, I inner, N heads, V vocabulary, R rows.
"""

import dataclasses

SIZE_OF = {"float32": 4, "bfloat16": 2, "float16": 2}


@dataclasses.dataclass(frozen=True)
class StepSizes:
    """What activations depend on, beside the model.

    Attributes:
        batch_size: B, sequences that go through the model at a time.
        length: T.
        num_predictions: P.
        reads_all: whether the head reads every position of the last layer.
        precision: key of SIZE_OF.
        recompute: whether layers keep their input alone.
    """

    batch_size: int
    length: int
    num_predictions: int = 0
    reads_all: bool = False
    precision: str = "float32"
    recompute: bool = False


def layer_bytes(config, sizes, num_asked):
    """Returns the bytes that one pair of blocks keeps for its backward pass.

    Keys and values of all positions, and of those that the output is asked for: input, query,
    context, what both LayerNorms take, the feed-forward network's input, what GELU takes and
    gives; the probabilities, float32, and as they are multiplied. Dropout keeps a byte for each
    element, and the probabilities before and after.

    Args:
        config: AlbertConfig.
        sizes: StepSizes.
        num_asked: positions of each sequence that the output is asked for.
    """
    size = SIZE_OF[sizes.precision]
    score = 4 if size == 4 else 4 + size
    if config.attention_probs_dropout_prob:
        score += size + 1
    asked = size * (6 * config.hidden_size + 2 * config.intermediate_size)
    asked += score * config.num_attention_heads * sizes.length
    if config.hidden_dropout_prob:
        asked += 2 * config.hidden_size
    others = 2 * size * config.hidden_size
    return sizes.batch_size * (num_asked * asked + sizes.length * others)


def activation_bytes(config, sizes):
    """Returns the bytes of activations where most are held, as the backward pass begins.

    Args:
        config: AlbertConfig.
        sizes: StepSizes.
    """
    size, rows = SIZE_OF[sizes.precision], sizes.batch_size * sizes.length
    num_blocks = config.num_hidden_layers * config.inner_group_num
    whole = layer_bytes(config, sizes, sizes.length)
    asked = sizes.length if sizes.reads_all else 1 + sizes.num_predictions
    last = layer_bytes(config, sizes, min(asked, sizes.length))
    kept = (num_blocks - 1) * whole
    if sizes.recompute:
        kept = num_blocks * rows * size * config.hidden_size + whole
    # The gradient of what GELU gives, in the first layer that is gone back through.
    layers = kept + rows * size * config.intermediate_size
    # Logits and their gradient, in their own precision and in float32.
    logits = sizes.batch_size * sizes.num_predictions * config.vocab_size * (2 * size + 8)
    return max(layers, kept + last + logits)


def estimate(config, sizes, num_parameters):
    """Returns a dict of bytes: `weights`, `slots`, `gradients`, `activations`.

    Weights, the two slots of LAMB and AdamW, and gradients are float32 in every precision. When
    the gradients are there a second time, clipped, the activations are gone.

    Args:
        config: AlbertConfig.
        sizes: StepSizes.
        num_parameters: int, of the whole model.
    """
    of_parameters = 4 * num_parameters
    return {
        "weights": of_parameters,
        "slots": 2 * of_parameters,
        "gradients": of_parameters,
        "activations": max(activation_bytes(config, sizes), of_parameters),
    }

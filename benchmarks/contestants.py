"""One pretraining step of ALBERT by each library: the same sizes, heads, losses and update.

A contestant is a row: the modules it imports, and a function that builds it and returns its
step. Nothing heavy is imported before a worker process asks for it. All compute in float32,
without dropout, and end with AdamW after clipping to a global norm of 1.

Shapes: B batch, T tokens, P masked positions, V vocabulary.
"""

import collections.abc
import dataclasses
import warnings

import numpy as np

import command_line
from modeling.config import AlbertConfig
from training.config import TrainConfig

RATE, DECAY, CLIP_NORM = 1e-4, 0.01, 1.0  # So small a rate changes no timing and no loss much.


@dataclasses.dataclass(frozen=True)
class Work:
    """What every contestant does in one step."""

    config: AlbertConfig
    batch_size: int
    length: int
    num_predictions: int
    num_threads: int

    @property
    def num_tokens(self):
        return self.batch_size * self.length

    @property
    def flops(self):
        """Floating-point operations of a step.

        Products alone, each once forward and twice backward, two operations a term; the
        masked-LM head at the masked positions only. All layers count in full, as the others
        compute them, though ours leaves out of the last what no head reads (6 % of base).
        """
        c, tokens = self.config, self.num_tokens
        width, inner, embedding = c.hidden_size, c.intermediate_size, c.embedding_size
        dense = c.num_hidden_layers * (4 * width**2 + 2 * width * inner)
        terms = tokens * (embedding * width + dense)
        terms += 2 * c.num_hidden_layers * tokens * self.length * width
        terms += self.batch_size * (width**2 + 2 * width)
        terms += self.batch_size * self.num_predictions * embedding * (width + c.vocab_size)
        return 6 * terms

    @property
    def bytes(self):
        """Bytes a step must move if each product reads its operands and writes its result once.

        To these come 8 passes over the weights: gradient, both means and weight, each written
        and read.
        """
        c, rows = self.config, self.num_tokens
        width, inner = c.hidden_size, c.intermediate_size
        square, wide = 2 * rows * width + width**2, rows * (width + inner) + width * inner
        layer = 3 * (4 * square + 2 * wide)
        weights = 4 * width**2 + 2 * width * inner + c.embedding_size * (width + c.vocab_size)
        return 4 * (c.num_hidden_layers * layer + 8 * weights)

    def batch(self):
        """Draws one batch of full sequences: dict of the features of a pretraining record."""
        random = np.random.default_rng(0)
        sizes = self.batch_size, self.length
        masked = self.batch_size, self.num_predictions
        positions = random.permuted(np.tile(np.arange(self.length), (sizes[0], 1)), axis=1)
        halves = np.tile(np.arange(self.length) >= self.length // 2, (sizes[0], 1))
        return {
            "input_ids": random.integers(5, self.config.vocab_size, sizes, np.int32),
            "input_mask": np.ones(sizes, np.int32),
            "segment_ids": halves.astype(np.int32),
            "masked_lm_positions": np.sort(positions[:, : masked[1]], axis=1).astype(np.int32),
            "masked_lm_ids": random.integers(5, self.config.vocab_size, masked, np.int32),
            "masked_lm_weights": np.ones(masked, np.float32),
            "next_sentence_labels": random.integers(0, 2, sizes[0], np.int32),
            "example_weights": np.ones(sizes[0], np.float32),
        }


@dataclasses.dataclass(frozen=True)
class Contestant:
    """How one library comes to a step."""

    label: str
    modules: tuple[str, ...]  # Imported before the clock runs.
    build: collections.abc.Callable  # Work -> function that takes a step and returns its loss.
    uses_tensorflow: bool = True  # So the worker prepares it as the programs do.


def limit_tensorflow(num_threads):
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(num_threads)
    tf.config.threading.set_inter_op_parallelism_threads(num_threads)
    return tf


def make_step(settings, config):
    """Builds a model of random weights and its TrainStep, as `run_pretraining.py` does."""
    from modeling import losses, models, precision
    from training import distribution, run, step

    strategy = distribution.create_strategy("one_device")
    with strategy.scope(), precision.scope(settings.precision):
        model = models.PretrainingModel(config)
        state = run.create_state(model.named_variables(), settings)
    model.encoder.recompute = settings.recompute

    def forward(batch, dropout_seed):
        outputs = model(batch, training=True, dropout_seed=dropout_seed)
        return losses.pretraining_losses(outputs, batch)

    return step.TrainStep(
        forward, losses.OBJECTIVES["sop"], state=state, config=settings, strategy=strategy
    )


def ours(work):
    """Builds the step that `run_pretraining.py` takes, with its strategy and its loop."""
    tf = limit_tensorflow(work.num_threads)
    from training import distribution

    settings = TrainConfig(
        optimizer="adamw",
        learning_rate=RATE,
        weight_decay=DECAY,
        clip_norm=CLIP_NORM,
        num_warmup_steps=0,
        train_batch_size=work.batch_size,
    )
    train_step = make_step(settings, work.config)
    dataset = tf.data.Dataset.from_tensors(work.batch()).repeat()
    iterator = iter(distribution.distribute(dataset, train_step.strategy))
    return lambda: train_step.run(iterator, 1)["loss"]


def hugging_face_config(config, **settings):
    """Returns transformers' config of the same sizes, with fused attention."""
    import transformers

    sizes = {**dataclasses.asdict(config), **settings}
    del sizes["sharing"]
    return transformers.AlbertConfig(**sizes, attn_implementation="sdpa")


def hugging_face(work, activation="gelu_new"):
    """Builds AlbertForPreTraining's step in PyTorch, with its fused attention and fused AdamW.

    Args:
        work: Work.
        activation: `gelu_new`, which the released configs name, or `gelu_pytorch_tanh`, the same
            function in one operation.
    """
    import torch
    import transformers

    torch.set_num_threads(work.num_threads)
    batch = {name: torch.from_numpy(array).long() for name, array in work.batch().items()}
    labels = torch.full((work.batch_size, work.length), -100)  # -100: not counted.
    labels.scatter_(1, batch["masked_lm_positions"], batch["masked_lm_ids"])
    config = hugging_face_config(work.config, hidden_act=activation, classifier_dropout_prob=0.0)
    model = transformers.AlbertForPreTraining(config).train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=RATE, weight_decay=DECAY, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model(
            input_ids=batch["input_ids"],
            attention_mask=batch["input_mask"],
            token_type_ids=batch["segment_ids"],
            labels=labels,
            sentence_order_label=batch["next_sentence_labels"],
        ).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP_NORM)
        optimizer.step()
        return loss.item()

    return step


def hugging_face_fused(work):
    """Builds the same with GELU in one operation."""
    return hugging_face(work, activation="gelu_pytorch_tanh")


def model_garden(work):
    """Builds the step of Model Garden's AlbertEncoder, heads and AdamW in one tf.function."""
    tf = limit_tensorflow(work.num_threads)
    from official.nlp import optimization
    from official.nlp.modeling import layers, models, networks

    # The pretrainer hands its encoder the heads' input, too, and the encoder says so.
    warnings.filterwarnings("ignore", message="Input dict contained keys")
    c = work.config
    encoder = networks.AlbertEncoder(
        vocab_size=c.vocab_size,
        embedding_width=c.embedding_size,
        hidden_size=c.hidden_size,
        num_layers=c.num_hidden_layers,
        num_attention_heads=c.num_attention_heads,
        max_sequence_length=c.max_position_embeddings,
        type_vocab_size=c.type_vocab_size,
        intermediate_size=c.intermediate_size,
        dropout_rate=0.0,
        attention_dropout_rate=0.0,
        dict_outputs=True,
    )
    head = layers.ClassificationHead(c.hidden_size, num_classes=2, dropout_rate=0.0)
    model = models.BertPretrainerV2(encoder, "gelu", classification_heads=[head])
    optimizer = optimization.AdamWeightDecay(
        RATE,
        epsilon=1e-6,
        weight_decay_rate=DECAY,
        exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"],
        gradient_clip_norm=CLIP_NORM,
    )
    batch = {name: tf.constant(array) for name, array in work.batch().items()}
    names = {"segment_ids": "input_type_ids", "input_ids": "input_word_ids"}
    inputs = {names.get(name, name): tensor for name, tensor in batch.items()}
    inputs = {name: inputs[name] for name in (*encoder.input_names, "masked_lm_positions")}

    def cross_entropy(logits, labels):
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        )

    @tf.function
    def step(inputs, masked_lm_ids, next_sentence_labels):
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = cross_entropy(outputs["mlm_logits"], masked_lm_ids)
            loss += cross_entropy(outputs[head.name], next_sentence_labels)
        pairs = zip(
            tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True
        )
        # The encoder's own pooler, which the head of this library stands in for, has no gradient.
        optimizer.apply_gradients([pair for pair in pairs if pair[0] is not None])
        return loss

    return lambda: float(step(inputs, batch["masked_lm_ids"], batch["next_sentence_labels"]))


CONTESTANTS = {
    "ours": Contestant(
        "ours",
        (
            "modeling.models",
            "training.run",
            "training.distribution",
            "official.common.distribute_utils",
        ),
        ours,
    ),
    "hugging_face": Contestant(
        "Hugging Face, PyTorch, sdpa",
        ("torch", "transformers.models.albert.modeling_albert"),
        hugging_face,
        uses_tensorflow=False,
    ),
    "hugging_face_fused": Contestant(
        "the same, GELU in one operation",
        ("torch", "transformers.models.albert.modeling_albert"),
        hugging_face_fused,
        uses_tensorflow=False,
    ),
    "model_garden": Contestant(
        "Model Garden AlbertEncoder",
        ("official.nlp.modeling.models", "official.nlp.optimization"),
        model_garden,
    ),
}


def prepare(contestant):
    """Imports what a contestant needs, with TensorFlow set up as the programs set it up."""
    import importlib

    if contestant.uses_tensorflow:
        command_line.prepare_tensorflow()
    for module in contestant.modules:
        importlib.import_module(module)

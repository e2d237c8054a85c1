"""A trained model as it is served: graphs from ids, and from text, to predictions.

Only programs import this module.

Shapes: B batch, T tokens, C classes or choices, P masks of a text at most, K pieces a mask,
H hidden.
"""

import functools

import keras
import tensorflow as tf

from data import graph_features, graph_tokenization, graph_windows
from modeling import fusion, layers
from runs import question_answers
from serving import graph_answers, prediction_features, trained_models, warm_model

IDS = {name: tf.TensorSpec([None, None], tf.int32) for name in warm_model.INPUTS[:3]}
CHOICE_IDS = {name: tf.TensorSpec([None, None, None], tf.int32) for name in IDS}
STRINGS = tf.TensorSpec([None], tf.string)
OPTIONS = tf.TensorSpec([None, None], tf.string)
LARGEST_GRAPH = 1.9 * 2**30  # Bytes; protobuf's messages end at 2 GiB.
POSITIONS, POSSIBLE = "masked_lm_positions", "p_mask"


class ExportedModel:
    """A model's graphs, of TensorFlow's own operations and tensorflow_text's.

    Layers are laid out one after another: a loop gains nothing where nothing is trained,
    and not all that read the graph have one.

    Args:
        trained: trained_models.TrainedModel.
        top_k: K.
        constant_weights: whether graphs hold the weights as constants, which products on a CPU
            prepare once, for each layer; or read them from variables.

    Raises:
        ValueError: there are more weights than a graph can hold as constants.
    """

    def __init__(self, trained, top_k=5, constant_weights=False):
        self.trained, self.top_k = trained, min(top_k, trained.tokenizer.vocab_size)
        self.kind = trained.task["kind"] if trained.task else "pretraining"
        self.model = unrolled(trained.model)
        self.weights = [] if constant_weights else list(self.model.named_variables().values())
        if constant_weights:
            check_constants(self.model)
        self.constant_weights = constant_weights
        self.tokenizer = graph_tokenization.of_tokenizer(trained.tokenizer)
        long_texts = prediction_features.kept_long_texts(trained) or prediction_features.CUT
        self.reading = prediction_features.as_trained(trained, long_texts=long_texts)

    @property
    def fills_masks(self):
        return self.kind == "pretraining" and self.trained.has(trained_models.MASKED_LM)

    def id_inputs(self):
        """Returns what `from_ids` takes: dict of tf.TensorSpec."""
        if self.kind == "choice":
            return CHOICE_IDS | {"choice_mask": tf.TensorSpec([None, None], tf.float32)}
        if self.kind == "span":
            is_answerable = "start_n_top" in self.model.settings
            return IDS | ({POSSIBLE: IDS["input_ids"]} if is_answerable else {})
        return IDS | ({POSITIONS: IDS["input_ids"]} if self.fills_masks else {})

    def text_inputs(self):
        """Returns what `from_text` takes: dict of tf.TensorSpec."""
        if self.kind == "choice":
            return {"context": STRINGS, "question": STRINGS, "options": OPTIONS}
        if self.kind == "span":
            return {"context": STRINGS, "question": STRINGS}
        return {"text": STRINGS, "text_b": STRINGS}

    @functools.cached_property
    def _graph(self):
        """The graph of `compute`: one for both signatures, so that constants stand in it once."""
        compute = self.compute
        if self.constant_weights:
            compute = with_constants(self.model, compute)
        with fusion.without_xla(), tf.init_scope():
            signature = [self.id_inputs()]
            traced = tf.function(compute, input_signature=signature, autograph=False)
            return traced.get_concrete_function()

    def from_ids(self, **batch):
        """Computes numbers from ids, in the graph that is written; see `compute`."""
        return self._graph(batch)

    def compute(self, batch):
        """Computes numbers from ids.

        Args:
            batch: dict of `input_ids`, `input_mask`, `segment_ids`, int32[B, T], or [B, C, T] and
                `choice_mask` float32[B, C] for choices; `p_mask` int32[B, T] for spans of SQuAD
                2.0; `masked_lm_positions` int32[B, P] for masked words.

        Returns:
            dict. classes, multilabel, choices: `logits`, `probabilities` float32[B, C]; number:
            `logits`, `number` float32[B]; spans: what the model gives; pretraining: `pooled` and
            `mean`, float32[B, H], `order` float32[B, 2] (1: swapped), `masked_lm_logits`
            float32[B, P, V], as far as there are weights for them.
        """
        if self.kind == "pretraining":
            return self._pretraining_outputs(batch)
        outputs = self.model(batch)
        if self.kind == "span":
            return outputs
        return self.of_logits(outputs["logits"])

    def of_logits(self, logits):
        """Returns the numbers of classes, labels, choices or a number, of float32[B, C]."""
        if self.kind == "number":
            return {"logits": logits, "number": logits[:, 0]}
        to_probabilities = tf.sigmoid if self.kind == "multilabel" else tf.nn.softmax
        return {"logits": logits, "probabilities": to_probabilities(logits)}

    def _pretraining_outputs(self, batch):
        encoded = self.model.encoder(batch)
        states = encoded["sequence_output"]
        outputs = {"mean": warm_model.pooled(states, batch["input_mask"], "mean")}
        if self.trained.has(trained_models.POOLER):
            outputs["pooled"] = encoded["pooled_output"]
        if self.trained.has(trained_models.SENTENCE_ORDER):
            outputs["order"] = tf.nn.softmax(self.model.sentence_order(encoded["pooled_output"]))
        if self.fills_masks:
            table = self.model.encoder.embeddings.word.value
            masked = layers.pick(states, batch[POSITIONS])
            outputs["masked_lm_logits"] = self.model.masked_lm(masked, table)
        return outputs

    def from_text(self, **texts):
        """Computes predictions from text; what is too long is cut or read in windows, as trained.

        Args:
            **texts: string[B] each. `text` and `text_b`, which is empty where there is one text
                alone; for spans `context` and `question`; for choices also `options`
                string[B, C], which are empty where a question has fewer than others. In texts
                for a pretrained model [MASK] and the other special pieces stand for themselves.

        Returns:
            dict. Spans: what `graph_answers.answers` gives; contexts of any length are read
            through windows. Others: what `from_ids` gives; for classes also `label` string[B] and
            `labels` string[C]; for several labels `labels` and `is_label` bool[B, C]; for choices
            `choice` int32[B]; for masked words, in place of their logits, `mask_pieces`
            string[B, P, K], the likeliest first, `mask_probabilities` float32[B, P, K] and
            `num_masks` int32[B]: what is beyond it in a row means nothing.
        """
        if self.kind == "span":
            return self._answers(**texts)
        if self.reading.long_texts == prediction_features.WINDOWS:
            outputs = self.of_logits(self._mean_logits(**texts))
            return outputs | self._named(outputs)
        batch = self.features(**texts)
        if self.fills_masks:
            positions, num_masks = mask_positions(
                batch["input_ids"], self.tokenizer.special_ids["mask"]
            )
            batch[POSITIONS] = positions
        outputs = self.from_ids(**batch)
        if self.fills_masks:
            logits = outputs.pop("masked_lm_logits")
            outputs |= {**self._ranked(logits), "num_masks": num_masks}
        return outputs | self._named(outputs)

    def features(self, **texts):
        """Turns texts into ids; arguments as of `from_text`."""
        if self.kind == "choice":
            return self._choices(**texts)
        return graph_features.single_or_pair(
            *self._pairs(**texts), self.tokenizer.special_ids, self.reading.max_seq_length
        )

    def _choices(self, context, question, options):
        lengths = self.reading.max_seq_length, self.reading.max_qa_length
        room, is_there = min(lengths[0] - 3, lengths[1]), options != ""
        *both, has_blank = graph_features.endings(question, options)
        endings = graph_features.told_apart(
            *map(self.tokenizer.encode, both), is_there, has_blank, room
        )
        special_ids = self.tokenizer.special_ids
        context = self.tokenizer.encode(context)
        return graph_features.choices(context, endings, is_there, special_ids, lengths)

    def _pairs(self, text, text_b):
        return (self.tokenizer.encode(t, allow_markers=self.fills_masks) for t in (text, text_b))

    def _mean_logits(self, **texts):
        """Returns the mean over the windows through which each text is read: float32[B, C]."""
        special_ids, longest = self.tokenizer.special_ids, self.reading.max_seq_length
        batch, row = graph_features.in_windows(*self._pairs(**texts), special_ids, longest)
        logits = tf.cast(self.from_ids(**batch)["logits"], tf.float64)
        return tf.cast(tf.math.segment_mean(logits, row), tf.float32)

    def _answers(self, question, context):
        batch, windows = graph_windows.make_windows(
            self.tokenizer.encode(question),
            self.tokenizer.encode_with_offsets(context),
            self.tokenizer.special_ids,
            self.reading.windows,
        )
        outputs = self.from_ids(**{name: batch[name] for name in self.id_inputs()})
        threshold = question_answers.threshold_of(self.trained.folder)
        return graph_answers.answers(outputs, windows, context, self.reading, threshold)

    def _ranked(self, logits):
        probabilities, ids = tf.math.top_k(tf.nn.softmax(logits), self.top_k)
        pieces = tf.gather(tf.constant(self.trained.tokenizer.pieces), ids)
        return {"mask_pieces": pieces, "mask_probabilities": probabilities}

    def _named(self, outputs):
        """Says what the numbers mean: dict of string and bool tensors."""
        if self.kind == "choice":
            return {"choice": tf.argmax(outputs["logits"], axis=1, output_type=tf.int32)}
        if self.kind not in ("classes", "multilabel"):
            return {}
        labels = tf.constant(self.trained.task["labels"])
        if self.kind == "multilabel":
            return {"labels": labels, "is_label": outputs["logits"] > 0}
        return {"labels": labels, "label": tf.gather(labels, tf.argmax(outputs["logits"], axis=1))}


def with_constants(model, function):
    """Returns a function whose graphs hold a model's weights as constants, as they are now."""

    def call(*arguments):
        with tf.init_scope():
            values = [variable.numpy() for variable in model.variables]
        mapping = list(zip(model.variables, map(tf.constant, values), strict=True))
        with keras.StatelessScope(state_mapping=mapping, initialize_variables=False):
            return function(*arguments)

    return call


def check_constants(model):
    """Raises ValueError unless a graph can hold a model's weights."""
    weights = [variable.value for variable in model.variables]
    size = sum(weight.dtype.size * weight.shape.num_elements() for weight in weights)
    if size > LARGEST_GRAPH:
        raise ValueError(
            "`constant_weights` must be of weights of at most "
            f"{LARGEST_GRAPH / 2**30:.1f} GiB, as a graph is one message of protobuf. Received: "
            f"{size / 2**30:.1f} GiB. Without it weights of any size are exported."
        )


def unrolled(model):
    """Returns a model of the same weights whose layers are laid out one after another."""
    made = type(model).from_config({**model.get_config(), "unroll": True})
    for name, variable in made.named_variables().items():
        variable.assign(model.named_variables()[name])
    return made


def mask_positions(input_ids, mask_id):
    """Returns where the masks of each row are, int32[B, P], and how many there are, int32[B]."""
    is_mask = input_ids == mask_id
    num_masks = tf.reduce_sum(tf.cast(is_mask, tf.int32), axis=1)
    order = tf.argsort(tf.cast(~is_mask, tf.int32), axis=1, stable=True)
    return order[:, : tf.reduce_max(num_masks)], num_masks

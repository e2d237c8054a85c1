"""What a model is: its sizes, its sharing plan, and the published rows of both."""

import dataclasses
import json

# In the released configs, read by no open code (original-behaviour: modeling.py, "dead").
UNUSED_KEYS = frozenset(
    ["down_scale_factor", "gap_size", "layers_to_keep", "net_structure_type", "num_memory_blocks"]
)
HIDDEN_ACTS = ("gelu", "gelu_erf", "relu", "tanh")  # modeling/activations.py has them.


def setting(default, help, choices=None):
    """Makes a dataclass field that carries its meaning, and its values where there are few."""
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices})


def layer_plan(sharing, num_layers, num_groups=1):
    """Says which attention block and which feed-forward block each layer runs.

    Layers that name the same block share its weights, so the plan is all there is to
    cross-layer parameter sharing (ALBERT, section 3.1 and Table 4). The LayerNorm after
    the attention belongs to the attention block, the one after the feed-forward network to
    that block: only so do the counts come out as Table 4's.

    Differs from the original: the group is found in integers. Its int(layer / layers * groups)
    gives a wrong floor for some shapes, such as 22 groups of 22 layers (modeling.py:1091).

    Args:
        sharing: "all", "attention", "ffn", "none" or "group".
        num_layers: number of encoder layers.
        num_groups: for "group" alone, number of runs of consecutive layers.

    Returns:
        A list of (attention block, feed-forward block) pairs, one per layer.

    Raises:
        ValueError: `sharing` is none of the five.
    """
    layers = range(num_layers)
    plans = {
        "all": [(0, 0) for _ in layers],
        "attention": [(0, i) for i in layers],
        "ffn": [(i, 0) for i in layers],
        "none": [(i, i) for i in layers],
        "group": [(i * num_groups // num_layers,) * 2 for i in layers],
    }
    if sharing not in plans:
        raise ValueError(f"`sharing` must be one of {sorted(plans)}. Received: {sharing!r}.")
    return plans[sharing]


@dataclasses.dataclass(frozen=True)
class AlbertConfig:
    """Settings of one model; the names and defaults are those of the original's JSON file.

    `sharing` is ours. The original's keys say "all" (one group), "group" and "none" (as many
    groups as layers); "attention" and "ffn" are the other columns of the paper's Table 4.
    """

    vocab_size: int = setting(None, "Number of pieces in the vocabulary.")
    embedding_size: int = setting(128, "E, width of the embedding tables.")
    hidden_size: int = setting(4096, "H, width of the encoder.")
    num_hidden_layers: int = setting(12, "Number of layers.")
    num_hidden_groups: int = setting(1, "Number of runs of layers that share their weights.")
    num_attention_heads: int = setting(64, "N, number of attention heads.")
    intermediate_size: int = setting(16384, "Inner width of the feed-forward network.")
    inner_group_num: int = setting(1, "Number of blocks that one layer runs, each its own.")
    hidden_act: str = setting("gelu", "Activation; gelu is the tanh form.", HIDDEN_ACTS)
    hidden_dropout_prob: float = setting(0.0, "Dropout of embeddings and block outputs.")
    attention_probs_dropout_prob: float = setting(0.0, "Dropout of attention probabilities.")
    max_position_embeddings: int = setting(512, "Longest sequence, in pieces.")
    type_vocab_size: int = setting(2, "Number of segments.")
    initializer_range: float = setting(0.02, "Standard deviation of the initial weights.")
    sharing: str = setting(None, "What layers share: all, attention, ffn, none or group.")

    def __post_init__(self):
        self._check_numbers()
        if self.sharing is None:
            object.__setattr__(self, "sharing", self._sharing_of_groups())
        elif self.sharing == "none" and self.num_hidden_groups == 1:
            object.__setattr__(self, "num_hidden_groups", self.num_hidden_layers)
        layer_plan(self.sharing, self.num_hidden_layers, self.num_hidden_groups)
        self._check_groups()

    def _sharing_of_groups(self):
        """Returns what the original's keys alone say."""
        if self.num_hidden_groups == 1:
            return "all"
        return "none" if self.num_hidden_groups == self.num_hidden_layers else "group"

    def _check_numbers(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.type is int and not (type(value) is int and value > 0):
                raise ValueError(f"`{field.name}` must be a whole number > 0. Received: {value!r}.")
            if field.type is float and type(value) not in (int, float):
                raise ValueError(f"`{field.name}` must be a number. Received: {value!r}.")
            if field.name.endswith("dropout_prob") and not 0 <= value < 1:
                raise ValueError(f"`{field.name}` must lie in [0, 1). Received: {value!r}.")
        if not self.initializer_range > 0:
            raise ValueError(
                f"`initializer_range` must be > 0. Received: {self.initializer_range!r}."
            )
        if self.hidden_act not in HIDDEN_ACTS:
            raise ValueError(
                f"`hidden_act` must be one of {list(HIDDEN_ACTS)}. Received: {self.hidden_act!r}."
            )
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                "`hidden_size` must be divisible by `num_attention_heads`. Received: hidden_size="
                f"{self.hidden_size}, num_attention_heads={self.num_attention_heads}."
            )

    def _check_groups(self):
        if self.num_hidden_groups > self.num_hidden_layers:
            raise ValueError(
                "`num_hidden_groups` must be at most `num_hidden_layers`. Received: "
                f"num_hidden_groups={self.num_hidden_groups}, "
                f"num_hidden_layers={self.num_hidden_layers}."
            )
        allowed = {"group": self.num_hidden_groups, "none": self.num_hidden_layers}
        if self.num_hidden_groups != allowed.get(self.sharing, 1):
            raise ValueError(
                "`num_hidden_groups` must be left at 1 unless `sharing` is 'group'. Received: "
                f"sharing={self.sharing!r}, num_hidden_groups={self.num_hidden_groups}."
            )

    @property
    def layer_plan(self):
        """Which (attention block, feed-forward block) each layer runs."""
        return layer_plan(self.sharing, self.num_hidden_layers, self.num_hidden_groups)

    @classmethod
    def from_dict(cls, values):
        """Makes a config from the original's JSON keys.

        Differs from the original, which takes any key (modeling.py:108): a key that is neither
        a field nor one of the released configs' unused ones is an error.

        Raises:
            ValueError: unknown keys, no `vocab_size`, or values that cannot be.
        """
        fields = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(values) - set(fields) - UNUSED_KEYS)
        if unknown:
            raise ValueError(f"The model's config may hold only {fields}. Received: {unknown}.")
        return cls(**{key: value for key, value in values.items() if key in fields})

    @classmethod
    def from_json_file(cls, path):
        """Reads `albert_config.json`, here or on gs://.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: it holds no config; the message names the file.
        """
        import tensorflow as tf  # Not above: `--help` needs SIZES, and no five seconds' wait.

        path = str(path)
        if not tf.io.gfile.exists(path) or tf.io.gfile.isdir(path):
            raise FileNotFoundError(f"The model's config must be a JSON file. Received: {path}.")
        try:
            with tf.io.gfile.GFile(path) as file:
                values = json.loads(file.read())
            if not isinstance(values, dict):
                raise ValueError(f"A config must be one JSON object. Received: {values!r}.")
            return cls.from_dict(values)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def to_json_file(self, path):
        """Writes the original's keys, and `sharing` only where they do not say it."""
        import tensorflow as tf

        values = dataclasses.asdict(self)
        if self.sharing == self._sharing_of_groups():
            del values["sharing"]
        with tf.io.gfile.GFile(str(path), "w") as file:
            file.write(json.dumps(values, indent=2) + "\n")


def row(num_layers, hidden_size, embedding_size=128, **others):
    """One row of the paper's Table 1: heads of 64, feed-forward network of 4H."""
    return {
        "embedding_size": embedding_size,
        "hidden_size": hidden_size,
        "num_hidden_layers": num_layers,
        "num_attention_heads": hidden_size // 64,
        "intermediate_size": 4 * hidden_size,
        **others,
    }


BERT = {
    "sharing": "none",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}

# Dropout is 0, as in all released v2 models and xxlarge v1. The v1 base, large and xlarge were
# trained with 0.1 in both places (paper, section 4.8; README of the original).
SIZES = {
    # Ours, for machines without accelerator; docs/pretraining.md has what tiny learns in an hour.
    # The paper's 0.02 suits its widths; narrow layers begin nearer to 1/sqrt(H).
    "tiny": row(4, 128, num_attention_heads=4, initializer_range=0.05),
    "small": row(6, 256, initializer_range=0.04),
    # ALBERT, Table 1.
    "base": row(12, 768),
    "large": row(24, 1024),
    "xlarge": row(24, 2048),
    "xxlarge": row(12, 4096),
    "xxlarge_24": row(24, 4096),  # Table 13; the row of Table 2 is this one.
    "h6144": row(3, 6144),  # Table 12, the widest, three layers deep.
    "bert_base": row(12, 768, embedding_size=768, **BERT),
    "bert_large": row(24, 1024, embedding_size=1024, **BERT),
}


def size(name, vocab_size, **others):
    """Makes the config of one row of SIZES.

    Args:
        name: a key of SIZES.
        vocab_size: number of pieces of the tokenizer.
        **others: fields that replace the row's, such as hidden_dropout_prob=0.1.

    Raises:
        ValueError: there is no such size, or the values cannot be.
    """
    if name not in SIZES:
        raise ValueError(f"The model's size must be one of {list(SIZES)}. Received: {name!r}.")
    return AlbertConfig(**{**SIZES[name], "vocab_size": vocab_size, **others})

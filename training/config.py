"""Settings of a training run. Imports nothing heavy, so that `--help` answers at once."""

import dataclasses

FLOAT32_END = 2.0**128  # From here on a number is infinite in float32.


def setting(default, help, choices=None):
    """Declares a field that is a command-line flag too."""
    return dataclasses.field(default=default, metadata={"help": help, "choices": choices})


@dataclasses.dataclass(frozen=True)
class TrainConfig:
    """Settings of one training run. Each field is a command-line flag too.

    Names and defaults are the original's (run_pretraining.py:37-119) unless the help
    says otherwise. `learning_rate` is None until the program has chosen one
    (`schedules.scaled_learning_rate`); `training.step` asks for a number.
    """

    optimizer: str = setting("lamb", "Update rule.", choices=("lamb", "adamw"))
    learning_rate: float | None = setting(
        None,
        "Peak learning rate; pretraining's, for LAMB, is 0.00176 times the square root of "
        "train_batch_size/4096 unless told.",
    )
    num_train_steps: int = setting(125_000, "Optimizer steps, warm-up included.")
    num_warmup_steps: int = setting(3_125, "Steps of linear warm-up.")
    start_warmup_step: int = setting(0, "Step at which warm-up begins; the rate is 0 before it.")
    poly_power: float = setting(1.0, "Power of the polynomial decay to 0; 1 is linear.")
    train_batch_size: int = setting(4096, "Examples per step, over all replicas together.")
    gradient_accumulation_steps: int = setting(
        1, "Micro-batches that a step's batch is taken in, so that a large one fits into memory."
    )
    precision: str = setting(
        "float32",
        "Of matrix products and activations; weights, softmax, layer norms and losses are float32.",
        choices=("float32", "bfloat16", "float16"),
    )
    recompute: bool = setting(
        False,
        "Keep no activations of a layer but its input, and compute the others again: far less "
        "memory, about a third more work.",
    )
    eval_batch_size: int = setting(64, "Examples per evaluation batch, over all replicas together.")
    weight_decay: float = setting(0.01, "Decoupled weight decay; biases and layer norms have none.")
    beta_1: float = setting(0.9, "Decay of the mean of the gradients.")
    beta_2: float = setting(0.999, "Decay of the mean of their squares.")
    epsilon: float = setting(1e-6, "Added to the root of the mean square.")
    bias_correction: bool = setting(
        False, "Correct both means for starting at 0; the original: no."
    )
    clip_norm: float = setting(
        1.0, "Largest global norm of the gradients; inf: they are not clipped."
    )
    save_checkpoints_steps: int = setting(5_000, "Steps between checkpoints (and evaluations).")
    keep_checkpoint_max: int = setting(5, "Newest checkpoints kept, beside the best; 0 keeps all.")
    best_metric: str = setting(
        "masked_lm_accuracy",
        "Evaluation metric that picks the best checkpoint: the highest, or the lowest if its name "
        "ends in `loss` or `error`.",
    )
    early_stopping_patience: int = setting(
        0, "Evaluations in a row without a better one after which training stops; 0: never."
    )
    iterations_per_loop: int = setting(
        100, "Steps run on the device between two lines of the log (the original: 1000)."
    )
    max_eval_steps: int = setting(
        0, "Evaluation batches at most; 0 takes each example once (the original: 100)."
    )
    seed: int = setting(0, "Seed of weights, data order and dropout.")
    strategy: str = setting(
        "one_device",
        "How replicas are placed: one device, every GPU of this machine (or every logical CPU), "
        "several machines by TF_CONFIG, or TPUs.",
        choices=("one_device", "mirrored", "multi_worker", "tpu"),
    )
    use_tpu: bool = setting(False, "The original's way to say --strategy=tpu.")
    tpu_name: str = setting(
        "",
        "Name or grpc address of the TPU; empty: the environment's; `local`: one in this machine, "
        "which alone may read and write local paths.",
    )
    max_skipped_steps: int = setting(
        10, "Steps in a row with a non-finite loss or gradient after which training stops."
    )
    blow_up_deviations: float = setting(
        6.0,
        "Rise of the reported loss, in its running deviations, that three reports in a row must "
        "show for a blow-up, which is rolled back; 0: never.",
    )
    max_rollbacks: int = setting(
        2,
        "How often a run whose loss blows up or stays non-finite goes back to the last good "
        "checkpoint and on with other data, before it stops.",
    )
    deterministic: bool = setting(
        False, "The same weights bit for bit from the same command on the same machine; slower."
    )

    def __post_init__(self):
        self._check_ranges()
        if self.train_batch_size % self.gradient_accumulation_steps:
            raise ValueError(
                "`train_batch_size` is the batch of one optimizer step and must be divisible by "
                f"`gradient_accumulation_steps`. Received: {self.train_batch_size} and "
                f"{self.gradient_accumulation_steps}."
            )
        if self.start_warmup_step and not self.num_warmup_steps:
            raise ValueError(
                "`start_warmup_step` is for a run with warm-up. Received: "
                f"start_warmup_step={self.start_warmup_step}, num_warmup_steps=0."
            )
        if self.use_tpu and self.strategy not in ("one_device", "tpu"):
            raise ValueError(
                "`use_tpu` means --strategy=tpu; give one of them. Received: "
                f"use_tpu=True, strategy={self.strategy!r}."
            )
        if self.use_tpu:
            object.__setattr__(self, "strategy", "tpu")
        if self.tpu_name and self.strategy != "tpu":
            raise ValueError(
                "`tpu_name` is for --strategy=tpu. Received: "
                f"tpu_name={self.tpu_name!r}, strategy={self.strategy!r}."
            )

    def _check_ranges(self):
        for name, value in dataclasses.asdict(self).items():
            may_be_infinite = name == "clip_norm" or not isinstance(value, float)
            if not may_be_infinite and not abs(value) < FLOAT32_END:
                raise ValueError(f"`{name}` must be finite in float32. Received: {value}.")
        positive = (
            "num_train_steps train_batch_size eval_batch_size save_checkpoints_steps "
            "iterations_per_loop max_skipped_steps clip_norm poly_power epsilon "
            "gradient_accumulation_steps"
        )
        not_negative = (
            "num_warmup_steps start_warmup_step weight_decay keep_checkpoint_max max_eval_steps "
            "early_stopping_patience seed blow_up_deviations max_rollbacks"
        )
        for name in positive.split():
            if not getattr(self, name) > 0:
                raise ValueError(
                    f"`{name}` must be greater than 0. Received: {getattr(self, name)}."
                )
        for name in not_negative.split():
            if not getattr(self, name) >= 0:
                raise ValueError(f"`{name}` must not be negative. Received: {getattr(self, name)}.")
        for name in ("beta_1", "beta_2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"`{name}` must lie in [0, 1). Received: {getattr(self, name)}.")
        if self.learning_rate is not None and not self.learning_rate >= 0:
            raise ValueError(
                f"`learning_rate` must not be negative. Received: {self.learning_rate}."
            )

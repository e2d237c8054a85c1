"""The plain way to fine-tune a classifier: Hugging Face's model, PyTorch's AdamW, random batches.

What scripts and tutorials do, and nothing else; both benchmarks of fine-tuning measure against
it. Import it where PyTorch is wanted only.

Shapes: B batch, T tokens, C classes.
"""

import numpy as np
import torch
import transformers

NOT_DECAYED = ("bias", "LayerNorm.weight", "layer_norm.weight")
WEIGHT_DECAY, CLIP_NORM, WARMUP = 0.01, 1.0, 0.1
HEAD_DROPOUT = ("classifier_dropout", "classifier_dropout_prob")  # BERT's name, and ALBERT's.
CLASSIFIER_DROPOUT = 0.1
NAMES = {"input_ids": "input_ids", "segment_ids": "token_type_ids"}


def pretrained(path, num_outputs, **dropout):
    """Loads an encoder under a new head on its pooled output.

    Args:
        path: Hugging Face folder.
        num_outputs: C, or 1 for a number.
        **dropout: `hidden_dropout_prob`, `attention_probs_dropout_prob`, in place of the config's.
    """
    config = transformers.AutoConfig.from_pretrained(path, num_labels=num_outputs, **dropout)
    for name in HEAD_DROPOUT:
        setattr(config, name, CLASSIFIER_DROPOUT)
    return transformers.AutoModelForSequenceClassification.from_pretrained(path, config=config)


def collate(examples, length=None):
    """Pads examples to the longest of them, or to a length.

    Args:
        examples: list of dicts: `input_ids` and `token_type_ids`, lists of int, and `label`.
        length: T, or None.

    Returns:
        A dict of tensors: `input_ids`, `token_type_ids`, `attention_mask` int64[B, T], `labels`.
    """
    lengths = np.array([len(example["input_ids"]) for example in examples])
    length = length or lengths.max()
    mask = np.arange(length) < lengths[:, np.newaxis]
    batch = {"attention_mask": mask.astype(np.int64)}
    for name in NAMES.values():
        batch[name] = np.zeros(mask.shape, np.int64)
        batch[name][mask] = np.concatenate([example[name] for example in examples])
    batch["labels"] = np.array([example["label"] for example in examples])
    return {name: torch.from_numpy(array) for name, array in batch.items()}


def random_batches(examples, batch_size, seed, length=None):
    """Makes batches of one epoch, in an order that is new each time it is gone through."""
    return torch.utils.data.DataLoader(
        examples,
        batch_size,
        shuffle=True,
        generator=torch.Generator().manual_seed(seed),
        collate_fn=lambda chosen: collate(chosen, length),
    )


class Trainer:
    """AdamW on a linear schedule with warm-up, after clipping the gradient.

    Args:
        model: transformers model that returns a loss.
        learning_rate: its peak.
        num_steps: steps until the rate is 0.
    """

    def __init__(self, model, learning_rate, num_steps):
        self.model = model.train()
        named = dict(model.named_parameters())
        kept = [named[name] for name in named if name.endswith(NOT_DECAYED)]
        decayed = [named[name] for name in named if not name.endswith(NOT_DECAYED)]
        groups = [
            {"params": decayed, "weight_decay": WEIGHT_DECAY},
            {"params": kept, "weight_decay": 0.0},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=learning_rate, fused=True)
        self.schedule = transformers.get_linear_schedule_with_warmup(
            self.optimizer, round(WARMUP * num_steps), num_steps
        )

    def step(self, batch):
        """Learns from one batch and returns its loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP_NORM)
        self.optimizer.step()
        self.schedule.step()
        return loss.item()


def predict(model, examples, batch_size):
    """Returns the logits of all examples, float32[n, C], in order."""
    model.eval()
    logits = []
    with torch.inference_mode():
        for start in range(0, len(examples), batch_size):
            batch = collate(examples[start : start + batch_size])
            logits.append(model(**batch).logits.numpy())
    return np.concatenate(logits)

"""What a run knows beside its variables: figures not yet reported, its rollbacks, its pace.

It goes into each checkpoint's note, so that a run that goes on reports what an unbroken one would.
"""

import dataclasses

import tensorflow as tf

from training.divergence import LossWatch

LOOK_EACH = 2.0  # Seconds on the device after which the host looks up for a signal.


@dataclasses.dataclass
class Progress:
    """See the module.

    Attributes:
        totals: dict of name to (sum, count) over the steps since the last report, or None.
        num_steps: int, these steps.
        seconds: float, what they took.
        waited: float, seconds of them that went by waiting for input.
        watch: LossWatch.
        num_rollbacks: int, how often the run has gone back to a checkpoint.
        interim: int, step of a checkpoint that a signal asked for, which the next one
            replaces; 0 where there is none.
        at_once: int, steps that the device may take in LOOK_EACH.
    """

    totals: dict | None = None
    num_steps: int = 0
    seconds: float = 0.0
    waited: float = 0.0
    watch: LossWatch = dataclasses.field(default_factory=LossWatch)
    num_rollbacks: int = 0
    interim: int = 0
    at_once: int = 1

    def add(self, totals, *, num_steps, seconds, waited):
        """Counts steps that were taken; `totals` hold those before, too."""
        self.totals, self.num_steps = totals, self.num_steps + num_steps
        self.seconds, self.waited = self.seconds + seconds, self.waited + waited
        if num_steps:
            self.at_once = max(1, int(num_steps * LOOK_EACH / max(seconds, 1e-9)))

    def reported(self):
        """Begins anew, after a report."""
        self.totals, self.num_steps, self.seconds, self.waited = None, 0, 0.0, 0.0

    def to_note(self, interim=False):
        """Returns dict of JSON values; floats come back from JSON bit for bit."""
        totals = self.totals and {n: [float(part) for part in p] for n, p in self.totals.items()}
        return {
            "interim": interim,
            "num_rollbacks": self.num_rollbacks,
            "watch": dataclasses.asdict(self.watch),
            "since_report": {
                "totals": totals,
                "num_steps": self.num_steps,
                "seconds": self.seconds,
                "waited": self.waited,
            },
        }


def from_note(step, note):
    """Returns the Progress that a checkpoint's note tells; a new one where it tells none.

    Args:
        step: int, of the checkpoint.
        note: dict of `Progress.to_note`, or {} of a checkpoint from before there were notes.
    """
    if "since_report" not in note:
        return Progress()
    since = dict(note["since_report"])
    if since["totals"]:
        since["totals"] = {n: tuple(map(tf.constant, pair)) for n, pair in since["totals"].items()}
    return Progress(
        **since,
        watch=LossWatch(**note["watch"]),
        num_rollbacks=note["num_rollbacks"],
        interim=step if note["interim"] else 0,
    )

"""Tells a loss that has blown up from one that is noisy, by the means of reports alone.

The numbers are those of the whole batch, so every worker comes to the same judgement, and a
run that goes on from a checkpoint to the one an unbroken run comes to.
"""

import dataclasses
import math

DECAY = 0.9  # Of the running figures: they reach back over about ten reports.
NUM_REPORTS_BEFORE = 10  # Nothing is judged until the running figures stand on so many.
NUM_HIGH = 3  # Reports in a row that make a blow-up; one or two may be a bad stretch of text.
SMALLEST_RISE = 0.5  # Nats. A loss near 0 has a deviation near 0, and any wobble would be high.


class Diverged(ValueError):
    """The loss or its gradient blew up; one line for the user, not a traceback."""


@dataclasses.dataclass
class LossWatch:
    """Running figures of the reported loss.

    A report is high when its loss exceeds the lowest running mean so far by more than
    `num_deviations` running deviations and by more than SMALLEST_RISE. High reports do not enter
    the running figures. NUM_HIGH of them in a row are a blow-up.

    Attributes:
        mean: float, running mean of the loss, in nats.
        variance: float, running mean of the squared distance to it.
        lowest: float, lowest `mean` since there were NUM_REPORTS_BEFORE; None before.
        num_reports: int, how many entered the figures.
        num_high: int, high reports in a row.
    """

    mean: float = 0.0
    variance: float = 0.0
    lowest: float | None = None
    num_reports: int = 0
    num_high: int = 0

    @property
    def deviation(self):
        return math.sqrt(self.variance)

    def add(self, loss, num_deviations):
        """Takes the mean loss of one report and says whether the run has blown up.

        Args:
            loss: float, nats; NaN, of a report without one applied step, is gone past.
            num_deviations: float; 0 never finds a report high.

        Returns:
            bool.
        """
        if math.isnan(loss):
            return False
        if num_deviations and self.lowest is not None:
            rise = max(num_deviations * self.deviation, SMALLEST_RISE)
            if loss > self.lowest + rise:
                self.num_high += 1
                return self.num_high >= NUM_HIGH
        # The first reports count alike, so that the first of all does not weigh for long.
        share = max(1 - DECAY, 1 / (self.num_reports + 1))
        distance = loss - self.mean
        self.mean += share * distance
        self.variance = (1 - share) * (self.variance + share * distance**2)
        self.num_reports, self.num_high = self.num_reports + 1, 0
        if self.num_reports >= NUM_REPORTS_BEFORE:
            self.lowest = self.mean if self.lowest is None else min(self.lowest, self.mean)
        return False

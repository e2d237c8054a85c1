"""Watches over a run: reports, saves, goes back when the loss blows up, stops on a signal."""

import time

from training import distribution, progress, signals
from training.divergence import Diverged

# Share of the time spent on waiting for batches from which on it is warned of, and seconds: a run
# of a minute has other troubles.
INPUT_BOUND, LONG_WAIT = 0.25, 2.0


def steps_to_run(done, config):
    """Returns how many steps are taken before the next report.

    Every multiple of `iterations_per_loop` and `save_checkpoints_steps` is such a place, so
    that a resumed run reports and saves where an unbroken one does.
    """
    stops = [
        config.iterations_per_loop - done % config.iterations_per_loop,
        config.save_checkpoints_steps - done % config.save_checkpoints_steps,
        config.num_train_steps - done,
    ]
    return min(stops)


class Run:
    """The parts of a run, and how far it is.

    Attributes:
        done: int, steps done.
        progress: `progress.Progress`.
    """

    def __init__(self, train_step, checkpoints, reporter, best, note):
        """Takes the arguments of `loop.train`."""
        self.train_step, self.checkpoints = train_step, checkpoints
        self.reporter, self.best = reporter, best
        self.state, self.config = train_step.state, train_step.config
        self.strategy = train_step.strategy
        self.done = int(self.state.step.numpy())
        self.progress = progress.from_note(self.done, note or {})
        self._first_step, self._warned_of_input = self.done, False
        self._saved_at = self.done if note is not None else None

    def is_done(self):
        return self.done >= self.config.num_train_steps or self.stops_early()

    def take_steps(self, iterator):
        """Takes some steps, and reports where that is due.

        Returns:
            str: in what way the loss has blown up; "" where it has not.
        """
        before, started = self.done, time.monotonic()
        num_steps = min(steps_to_run(before, self.config), self.progress.at_once)
        totals, waited = self.train_step.add_steps(iterator, num_steps, self.progress.totals)
        self.done = int(self.state.step.numpy())
        seconds, num_steps = time.monotonic() - started, self.done - before
        self.progress.add(totals, num_steps=num_steps, seconds=seconds, waited=waited)
        if before == self._first_step:
            self.reporter.message(f"first step: after {seconds:.1f} s, compiling included")
        skipped = int(self.state.skipped_in_a_row.numpy())
        stays_non_finite = skipped >= self.config.max_skipped_steps
        if steps_to_run(before, self.config) > num_steps and not stays_non_finite:
            return ""
        is_high = self._report()
        if stays_non_finite:
            return f"the loss or gradient of the last {skipped} steps was not finite"
        return is_high

    def _report(self):
        """Reports the steps since the last report; returns as `take_steps`."""
        since, watch = self.progress, self.progress.watch
        metrics = self.train_step.metrics(since.totals)
        blown_up = watch.add(metrics["loss"], self.config.blow_up_deviations)
        metrics["skipped_steps"] = int(self.state.skipped_steps.numpy())
        metrics["rollbacks"] = since.num_rollbacks
        metrics["loss_deviation"] = watch.deviation
        share = since.waited / max(since.seconds, 1e-9)
        ratios = self.state.optimizer.trust_ratios
        figures = {f"trust_ratio/{n}": float(v.numpy()) for n, v in ratios.items()}
        figures["input_wait"] = share
        self.reporter.train(
            self.done,
            metrics,
            num_steps=since.num_steps,
            seconds=since.seconds,
            figures=figures,
        )
        self._warn_of_input(share)
        since.reported()
        if blown_up:
            return f"a loss of {metrics['loss']:.4f} stays above the {watch.lowest:.4f} it had"
        return ""

    def _warn_of_input(self, share):
        """Warns once of steps that wait for their batches; the first report's fill a buffer."""
        is_first = self.done - self.progress.num_steps == self._first_step
        is_long = share > INPUT_BOUND and self.progress.waited > LONG_WAIT
        if not is_long or is_first or self._warned_of_input:
            return
        self._warned_of_input = True
        self.reporter.message(
            f"warning: {share:.0%} of the time goes into waiting for input: faster disks, more "
            "record files or more CPU cores would help; the device would not"
        )

    def signal(self, request):
        """Returns the number of the signal that came to this worker or another, or 0.

        So all leave at the same step. They also take as many steps at once as the slowest can.
        """
        mine = [request.number, -self.progress.at_once]
        number, at_most = distribution.largest(self.strategy, mine)
        self.progress.at_once = -at_most
        return number

    def is_at_checkpoint(self):
        is_end = self.done == self.config.num_train_steps
        return self.done % self.config.save_checkpoints_steps == 0 or is_end

    def evaluate_and_save(self, evaluate):
        """Evaluates and saves, and says so if the run stops early."""
        evaluation = evaluate() if evaluate else None
        if evaluation:
            self.reporter.evaluation(self.done, evaluation)
        if evaluation and self.best:
            self.best.offer(self.done, evaluation)
        # Weights from which the last step came out non-finite, or the last report high, are not
        # known to be good.
        is_good = not (self.state.skipped_in_a_row.numpy() or self.progress.watch.num_high)
        if is_good or self.done == self.config.num_train_steps:
            self._save()
        if self.stops_early():
            self.reporter.message(
                f"stopped early at step {self.done:,}: {self.config.early_stopping_patience} "
                f"evaluation(s) without a better {self.best.metric} than {self.best.value:.4f}, "
                f"of step {self.best.step:,}"
            )

    def stops_early(self):
        """Says whether `early_stopping_patience` evaluations have passed since the best one."""
        best, patience = self.best, self.config.early_stopping_patience
        if not (patience and best and best.step):
            return False
        return self.done - best.step >= patience * self.config.save_checkpoints_steps

    def _save(self, interim=False):
        note, replaced = self.progress.to_note(interim), self.progress.interim
        self.checkpoints.save(self.done, note, replaced)
        self._saved_at = self.done
        self.progress.interim = self.done if interim else 0

    def stop(self, number):
        """Saves the state, unless it was saved at this very step, and leaves.

        Args:
            number: of the signal.

        Raises:
            signals.Stopped: always.
        """
        if self.done != self._saved_at:
            self._save(interim=True)
        distribution.largest(self.strategy, [0])  # No worker leaves before the chief has saved.
        name = signals.name(number)
        raise signals.Stopped(
            f"stopped by {name} at step {self.done:,}, saved in {self.checkpoints.path(self.done)}"
            "; the same command goes on from there",
            number,
        )

    def roll_back(self, reason):
        """Goes back to the last good checkpoint, and on with examples that were not seen.

        The schedule's clock goes back with weights and slots; the examples in between are left
        out, for they may be what the loss blew up on. What was gone back to is saved again at
        once, with the place in the data, so that a run killed later does not take them.

        Args:
            reason: what happened, words for the user.

        Raises:
            Diverged: there is no good checkpoint, or it was gone back to often enough.
        """
        state, num_rollbacks = self.state, self.progress.num_rollbacks
        failed_at, examples_seen = self.done, state.examples_seen.numpy()
        may_go_back = num_rollbacks < self.config.max_rollbacks
        restored = self.checkpoints.restore(with_interim=False) if may_go_back else None
        if restored is None:
            raise Diverged(self._end(failed_at, reason))
        self.done, note = restored
        state.examples_seen.assign(examples_seen)
        self.progress = progress.from_note(self.done, note)
        self.progress.num_rollbacks = num_rollbacks + 1
        distribution.largest(self.strategy, [0])  # All have read what is now replaced.
        for abandoned in (saved for saved in self.checkpoints.steps() if saved > self.done):
            self.checkpoints.delete(abandoned)
        self._save()
        self.reporter.go_back(self.done)
        self.reporter.message(
            f"warning: step {failed_at:,}: {reason}. Went back to step {self.done:,}, and on with "
            f"other examples (rollback {num_rollbacks + 1} of {self.config.max_rollbacks})"
        )

    def _end(self, failed_at, reason):
        """Returns why a run ends that cannot go back, and the remedy."""
        kept, number = self.checkpoints.latest(with_interim=False), self.progress.num_rollbacks
        gone_back = f", after {number} rollback(s) (`max_rollbacks`)" if number else ""
        return (
            f"Stopped at step {failed_at}: {reason}{gone_back}. "
            + (f"The last checkpoint is {kept[1]}. " if kept else "")
            + "Lower `learning_rate` or lengthen the warm-up."
        )

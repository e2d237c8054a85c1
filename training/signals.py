"""A signal that asks a run to stop: noted when it comes, obeyed at the next step boundary."""

import signal
import threading

ASKING = (signal.SIGTERM, signal.SIGINT)


class Stopped(Exception):
    """A run has saved its state and leaves because a signal asked it to; not a failure.

    Attributes:
        exit_code: 128 + the signal's number, as a shell tells it: 143 for SIGTERM, 130 for SIGINT.
            Schedulers that tell passing failures from lasting ones by the code (Kubeflow's
            `restartPolicy: ExitCode`: 128 and above) start such a job again, and one that ended
            with 1, a user's mistake, not.
    """

    def __init__(self, message, number):
        super().__init__(message)
        self.exit_code = 128 + number


def name(number):
    """Returns what a signal is called, such as SIGTERM."""
    return signal.Signals(number).name


class StopRequest:
    """Listens for SIGTERM and SIGINT while it is entered.

    The first one is noted; the next one acts as it did before, and so ends the process at once.

    Attributes:
        number: the signal's number, 0 until one comes.
    """

    def __init__(self):
        self.number, self._before = 0, {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():  # Python allows it there alone.
            self._before = {number: signal.signal(number, self._note) for number in ASKING}
        return self

    def __exit__(self, *exception):
        self._listen_no_more()

    def _note(self, number, _):
        self.number = number
        self._listen_no_more()

    def _listen_no_more(self):
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

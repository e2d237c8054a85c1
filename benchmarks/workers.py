"""A contestant in a process of its own, stepped by commands over a pipe.

Thread pools of two libraries in one process fight; those of two processes that run in turn do
not. A worker that is not stepped waits on its pipe and takes no processor.
"""

import importlib.util
import multiprocessing
import resource
import sys
import time

from benchmarks import contestants, finetuning_contestants, inference_contestants, limits

ROWS = (
    contestants.CONTESTANTS
    | limits.LIMITS
    | finetuning_contestants.CONTESTANTS
    | inference_contestants.CONTESTANTS
)
LONGEST_STEP = 1800  # Seconds until a worker is given up; a step takes some on a busy machine.


def check_installed(names):
    """Refuses contestants whose libraries are not installed."""
    libraries = {module.split(".")[0] for name in names for module in ROWS[name].modules}
    if missing := sorted(name for name in libraries if not importlib.util.find_spec(name)):
        raise ValueError(
            "The benchmark needs `pip install -r requirements-dev.txt`, that of ONNX Runtime also "
            "requirements-onnx.txt. Received: no package "
            f"{', '.join(missing)}."
        )


def peak_memory():
    """Returns the largest resident size of this process so far, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def serve(pipe, name, work):
    """Runs in the worker: imports, builds, then takes a step for each message until it is None."""
    contestants.prepare(ROWS[name])
    pipe.send({"memory": peak_memory()})
    step = None
    while (arguments := pipe.recv()) is not None:
        started, processor = time.perf_counter(), time.process_time()
        step = step or ROWS[name].build(work)
        loss = step(*arguments)
        pipe.send(
            {
                "seconds": time.perf_counter() - started,
                "processor_seconds": time.process_time() - processor,
                "loss": loss,
                "memory": peak_memory(),
            }
        )


class Worker:
    """The other end: starts the process and has it take steps.

    Use it in a `with` statement, which ends the process.
    """

    def __init__(self, name, work):
        """Starts the process, which begins to import its libraries.

        Args:
            name: key of `ROWS`.
            work: contestants.Work, or what else the row's `build` takes.
        """
        context = multiprocessing.get_context("spawn")
        self.name = name
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, name, work), daemon=True)
        self.process.start()
        other.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.is_alive():
            self.pipe.send(None)
        self.process.join()

    def imported(self):
        """Waits until everything is imported, once, before the first step.

        Returns:
            dict: the peak `memory` so far in MiB.
        """
        return self._receive()

    def step(self, *arguments):
        """Takes a step, the first of which builds the model.

        Args:
            *arguments: what the contestant's step takes; most take nothing.

        Returns:
            dict: `seconds` on the clock, `processor_seconds` of all threads, `loss`, and the
            process's peak `memory` so far in MiB.
        """
        self.pipe.send(arguments)
        return self._receive()

    def _receive(self):
        try:
            if self.pipe.poll(LONGEST_STEP):
                return self.pipe.recv()
        except EOFError:
            pass
        self.process.kill()
        raise RuntimeError(f"The process of {self.name} died or hung; its error stands above.")

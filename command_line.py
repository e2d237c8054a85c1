"""What every program shares: flags made from settings, quiet start-up, one-line errors.

Only programs import this module. A setting lives in one frozen dataclass, in the
package that uses it; here each of its fields becomes a flag.
"""

import contextlib
import dataclasses
import os
import signal
import sys
import traceback
import types
import typing
import warnings

from absl import app, flags

from training import signals

DEFINE = {
    bool: flags.DEFINE_boolean,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_string,
}
flags.disclaim_key_flags()  # The flags belong to the program that asks for them.
PATH_ENDINGS = ("_file", "_dir", "_checkpoint", "tokenizer")  # Of the names of flags.
USER_ERRORS = (ValueError, OSError)  # OSError covers FileNotFoundError and PermissionError.
GFILE = "tensorflow.python.lib.io.file_io"  # The module of `tf.io.gfile`.


def plain_type(annotation):
    """Returns the type a flag holds: `int` for both `int` and `int | None`."""
    if isinstance(annotation, types.UnionType):
        (annotation,) = (t for t in typing.get_args(annotation) if t is not type(None))
    return annotation


def define_flags(config_class, by_recipe=(), without=()):
    """Defines one flag per field, with that field's name, default, help and choices.

    Args:
        config_class: a dataclass whose fields carry `metadata={"help": ...}` and, where
            the value is one of a few, `"choices": (...)`.
        by_recipe: names of fields that the program's recipe tells where no flag does: their
            help says so and shows no default.
        without: names of fields that mean nothing to the program: they keep their defaults.
    """
    for field in (f for f in dataclasses.fields(config_class) if f.name not in without):
        help_text, choices = field.metadata["help"], field.metadata.get("choices")
        default = field.default
        if field.name in by_recipe:
            default, help_text = None, f"{help_text} By default as the task's recipe says."
        if choices:
            flags.DEFINE_enum(field.name, default, choices, help_text)
        else:
            DEFINE[plain_type(field.type)](field.name, default, help_text)


def from_flags(config_class, **recipe):
    """Builds a config: the user's flags first, then `recipe`, then the defaults.

    Args:
        config_class: a dataclass whose flags `define_flags` defined.
        **recipe: settings that come before the defaults.

    Returns:
        An instance of `config_class`.

    Raises:
        ValueError: the settings contradict one another.
    """
    names = [field.name for field in dataclasses.fields(config_class)]
    given = {name: flags.FLAGS[name].value for name in names if is_given(name)}
    return config_class(**{**recipe, **given})


def is_given(name):
    """Says whether the program has a flag and the user gave it."""
    return name in flags.FLAGS and bool(flags.FLAGS[name].present)


def program_flags():
    """Returns the values of all flags that the running program defines, by name."""
    return {flag.name: flag.value for flag in flags.FLAGS.get_key_flags_for_module(sys.argv[0])}


def prepare_tensorflow():
    """Imports TensorFlow with the console kept clean and oneDNN's kernels on.

    Both must be set before the import. `TF_ENABLE_ONEDNN_OPTS=1` is worth 12 % on
    CPUs where TensorFlow leaves it off; whoever set either variable is obeyed.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")


def compile_quietly():
    """Has XLA compile something while nobody listens.

    With its first compilation a process prints a line about itself on stderr, whatever the log
    level. Call it before the first model, but after devices and strategy are settled.
    """
    import tensorflow as tf

    sys.stderr.flush()
    listener = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        tf.function(tf.negative, jit_compile=True)(tf.constant(1.0))
    finally:
        os.dup2(listener, 2)
        os.close(listener)


def one_line(message):
    return " ".join(str(message).split())


def show_warning(message, *_, **__):
    """Prints a warning as one line, without the place in the code that it comes from."""
    print(f"warning: {one_line(message)}", file=sys.stderr)


def fail(message, exit_code=1):
    """Prints one line to stderr and leaves."""
    print(f"error: {one_line(message)}", file=sys.stderr)
    sys.exit(exit_code)


def parse(argv):
    try:
        return flags.FLAGS(argv)
    except flags.Error as error:
        fail(f"{str(error).rstrip(' .?')}. `--help` lists the flags.")


def check_remote():
    """Refuses local paths where the work is done on TPUs, whose hosts see no disk of this machine.

    A TPU of this very machine is called `local` (`--tpu_name`); for it all paths will do.

    Raises:
        ValueError: names every such path at once, before anything starts.
    """
    given = {name: flags.FLAGS[name].value for name in flags.FLAGS}
    on_tpu = given.get("strategy") == "tpu" or given.get("use_tpu")
    if not on_tpu or given["tpu_name"] == "local":
        return
    paths = {name: value for name, value in given.items() if name.endswith(PATH_ENDINGS) and value}
    own = program_flags()
    local = [
        f"{name}={path}"
        for name, value in paths.items()
        for path in (value if isinstance(value, list) else str(value).split(","))
        if name in own and ("://" not in path or path.startswith("file:"))
    ]
    if local:
        raise ValueError(
            "Every path must be remote, such as gs://bucket/folder, where a TPU's own hosts read "
            f"and write. Received: {', '.join(sorted(local))}. For a TPU in this machine, give "
            "--tpu_name=local."
        )


def show_help(arguments):
    """Prints the program's own flags and leaves, when the user asks for help."""
    if {"--help", "-help", "-h", "--helpshort"} & set(arguments):
        program = sys.modules["__main__"]
        print(program.__doc__.strip())
        print(flags.FLAGS.main_module_help())
        sys.exit(0)


def tensorflow_errors():
    """Returns the class of TensorFlow's errors in a tuple, which is empty before its import."""
    tensorflow = sys.modules.get("tensorflow")
    return (tensorflow.errors.OpError,) if tensorflow else ()


def is_of_files(error):
    """Says whether an error was raised by a call of `tf.io.gfile`, not by an operation."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals["__name__"] == GFILE


@contextlib.contextmanager
def ended_by_sigterm():
    """Has SIGTERM end the program as Ctrl-C does, so that what is half written is removed."""

    def end(number, _):
        fail("terminated.", 128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def is_of_lost_worker(error):
    """Says whether an error is what TensorFlow raises when another worker is gone."""
    if "strategy" not in flags.FLAGS or flags.FLAGS.strategy != "multi_worker":
        return False
    from training import distribution

    return isinstance(error, distribution.LOST_WORKER)


def run(main, takes_arguments=False):
    """Parses the flags and calls `main()`; a user's mistake becomes one line and exit code 1.

    A lost worker becomes one line and the exit code of SIGTERM: those who are left cannot take a
    step, and a scheduler that starts all again finds the last checkpoint.

    Args:
        main: a function of no argument, or, with `takes_arguments`, of the list of
            words on the command line that are not flags. `ValueError` and `OSError` that it raises
            are taken as the user's mistakes, and so are TensorFlow's errors with files, such as a
            bucket that denies access; whatever else is a fault of ours and keeps its traceback.
    """

    def guarded(arguments):
        if arguments[1:] and not takes_arguments:
            fail(f"This program takes flags only. Received: {' '.join(arguments[1:])}.")
        try:
            check_remote()
            main(arguments[1:]) if takes_arguments else main()
        except USER_ERRORS as error:
            fail(error)
        except tensorflow_errors() as error:  # Asked for only when an error is there.
            if is_of_files(error):
                fail(error.message)
            if not is_of_lost_worker(error):
                raise
            print(
                f"stopped: another worker is gone ({type(error).__name__}); start all of them "
                "again: the run goes on from the last checkpoint",
                file=sys.stderr,
            )
            sys.exit(128 + signal.SIGTERM)
        except signals.Stopped as stopped:
            print(one_line(stopped), file=sys.stderr)
            sys.exit(stopped.exit_code)
        except KeyboardInterrupt:
            fail("interrupted.", 128 + signal.SIGINT)

    show_help(sys.argv[1:])
    warnings.showwarning = show_warning
    app.run(guarded, flags_parser=parse)

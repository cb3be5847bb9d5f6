"""Run one command: its failures become an `error:` and a `hint:` line, an envelope, an exit code."""

import contextlib
import errno
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping

from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, of_error
from kgroup.cli.output.messages import print_error
from kgroup.errors import ConfigError, KgroupError


def run_command(
    make_env: Callable[[], Env], fn: Callable[..., int | None], values: Mapping[str, object]
) -> int:
    """Call `fn(env, **values)` and return the process's exit code; only usage errors pass through."""
    env: Env | None = None
    try:
        env = make_env()
        result = int(fn(env, **values) or ExitCode.OK)
        sys.stdout.flush()
        return result
    except BrokenPipeError as error:
        return output_failed(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except KgroupError as error:
        return _report(error, env)
    except Exception as error:
        # Unexpected failures: output that cannot be written, else a bug of kgroup. typer's usage errors and
        # exits are for the caller.
        if hasattr(error, "exit_code"):
            raise error
        if isinstance(error, OSError) and error.errno in _UNWRITABLE and error.filename is None:
            return output_failed(error)
        fault = _fault(error)
        fault.__cause__ = error
        return _report(fault, env)


def _fault(error: Exception) -> KgroupError:
    """Return what to say of an exception that nothing has handled."""
    if isinstance(error, UnicodeEncodeError) and _NOT_UTF_8.search(str(error.object)):
        # Python keeps the bytes of an argument that is not UTF-8 as these characters.
        word = next(filter(_NOT_UTF_8.search, sys.argv), str(error.object))
        return ConfigError(f"{word!r} is not UTF-8", "names in Kafka are UTF-8; what does the terminal send?")
    said = f"{type(error).__name__}: {error}".rstrip(": ")
    return KgroupError(
        f"kgroup met something it does not know how to handle ({said})",
        "the same command with --debug shows where; that is worth a bug report",
    )


_NOT_UTF_8 = re.compile("[\udc80-\udcff]")


def _report(error: KgroupError, env: Env | None) -> int:
    code = of_error(error)
    if env is not None and env.debug:
        _print_traceback(error)
    if env is not None and env.output.is_document:
        from kgroup.cli.output.result import print_failure

        try:
            print_failure(env, error, code)
            sys.stdout.flush()
        except OSError:
            silence_stdout()
    print_error(error.message, error.hint)
    return code


def _print_traceback(error: Exception) -> None:
    """Print the traceback to stderr; an exception's text may come from a broker and is escaped."""
    own = ("Traceback ", "  File ", "  [Previous", "\n")
    for part in traceback.TracebackException.from_exception(error).format():
        print(part if part.startswith(own) else clean(part.rstrip("\n")) + "\n", end="", file=sys.stderr)


def output_failed(error: OSError) -> int:
    """Return the exit code for failed output: fine for a reader that left, not for a full disk."""
    silence_stdout()
    if isinstance(error, BrokenPipeError):
        return ExitCode.OK
    print_error(
        f"the output cannot be written: {error.strerror}",
        "what was printed is incomplete; what the command did, it did (kgroup journal list)",
    )
    return ExitCode.FAILED


_UNWRITABLE = frozenset({errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT})


def silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's own flush at exit stays quiet too."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

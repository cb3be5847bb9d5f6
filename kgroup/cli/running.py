"""Run one command: its failures become an `error:` and a `hint:` line, an envelope, an exit code."""

import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode, of_error
from kgroup.errors import KgroupError


def run_command(make_env: Callable[[], Env], fn: Callable[..., Any], values: Mapping[str, Any]) -> int:
    """Call `fn(env, **values)` and return the process's exit code; only usage errors pass through."""
    env: Env | None = None
    try:
        env = make_env()
        result = int(fn(env, **values) or ExitCode.OK)
        sys.stdout.flush()
        return result
    except BrokenPipeError:
        silence_stdout()
        return ExitCode.OK
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except KgroupError as error:
        return _report(error, env)


def _report(error: KgroupError, env: Env | None) -> int:
    code = of_error(error)
    if env is not None and env.debug:
        import traceback

        traceback.print_exception(error, file=sys.stderr)
    if env is not None and env.output.is_document:
        from kgroup.cli.output import print_failure

        try:
            print_failure(env, error, code)
            sys.stdout.flush()
        except BrokenPipeError:
            silence_stdout()
    print_error(error.message, error.hint)
    return code


def print_error(message: str, hint: str | None = None) -> None:
    """One `error:` line and, if there is a next step, one `hint:` line, both on stderr."""
    with contextlib.suppress(BrokenPipeError):
        print(f"error: {message}", file=sys.stderr)
        if hint:
            print(f"hint: {hint}", file=sys.stderr)


def silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's own flush at exit stays quiet too."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""The whole command line; turns anything that ends a command into an exit code."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from typer.core import TyperOption
from typer.exceptions import Abort, Exit, TyperException

import kgroup
from kgroup.cli.click import NoArgsIsHelpError, UsageError
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.lazy import CONTEXT_SETTINGS, RootGroup
from kgroup.cli.frame.running import output_failed
from kgroup.cli.frame.wrong_usage import answered, names_a_kind
from kgroup.cli.output.messages import print_error

if TYPE_CHECKING:
    from typer import CallbackParam, Context

DESCRIPTION = """Inspect, repair, migrate and replay Kafka consumer groups.

Works on a remote cluster (-b HOST:PORT) and on an embedded one (--local).
"""


def _print_version(ctx: "Context", param: "CallbackParam", value: bool) -> None:
    if value and not ctx.resilient_parsing:
        if ctx.params["verbose"]:
            from kgroup.cli.frame.build import lines

            print(*lines(), sep="\n")
        else:
            print(f"kgroup {kgroup.__version__}")
        raise Exit()


def root() -> RootGroup:
    """Return the command tree; commands are imported when they are looked up."""
    version = TyperOption(
        param_decls=["--version"],
        is_flag=True,
        expose_value=False,
        callback=_print_version,
        help="Show the version and exit; with -v also which loops are compiled, and where kgroup lies.",
    )
    # Before --version in any order they are typed; for a command it is one of the shared options.
    verbose = TyperOption(param_decls=["-v", "--verbose"], is_flag=True, is_eager=True, hidden=True)
    return RootGroup(
        name="kgroup",
        help=DESCRIPTION,
        params=[verbose, version],
        rich_markup_mode=None,
        no_args_is_help=True,
        context_settings=CONTEXT_SETTINGS,
        epilog="Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 refused, 5 partly failed, "
        "6 not authorised, 7 unreachable, 8 bad verdict, 130 interrupted.",
    )


def expand_local(argv: Sequence[str]) -> list[str]:
    """Give `--local` its optional DIR: the next word if it looks like a path, else the default folder.

    Without this rule `kgroup list --local 'pay*'` would take the glob for a folder. Raise UsageError for a
    word without a slash that is the folder of a cluster: it may mean either.
    """
    out: list[str] = []
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            return [*out, word, *words]
        out.append(word)
        if word == "--local":
            takes = bool(words) and (words[0] == "." or words[0].startswith("~") or "/" in words[0])
            if words and not takes and not words[0].startswith("-"):
                from kgroup.log.directory import holds_cluster

                meant = False
                with suppress(OSError):
                    meant = holds_cluster(Path(words[0]))
                if meant:
                    raise UsageError(
                        f"--local {words[0]}: there is a cluster in the folder {words[0]}; "
                        f"did you mean --local ./{words[0]}?"
                    )
            out.append(words.pop(0) if takes else "")
    return out


def _not_utf8(word: str) -> str | None:
    """Return a word that Python reads as surrogates, as it was typed; None for any other."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return str(os.fsencode(word))[1:]
    return None


def _main(argv: Sequence[str]) -> int:
    result = root().main(args=expand_local(argv), prog_name="kgroup", standalone_mode=False)
    sys.stdout.flush()
    return int(result or ExitCode.OK)


def _asked(argv: Sequence[str]) -> int:
    if "--help-json" in takewhile(lambda word: word != "--", argv):
        words = takewhile(lambda word: not word.startswith("-"), argv)
        return _main(["commands", *words, "-o", "json"])
    if names_a_kind(argv):
        return answered(argv, UsageError("kgroup names no kind of thing before a group"), _main)
    return _main(argv)


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        if shell := os.environ.get("_KGROUP_COMPLETE"):
            from kgroup.cli.frame.shells import answer

            answer(root(), shell, argv, expand_local)
            return ExitCode.OK
        if wrong := next(filter(None, map(_not_utf8, argv)), None):
            print_error(f"{wrong} is not UTF-8", "names in Kafka are UTF-8")
            return ExitCode.USAGE
        return _asked(argv)
    except NoArgsIsHelpError as error:
        print(error.format_message())
        return ExitCode.USAGE
    except UsageError as error:
        return answered(argv, error, _main)
    except TyperException as error:
        print_error(error.format_message())
        return ExitCode.USAGE
    except OSError as error:
        return output_failed(error)
    except (KeyboardInterrupt, Abort):
        return ExitCode.INTERRUPTED

"""The answer to a line that is not kgroup's: by the words of other tools, else by spelling."""

import sys
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kgroup.cli.click import NoSuchOption, UsageError
from kgroup.cli.env.escaping import clean
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.registry import COMMANDS, KINDS, OFFSETS
from kgroup.cli.output.messages import print_error

if TYPE_CHECKING:
    from kgroup.cli.click import Context
    from kgroup.cli.frame.peers import Heard

_HELP = ("-h", "--help")


def answered(argv: Sequence[str], error: UsageError, main: Callable[[Sequence[str]], int]) -> int:
    """Run a line that only reads and is another tool's, or say what is wrong and what to type."""
    if any(word in _HELP for word in argv) and error.ctx is not None and hasattr(error.ctx.command, "path"):
        # Of a command only: what is not a command has no help.
        print(error.ctx.get_help())
        return ExitCode.OK
    from kgroup.cli.frame.peers import NOT_BUILT, hear

    heard = hear(argv)
    if heard is not None and heard.reads and not heard.dropped:
        try:
            if "--help" not in heard.argv and not {"-q", "--quiet"} & set(argv):
                print(clean(f"read as: {_shown(heard)}"), file=sys.stderr)
            return main(heard.argv)
        except UsageError as again:
            error = again
    first = next((word for word in argv if not word.startswith("-")), "")
    message = _message(error)
    not_built = next((word for word in argv if word in NOT_BUILT), None)
    if not_built and first not in COMMANDS:
        print_error(message, NOT_BUILT[not_built])
    elif heard is not None:
        print_error(message, _shown(heard) + _remark(heard))
    else:
        print_error(message, _hint(argv, first, error))
    return ExitCode.USAGE


def _message(error: UsageError) -> str:
    """Return what is wrong; which option is meant stands in the hint."""
    message = error.format_message().rstrip(".")
    if isinstance(error, NoSuchOption):
        from kgroup.cli.frame.shared_options import shared_spellings

        message = error.message
        if error.ctx is not None and error.ctx.parent is None and error.option_name in shared_spellings():
            message = f"this line has {error.option_name}, but no command of kgroup"
    return message[:1].lower() + message[1:]


def names_a_kind(argv: Sequence[str]) -> bool:
    """Return whether a line is `delete consumer-group NAME`, which kgroup would take for two groups."""
    if argv and argv[0].startswith("-"):
        from kgroup.cli.frame.shared_options import behind_the_command

        argv = behind_the_command(list(argv))
    if len(argv) < 2:
        return False
    verb, kind, named = argv[0], argv[1], len(argv) > 2 and not argv[2].startswith("-")
    if verb == "list":
        return kind in KINDS and kind.endswith("groups") and not named
    others = {"describe": {"topic"}, "delete": OFFSETS}
    return verb in others and kind in KINDS | others[verb] and named


def _shown(heard: "Heard") -> str:
    """Return kgroup's line, ready to paste; secrets of -X are hidden."""
    from kgroup.admin.shell import word
    from kgroup.cli.env.known_settings import shown

    words = list(heard.argv)
    for at in (at + 1 for at, option in enumerate(heard.argv) if option == "-X"):
        name, equals, value = words[at].partition("=")
        words[at] = f"{name}={shown(name, value)}" if equals else words[at]
    return " ".join(["kgroup", *map(word, words)])


def _remark(heard: "Heard") -> str:
    """Return what to know of a line: it is a plan, and what it leaves out."""
    said = [f"{', '.join(heard.dropped)} left out: the command has no such option"] if heard.dropped else []
    from kgroup.cli.frame.lazy import command_at

    command, _ = command_at(heard.argv)
    changes = command is not None and any("--execute" in parameter.opts for parameter in command.params)
    if changes and "--execute" not in heard.argv:
        said.append("it shows the plan; --execute carries it out")
    return f"   ({'; '.join(said)})" if said else ""


def _hint(argv: Sequence[str], first: str, error: UsageError) -> str:
    ctx = error.ctx
    if ctx is None:
        from kgroup.cli.frame.lazy import command_at
        from kgroup.cli.frame.shared_options import behind_the_command, shared_spellings

        if getattr(error, "option_name", None) in shared_spellings():
            return "kgroup options shows it"
        command, _ = command_at([w for w in behind_the_command(list(argv)) if not w.startswith("-")])
        return f"kgroup {command.path} --help" if command else "kgroup --help"
    if isinstance(error, NoSuchOption) and ctx is not None and (meant := _option(error.option_name, ctx)):
        return f"did you mean {meant}? {ctx.command_path} --help"
    if ctx is not None and ctx.parent is None and first:
        near = list(_commands(first))
        if near:
            return f"did you mean {', '.join(near)}? kgroup --help lists the commands"
    return f"{ctx.command_path} --help"


def _option(name: str, ctx: "Context") -> str | None:
    """Return the option of this command that is meant, or a command that has it."""
    from kgroup.cli.frame.peers import OPTIONS

    meant = OPTIONS.get(name)
    known = {spelling: parameter.opts for parameter in ctx.command.params for spelling in parameter.opts}
    if meant is None:
        # By spelling only what is spelled almost so: --export is not --sort.
        near = get_close_matches(name, known, 3, _NEARLY)
        return ", ".join(near) or None
    if meant in known:
        return ", ".join(known[meant])
    return meant if meant.startswith("kgroup ") else None


def _commands(first: str) -> Iterator[str]:
    """Yield the commands that a word means by the table of other tools, else those spelled like it."""
    from kgroup.cli.frame.peers import forms

    meant = dict.fromkeys(
        _without_places(ours) for _, theirs, ours, _ in forms() if theirs.split()[0] == first
    )
    names = list(filter(None, meant))
    if len(names) > _MANY:
        names = list(dict.fromkeys(name.partition(" --")[0] for name in names))
    begins = [name for name in COMMANDS if first.startswith(name)]
    yield from names or dict.fromkeys([*get_close_matches(first, COMMANDS, 3, _NEARLY), *begins])


_MANY = 4
"""Suggestions; of more than these only the commands are named."""
_NEARLY = 0.75
"""How like a command or an option a word is that is taken for it: `plan` is not `explain`."""


def _without_places(ours: str) -> str:
    """Return the command of a line, and its options that hold no name: `describe --section members`."""
    from kgroup.cli.frame.lazy import command_at

    command, count = command_at(ours.split())
    words = ours.split()[count:]
    at = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    options = [] if any(word.isupper() for word in words[at:]) else words[at:]
    return " ".join([command.path, *options]) if command else ""

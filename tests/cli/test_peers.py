"""Lines of other tools, from their documentation: they run, or are answered with the line to type.

None runs as something else. No line starts a process: what a command would be called with is compared.
"""

import re
import shlex
from pathlib import Path

import pytest

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame import options, peers, wrong_usage
from kgroup.cli.frame.accepted import accepted
from kgroup.cli.frame.lazy import command_at, walk
from kgroup.cli.frame.tree import run
from tests.house.repository import ROOT

LINES = Path(__file__).parent.parent / "data" / "lines_of_other_tools.txt"


def _rows():
    for line in LINES.read_text(encoding="utf-8").splitlines():
        for sign in () if line.startswith("# ") else (" > ", " ? "):
            typed, found, ours = line.partition(sign)
            if found:
                yield typed, sign.strip(), ours
                break


ROWS = list(_rows())


@pytest.fixture
def called(monkeypatch):
    """A function that runs a line and returns exit code and what its command would be called with."""
    seen = []

    def instead(make_env, fn, values):
        env = make_env()
        seen.append((env.command, env.flags, env.properties, env.output, env.verbose, values))
        return 0

    monkeypatch.setattr(options, "run_command", instead)

    def call(line):
        seen.clear()
        return run(shlex.split(line)), list(seen)

    return call


def test_there_are_enough_lines():
    assert len(ROWS) >= 150


@pytest.mark.parametrize(("typed", "sign", "ours"), ROWS, ids=[row[0] for row in ROWS])
def test_a_line_of_another_tool(typed, sign, ours, called, capsys):
    code, did = called(typed)
    out, err = capsys.readouterr()
    if sign == ">":
        assert (code, did) == called(ours)
        assert out == capsys.readouterr().out
        return
    assert code == ExitCode.USAGE and not did
    hint = err.partition("hint: ")[2]
    if ours == "-":
        assert "kgroup reads no records" in hint or "kgroup writes no records" in hint
        return
    assert hint.strip().partition("   (")[0] == f"kgroup {ours}"
    assert called(ours)[0] == ExitCode.OK, "the line of the hint is not kgroup's"


def _tasks():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    for row in page.partition("### Ten tasks")[2].partition("\n### ")[0].splitlines():
        if row.startswith("| ") and "`" in row:
            task, before, keys_before, now, keys_now = (cell.strip() for cell in row.strip("|").split(" | "))
            yield task, _lines(before), int(keys_before), _lines(now), int(keys_now)


def _lines(cell):
    return re.findall(r"`([^`]+)`", cell)


TASKS = list(_tasks())


@pytest.mark.parametrize(
    ("before", "keys_before", "now", "keys_now"), [t[1:] for t in TASKS], ids=[t[0] for t in TASKS]
)
def test_a_task_by_the_keys_that_are_typed(before, keys_before, now, keys_now, called, capsys):
    """The last line that is typed runs, or its hint does; the figures are those of the lines."""
    for lines, keys in ((before, keys_before), (now, keys_now)):
        assert sum(len(f"kgroup {line}") + 1 for line in lines) == keys
    code, did = called(now[-1])
    if code == ExitCode.USAGE:
        _, _, hint = capsys.readouterr().err.partition("hint: kgroup ")
        code, did = called(hint.partition("   (")[0].strip())
    assert code == ExitCode.OK and did


def test_there_are_ten_tasks_and_each_takes_fewer_keys_or_is_not_answered_wrongly():
    assert len(TASKS) == 10
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert f"In all {sum(t[2] for t in TASKS)} keys before and {sum(t[4] for t in TASKS)} now" in page


@pytest.mark.parametrize(
    ("tool", "theirs", "ours"), [row[:3] for row in peers.forms()], ids=[row[1] for row in peers.forms()]
)
def test_the_table_names_commands_that_exist_and_is_reached(tool, theirs, ours):
    words = [word for word in ours.split() if not word.startswith("-")]
    command, _ = command_at(words)
    assert command is not None or ours.startswith(("--", "COMMAND…"))
    known = {name for p in command.params for name in p.opts} if command else {"--help", "--version"}
    assert {word for word in ours.split() if word.startswith("-")} <= known | {"--help"}
    sample = {"KIND": "cg", "OFFSETS": "cgo"}
    heard = peers.hear([sample.get(w, w).removesuffix("…") for w in theirs.split()])
    assert heard is not None and heard.theirs == theirs, "an earlier row takes it"


def test_what_a_group_is_called_stays_a_group(called):
    """A group may be called as another tool calls a kind of thing."""
    for line in ("lag group", "describe groups", "delete cg", "watch groups", "coordinator group cg"):
        assert called(line)[1], line


def test_a_value_of_an_option_is_not_another_tools_option(called):
    code, ((*_, values),) = called("reset-offsets g --reason --json --topic t --to-earliest")
    assert code == ExitCode.OK and values["reason"] == "--json"


def test_dry_run_and_execute_exclude_each_other(called, capsys):
    assert called("delete g --dry-run --execute")[0] == ExitCode.USAGE
    assert "exclude each other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("list --brokers b:1", "did you mean -b, --bootstrap-server?"),
        ("lag g --profile prod", "did you mean -C, --context?"),
        ("list --config c.properties", "did you mean --command-config?"),
        ("offsets export g --topics t", "did you mean --topic?"),
        ("describ g", "did you mean describe"),
        ("list --stat Stable", "did you mean --state?"),
        ("lag g --topic t", "did you mean --by-topic?"),
        ("describe g --export", "did you mean kgroup offsets export GROUP?"),
        ("list --describe", "did you mean kgroup describe GROUP?"),
        ("reset-offsets g --to-newest", "did you mean --to-latest?"),
        ("explain --sort", "hint: kgroup explain --help"),
        ("list --bootstrap-server", "kgroup options shows it"),
        ("rebalance g", "hint: kgroup --help"),
        ("plan g", "hint: kgroup --help"),
        ("alter", "hint: kgroup --help"),
        ("list-groups", "did you mean list? "),
        ("reset-offset g", "did you mean reset-offsets? "),
        ("members", "did you mean describe --section members? "),
        ("group", "did you mean list, describe, lag, delete, offsets delete, reset-offsets? "),
    ],
)
def test_hints_by_meaning_before_spelling(typed, said, called, capsys):
    assert called(typed)[0] == ExitCode.USAGE
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("typed", ["--bootstrap-server b:1 --delete --group g", "-b b:1 --describe"])
def test_an_option_that_there_is_is_not_called_unknown(typed, called, capsys):
    assert called(typed)[0] == ExitCode.USAGE
    assert "no such option" not in capsys.readouterr().err


@pytest.mark.parametrize("tail", ["", "x", "x y", "x --bogus", "group", "groups x", "list", "--group g"])
def test_a_mistake_in_a_line_of_kgroup_is_not_read_as_another_tools(tail):
    for command in walk():
        heard = peers.hear([*command.path.split(), *tail.split()])
        assert heard is None or heard.argv[: len(command.path.split())] == command.path.split()


@pytest.mark.parametrize(
    "typed",
    ["topics list t", "members describe g", "top groups g", "logs list", "groups nope g", "show groups g"],
)
def test_a_verb_or_a_kind_of_thing_is_not_taken_for_a_name(typed, called):
    assert called(typed) == (ExitCode.USAGE, [])


@pytest.mark.parametrize(
    ("typed", "option"),
    [
        ("list -b a:1 --bootstrap-server b:1", "--bootstrap-server"),
        ("-b a:1 list -b b:1", "--bootstrap-server"),
        ("list -C a --context=b", "--context"),
        ("reset-offsets g --topic t --to-offset 5 --to-offset=9", "--to-offset"),
    ],
)
def test_the_first_of_two_values_is_not_passed_over(typed, option, called, capsys):
    assert called(typed) == (ExitCode.USAGE, [])
    assert f"{option} has two values" in capsys.readouterr().err


@pytest.mark.parametrize(
    "typed", ["list -b a:1 -b a:1", "list -o wide -o json", "offsets delete g --topic t --topic u"]
)
def test_what_may_be_given_twice(typed, called):
    assert called(typed)[0] == ExitCode.OK


def test_no_option_of_another_tool_is_taken_where_it_means_nothing():
    command, _ = command_at(["explain"])
    for word in ("--group", "--members", "--export", "--dry-run", "--all-topics"):
        assert accepted(command, [word]) == [word]
    assert wrong_usage.names_a_kind(["explain", "group"]) is False


def test_what_is_run_changes_nothing():
    run_at_once = [command_at(ours.split())[0] for _, _, ours, reads in peers.forms() if reads]
    changing = {"serve", "demo", "member run", "context use", "cluster create-topic", "capture"}
    for command in filter(None, run_at_once):
        assert command.path not in changing and not command.path.endswith("execute")
        assert all("--execute" not in parameter.opts for parameter in command.params), command.path


@pytest.mark.parametrize(
    "typed",
    [
        "group upgrade execute g",
        "group member run g --topic t",
        "cg context use prod",
        "group serve",
        "group remove-members g",
    ],
)
def test_only_what_reads_is_run_behind_a_kind_of_thing(typed, called):
    assert called(typed) == (ExitCode.USAGE, [])


def test_no_secret_is_printed_with_a_line(called, capsys):
    called("group list -X sasl.password=hunter2 -X client.id=me")
    called("group delete g -X sasl.password=hunter2")
    said = "".join(capsys.readouterr())
    assert "hunter2" not in said and "sasl.password=********" in said and "client.id=me" in said


def test_what_is_no_command_has_no_help(called, capsys):
    assert called("bogus -h")[0] == ExitCode.USAGE
    assert "no command 'bogus'" in capsys.readouterr().err
    assert called("lag g --nope -h")[0] == ExitCode.OK
    assert "Usage: kgroup lag" in capsys.readouterr().out

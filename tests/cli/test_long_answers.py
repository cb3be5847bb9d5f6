"""Answers that come part by part read as those that come at once."""

import json
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from kgroup.admin.as_json import document
from kgroup.admin.models import Description, GroupDescription, ItemError, Node, OffsetRow
from kgroup.admin.read import describe
from kgroup.cli.commands import describe as describing
from kgroup.cli.env.invocation import OutputOptions
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.output.parts import Answer, Ending, show_parts
from kgroup.cli.output.result import Part, Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.errors import Unreachable
from tests.cli.logs import append

NAMES = ("long-a", "long-b", "long-c")
ASKED = (["describe", *NAMES], ["describe", *NAMES, "--section", "offsets"], ["lag", *NAMES])


@pytest.fixture(scope="session")
def groups(cluster):
    """Three groups that have committed, none of them beyond the end of a partition."""
    cluster.create_topic("long", 4)
    append(cluster, "long", 0, ["x"] * len(NAMES))
    for number, name in enumerate(NAMES):
        cluster.commit(name, "long", {0: number, 3: 0})


@pytest.fixture
def run(on_cluster, groups):
    return on_cluster


@pytest.fixture
def in_parts(monkeypatch):
    monkeypatch.setattr(describe, "FIRST", 1)
    monkeypatch.setattr(describe, "ROWS", 1)


@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
@pytest.mark.parametrize("output", ["json", "ndjson", "yaml", "csv", "name"])
def test_programs_read_the_same(run, request, asked, output):
    at_once = run(*asked, "-o", output)
    request.getfixturevalue("in_parts")
    assert run(*asked, "-o", output) == at_once
    assert at_once.code == ExitCode.OK


@pytest.mark.parametrize("asked", ASKED, ids=" ".join)
def test_a_person_reads_part_by_part(run, request, asked):
    at_once = run(*asked, "--no-headers")
    request.getfixturevalue("in_parts")
    in_parts = run(*asked, "--no-headers")
    assert sorted(in_parts.out.split()) == sorted(at_once.out.split())


def test_columns_are_chosen_in_every_part(run, in_parts):
    ran = run("lag", *NAMES, "--columns", "topic,partition")
    assert ran.out.count("TOPIC") == 3
    assert "LAG" not in ran.out


def test_a_verdict_is_on_all_parts(run, in_parts):
    ran = run("lag", *NAMES, "--fail-above", "1000000", "-o", "json")
    assert (ran.code, ran.document["data"]["verdict"]["over"]) == (ExitCode.OK, [])
    ran = run("lag", "nobody-there", *NAMES, "-o", "json")
    assert ran.code == ExitCode.PARTIAL
    assert [group["group_id"] for group in ran.document["data"]["groups"]] == list(NAMES)
    assert [error["item"] for error in ran.document["errors"]] == ["nobody-there"]


class TestShown:
    """What is printed before a later part is asked for."""

    @pytest.fixture
    def env(self):
        output = SimpleNamespace(format="ndjson", columns=None, headers=True, terminal=False, color=False)
        return SimpleNamespace(output=output, command="describe")

    def test_each_part_before_the_next(self, env, capsys):
        printed = []

        def told():
            for name in NAMES:
                yield Description((_group(name),))
                printed.append(capsys.readouterr().out)

        assert describing._Shown(env, ("summary",), ("instance", list), (), {}).show(told()) == ExitCode.OK
        assert [json.loads(text)["group_id"] for text in printed] == list(NAMES)

    @pytest.mark.parametrize("output", ["json", "ndjson"])
    def test_what_was_seen_before_a_failure_is_kept(self, env, capsys, output):
        def told():
            yield Description((_group("a"),))
            raise Unreachable("nobody answers")

        env.output.format = output
        shown = describing._Shown(env, ("summary",), ("instance", list), (), {})
        if output == "ndjson":
            with pytest.raises(Unreachable):
                shown.show(told())
            assert json.loads(capsys.readouterr().out)["group_id"] == "a"
            return
        assert shown.show(told()) == ExitCode.UNREACHABLE
        document = json.loads(capsys.readouterr().out)
        assert [group["group_id"] for group in document["data"]["groups"]] == ["a"]
        assert (document["status"], document["exit_code"]) == ("failed", ExitCode.UNREACHABLE)
        assert [error["message"] for error in document["errors"]] == ["nobody answers"]

    def test_what_a_later_part_lacks_is_in_the_exit_code(self, env, capsys):
        away = ItemError("b", "UNREACHABLE", "nobody answers")
        told = iter([Description((_group("a"),)), Description((), (away,))])
        assert describing._Shown(env, ("summary",), ("instance", list), (), {}).show(told) == ExitCode.PARTIAL
        assert "nobody answers" in capsys.readouterr().err


def _group(name, **more):
    absent = dict.fromkeys(("assignor", "generation", "group_epoch", "assignment_epoch", "offsets_partition"))
    row = OffsetRow("orders", 0, 1, 2, 1, None, "ünï\u202e", None, None)
    return GroupDescription(
        **{
            "group_id": name,
            "type": "classic",
            "protocol_type": "consumer",
            "state": "Empty",
            "coordinator": Node(1, "h", 9092),
            "members": (),
            "offsets": (row, row),
            "total_lag": 2,
            **absent,
            **more,
        }
    )


def test_documents_are_those_of_the_standard_library():
    group = _group("g", errors=(ItemError("x", "Y", "z"),), members=None)
    assert json.dumps(document(group)) == json.dumps(asdict(group))


@pytest.mark.parametrize("headers", [True, False])
@pytest.mark.parametrize("columns", [None, ("topic",)])
@pytest.mark.parametrize("form", ["table", "wide", "csv", "ndjson", "name", "json", "yaml"])
def test_a_result_is_an_answer_of_one_part(capsys, form, columns, headers):
    """They had a printer each, which could differ."""
    output = OutputOptions(form, columns=columns, headers=headers, terminal=False, color=False)
    env = SimpleNamespace(output=output, command="lag", head=lambda: (), note=pytest.fail)
    rows = [{"topic": "long", "lag": 3}, {"topic": "a\x1bb", "lag": None}]
    table = Table((Column("topic"), Column("lag", right=True, wide=True)), rows)
    error = ItemError("long", "LAG_UNKNOWN", "not seen")
    blocks, names = ("a line", table), ("long", "a\x1bb")
    result = Result(
        {"groups": rows, "verdict": None}, blocks, "groups", names, [error], ExitCode.PARTIAL, main=table
    )
    part = Part(lambda: rows, lambda: blocks, lambda: table, lambda: names)
    ending = Ending(errors=[error], exit_code=ExitCode.PARTIAL, data={"verdict": None})
    codes = [show(env, result)]
    told = [capsys.readouterr()]
    codes.append(show_parts(env, Answer("groups", None), iter([part]), lambda: ending))
    told.append(capsys.readouterr())
    assert told[0] == told[1]
    assert "long" in told[0].out and codes == [ExitCode.PARTIAL] * 2

"""`kgroup cluster acl`: rules are added, seen and removed, and what makes no sense is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from kgroup.admin.journal import Journal
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for
from kgroup.domain import Document
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings import STANDARD_AUTHORIZER
from tests.cli.conftest import Kgroup
from tests.cli.live import served
from tests.ran import Ran

ON = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
RULE = ("--principal", "User:alice", "--operation", "Read")


@pytest.fixture
def where() -> Iterator[tuple[str, ...]]:
    with served(Cluster(config=ON, offsets_partitions=1)) as bootstrap:
        yield "-b", bootstrap


def acls(told: Ran, command: str, code: ExitCode = ExitCode.OK) -> list[Document]:
    assert told.code == code, told.err
    jsonschema.validate(told.document, schema_for(command))
    found: list[Document] = told.document["data"]["acls"]
    return found


def test_a_rule_that_is_there_is_unchanged_and_not_taken_away_by_the_undo(
    kgroup: Kgroup, where: tuple[str, ...]
) -> None:
    add = ("cluster", "acl", "add", *RULE, *where)
    assert kgroup(*add, "--topic", "t").code == 0
    entries = len(Journal.default().entries())
    again = kgroup(*add, "--topic", "t")
    assert again.out.startswith("0 access rules added, 1 unchanged")
    assert "undo" not in again.out
    assert len(Journal.default().entries()) == entries
    both = kgroup(*add, "--topic", "t", "--group", "g")
    (undo,) = [line for line in both.out.splitlines() if line.startswith("undo: ")]
    assert "--group g" in undo
    told = kgroup(*add, "--topic", "t", "-o", "json").data
    assert (told["journal_id"], [each["name"] for each in told["unchanged"]]) == (None, ["t"])


def test_added_listed_and_removed(kgroup: Kgroup, where: tuple[str, ...]) -> None:
    added = acls(
        kgroup("cluster", "acl", "add", *RULE, "--topic", "t", "--group", "g", *where, "-o", "json"),
        "cluster acl add",
    )
    assert [(a["resource_type"], a["name"], a["host"]) for a in added] == [
        ("TOPIC", "t", "*"),
        ("GROUP", "g", "*"),
    ]
    listed = acls(kgroup("cluster", "acl", "list", *where, "-o", "json"), "cluster acl list")
    assert listed == added
    planned = kgroup("cluster", "acl", "remove", "--topic", "t", *where, "-o", "json")
    assert [a["result"] for a in acls(planned, "cluster acl remove")] == ["planned"]
    assert len(acls(kgroup("cluster", "acl", "list", *where, "-o", "json"), "cluster acl list")) == 2
    gone = kgroup("cluster", "acl", "remove", "--topic", "t", "--execute", *where, "-o", "json")
    assert [(a["name"], a["result"]) for a in acls(gone, "cluster acl remove")] == [("t", "removed")]
    left = acls(kgroup("cluster", "acl", "list", *where, "-o", "json"), "cluster acl list")
    assert [a["name"] for a in left] == ["g"]


def test_filters(kgroup: Kgroup, where: tuple[str, ...]) -> None:
    kgroup("cluster", "acl", "add", *RULE, "--topic", "pay", "--pattern", "prefixed", *where)
    kgroup("cluster", "acl", "add", *RULE, "--topic", "*", "--host", "10.0.0.1", "--deny", *where)
    kgroup("cluster", "acl", "add", *RULE, "--topic", "payments", "--operation", "describe-configs", *where)

    def names(*options: str) -> set[tuple[object, object]]:
        told = kgroup("cluster", "acl", "list", *options, *where, "-o", "json")
        return {(a["name"], a["operation"]) for a in acls(told, "cluster acl list")}

    everything = {("pay", "READ"), ("*", "READ"), ("payments", "READ"), ("payments", "DESCRIBE_CONFIGS")}
    assert names() == names("--topic", "payments", "--pattern", "match") == everything
    assert names("--topic", "payments") == {("payments", "READ"), ("payments", "DESCRIBE_CONFIGS")}
    assert names("--pattern", "prefixed") == {("pay", "READ")}
    assert names("--deny") == names("--host", "10.0.0.1") == {("*", "READ")}
    assert names("--allow", "--operation", "READ") == {("pay", "READ"), ("payments", "READ")}
    assert names("--principal", "User:bob") == names("--group", "pay") == names("--cluster") == set()
    assert "10.0.0.1" in kgroup("cluster", "acl", "list", *where).out


def test_nothing_to_remove(kgroup: Kgroup, where: tuple[str, ...]) -> None:
    told = kgroup("cluster", "acl", "remove", "--principal", "User:nobody", "--execute", *where)
    assert (told.code, "no such access rule" in told.out) == (ExitCode.OK, True)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("add", "--principal", "User:a", "--operation", "Read"), "no resource is named"),
        (("add", "--topic", "t", "--operation", "Read"), "no principal is named"),
        (("add", "--topic", "t", "--principal", "User:a"), "no operation is named"),
        (("add", "--topic", "t", "--principal", "a", "--operation", "Read"), "KIND:NAME"),
        (("add", "--topic", "t", "--principal", "User:a", "--operation", "Any"), "no such operation"),
        (("add", "--group", "g", "--principal", "User:a", "--operation", "Write"), "no operation of"),
        (("add", "--topic", "t", *RULE, "--pattern", "match"), "a rule cannot be for"),
        (("add", "--topic", "t", *RULE, "--pattern", "glob"), "no such pattern"),
        (
            ("add", "--cluster", "--principal", "User:a", "--operation", "Alter", "--pattern", "prefixed"),
            "no prefix",
        ),
        (("remove", "--execute"), "which rules are meant"),
        (("list", "--deny", "--allow"), "exclude each other"),
    ],
)
def test_what_makes_no_sense(
    kgroup: Kgroup, where: tuple[str, ...], argv: tuple[str, ...], words: str
) -> None:
    told = kgroup("cluster", "acl", *argv, *where)
    assert (told.code, words in told.err) == (ExitCode.USAGE, True), told.err
    assert acls(kgroup("cluster", "acl", "list", *where, "-o", "json"), "cluster acl list") == []


def test_without_an_authorizer_there_are_no_rules(on_cluster: Kgroup) -> None:
    told = on_cluster("cluster", "acl", "list")
    assert (told.code, "SECURITY_DISABLED" in told.err) == (ExitCode.FAILED, True)
    assert "authorizer.class.name" in told.err


def test_a_folder_that_nobody_serves(kgroup: Kgroup, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    Cluster(folder).close()
    told = kgroup("cluster", "acl", "add", *RULE, "--topic", "t", "--local", str(folder))
    assert (told.code, "SECURITY_DISABLED" in told.err) == (ExitCode.FAILED, True)
    Cluster(folder, config=ON).close()
    told = kgroup("cluster", "acl", "add", *RULE, "--topic", "t", "--local", str(folder))
    assert told.code == ExitCode.OK, told.err
    assert kgroup("cluster", "create-topic", "t", "--local", str(folder)).code == ExitCode.OK
    kept = Cluster(folder, config=ON)
    assert kept.acls is not None and [acl.name for acl in kept.acls.authorizer.acls] == ["t"]
    kept.close()


def test_without_the_right(kgroup: Kgroup) -> None:
    with served(Cluster(config={**ON, "super.users": ""}, offsets_partitions=1)) as bootstrap:
        for argv in (("list",), ("add", *RULE, "--topic", "t"), ("remove", "--topic", "t")):
            told = kgroup("cluster", "acl", *argv, "-b", bootstrap)
            assert told.code == ExitCode.NOT_AUTHORISED, told.err
            missing = "Alter" if argv[0] == "add" else "Describe"
            assert f"this principal lacks {missing} on Cluster" in told.err

"""Every command that changes a cluster is in the journal, with a begin and an end, also when it fails.

A new command has to be in CHANGES or in READS. tests/walk/conftest.py holds the other half: in no walk does a
command send a request that changes something without an entry.
"""

import shlex
from pathlib import Path
from typing import Any

import pytest

from kgroup.admin.journal import Entry, Journal
from kgroup.cli.frame.lazy import walk
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings import STANDARD_AUTHORIZER
from tests.cli.live import Client, served
from tests.own_home import move_in
from tests.ran import at_a_terminal, ran

PASSWORD = "correct horse battery"
RULE = "--principal User:al --operation Read --topic orders"
CHANGES = {
    "cluster create-topic": "new",
    "cluster acl add": RULE,
    "cluster acl remove": "--topic orders --execute --yes",
    "cluster user add": "al --password-env SECRET",
    "cluster user remove": "al",
    "config set": "idle consumer.session.timeout.ms=50000 --execute --yes",
    "member register": "idle --instance-id a --execute --yes",
    "member unregister": "idle --instance-id a --execute --yes",
    "reset-offsets": "idle --topic orders --to-earliest --execute --yes",
    "offsets import": "offsets.csv --execute --yes",
    "offsets clone": "idle other --execute --yes",
    "offsets delete": "other --all-topics --execute --yes",
    "upgrade execute": "empty --yes",
    "downgrade execute": "empty --yes",
    "upgrade run": "waves.yaml --execute --yes",
    "remove-members": "live --all --execute --yes",
    "delete": "idle --execute --yes",
}
"""In the order in which they are typed, one after the other."""
READS = {
    "a cluster or its log": {
        "list",
        "describe",
        "lag",
        "watch",
        "wait",
        "doctor",
        "coordinator",
        "replay-log",
    }
    | {
        "blame",
        "capture",
        "record",
        "mcp",
        "regex check",
        "upgrade plan",
        "upgrade watch",
        "downgrade plan",
        "downgrade watch",
    }
    | {"offsets export", "offsets-topic stats", "offsets-topic top", "offsets-topic decode", "config get"}
    | {"cluster status", "cluster topics", "cluster acl list", "cluster user list", "simulate"},
    "files, tables and settings of this machine": {"explain", "journal list", "journal show", "schema"}
    | {
        "completion",
        "config show",
        "docs",
        "options",
        "commands",
        "context list",
        "context use",
        "context show",
    }
    | {f"pipeline {n}" for n in ("run", "query", "sql", "events", "plot", "vacuum", "package")},
    "a cluster of its own": {"demo", "serve", "upgrade rehearse"},
    "as a consumer does: a member, no operator": {"member run"},
}


def test_every_command_changes_or_reads() -> None:
    reads = set().union(*READS.values())
    assert {command.path for command in walk()} == CHANGES.keys() | reads
    assert not CHANGES.keys() & reads


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A data folder, by flag, in a home of its own."""
    move_in(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECRET", PASSWORD)
    (tmp_path / "offsets.csv").write_text("idle,orders,0,1\n")
    (tmp_path / "waves.yaml").write_text("waves: [{groups: [still], rules: {observe: 0s}}]\n")
    return ("--local", "./data")


def _prepare() -> Cluster:
    config = {
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
    }
    return Cluster(Path("data"), config=config, offsets_partitions=2)


def _fill(bootstrap: str) -> None:
    client = Client(bootstrap)
    client.create_topic("orders", 2)
    for group in ("idle", "empty", "still"):
        client.commit(group, "orders", {0: 0})
    client.classic_group("live", "orders", {"i-0": [0, 1]})
    client.close()


def test_each_change_has_a_begin_and_an_end(
    where: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with served(_prepare()) as bootstrap:
        _fill(bootstrap)
        for path, words in CHANGES.items():
            before = len(Journal.default().entries())
            told = ran(capsys, *path.split(), *words.split(), "-b", bootstrap, "-o", "json")
            assert told.code == 0, (path, told.err)
            *_, entry = Journal.default().entries()
            assert len(Journal.default().entries()) == before + 1, path
            assert entry.command.startswith(path), path
            assert entry.results, path
            assert entry.plan["actor"]
            assert told.data["journal_id"] == entry.id
    assert PASSWORD not in Journal.default().path.read_text()
    assert "salt" not in Journal.default().path.read_text()


NO_WAY_BACK = {"remove-members", "cluster user remove", "cluster create-topic"}
WITHOUT_PLAN = {"cluster acl add", "cluster user remove"}
"""Ways back that have no --execute."""


def test_a_terminal_shows_each_plan_and_asks_and_the_way_back_leads_back(
    where: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The undo line runs as it stands, and then the cluster is as it was before."""
    with served(_prepare()) as bootstrap:
        _fill(bootstrap)
        for path, words in CHANGES.items():
            asks = "--yes" in words
            before = _now(capsys, bootstrap)
            at_a_terminal(monkeypatch, "y\n")
            argv = (*path.split(), *words.replace("--yes", "").split(), "-b", bootstrap)
            told = ran(capsys, *argv)
            assert told.code == 0, (path, told.err)
            assert ("? [y/N] " in told.err) == asks, path
            plan, _, _ = told.err.partition("[y/N]")
            named = _named(*Journal.default().entries()[-1:])
            assert not asks or all(name in plan for name in named), (path, plan)
            assert "Add --execute" not in told.err, path
            assert f"journal {Journal.default().entries()[-1].id}" in told.out, path
            (undo,) = (line[6:] for line in told.out.splitlines() if line.startswith("undo: "))
            assert (path in NO_WAY_BACK) == undo.startswith("none"), (path, undo)
            if path in NO_WAY_BACK:
                continue
            assert _now(capsys, bootstrap) != before, path
            _, *back = shlex.split(undo)
            verb = next(verb for verb in CHANGES if back[: verb.count(" ") + 1] == verb.split())
            consent = (
                [] if verb in WITHOUT_PLAN else ["--yes"] if "execute" in verb else ["--execute", "--yes"]
            )
            again = ran(capsys, *back, *consent)
            assert again.code == 0, (path, undo, again.err)
            assert _now(capsys, bootstrap) == before, (path, undo)
            if path in KEPT:
                assert ran(capsys, *path.split(), *words.split(), "-b", bootstrap).code == 0, path


KEPT = {"cluster acl add", "cluster user add", "offsets clone", "upgrade execute", "member register"}
"""What later changes of the row need."""


def _now(capsys: pytest.CaptureFixture[str], bootstrap: str) -> dict[str, object]:
    """What the changes of the row may change: rules, users, groups with type, offsets and settings."""

    def data(*argv: str) -> Any:
        return ran(capsys, *argv, "-b", bootstrap, "-o", "json").data

    groups = {
        group["group_id"]: (
            group["type"],
            {(o["topic"], o["partition"]): (o["committed_offset"], o["metadata"]) for o in group["offsets"]},
        )
        for group in data("describe", "--all-groups")["groups"]
    }
    return {
        "rules": data("cluster", "acl", "list")["acls"],
        "users": data("cluster", "user", "list")["users"],
        # A group that is left without offsets is removed by the broker at its next clean-up.
        "groups": {name: of for name, of in groups.items() if of[1]},
        "settings": [data("config", "get", name)["settings"] for name in ("idle", "empty")],
    }


def _named(entry: Entry) -> list[str]:
    """What a plan has to name: groups, members, settings, rules."""
    plan = entry.plan
    groups = plan.get("groups") or [plan.get("group_id")]
    names = [each["group_id"] if isinstance(each, dict) else each for each in groups]
    names += [item.get("topic") or item.get("instance_id") for item in plan.get("items", ())]
    names += [rule["principal"] for rule in plan.get("acls", ())]
    return [name for name in names if name]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("cluster create-topic orders", "TOPIC_ALREADY_EXISTS"),
        ("cluster create-topic a/b", "INVALID_TOPIC_EXCEPTION"),
        (f"cluster acl add {RULE}", "SECURITY_DISABLED"),
        ("cluster user remove nobody", "RESOURCE_NOT_FOUND"),
    ],
)
def test_a_change_that_fails_ends_in_the_journal_too(
    where: tuple[str, ...], capsys: pytest.CaptureFixture[str], line: str, code: str
) -> None:
    Cluster(Path("data")).close()
    assert ran(capsys, "cluster", "create-topic", "orders", *where).code == 0
    assert ran(capsys, *line.split(), *where).code != 0
    *_, entry = Journal.default().entries()
    assert entry.command == " ".join(line.split()[:3]) or entry.command == " ".join(line.split()[:2])
    assert [result["error_code"] for result in entry.results or ()] == [code]

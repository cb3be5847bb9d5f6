"""The commands with `--zookeeper`, where all can be seen and where not: then the exit code says it too."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest

from kgroup.cli.env import zookeeper
from kgroup.cli.env.known_settings import shown
from kgroup.cli.frame.tree import run
from kgroup.cli.schemas import schema_for
from kgroup.client.retry import Retry
from kgroup.errors import Unreachable
from kgroup.protocol.messages.list_offsets_0 import ListOffsets0Request
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest
from kgroup.zookeeper.entry import tree
from kgroup.zookeeper.groups.brokers import OldCluster
from kgroup.zookeeper.groups.nodes import DescribedGroup
from kgroup.zookeeper.wire.messages import Registered
from tests.own_home import move_in
from tests.ran import Ran, ran
from tests.unit.zookeeper.old_tree import OldBroker, OldTree

OK, FAILED, USAGE, NOT_FOUND, REFUSED, PARTIAL, RIGHTS, LATE, BAD = range(9)
WHERE = "zk:2181/kafka"


class World:
    """A tree below /kafka with group live, that is read, group idle, that is not, and their broker."""

    def __init__(self) -> None:
        self.old = OldTree("/kafka")
        self.old.broker()
        self.old.topic("t1", 2)
        self.broker = OldBroker({("t1", 0): 10, ("t1", 1): 12})
        name = self.old.consumer("live", "c", {"t1": 1})
        for partition in (0, 1):
            self.old.owner("live", "t1", partition, name)
            self.old.offset("live", "t1", partition, 9)
            self.old.offset("idle", "t1", partition, 7)
        self.outage: Unreachable | None = None

    def session(self, ensemble: Any, security: Any, *, timeout_s: float) -> World:
        """In the place of a session with a real ensemble."""
        self.ensemble, self.security = ensemble, security
        return self

    def __enter__(self) -> World:
        if self.outage:
            raise self.outage
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, *ops: Any) -> Any:
        return self.old.ask(*ops)

    def ask_all(self, *ops: Any) -> Any:
        return self.old.tree.ask(self.old.reader, ops)


Ask = Callable[..., Ran]


@pytest.fixture
def ask(capsys, tmp_path, monkeypatch) -> Ask:
    move_in(monkeypatch, tmp_path)

    def call(world: World, *argv: str) -> Ran:
        monkeypatch.setattr(tree, "Session", world.session)
        cluster = OldCluster(world.broker, Retry(timeout_s=0.0))
        monkeypatch.setattr(zookeeper, "_brokers", lambda *_: cluster)
        return ran(capsys, *argv, "--zookeeper", WHERE)

    return call


def _scene(change: Callable[[World], object]) -> Callable[[], World]:
    def made() -> World:
        world = World()
        change(world)
        return world

    return made


def _without_brokers(world: World) -> None:
    world.old.remove("/brokers/ids/1")


def _silent_broker(world: World) -> None:
    world.broker.failure[ListOffsets0Request] = Unreachable("b1:9092 timed out")


def _silent_coordinator(world: World) -> None:
    world.old.topic("__consumer_offsets", 2)
    world.broker.failure[OffsetFetchRequest] = Unreachable("b1:9092 timed out")


def _unreachable(world: World) -> None:
    world.outage = Unreachable("ZooKeeper at zk:2181 cannot be reached: Connection refused")


SCENES = {
    "healthy": _scene(lambda world: None),
    "no broker": _scene(_without_brokers),
    "a silent broker": _scene(_silent_broker),
    "a silent coordinator": _scene(_silent_coordinator),
    "no right to registrations": _scene(lambda world: world.old.deny("/consumers/idle/ids")),
    "no right to offsets": _scene(lambda world: world.old.deny("/consumers/idle/offsets")),
    "no right to groups": _scene(lambda world: world.old.deny("/consumers")),
    "no right to topics": _scene(lambda world: world.old.deny("/brokers/topics/t1")),
    "a number that is none": _scene(lambda world: world.old.offset("idle", "t1", 0, "?")),
    "no Kafka": _scene(lambda world: world.old.remove("/consumers") or world.old.remove("/brokers")),
    "unreachable": _scene(_unreachable),
}
NOWHERE = {"no right to groups": RIGHTS, "no Kafka": USAGE, "unreachable": LATE}
HIDDEN = {
    "no right to registrations": RIGHTS,
    "no right to offsets": RIGHTS,
    "a number that is none": PARTIAL,
}
NO_ENDS = {"no broker": PARTIAL, "a silent broker": PARTIAL, "a silent coordinator": PARTIAL}
NAMED = {"no Kafka": USAGE, "unreachable": LATE}


@dataclass(frozen=True)
class Row:
    """A command, and its exit code in each scene where it is not that of the healthy one."""

    argv: tuple[str, ...]
    codes: Mapping[str, int]
    healthy: int = OK

    @property
    def id(self) -> str:
        return " ".join(self.argv)


COMMANDS = (
    Row(("list",), {**NOWHERE, **HIDDEN}),
    Row(("list", "--state", "Empty"), {**NOWHERE, **HIDDEN}),
    Row(("list", "--topic", "t1"), {**NOWHERE, **HIDDEN}),
    Row(("describe", "--all-groups"), {**NOWHERE, **HIDDEN, **NO_ENDS}),
    Row(("describe", "idle"), {**NAMED, **HIDDEN, **NO_ENDS}),
    Row(("lag", "i*"), {**NOWHERE, **HIDDEN, **NO_ENDS}),
    Row(("lag", "idle", "--fail-above", "100"), {**NAMED, **HIDDEN, **NO_ENDS}),
    Row(
        ("lag", "idle", "--fail-above", "1"),
        {**NAMED, **NO_ENDS, "no right to offsets": RIGHTS},
        healthy=BAD,
    ),
    Row(("offsets", "export", "idle"), {**NAMED, **HIDDEN, "a silent coordinator": PARTIAL, "no broker": OK}),
    Row(("offsets", "export", "live"), {**NAMED}, healthy=REFUSED),
    Row(("delete", "idle"), {**NAMED, **HIDDEN, "a silent coordinator": PARTIAL}),
    Row(
        ("delete", "idle", "--execute", "--yes"),
        {**NAMED, **dict.fromkeys(HIDDEN, REFUSED), "no right to registrations": RIGHTS}
        | {"a silent coordinator": REFUSED},
    ),
)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.id)
def test_what_cannot_be_seen_is_said(ask, row, scene):
    told = ask(SCENES[scene](), *row.argv, "-o", "json")
    expected = row.codes.get(scene, row.healthy)
    assert told.code == expected, told.err
    assert "Traceback" not in told.err
    if told.code != OK:
        assert "error: " in told.err and told.document["errors"]
    assert told.document["exit_code"] == told.code
    command = " ".join(row.argv[:2]) if row.argv[0] == "offsets" else row.argv[0]
    jsonschema.validate(told.document, schema_for(command))
    for group in (told.document["data"] or {}).get("groups", ()):
        if "total_lag" in group:
            unknown = [p for p in group["offsets"] if p["lag"] is None]
            assert all(p["reason"] or p.get("error") for p in unknown)
            assert group["total_lag"] is None or not unknown


@pytest.mark.parametrize("scene", [name for name, code in {**NAMED, **HIDDEN}.items() if code])
def test_where_something_is_hidden_nothing_is_written(ask, scene):
    world = SCENES[scene]()
    before = world.old.paths()
    ask(world, "delete", "idle", "--execute", "--yes")
    assert world.old.paths() == before


def test_the_document_says_where_it_was_read(ask):
    world = World()
    assert ask(world, "list", "-o", "json").document["cluster"] == {
        "id": None,
        "bootstrap": None,
        "zookeeper": "zk:2181/kafka",
    }
    world.old.put("/cluster/id", '{"version":"1","id":"MkU3OEVBNTcwNTJENDM2Qg"}')
    assert ask(world, "list", "-o", "json").document["cluster"]["id"] == "MkU3OEVBNTcwNTJENDM2Qg"


def test_a_table_shows_unknown_as_unknown(ask):
    world = World()
    world.old.deny("/consumers/idle/ids")
    (row,) = [line for line in ask(world, "list").out.splitlines() if line.startswith("idle")]
    assert row.split() == ["idle", "zookeeper", "Unknown", "?", "-"]
    told = ask(world, "describe", "idle")
    assert "members unknown" in told.out and "lag at least" in told.out


def test_an_export_goes_in_where_it_came_out(ask, tmp_path):
    from kgroup.cli.inputs.offset_files import parse_offsets

    told = ask(World(), "offsets", "export", "idle", "-o", "json")
    assert [p.offset for p in parse_offsets(told.out, [], "export")["idle"].values()] == [7, 7]


@pytest.mark.parametrize("form", ["csv", "table"])
def test_an_export_that_is_refused_prints_no_header(ask, form):
    told = ask(World(), "offsets", "export", "live", "-o", form)
    assert (told.code, told.out) == (REFUSED, ""), told.err


def test_an_export_of_a_group_that_may_be_read_warns(ask):
    """Owners may be left over: no reason to keep the offsets from who moves them."""
    world = World()
    world.old.owner("idle", "t1", 0, "idle_c", lasting=True)
    told = ask(world, "offsets", "export", "idle", "-o", "csv", "--no-headers")
    assert (told.code, len(told.out.splitlines())) == (0, 2)
    assert "warning: idle: whether it is read is unknown" in told.err
    assert "offsets may move after this export" in told.err


def test_a_group_is_deleted_with_its_offsets_in_a_file(ask, tmp_path):
    world, file = World(), tmp_path / "kept.json"
    planned = ask(world, "delete", "idle")
    assert planned.out.startswith("cluster: zk:2181/kafka (--zookeeper)\n")
    assert "Nothing changed. Add --execute." in planned.out and "/kafka/consumers/idle" in world.old.paths()
    told = ask(world, "delete", "idle", "--export", str(file), "--execute", "--yes", "-o", "json")
    assert [item["result"] for item in told.document["data"]["items"]] == ["deleted"]
    assert "/kafka/consumers/idle" not in world.old.paths() and "/kafka/consumers/live" in world.old.paths()
    (kept,) = json.loads(file.read_text())["data"]["groups"]
    assert [offset["committed_offset"] for offset in kept["offsets"]] == [7, 7]


def test_only_what_was_silent_for_long_enough_is_stale(ask):
    told = ask(World(), "delete", "--stale-for", "1d", "-o", "json")
    assert [item["group_id"] for item in told.document["data"]["items"]] == ["idle"]


@pytest.mark.parametrize(
    "argv",
    [
        ("list", "-b", "broker:9092"),
        ("list", "--local"),
        ("list", "--type", "classic"),
        ("list", "--static-only"),
        ("lag", "idle", "--time"),
        ("lag", "idle", "--fail-above", "5m"),
        ("delete", "idle", "--wait-empty"),
        ("delete", "--restore", "file.json"),
    ],
    ids=" ".join,
)
def test_options_that_mean_nothing_there_are_refused(ask, argv):
    told = ask(World(), *argv)
    assert told.code == USAGE and "--zookeeper" in told.err


@pytest.mark.parametrize(
    "where", ["", "/kafka", "zk:port", "zk:2181//x", "zk:0", "zk:2181/a/../b", "[::1:2181"]
)
def test_a_place_that_is_none_is_wrong_usage(where, capsys):
    assert run(["list", "--zookeeper", where]) == USAGE
    assert "HOST:PORT" in capsys.readouterr().err


def test_a_group_whose_name_holds_control_characters_forges_no_line(ask):
    world = World()
    world.old.put("/consumers/a\u202eb/ids")
    assert "\\u202e" in ask(world, "list", "-o", "name").out


def test_settings_of_the_ensemble(ask):
    world = World()
    secrets = ("-X", "zookeeper.sasl.username=alice", "-X", "zookeeper.sasl.password=s3cret")
    assert ask(world, "list", *secrets).code == OK
    assert (world.security.username, world.security.password) == ("alice", "s3cret")
    assert (world.ensemble.servers, world.ensemble.chroot) == ((("zk", 2181),), "/kafka")
    assert "s3cret" not in repr(world.security) and "s3cret" not in shown("zookeeper.sasl.password", "s3cret")


def test_a_password_without_its_user_is_wrong_usage(ask):
    told = ask(World(), "list", "-X", "zookeeper.sasl.password=s3cret")
    assert told.code == USAGE and "s3cret" not in told.err


def test_a_context_nobody_asked_for_lends_no_password(ask, tmp_path):
    file = tmp_path / "kgroup" / "config.yaml"
    file.parent.mkdir(parents=True)
    properties = "{zookeeper.sasl.username: alice, zookeeper.sasl.password: s3cret}"
    file.write_text(
        f"current-context: prod\ncontexts:\n  prod: {{bootstrap-servers: 'b:1', properties: {properties}}}\n"
    )
    file.chmod(0o600)
    world = World()
    assert ask(world, "list").code == OK and world.security.username is None
    assert ask(world, "list", "-C", "prod").code == OK and world.security.username == "alice"


def test_tls_files_that_cannot_be_used_are_named(ask, tmp_path):
    missing = tmp_path / "ca.pem"
    tls = ("-X", "zookeeper.ssl.client.enable=true", "-X", f"zookeeper.ssl.ca.location={missing}")
    told = ask(World(), "list", *tls)
    assert told.code == USAGE and str(missing) in told.err


def test_one_sentence_where_kazoo_is_missing(monkeypatch, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "kazoo"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "kazoo", None)
    assert run(["list", "--zookeeper", "127.0.0.1:1"]) == USAGE
    said = capsys.readouterr().err
    assert "needs kazoo" in said and "install the extra zookeeper: " in said


def test_nobody_listening_is_unreachable_at_once(capsys):
    assert run(["list", "--zookeeper", "127.0.0.1:1", "--timeout", "5s"]) == LATE
    assert "Connection refused" in capsys.readouterr().err


def _elected(world: World) -> None:
    """A coordinator of the design of 0.9 has assigned group pushed; group live is of old consumers."""
    world.old.put("/consumers/coordinator", "1", ephemeral=True)
    world.old.put("/coordinator_epoch", "3")
    world.old.put("/consumers/pushed/owners", '{"version":1,"session_timeout_ms":6000}')
    for partition in (0, 1):
        world.old.owner("pushed", "t1", partition, "c1", lasting=True)
        world.old.offset("pushed", "t1", partition, 7)


def test_a_group_of_an_elected_coordinator_is_told_with_it(ask):
    """LC-15, LC-64: threads that own, who is elected and in which election; the others have none."""
    world = _scene(_elected)()
    told = ask(world, "describe", "pushed", "live", "-o", "json")
    assert told.code == OK
    jsonschema.validate(told.document, schema_for("describe"))
    groups = {group["group_id"]: group for group in told.document["data"]["groups"]}
    pushed, live = groups["pushed"], groups["live"]
    assert pushed["coordinator"] == {"id": 1, "host": "b1", "port": 9092}
    assert (pushed["coordinator_epoch"], live["coordinator_epoch"], live["coordinator"]) == (3, None, None)
    assert [row["owner_thread"] for row in pushed["offsets"]] == ["c1-0", "c1-0"]
    # Who is registered with it, the coordinator alone knows.
    assert (pushed["state"], pushed["members"]) == ("Unknown", None)
    text = ask(world, "describe", "pushed", "--section", "summary,offsets", "-o", "wide").out
    assert "coordinator 1 · elected, epoch 3" in text and "c1-0" in text


def test_an_elected_coordinator_that_is_not_registered_is_said(ask):
    """It is no coordinator of nobody: where it listens is what is not known."""

    def gone(world: World) -> None:
        _elected(world)
        world.old.put("/brokers/ids/2", '{"version":1,"host":"b2","port":9092}', ephemeral=True)
        world.old.remove("/brokers/ids/1")

    told = ask(_scene(gone)(), "describe", "pushed", "-o", "json")
    assert told.code == PARTIAL
    assert told.document["data"]["groups"][0]["coordinator"] is None
    assert "broker 1 is the elected coordinator, but is not registered" in told.err


def test_the_elected_coordinator_is_no_group(ask):
    """LC-15: its node lies where groups do."""
    told = ask(_scene(_elected)(), "list", "-o", "json")
    assert [group["group_id"] for group in told.document["data"]["groups"]] == ["idle", "live", "pushed"]


TOLD = {
    "stable": DescribedGroup("Stable", (Registered("c1", '{"t1":1}', True, True, 6000, 0, 2),)),
    "missing": DescribedGroup("Stable", (Registered("c1", "*1*t.*", True, False, 9000, 3, 2),)),
    "empty": DescribedGroup("Empty", ()),
    "leaving": DescribedGroup("Leaving", ()),
    "recovering": DescribedGroup("Recovering", ()),
    "gone": Unreachable("the elected coordinator at b1:9192 cannot be asked: Connection refused"),
}


@pytest.fixture
def asked_coordinator(monkeypatch) -> Callable[[str], World]:
    """A world whose elected coordinator tells this of group pushed; it is asked where it listens."""

    def world(told: str) -> World:
        def answers(address, names, timeout_s):
            assert address == ("b1", 9192) and set(names) <= {"idle", "pushed"} and timeout_s > 0
            return {name: TOLD[told] if name == "pushed" else TOLD["empty"] for name in names}

        monkeypatch.setattr(tree, "describe_groups", answers)
        made = _scene(_elected)()
        endpoints = ["PLAINTEXT://b1:9092", "LEGACY://b1:9192"]
        made.old.broker({"version": 4, "host": "b1", "port": 9092, "endpoints": endpoints})
        return made

    return world


def _pushed(told: Ran) -> Any:
    jsonschema.validate(told.document, schema_for("describe"))
    (group,) = told.document["data"]["groups"]
    return group


def test_members_of_an_elected_coordinator_are_told_by_it(ask, asked_coordinator):
    """LC-24, LC-55: with their session timeouts and failed pings; those of old consumers have neither."""
    told = ask(asked_coordinator("missing"), "describe", "pushed", "-o", "json")
    group = _pushed(told)
    (member,) = group["members"]
    assert (told.code, group["state"], member["state"]) == (OK, "Stable", "waiting")
    assert (member["session_timeout_ms"], member["failed_pings"]) == (9000, 3)
    assert (member["subscribed_regex"], member["assignment"]) == (
        "t.*",
        [{"topic": "t1", "partitions": [0, 1]}],
    )
    text = ask(asked_coordinator("stable"), "describe", "pushed").out
    assert "members 1" in text and "SESSION-MS" in text and "MISSED" in text and "6000" in text
    live = ask(asked_coordinator("stable"), "describe", "live")
    assert "SESSION-MS" not in live.out


def test_who_is_registered_with_a_coordinator_decides_what_may_be_moved(ask, asked_coordinator):
    """LC-16: owners outlive their consumers, so only the coordinator knows that nobody reads."""
    for told, code, said in (
        ("empty", OK, ""),
        ("stable", REFUSED, "1 live consumer registered with its coordinator"),
        ("leaving", REFUSED, "pushed is Leaving at its coordinator"),
        ("recovering", REFUSED, "pushed is Recovering at its coordinator"),
        ("gone", PARTIAL, "is unknown"),
    ):
        exported = ask(asked_coordinator(told), "offsets", "export", "pushed", "-o", "json")
        assert exported.code == code, (told, exported.err)
        assert said in exported.err
    world = asked_coordinator("empty")
    assert ask(world, "delete", "pushed", "--execute", "--yes").code == OK
    assert not any("/consumers/pushed" in path for path in world.old.paths())


def test_a_consumer_that_has_not_been_assigned_yet_keeps_its_group(ask, asked_coordinator, monkeypatch):
    """Only its coordinator knows of it: the group has offsets in the tree, and no owners."""
    world = asked_coordinator("stable")
    waiting = {"idle": TOLD["missing"], "pushed": TOLD["empty"]}
    monkeypatch.setattr(tree, "describe_groups", lambda _, names, __: {n: waiting[n] for n in names})
    told = ask(world, "delete", "idle", "--execute", "--yes")
    assert told.code == REFUSED and "1 live consumer registered with its coordinator" in told.out + told.err
    assert any("/consumers/idle/offsets" in path for path in world.old.paths())


@pytest.mark.parametrize("listens", [True, False])
def test_a_group_its_coordinator_cannot_be_asked_for_is_not_deleted(
    ask, asked_coordinator, monkeypatch, listens
):
    world = asked_coordinator("gone")
    monkeypatch.setattr(tree, "describe_groups", lambda _, names, __: dict.fromkeys(names, TOLD["gone"]))
    if not listens:
        world.old.broker()
    told = ask(world, "delete", "idle", "--execute", "--yes")
    assert told.code == REFUSED and "unknown" in told.out + told.err
    assert any("/consumers/idle/offsets" in path for path in world.old.paths())


def test_members_nobody_could_ask_for_are_unknown(ask, asked_coordinator):
    """LC-08: neither while they come back, nor where the coordinator does not answer."""
    told = ask(asked_coordinator("recovering"), "describe", "pushed", "-o", "json")
    assert (_pushed(told)["state"], _pushed(told)["members"]) == ("Recovering", None)
    told = ask(asked_coordinator("gone"), "describe", "pushed", "-o", "json")
    assert (told.code, _pushed(told)["state"], _pushed(told)["members"]) == (PARTIAL, "Unknown", None)
    assert "Connection refused" in told.err
    listed = ask(asked_coordinator("stable"), "list", "-o", "json").document["data"]["groups"]
    assert {g["group_id"]: (g["state"], g["members"]) for g in listed}["pushed"] == ("Stable", 1)


def test_what_all_groups_hides_is_said_once(ask):
    world = World()
    world.old.offset("idle", "t1", 0, "12a")
    told = ask(world, "describe", "--all-groups")
    assert told.code == PARTIAL and told.err.count("is not an offset: '12a'") == 1

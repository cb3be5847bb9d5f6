"""`kgroup member register|unregister`: whom a group expects, planned, changed, journalled."""

import itertools
import threading
from contextlib import contextmanager

import jsonschema
import pytest

from kgroup.admin.journal import Journal
from kgroup.admin.read.describe import describe
from kgroup.admin.settings import group_settings
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.schemas import schema_for
from kgroup.client.transport import SocketTransport
from kgroup.coordinator import roster
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.subscription import Subscription
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings import STANDARD_AUTHORIZER
from kgroup.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from tests.cli.live import Client, served
from tests.interop.waiting import eventually

_numbers = itertools.count()
LOCKED = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:somebody-else"}
WHOEVER_COMES = "User:ANONYMOUS"
REGISTER, UNREGISTER = ("member", "register"), ("member", "unregister")


@pytest.fixture
def group():
    return f"registered-{next(_numbers)}"


def data(ran, code=ExitCode.OK):
    assert ran.code == code, ran.err
    command = ran.document["schema"].removeprefix("kgroup/").partition("@")[0].replace("-", " ")
    jsonschema.validate(ran.document, schema_for(command))
    return ran.document["data"]


def settings(cluster, group):
    told = {each.name: each.value for each in group_settings(cluster.admin, group)}
    return {name.removeprefix("kgroup."): told[name] for name in roster.SETTINGS if name in told}


def results(found):
    return {row["instance_id"]: (row["result"], row["registered"]) for row in found["instances"]}


def test_a_plan_changes_nothing(on_cluster, cluster, group):
    found = data(on_cluster(*REGISTER, group, "--instance-id", "a,b", "-o", "json"))
    assert (found["executed"], found["journal_id"], found["missing"]) == (False, None, ["a", "b"])
    assert results(found) == {"a": ("planned", True), "b": ("planned", True)}
    assert settings(cluster, group) == {}
    assert Journal.default().entries() == ()


def test_ids_are_registered_before_their_members_come(on_cluster, cluster, group):
    options = ("--wait", "60s", "--target-size", "3", "--reason", "scale-out", "--execute")
    found = data(on_cluster(*REGISTER, group, "--instance-id", "a,b", *options, "-o", "json"))
    assert results(found) == {"a": ("done", True), "b": ("done", True)}
    assert settings(cluster, group) == {
        "registered.instance.ids": "a,b",
        "registration.wait.ms": "60000",
        "target.group.size": "3",
    }
    (entry,) = Journal.default().entries()
    assert (entry.id, entry.command) == (found["journal_id"], "member register")
    assert entry.plan["settings"]["kgroup.registered.instance.ids"] == {"append": ["a", "b"]}
    assert entry.plan["reason"] == "scale-out"
    assert [(s["name"], s["value"]) for s in entry.before["settings"]] == [
        (name, None) for name in roster.SETTINGS
    ]
    assert {result["result"] for result in entry.results} == {"done"}


def test_who_is_there_and_who_is_missing(on_cluster, cluster, group):
    members = cluster.classic_group(group, "orders", {"m-0": [0, 1, 2], "m-1": [3, 4, 5]})
    assert on_cluster(*REGISTER, group, "--instance-id", "m-0,m-1", "--execute").code == ExitCode.OK
    found = data(on_cluster(*REGISTER, group, "--instance-id", "m-1,m-2", "-o", "json"))
    assert found["missing"] == ["m-2"]
    assert [row["member_id"] for row in found["instances"]] == [members["m-0"], members["m-1"], None]
    assert results(found) == {
        "m-0": ("unchanged", True),
        "m-1": ("unchanged", True),
        "m-2": ("planned", True),
    }
    out = on_cluster(*REGISTER, group, "--instance-id", "m-2").out
    assert out.partition("\n")[2].startswith(
        f"PLAN  {group} (classic, Stable, 2 members)   waits up to its rebalance timeout\n"
    )
    assert out.endswith("after: 3 registered, 1 missing   Nothing changed. Add --execute.\n")


def test_what_is_so_already_is_not_journalled(on_cluster, group):
    argv = (*REGISTER, group, "--instance-id", "a", "--wait", "5s", "--execute")
    assert on_cluster(*argv).code == ExitCode.OK
    again = on_cluster(*argv)
    assert (again.code, again.out.splitlines()[-1]) == (ExitCode.OK, "Nothing to do.")
    assert len(Journal.default().entries()) == 1


def test_a_plan_to_unregister_says_who_would_be_removed_now(on_cluster, cluster, group):
    members = cluster.classic_group(group, "orders", {"m-0": [0, 1, 2], "m-1": [3, 4, 5]})
    assert on_cluster(*REGISTER, group, "--instance-id", "m-0,m-1,m-2", "--execute").code == ExitCode.OK
    found = data(on_cluster(*UNREGISTER, group, "--instance-id", "m-1,m-2", "-o", "json"))
    rows = {row["instance_id"]: row for row in found["instances"]}
    assert rows["m-1"]["member_id"] == members["m-1"]
    assert rows["m-1"]["effect"].startswith("removed now, its 3 partitions go to others")
    assert (rows["m-2"]["member_id"], rows["m-2"]["effect"]) == (None, "not waited for any more")
    assert settings(cluster, group) == {"registered.instance.ids": "m-0,m-1,m-2"}


def test_ids_are_taken_off_the_list_and_the_rest_stays(on_cluster, cluster, group):
    assert on_cluster(*REGISTER, group, "--instance-id", "a,b,c", "--execute").code == ExitCode.OK
    found = data(on_cluster(*UNREGISTER, group, "--instance-id", "a,c", "--execute", "-o", "json"))
    assert results(found) == {"a": ("done", False), "b": ("unchanged", True), "c": ("done", False)}
    assert settings(cluster, group) == {"registered.instance.ids": "b"}
    entry = Journal.default().find("LAST")
    assert entry.command == "member unregister"
    assert entry.before["settings"] == [
        {"name": "kgroup.registered.instance.ids", "value": "a,b,c", "origin": "group"}
    ]


def test_a_list_that_was_written_by_hand(on_cluster, cluster, group):
    assert (
        on_cluster("config", "set", group, "kgroup.registered.instance.ids=a, b", "--execute").code
        == ExitCode.OK
    )
    assert on_cluster(*UNREGISTER, group, "--instance-id", "b", "--execute").code == ExitCode.OK
    assert settings(cluster, group) == {"registered.instance.ids": "a"}


def test_all_takes_the_wait_along(on_cluster, cluster, group):
    argv = ("--instance-id", "a,b", "--wait", "1s", "--target-size", "2", "--execute")
    assert on_cluster(*REGISTER, group, *argv).code == ExitCode.OK
    assert on_cluster(*UNREGISTER, group, "--all", "--execute").code == ExitCode.OK
    assert settings(cluster, group) == {"target.group.size": "2"}


def test_nobody_of_those_named_is_registered(on_cluster, group):
    ran = on_cluster(*UNREGISTER, group, "--instance-id", "a", "--execute", "-o", "json")
    assert results(data(ran, ExitCode.NOT_FOUND)) == {"a": ("not_found", False)}
    assert [error["code"] for error in ran.errors] == ["NOT_REGISTERED"]
    assert Journal.default().entries() == ()


@pytest.mark.parametrize("command", [REGISTER, UNREGISTER])
def test_a_broker_that_knows_no_registered_ids(on_cluster, group, command, monkeypatch):
    """As Kafka answers: to it these are settings that no group has."""
    for name in roster.SETTINGS:
        monkeypatch.delitem(roster.ROWS, name)
    for extra in ((), ("--execute",)):
        ran = on_cluster(*command, group, "--instance-id", "a", *extra)
        assert ran.code == ExitCode.FAILED
        assert ran.err.startswith("error: this broker does not know registered instance ids")
        assert ran.out == ""
    assert Journal.default().entries() == ()


@pytest.mark.parametrize(
    "argv",
    [
        (*REGISTER, "g"),
        (*REGISTER, "g", "--instance-id", "a\\,b"),
        (*REGISTER, "g", "--instance-id", "a", "--wait", "soon"),
        (*REGISTER, "g", "--target-size", "0"),
        (*UNREGISTER, "g"),
        (*UNREGISTER, "g", "--instance-id", "a", "--all"),
    ],
)
def test_wrong_usage(on_cluster, argv):
    assert on_cluster(*argv).code == ExitCode.USAGE


class TestRights:
    """The least that docs/rights.md tells, on the embedded cluster: no Kafka gets as far."""

    @pytest.fixture
    def locked(self):
        cluster = Cluster(config=LOCKED, offsets_partitions=1)
        with served(cluster) as bootstrap:
            yield cluster, bootstrap

    @staticmethod
    def allow(cluster, operation, kind=ResourceType.GROUP, name="g"):
        rule = Acl(kind, name, PatternType.LITERAL, WHOEVER_COMES, "*", operation, Permission.ALLOW)
        cluster.acls.add([rule])
        return rule

    @pytest.mark.parametrize("command", [REGISTER, UNREGISTER])
    def test_each_right_is_needed_and_these_are_enough(self, kgroup, locked, command):
        cluster, bootstrap = locked
        argv = (*command, "g", "--instance-id", "a", "--execute", "-b", bootstrap)
        ran = kgroup(*argv)
        assert (ran.code, "AlterConfigs on Group g" in ran.err) == (ExitCode.NOT_AUTHORISED, True)
        self.allow(cluster, Operation.ALTER_CONFIGS)
        ran = kgroup(*argv)
        assert (ran.code, "Describe on Group g" in ran.err) == (ExitCode.NOT_AUTHORISED, True)
        self.allow(cluster, Operation.DESCRIBE)
        done = ExitCode.OK if command == REGISTER else ExitCode.NOT_FOUND
        assert kgroup(*argv).code == done

    def test_the_topics_of_consumer_members(self, kgroup, locked):
        cluster, bootstrap = locked
        for operation in (Operation.ALTER_CONFIGS, Operation.READ):
            self.allow(cluster, operation)
        of_topic = self.allow(cluster, Operation.ALL, ResourceType.TOPIC, "orders")
        client = Client(bootstrap)
        client.create_topic("orders", 1)
        client.consumer_member("g", "orders", "a")
        client.close()
        argv = (*REGISTER, "g", "--instance-id", "a", "-b", bootstrap)
        assert kgroup(*argv).code == ExitCode.OK
        cluster.acls.remove([of_topic])
        ran = kgroup(*argv)
        assert (ran.code, "topic" in ran.err.lower()) == (ExitCode.NOT_AUTHORISED, True)


class TestDescribe:
    """What `describe` and `doctor` show of it, on a cluster that does as it was told."""

    @staticmethod
    def registration(on_cluster, group):
        ran = on_cluster("describe", group, "-o", "json")
        assert ran.code == ExitCode.OK, ran.err
        jsonschema.validate(ran.document, schema_for("describe"))
        (told,) = ran.document["data"]["groups"]
        assert told["registration_known"]
        return told["registration"]

    def test_a_group_that_expects_nobody(self, on_cluster, cluster, group):
        cluster.classic_group(group, "orders", {"m-0": [0, 1, 2, 3, 4, 5]})
        assert self.registration(on_cluster, group) is None
        assert "missing" not in on_cluster("describe", group).out

    def test_a_classic_join_that_is_held(self, on_cluster, cluster, group):
        cluster.classic_group(group, "orders", {"m-0": [0, 1, 2, 3, 4, 5]})
        assert on_cluster(*REGISTER, group, "--instance-id", "m-0,m-1,m-2", "--execute").code == ExitCode.OK
        with joining(cluster, group, "m-1"):
            eventually(lambda: self.registration(on_cluster, group)["held"] == ["m-1"])
            told = self.registration(on_cluster, group)
            assert (told["instance_ids"], told["missing"]) == (["m-0", "m-1", "m-2"], ["m-2"])
            out = on_cluster("describe", group).out
            assert "registered 3 · missing m-2 · waits up to its rebalance timeout · held m-1\n" in out
            assert cluster.state(group) == "Stable"
            assert on_cluster(*UNREGISTER, group, "--instance-id", "m-1,m-2", "--execute").code == ExitCode.OK
        assert self.registration(on_cluster, group)["missing"] == []

    def test_a_consumer_member_whose_target_waits(self, on_cluster, cluster, group):
        assert on_cluster(*REGISTER, group, "--instance-id", "a,b", "--execute").code == ExitCode.OK
        cluster.consumer_member(group, "orders", "a")
        told = self.registration(on_cluster, group)
        assert (told["missing"], told["held"]) == (["b"], ["a"])
        cluster.consumer_member(group, "orders", "b")
        told = self.registration(on_cluster, group)
        assert (told["missing"], told["held"]) == ([], [])

    def test_a_member_that_is_unregistered_is_removed_at_once(self, on_cluster, cluster, group):
        assert on_cluster(*REGISTER, group, "--instance-id", "a,b", "--execute").code == ExitCode.OK
        for instance in ("a", "b"):
            cluster.consumer_member(group, "orders", instance)
        assert on_cluster(*UNREGISTER, group, "--instance-id", "b", "--execute").code == ExitCode.OK
        (described,) = describe(cluster.admin, [group], offsets=False).groups
        assert [member.instance_id for member in described.known_members] == ["a"]

    def test_standbys_of_a_consumer_group(self, on_cluster, cluster, group):
        assert on_cluster(*REGISTER, group, "--target-size", "1", "--execute").code == ExitCode.OK
        for instance in ("a", "b"):
            cluster.consumer_member(group, "orders", instance)
        told = self.registration(on_cluster, group)
        assert (told["target_size"], told["active"], told["standby"]) == (1, ["a"], ["b"])
        assert "target size 1 · active 1 · standby b\n" in on_cluster("describe", group).out

    def test_doctor_finds_too_few(self, on_cluster, cluster, group):
        assert (
            on_cluster(*REGISTER, group, "--target-size", "3", "--wait", "0s", "--execute").code
            == ExitCode.OK
        )
        cluster.consumer_member(group, "orders", "a")
        ran = on_cluster("doctor", group, "-o", "json")
        (told,) = ran.document["data"]["groups"]
        assert "KG115" in {finding["code"] for finding in told["findings"]}
        assert "KG115" not in on_cluster("doctor", group, "--without", "settings").out


@contextmanager
def joining(cluster, group, instance):
    """A client whose join waits for its answer meanwhile; it is answered before this ends."""
    metadata = Subscription(topics=("orders",)).encode(1)
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
    )
    transport = SocketTransport(cluster.transport.settings)
    thread = threading.Thread(target=lambda: transport.request(None, request))
    thread.start()
    try:
        yield
    finally:
        thread.join(300)
        transport.close()
    assert not thread.is_alive()

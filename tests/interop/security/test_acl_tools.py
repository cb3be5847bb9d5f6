"""kafka-acls.sh at ours, `kgroup cluster acl` at a real Kafka: rules of either are the other's, and act."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.interop.conftest import ASKED, require
from tests.interop.kafka import USERS, RealKafka
from tests.interop.kgroup_server import EXECUTABLE
from tests.interop.rights.on_kafka import SETTINGS
from tests.interop.rights.on_kgroup import SecuredServer
from tests.interop.waiting import eventually

pytestmark = pytest.mark.interop
Broker: TypeAlias = RealKafka | SecuredServer
Rule = tuple[str, str, str, str, str, str, str]
"""Kind, name and pattern of the resource; principal, host, operation, permission."""
_RESOURCE = re.compile(r"resourceType=(\w+), name=([^,]*), patternType=(\w+)")
_ENTRY = re.compile(r"\(principal=([^,]*), host=([^,]*), operation=(\w+), permissionType=(\w+)\)")
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module", params=ASKED)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with access rules; who comes in the clear may do anything, bob what a rule allows."""
    require("java", "mvn")
    base = tmp_path_factory.mktemp(request.param)
    made = (
        RealKafka(SETTINGS, ("SASL_PLAINTEXT",), base=base)
        if request.param == "kafka"
        else SecuredServer(base)
    )
    with made as running:
        yield running


@pytest.fixture(autouse=True)
def no_rules(broker: Broker) -> Iterator[None]:
    yield
    kgroup(broker, "remove", "--pattern", "any")


def tool(broker: Broker, *arguments: str, check: bool = True) -> str:
    told = broker.tool("kafka-acls", *arguments, check=check)
    return told.stdout + told.stderr


def listed(broker: Broker, *arguments: str) -> set[Rule]:
    """What kafka-acls --list shows."""
    found: set[Rule] = set()
    resource = ("", "", "")
    for line in tool(broker, "--list", *arguments).splitlines():
        if at := _RESOURCE.search(line):
            resource = (at[1], at[2], at[3])
        if entry := _ENTRY.search(line):
            found.add((*resource, entry[1], entry[2], entry[3], entry[4]))
    return found


def kgroup(broker: Broker, verb: str, *arguments: str) -> set[Rule]:
    """What `kgroup cluster acl` shows of the rules it added, found or removed."""
    execute = ("--execute", "--yes") if verb == "remove" else ()
    command = [EXECUTABLE, "cluster", "acl", verb, *arguments, *execute, "-b", broker.bootstrap, "-o", "json"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stderr
    keys = ("resource_type", "name", "pattern", "principal", "host", "operation", "permission")
    return {tuple(acl[key] for key in keys) for acl in json.loads(told.stdout)["data"]["acls"]}  # type: ignore[misc]


def shown(broker: Broker, wanted: set[Rule], *arguments: str) -> None:
    """Waits until kafka-acls shows exactly these: a broker hears of a rule a moment later."""
    eventually(lambda: listed(broker, *arguments) == wanted, what=f"the rules are {wanted}")


def of(kind: str, name: str, *rest: str, pattern: str = "LITERAL") -> Rule:
    principal, operation, *more = rest
    host, permission = (*more, *("*", "ALLOW")[len(more) :])
    return (kind, name, pattern, f"User:{principal}", host, operation, permission)


def test_roles_of_producers_and_consumers(broker: Broker) -> None:
    """--producer and --consumer stand for several rules; both are added and taken away."""
    allow = ("--allow-principal", "User:bob", "--topic", "orders")
    consumer = {
        of("TOPIC", "orders", "bob", "READ"),
        of("TOPIC", "orders", "bob", "DESCRIBE"),
        of("GROUP", "pay", "bob", "READ"),
    }
    producer = {of("TOPIC", "orders", "bob", name) for name in ("WRITE", "DESCRIBE", "CREATE")}
    ids = {of("TRANSACTIONAL_ID", "tx", "bob", name) for name in ("WRITE", "DESCRIBE")}
    assert "Adding ACLs for resource" in tool(broker, "--add", *allow, "--consumer", "--group", "pay")
    shown(broker, consumer)
    tool(broker, "--add", *allow, "--producer", "--transactional-id", "tx", "--idempotent")
    idempotent = {of("CLUSTER", "kafka-cluster", "bob", "IDEMPOTENT_WRITE")}
    shown(broker, consumer | producer | ids | idempotent)
    shown(broker, {r for r in consumer | producer if r[0] == "TOPIC"}, "--topic", "orders")
    shown(broker, idempotent, "--cluster")
    assert kgroup(broker, "list") == consumer | producer | ids | idempotent
    tool(broker, "--remove", "--force", *allow, "--consumer", "--group", "pay")
    left = (producer | ids | idempotent) - consumer
    shown(broker, left)
    tool(broker, "--remove", "--force", "--cluster")
    shown(broker, left - idempotent)


def test_by_principal_host_and_prefix(broker: Broker) -> None:
    for principal, host in (("alice", "*"), ("bob", "10.0.0.1"), ("bob", "*")):
        named = ("--allow-principal", f"User:{principal}", "--allow-host", host)
        tool(broker, "--add", *named, "--operation", "Read", "--operation", "Describe", "--topic", "pay.x")
    prefixed = ("--resource-pattern-type", "prefixed")
    tool(broker, "--add", "--allow-principal", "User:bob", "--operation", "All", "--group", "pay.", *prefixed)
    tool(broker, "--add", "--allow-principal", "User:*", "--operation", "Describe", "--topic", "*")
    of_topic = {
        of("TOPIC", "pay.x", principal, operation, host)
        for principal, host in (("alice", "*"), ("bob", "10.0.0.1"), ("bob", "*"))
        for operation in ("READ", "DESCRIBE")
    }
    group, everybody = (
        of("GROUP", "pay.", "bob", "ALL", pattern="PREFIXED"),
        of("TOPIC", "*", "*", "DESCRIBE"),
    )
    shown(broker, {*of_topic, group, everybody})
    shown(broker, {r for r in of_topic if r[3] == "User:alice"}, "--principal", "User:alice")
    shown(broker, set(), "--group", "pay.svc")
    shown(broker, {group}, "--group", "pay.svc", "--resource-pattern-type", "match")
    shown(broker, {*of_topic, everybody}, "--topic", "pay.x", "--resource-pattern-type", "match")
    assert kgroup(broker, "list", "--topic", "pay.x", "--pattern", "match") == {*of_topic, everybody}
    one = ("--allow-principal", "User:bob", "--allow-host", "10.0.0.1", "--operation", "Read")
    tool(broker, "--remove", "--force", *one, "--topic", "pay.x")
    rest = of_topic - {of("TOPIC", "pay.x", "bob", "READ", "10.0.0.1")}
    shown(broker, rest, "--topic", "pay.x")
    tool(broker, "--remove", "--force", "--topic", "pay.x")
    tool(broker, "--remove", "--force", "--group", "pay.", *prefixed)
    shown(broker, {everybody})


def test_rules_that_forbid_act_before_those_that_allow(broker: Broker, tmp_path: Path) -> None:
    """bob describes a group, is forbidden it, and may again."""
    config = tmp_path / "bob.properties"
    config.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f'sasl.jaas.config={_LOGIN} username="bob" password="{USERS["bob"]}";\n'
    )
    config.chmod(0o600)
    at = ("--bootstrap-server", broker.address("SASL_PLAINTEXT"), "--command-config", str(config))

    def refused() -> bool:
        described = ("--describe", "--group", "pay", "--state")
        told = broker.tool("kafka-consumer-groups", *at, *described, check=False)
        return "GroupAuthorizationException" in told.stdout + told.stderr

    eventually(refused, what="no rule allows it")
    tool(
        broker, "--add", "--allow-principal", "User:bob", "--operation", "All", "--group", "*", "--topic", "*"
    )
    eventually(lambda: not refused(), what="a rule allows it")
    forbidding = ("--deny-principal", "User:bob", "--deny-host", "127.0.0.1", "--operation", "Describe")
    tool(broker, "--add", *forbidding, "--group", "pa", "--resource-pattern-type", "prefixed")
    deny = of("GROUP", "pa", "bob", "DESCRIBE", "127.0.0.1", "DENY", pattern="PREFIXED")
    allow = {of(kind, "*", "bob", "ALL") for kind in ("GROUP", "TOPIC")}
    shown(broker, {deny, *allow})
    eventually(refused, what="a rule forbids it")
    own = tool(broker, *at, "--list", check=False)
    assert "ClusterAuthorizationException" in own
    own = tool(
        broker,
        *at,
        "--add",
        "--allow-principal",
        "User:bob",
        "--operation",
        "Read",
        "--topic",
        "x",
        check=False,
    )
    assert "ClusterAuthorizationException" in own
    assert kgroup(broker, "remove", "--deny") == {deny}
    shown(broker, allow)
    eventually(lambda: not refused(), what="nothing forbids it any more")


def test_our_rules_are_those_of_the_tool(broker: Broker) -> None:
    """`cluster acl` adds, lists and removes; kafka-acls shows the same."""
    read = ("--principal", "User:bob", "--operation", "Read")
    added = kgroup(broker, "add", *read, "--topic", "t", "--group", "g")
    assert added == {of("TOPIC", "t", "bob", "READ"), of("GROUP", "g", "bob", "READ")}
    more = kgroup(
        broker, "add", *read, "--topic", "pay.", "--pattern", "prefixed", "--deny", "--host", "10.0.0.1"
    )
    assert more == {of("TOPIC", "pay.", "bob", "READ", "10.0.0.1", "DENY", pattern="PREFIXED")}
    more |= kgroup(broker, "add", "--principal", "User:alice", "--operation", "alter-configs", "--cluster")
    more |= kgroup(broker, "add", "--principal", "User:*", "--operation", "All", "--transactional-id", "*")
    assert len(more) == 3
    shown(broker, added | more)
    assert kgroup(broker, "list") == added | more
    assert kgroup(broker, "list", "--principal", "User:bob", "--deny") == {r for r in more if r[6] == "DENY"}
    gone = kgroup(broker, "remove", "--principal", "User:bob")
    assert gone == {r for r in added | more if r[3] == "User:bob"}
    shown(broker, (added | more) - gone)

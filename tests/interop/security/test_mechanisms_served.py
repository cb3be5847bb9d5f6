"""One table: mechanism × TLS × Kafka 4.3.1 and ours × Java, franz-go, librdkafka, two of Python, kgroup.

`make security` plays every cell; the interop suite a third of them.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.interop.conftest import ASKED, require
from tests.interop.conftest import CLIENTS as FEATURES
from tests.interop.driver import Client, Driver, DriverError
from tests.interop.kgroup_server import EXECUTABLE
from tests.interop.security.clients import LOCKS, Keys, Lock, cells
from tests.interop.security.servers import Locked, LockedKafka, LockedKgroup
from tests.interop.waiting import eventually

pytestmark = pytest.mark.interop
KINDS = {"kafka": LockedKafka, "kgroup": LockedKgroup}
TOPIC = "locked"
BY_SASL = [each for each in LOCKS if each.mechanism]
_numbers = itertools.count()


def told(value: str | Lock) -> str:
    """How a cell's part is called in a test's name."""
    return value if isinstance(value, str) else value.id


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory, drivers: Callable[[str], Driver]
) -> Iterator[Callable[[str], Locked]]:
    """A broker of each kind with every lock, its stores PEM, PKCS12 and JKS, and a record to read.

    One for all tests of a kind: a fixture that each cell parametrizes is made anew for each.
    """
    require("java", "mvn", "keytool", "openssl")
    running: dict[str, Locked] = {}
    with ExitStack() as stack:

        def get(kind: str) -> Locked:
            if kind not in running:
                made = KINDS[kind](tmp_path_factory.mktemp(kind), javas=True)
                running[kind] = stack.enter_context(made)
                admin, where = drivers("java"), {"bootstrap": made.bootstrap}
                admin.call("admin.create_topic", **where, topic=TOPIC, partitions=1)
                admin.call("admin.produce", **where, topic=TOPIC, rows=[[0, "for whoever gets in"]])
            return running[kind]

        yield get


@pytest.fixture(params=ASKED)
def locked(request: pytest.FixtureRequest, servers: Callable[[str], Locked]) -> Locked:
    """The broker of the kind the test is at."""
    return servers(request.param)


def keys(server: Locked, lock: Lock) -> Keys:
    certificate = server.tls.client if lock.listener == "MTLS" else None
    return Keys(server.tls.ca, certificate, token=server.tokens.file("alice"))


def command_config(folder: Path, config: dict[str, str]) -> list[str]:
    path = folder / "client.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in config.items()))
    path.chmod(0o600)
    return ["--command-config", str(path)]


@pytest.mark.parametrize(("locked", "lock", "name"), cells(ASKED), indirect=["locked"], ids=told)
def test_who_has_the_key_gets_in(
    locked: Locked, lock: Lock, name: str, clients: Callable[[str], Client], tmp_path: Path
) -> None:
    """A consumer joins, reads and commits; the command line lists groups."""
    config = keys(locked, lock).config(name, lock)
    address = locked.address(lock.listener)
    if name == "kgroup":
        told = subprocess.run(
            [EXECUTABLE, "list", "-b", address, *command_config(tmp_path, config), "-o", "json"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert told.returncode == 0, told.stderr
        assert json.loads(told.stdout)["cluster"]["id"]
        return
    group = f"{name}-{lock.id}-{next(_numbers)}"
    member = clients(name).start(address, group, TOPIC, config=config)
    try:
        eventually(lambda: [row[3] for row in member.records()] == ["for whoever gets in"], what="it reads")
        member.commit()
        assert member.committed((TOPIC, 0)) == {(TOPIC, 0): 1}
        assert member.state().fatal is None
    finally:
        member.close()


@pytest.mark.parametrize(("locked", "lock", "name"), cells(ASKED, BY_SASL), indirect=["locked"], ids=told)
def test_who_has_the_wrong_one_does_not(
    locked: Locked, lock: Lock, name: str, clients: Callable[[str], Client], tmp_path: Path
) -> None:
    """A wrong password, or a token for somebody else's brokers: nothing is read."""
    token = locked.tokens.file("alice", aud="others")
    config = Keys(locked.tls.ca, password="wrong", token=token).config(name, lock)
    address = locked.address(lock.listener)
    if name == "aiokafka":
        config["request_timeout_ms"] = 3000  # it waits so long for what it will not be told
    if name == "kafka-python":
        config["bootstrap_timeout_ms"] = 5000  # it tries again for so long before it gives up
    if name == "kgroup":
        told = subprocess.run(
            [EXECUTABLE, "list", "-b", address, *command_config(tmp_path, config), "--timeout", "20s"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert told.returncode in (6, 7), told.stderr
        assert "Traceback" not in told.stderr
        return
    group = f"wrong-{name}-{lock.id}-{next(_numbers)}"
    known = _failures(locked)
    try:
        member = clients(name).start(address, group, TOPIC, config=config)
    except DriverError:
        return  # kafka-python and Java give up
    try:
        eventually(lambda: _failures(locked) > known, what="the broker refuses it")
        assert member.records() == []
        assert not member.state().assignment
    finally:
        try:
            member.close()
        except DriverError:
            assert name in FEATURES


def _failures(server: Locked) -> int:
    """How often the broker has said that it refused somebody."""
    return server.log_text().count("ailed authentication with") + server.log_text().count(
        "failed to authenticate"
    )


def test_kafkas_own_tool_changes_users(locked: Locked) -> None:
    """kafka-configs.sh --entity-type users: added, described, let in, changed, removed."""

    def configs(*arguments: str, check: bool = True) -> str:
        told = locked.tool("kafka-configs", "--entity-type", "users", *arguments, check=check)
        return told.stdout + told.stderr

    for one in ("SCRAM-SHA-256=[iterations=8192,password=dave-pw]", "SCRAM-SHA-512=[password=dave-pw]"):
        assert "Completed updating" in configs("--entity-name", "dave", "--alter", "--add-config", one)
    both = "SCRAM-SHA-256=[password=x],SCRAM-SHA-512=[password=x]"
    told = configs("--entity-name", "eve", "--alter", "--add-config", both, check=False)
    assert "A user credential cannot be altered twice in the same request" in told
    told = configs("--describe")
    assert "SCRAM credential configs for user-principal 'dave' are" in told
    assert "SCRAM-SHA-256=iterations=8192" in told and "SCRAM-SHA-512=iterations=4096" in told
    assert "user-principal 'alice'" in told
    configs("--entity-name", "dave", "--alter", "--delete-config", "SCRAM-SHA-256")
    told = configs("--entity-name", "dave", "--describe")
    assert "SCRAM-SHA-512" in told and "SCRAM-SHA-256" not in told
    gone = configs("--entity-name", "dave", "--alter", "--delete-config", "SCRAM-SHA-256", check=False)
    assert "Attempt to delete a user credential that does not exist" in gone
    few = "SCRAM-SHA-512=[iterations=1,password=x]"
    refused = configs("--entity-name", "eve", "--alter", "--add-config", few, check=False)
    assert "Iterations 1 is less than the minimum" in refused or "Too few iterations" in refused


def test_our_own_command_changes_users(
    locked: Locked, clients: Callable[[str], Client], tmp_path: Path
) -> None:
    """kgroup cluster user, over the wire; the user then gets in."""

    def user(*arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
        command = [EXECUTABLE, "cluster", "user", *arguments, "-b", locked.bootstrap, "-o", "json"]
        return subprocess.run(command, input=said, capture_output=True, text=True, timeout=60)

    added = user("add", "frank", "--password-file", "-", said="frank-secret\n")
    assert added.returncode == 0, added.stderr
    assert json.loads(added.stdout)["data"]["existed"] is False
    listed = json.loads(user("list", "frank").stdout)["data"]["users"]
    assert listed == [{"user": "frank", "mechanisms": [{"mechanism": "SCRAM-SHA-512", "iterations": 8192}]}]
    lock = Lock("SASL_SSL", "SASL_SSL", "SCRAM-SHA-512")
    config = Keys(locked.tls.ca, user="frank", password="frank-secret").config("java", lock)
    member = clients("java").start(
        locked.address("SASL_SSL"), f"frank-{next(_numbers)}", TOPIC, config=config
    )
    try:
        eventually(lambda: len(member.records()) == 1, what="it reads")
    finally:
        member.close()
    removed = user("remove", "frank")
    data = json.loads(removed.stdout)["data"]
    assert (data["user"], data["mechanisms"]) == ("frank", ["SCRAM-SHA-512"])
    again = user("remove", "frank")
    assert again.returncode == 3, again.stderr

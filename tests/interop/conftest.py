"""Two server kinds, five client kinds; every case runs over both, or fails in one sentence without Java."""

from __future__ import annotations

import itertools
import os
import sys
import uuid
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from tests.sampled import FULL, in_full

from . import toolchain
from .driver import Client, Driver, Member, Partition
from .jvm import LIGHT_JVM, java
from .kafka import RealKafka
from .kgroup_server import KgroupServer
from .server import JUDGE, Server
from .verifying import verified_groups

KINDS = {"kafka": RealKafka, "kgroup": KgroupServer}
ASKED = [kind for kind in os.environ.get("KGROUP_INTEROP_SERVERS", "kafka,kgroup").split(",") if kind]
NEWEST = "4.4.0"
"""The newest release, on which the tests marked `newest` run too; `make interop-newest` runs all on it."""
SETTINGS = {"group.consumer.session.timeout.ms": "5000"}
# what a client cannot do is left out, and why:
#   fenced: aiokafka beats without its instance id, so it is told UNKNOWN_MEMBER_ID and takes the id back
#   cooperative: aiokafka has none
#   release: franz-go's static member says it goes away for a while without its instance id, and is refused
#   pattern: kafka-python, told of a new topic while it joins, at times assigns without it and stays so,
#     on either server
#   instances, type: aiokafka describes and lists in old versions; kafka-python does not tell the type
_NEXT_GENERATION = frozenset({"fenced", "cooperative", "consumer", "instances", "pattern", "type"})
CLIENTS = {
    "java": _NEXT_GENERATION | {"release", "remove"},
    "franz-go": _NEXT_GENERATION | {"remove"},
    "librdkafka": _NEXT_GENERATION | {"release"},
    "kafka-python": frozenset({"fenced", "cooperative", "instances", "remove"}),
    "aiokafka": frozenset({"pattern"}),
}
_unique = itertools.count(1)


def require(*programs: str) -> None:
    """Fail in one sentence when a program is not installed."""
    if absent := toolchain.missing(*programs):
        pytest.fail(f"the interop tests need {', '.join(absent)} on PATH", pytrace=False)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running broker of the kind the test is at; in the end its log has to tell what it says."""
    require("java", "mvn")
    kind, _, release = request.param.partition("-")
    made = KINDS[kind](SETTINGS, base=tmp_path_factory.mktemp(request.param))
    made.kafka = release or made.kafka
    with made as running:
        yield running
        verified_groups(running)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "feature(*names): only for clients that have all of these features")
    config.addinivalue_line("markers", f"newest: on servers that are Kafka {NEWEST}, too")
    config.addinivalue_line(
        "markers", "sampled_on(kind): of both kinds of servers on this one, unless in full"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a server run one after the other; they wait most of the time, so others run beside.

    First, because xdist reads the groups in the same hook.
    """
    for item in items:
        if item.path.parent == toolchain.HERE:
            params = item.callspec.params if hasattr(item, "callspec") else {}
            kind, client, own = params.get("server"), params.get("client"), params.get("broker")
            item.add_marker(
                pytest.mark.xdist_group(kind or (f"{item.path.stem}-{own}" if own else item.path.stem))
            )
            if client and str(kind).startswith("kafka") and client != _asked_of_kafka(item):
                item.add_marker(in_full("how a client and Kafka get on changes with neither in kgroup"))


def _able(test: pytest.Item) -> list[str]:
    """The clients that have what a test wants."""
    marker = test.get_closest_marker("feature")
    wanted = set(marker.args) if marker else set()
    return [name for name, features in CLIENTS.items() if wanted <= features]


def _asked_of_kafka(item: pytest.Item) -> str:
    """The one client with which CI plays a test on a real Kafka: another for each test."""
    able = _able(item)
    return able[zlib.crc32(item.nodeid.partition("[")[0].encode()) % len(able)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server" in metafunc.fixturenames:
        both = JUDGE != NEWEST and metafunc.definition.get_closest_marker("newest") is not None
        later = [f"{kind}-{NEWEST}" for kind in ASKED] if both else []
        sampled = metafunc.definition.get_closest_marker("sampled_on")
        kinds = ASKED if FULL or sampled is None else [kind for kind in ASKED if kind in sampled.args]
        metafunc.parametrize("server", [*(kinds or ASKED), *later], indirect=True, scope="session")
    if "client" in metafunc.fixturenames:
        metafunc.parametrize("client", _able(metafunc.definition), indirect=True)


@pytest.fixture
def transport(server: Server) -> Iterator[SocketTransport]:
    """Our own client, connected to the server."""
    with SocketTransport(ConnectionSettings(parse_bootstrap(server.bootstrap))) as made:
        yield made


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Driver]]:
    """Driver processes by language, each started when first asked for."""
    running: dict[str, Driver] = {}
    logs = tmp_path_factory.mktemp("drivers")

    def get(language: str) -> Driver:
        if language not in running:
            running[language] = Driver(command(language), logs / f"{language}.log")
        return running[language]

    yield get
    for driver in running.values():
        driver.close()


def command(language: str) -> list[str]:
    if language == "java":
        require("java", "javac", "mvn")
        return java("kgroup.interop.Driver", jvm=LIGHT_JVM, classpath=toolchain.driver_classpath())
    if language == "go":
        require("go")
        return [str(toolchain.go_driver())]
    return [sys.executable, "-m", "tests.interop.python_driver"]


@pytest.fixture(scope="session")
def clients(drivers: Callable[[str], Driver]) -> Callable[[str], Client]:
    """Client kinds by name."""
    languages = {"java": "java", "franz-go": "go"}
    made: dict[str, Client] = {}

    def get(name: str) -> Client:
        if name not in made:
            made[name] = Client(name, drivers(languages.get(name, "python")), CLIENTS[name])
        return made[name]

    return get


@pytest.fixture
def client(request: pytest.FixtureRequest, clients: Callable[[str], Client]) -> Client:
    """The client kind the test is at."""
    return clients(request.param)


@pytest.fixture(scope="session")
def java_client(clients: Callable[[str], Client]) -> Client:
    """Kafka's own consumer."""
    return clients("java")


@dataclass
class Case:
    """One test's corner of a server: names of its own, topics, members that are closed afterwards."""

    server: Server
    admin: Driver
    group: str
    members: list[Member]

    def topic(self, partitions: int = 4, name: str = "t") -> str:
        """Make a topic; its name begins with the group's."""
        topic = f"{self.group}-{name}"
        self.call("create_topic", topic=topic, partitions=partitions)
        return topic

    def partitions(self, topic: str, count: int = 4) -> set[Partition]:
        return {(topic, number) for number in range(count)}

    def produce(self, topic: str, values: list[str], partition: int = 0) -> None:
        self.call("produce", topic=topic, rows=[[partition, value] for value in values])

    def call(self, op: str, **arguments: object) -> object:
        """An operation of Kafka's Admin on this server."""
        return self.admin.call(f"admin.{op}", bootstrap=self.server.bootstrap, **arguments)

    def describe(self, group: str | None = None) -> dict:  # type: ignore[type-arg]
        """The group as Kafka's Admin describes it, members by instance id, else by client id."""
        seen = self.call("describe", group=group or self.group)
        assert isinstance(seen, dict)
        return seen

    def join(self, client: Client, topics: str | list[str] | None = None, **options: object) -> Member:
        """Start a member of this test's group."""
        member = client.start(self.server.bootstrap, self.group, topics, **options)  # type: ignore[arg-type]
        self.members.append(member)
        return member

    def close(self, member: Member, leave: bool | None = None) -> None:
        """Close a member now rather than after the test."""
        self.members.remove(member)
        member.close(leave)


@pytest.fixture
def case(server: Server, drivers: Callable[[str], Driver], request: pytest.FixtureRequest) -> Iterator[Case]:
    """A group of the test's own on the running server."""
    group = f"g{next(_unique)}-{uuid.uuid4().hex[:6]}"
    made = Case(server, drivers("java"), group, [])
    yield made
    closing = [member.driver.begin("close", name=member.name, leave=None) for member in made.members]
    for future in closing:
        future.exception(30)

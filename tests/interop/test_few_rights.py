"""What kgroup tells a principal with few rights, on a real Kafka with its StandardAuthorizer.

Brokers leave out what one may not describe, without a word. bob gets one right after the other; alice is a
super user and sees everything, so that her answers are the truth that his are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgroup.admin.change.committing import store
from kgroup.admin.discovery import ClusterView
from kgroup.admin.topics import create_topic
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import OffsetAndMetadata, TopicPartition
from tests.own_home import move_in
from tests.ran import Ran, ran

from .conftest import require
from .kafka import AUTHORIZED, USERS, RealKafka

pytestmark = pytest.mark.interop
OK, RIGHTS = 0, 6
MINE, OTHERS = "g-mine", "g-others"
DENIED = "TOPIC_AUTHORIZATION_FAILED"


Ask = Callable[..., Ran]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    """Two groups with offsets in the topics seen and hidden; bob has no right at all."""
    require("java", "mvn")
    with RealKafka(AUTHORIZED, ("SASL_PLAINTEXT",), base=tmp_path_factory.mktemp("rights")) as running:
        with SocketTransport(ConnectionSettings(parse_bootstrap(running.bootstrap))) as transport:
            admin = ClusterView(transport)
            for topic in ("seen", "hidden"):
                create_topic(admin, topic, 1)
            for group in (MINE, OTHERS):
                at = {TopicPartition(topic, 0): OffsetAndMetadata(0) for topic in ("seen", "hidden")}
                codes, failed = store(ClusterView(transport), group, at)
                assert not failed and set(codes.values()) == {0}
        yield running


@pytest.fixture
def ask(
    kafka: RealKafka,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Ask:
    """Run a command line as bob, or as `user`."""
    move_in(monkeypatch, tmp_path)

    def call(*argv: str, user: str = "bob") -> Ran:
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": USERS[user],
        }
        settings = [part for key, value in login.items() for part in ("-X", f"{key}={value}")]
        return ran(capsys, *argv, "-b", kafka.address("SASL_PLAINTEXT"), *settings, "-o", "json")

    return call


@pytest.fixture
def grant(kafka: RealKafka) -> Iterator[Callable[..., None]]:
    """Give bob rights, as DESCRIBE on group:g-mine; they end with the test."""
    given: list[tuple[str, ...]] = []

    def give(operation: str, *where: str) -> None:
        acl = ("--allow-principal", "User:bob", "--operation", operation, *where)
        kafka.tool("kafka-acls", "--add", *acl)
        given.append(acl)

    yield give
    for acl in given:
        kafka.tool("kafka-acls", "--remove", "--force", *acl)


def test_a_super_user_sees_everything(ask: Ask) -> None:
    told = ask("list", user="alice")
    assert (told.code, told.err) == (OK, "")
    assert {group["group_id"] for group in told.data["groups"]} == {MINE, OTHERS}
    exported = ask("offsets", "export", MINE, user="alice")
    assert (exported.code, exported.err) == (OK, "")
    assert {row["topic"] for row in exported.data["groups"][0]["offsets"]} == {"seen", "hidden"}


def test_without_any_right_nothing_is_shown_as_none(ask: Ask) -> None:
    for argv in (("list",), ("describe", "--all-groups"), ("cluster", "topics"), ("cluster", "status")):
        told = ask(*argv)
        assert told.code == RIGHTS, argv
        assert "may not describe all" in told.err, argv
    assert ask("cluster", "status").data["topics"] is None
    assert ask("lag", "g-*").code == RIGHTS
    assert ask("describe", MINE).code == RIGHTS


def test_describe_on_the_group_and_nothing_else(ask: Ask, grant: Callable[..., None]) -> None:
    grant("DESCRIBE", "--group", MINE)
    told = ask("list")
    assert (told.code, [group["group_id"] for group in told.data["groups"]]) == (RIGHTS, [MINE])
    for argv in (("describe", MINE), ("lag", MINE), ("lag", MINE, "--fail-above", "10"), ("lag", "g-*")):
        told = ask(*argv)
        assert told.code == RIGHTS, (argv, told.err)
        (group,) = told.data["groups"]
        assert (group["total_lag"], group["lag_at_least"]) == (None, None)
    exported = ask("offsets", "export", MINE)
    assert exported.code == RIGHTS
    assert "may be incomplete" in exported.err and "Describe on Topic *" in exported.err
    assert ask("wait", MINE, "--for", "lag=0", "--stop-after", "10ms").code != OK


def test_an_export_that_lacks_a_topic_says_so(ask: Ask, grant: Callable[..., None]) -> None:
    grant("DESCRIBE", "--group", MINE)
    grant("DESCRIBE", "--topic", "seen")
    exported = ask("offsets", "export", MINE)
    assert exported.code == RIGHTS
    assert [row["topic"] for row in exported.data["groups"][0]["offsets"]] == ["seen"]
    assert ask("offsets", "export", MINE, "--topic", "seen").code == OK
    assert ask("offsets", "export", MINE, "--topic", "hidden").code == RIGHTS


def test_a_deletion_does_not_rely_on_such_an_export(ask: Ask, grant: Callable[..., None]) -> None:
    grant("DESCRIBE", "--group", MINE)
    grant("DELETE", "--group", MINE)
    told = ask("delete", MINE, "--execute", "--yes")
    assert told.code == RIGHTS
    assert "nothing deleted" in told.err and "it lacks Describe on Topic *" in told.err
    assert {g["group_id"] for g in ask("list", user="alice").data["groups"]} == {MINE, OTHERS}


@pytest.mark.parametrize("all_groups", [("--cluster",), ("--group", "*")], ids=["cluster", "every group"])
def test_rights_that_prove_a_list_complete(
    ask: Ask, grant: Callable[..., None], all_groups: tuple[str, ...]
) -> None:
    grant("DESCRIBE", *all_groups)
    told = ask("list", "--no-members")
    assert (told.code, DENIED in told.err) == (RIGHTS, True), "the leaders of the offsets topic are hidden"
    grant("DESCRIBE", "--topic", "__consumer_offsets")
    told = ask("list", "--no-members")
    assert (told.code, told.err) == (OK, "")
    assert {group["group_id"] for group in told.data["groups"]} == {MINE, OTHERS}


def test_a_right_to_every_topic_proves_an_export_complete(ask: Ask, grant: Callable[..., None]) -> None:
    grant("DESCRIBE", "--group", MINE)
    grant("DESCRIBE", "--topic", "*")
    mine, truth = ask("offsets", "export", MINE), ask("offsets", "export", MINE, user="alice")
    assert (mine.code, mine.data) == (OK, truth.data)
    assert ask("lag", MINE, "--fail-above", "0").code == OK
    assert ask("cluster", "topics", "--internal").code == OK


def test_a_right_to_a_prefix_proves_nothing(ask: Ask, grant: Callable[..., None]) -> None:
    grant("DESCRIBE", "--topic", "k", "--resource-pattern-type", "prefixed")
    assert ask("cluster", "topics").code == RIGHTS

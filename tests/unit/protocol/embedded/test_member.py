"""Whose group it is, what a worker runs, and which thread is of which process."""

from __future__ import annotations

import pytest

from kgroup.protocol.embedded import connect
from kgroup.protocol.embedded.connect import ConnectorTasks, Work
from kgroup.protocol.embedded.member import Application, Embedded, application_of, embedded
from kgroup.protocol.embedded.schema_registry import RegistryElection, RegistryIdentity
from kgroup.protocol.embedded.streams import thread_name
from tests.embedded_written import connect_assignment, connect_metadata


@pytest.mark.parametrize(
    ("group", "protocol_type", "assignor", "application"),
    [
        ("c", "connect", "sessioned", Application("connect")),
        ("c", "connect", None, Application("connect")),
        ("s", "sr", "v0", Application("schema-registry")),
        ("a", "consumer", "stream", Application("streams")),
        ("a", "consumer", "range", None),
        ("a", "consumer", None, None),
        ("a", "other", "stream", None),
        (
            "_confluent-ksql-default_query_CTAS_ORDERS_5",
            "consumer",
            "stream",
            Application("ksqldb", "default_", "CTAS_ORDERS_5"),
        ),
        (
            "_confluent-ksql-prod-transient_99_1590000",
            "consumer",
            "stream",
            Application("ksqldb", "prod-", "99_1590000"),
        ),
        ("_confluent-ksql-default_query_X_1", "consumer", "range", None),
    ],
)
def test_whose_group_it_is(
    group: str, protocol_type: str, assignor: str | None, application: Application | None
) -> None:
    assert application_of(group, protocol_type, assignor) == application


BEFORE = (("orders", -1), ("orders", 0), ("pay", 1))


def test_a_cooperative_worker_runs_what_it_had_without_what_it_lost_and_with_what_it_got() -> None:
    metadata = connect_metadata(2, "http://h:8083/", 4, BEFORE)
    given = connect_assignment(2, given=(("pay", 0),), revoked=(("orders", -1), ("orders", 0)), delay_ms=9)
    worker, undecoded = connect.worker(metadata, given)
    assert undecoded == () and worker is not None and worker.assignment is not None
    assert (worker.worker_id, worker.config_offset) == ("h:8083", 4)
    assert worker.before == Work(("orders",), (ConnectorTasks("orders", (0,)), ConnectorTasks("pay", (1,))))
    assert worker.running == Work((), (ConnectorTasks("pay", (0, 1)),))
    assert worker.running.names == ("pay-0", "pay-1")
    assert (worker.assignment.revoked.names, worker.assignment.delay_ms) == (("orders", "orders-0"), 9)


def test_an_eager_worker_runs_what_it_is_given() -> None:
    worker, _ = connect.worker(
        connect_metadata(0, "https://[::1]:1/", 4), connect_assignment(0, given=(("pay", 0),))
    )
    assert worker is not None and worker.running is not None
    assert (worker.worker_id, worker.before, worker.running.names) == ("[::1]:1", None, ("pay-0",))


def test_what_a_worker_runs_is_unknown_without_its_assignment() -> None:
    metadata = connect_metadata(1, "http://h:8083/", 4, BEFORE)
    for assignment in (b"", b"\0\x09"):
        worker, _ = connect.worker(metadata, assignment)
        assert worker is not None and worker.before is not None
        assert (worker.running, worker.assignment) == (None, None)


def test_fields_missing_at_the_end_are_none_as_in_kafka() -> None:
    metadata, assignment = connect_metadata(1, "http://h:1/", 4), connect_assignment(1)
    worker, undecoded = connect.worker(metadata[:-4], assignment[:-8])
    assert undecoded == () and worker is not None and worker.assignment is not None
    assert (worker.before, worker.running) == (Work(), Work())
    assert (worker.assignment.revoked, worker.assignment.delay_ms) == (Work(), 0)


def test_a_registrys_election() -> None:
    told = embedded(
        Application("schema-registry"),
        "sr-1",
        b'{"version":1,"host":"a","port":8081,"master_eligibility":false,"scheme":"https","new":[]}',
        b'{"version":1,"error":1,"master":"sr-2-x","master_identity":{"host":"b","port":1,"scheme":"http"}}',
    )
    assert told.schema_registry is not None and told.undecoded == ()
    assert told.schema_registry.identity == RegistryIdentity("a", 8081, "https", False)
    assert told.schema_registry.identity.url == "https://a:8081"
    leader = RegistryIdentity("b", 1, "http", None)
    assert told.schema_registry.election == RegistryElection("DUPLICATE_URLS", "sr-2-x", leader)
    assert told.leader == "sr-2-x"


@pytest.mark.parametrize(
    ("client_id", "thread"),
    [
        ("app-StreamThread-1-consumer", "app-StreamThread-1"),
        ("a-StreamThread-1-b-StreamThread-12-consumer", "a-StreamThread-1-b-StreamThread-12"),
        ("app-StreamThread-1-restore-consumer", None),
        ("app", None),
    ],
)
def test_threads_by_their_client_ids(client_id: str, thread: str | None) -> None:
    """SM-77: client.id or process id, the thread's number, and what its consumer is for."""
    assert thread_name(client_id) == thread


def test_nothing_is_said_of_plain_consumers() -> None:
    assert embedded(None, "c", b"\0", b"\0") == Embedded()


def test_streams_bytes_that_are_not_the_consumer_protocols_are_told() -> None:
    told = embedded(Application("streams"), "c", b"\0", b"\0\1\xff")
    assert [(each.part, each.version) for each in told.undecoded] == [
        ("metadata", None),
        ("assignment", None),
    ]
    assert told.streams is not None and told.streams.assignment is None

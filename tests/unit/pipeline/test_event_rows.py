"""Events as rows of the table `events`, and back."""

from dataclasses import fields

import pytest

pytest.importorskip("pyarrow")

from kgroup.domain import TopicPartition
from kgroup.history.fold.events import Event, Kind, Unowned, stored_fields
from kgroup.pipeline.comments import comment_of
from kgroup.pipeline.schemas import EVENTS
from kgroup.pipeline.tables.folding import event_dicts, event_of, event_rows

FULL = Event(
    kind=Kind.REWOUND,
    group="orders",
    protocol="classic",
    log_partition=3,
    offset=9,
    timestamp_ms=1_700_000_000_000,
    detail="rewound",
    cause="a reset",
    epoch=4,
    previous_epoch=3,
    member_epoch=2,
    member_id="m-1",
    instance_id="i-1",
    proven=False,
    suspicious=True,
    partitions=(TopicPartition("orders", 1),),
    unowned=(Unowned("orders", 1, 5),),
    count=6,
    end_offset=11,
    end_timestamp_ms=1_700_000_000_009,
)


def test_a_field_of_an_event_is_stored_or_is_not_of_a_table() -> None:
    """`log_topic` and `records` are of `__share_group_state`, whose events have a table of their own.

    `before` and `client` are in the words of `detail`.
    """
    assert {field.name for field in fields(Event)} - stored_fields().keys() == {
        "before",
        "client",
        "log_topic",
        "records",
    }
    default = Event(
        kind=Kind.COMMITTED, group="", protocol="", log_partition=0, offset=0, timestamp_ms=0, detail=""
    )
    same = [name for name in stored_fields() if getattr(FULL, name) == getattr(default, name)]
    assert same == [], "the event above has a value of its own in each field"


def test_an_event_is_the_same_after_it_was_stored() -> None:
    (row,) = event_dicts([(7, FULL)])
    assert row["seq"] == 7
    assert event_of(row) == FULL
    (stored,) = event_rows([(7, FULL)]).to_pylist()
    assert stored.keys() == row.keys() == set(EVENTS.names)
    assert stored["event"] == "rewound"
    assert stored["unowned"] == [{"topic": "orders", "partition": 1, "ms": 5}]
    assert all(comment_of("events", column) for column in EVENTS.names)

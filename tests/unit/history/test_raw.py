"""Every record of a log as plain values: chosen by group, markers and what does not decode among them."""

from __future__ import annotations

import json
from typing import Any

from kgroup.history.raw import raw_rows
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import end_marker_record
from kgroup.protocol.subscription import Assignment, Subscription

from .incidents import NAMES, log_of
from .logs import MemoryLog, batch, commit, sealed

ID = bytes(range(16))


def rows(data: bytes, **chosen: Any) -> list[dict[str, Any]]:
    found = list(raw_rows(MemoryLog(data, partition=7), **chosen))
    assert json.loads(json.dumps(found)) == found, "plain values, for JSON"
    return found


def test_a_commit_is_told_with_the_name_of_its_topic_id() -> None:
    value = commit("t", 3, 42, leader_epoch=5, metadata="m", topic_id=ID)
    (row,) = rows(batch(10, [value], timestamp_ms=1_234), topic_names={ID: "orders"})
    assert (row["partition"], row["offset"], row["batch"], row["timestamp_ms"]) == (7, 10, 10, 1_234)
    assert (row["type_name"], row["group_id"], row["value_version"]) == ("OffsetCommit", "pay", 4)
    assert row["key"] == {"group": "pay", "topic": "t", "partition": 3}
    assert (row["value"]["offset"], row["value"]["metadata"], row["value"]["topic"]) == (42, "m", "orders")


def test_a_tombstone_has_a_key_and_no_value() -> None:
    key, _ = commit("t", 0, 1)
    (row,) = rows(batch(0, [(key, None)]))
    assert row["key"]["group"] == "pay" and (row["value"], row["value_version"]) == (None, None)


def test_groups_are_chosen_and_markers_are_always_there() -> None:
    pair = [commit("t", 0, 1, group="pay"), commit("t", 0, 2, group="ship")]
    ends = [(end_marker_record(done).key or b"", end_marker_record(done).value) for done in (True, False)]
    data = batch(0, pair) + b"".join(
        batch(2 + n, [end], transactional=True, control=True, producer_id=9) for n, end in enumerate(ends)
    )
    markers = [("EndTransactionMarker", {"marker": "commit"}), ("EndTransactionMarker", {"marker": "abort"})]
    by_name, by_rule = rows(data, names=["ship"]), rows(data, wanted=lambda group: group.startswith("s"))
    for found in (by_name, by_rule):
        assert [row["group_id"] for row in found] == ["ship", None, None]
        assert [(row["type_name"], row["key"]) for row in found[1:]] == markers
        assert {row["producer_id"] for row in found[1:]} == {9}
    assert [row["group_id"] for row in rows(data)] == ["pay", "ship", None, None]


def test_what_members_put_into_a_record_is_told_where_it_is_the_consumer_protocols() -> None:
    told = Subscription(topics=("orders",)).encode(1)
    members = tuple(
        r.MemberMetadata(
            member_id=name, client_id="c", client_host="/h", session_timeout=1, subscription=s, assignment=a
        )
        for name, s, a in (("m", told, Assignment().encode(1)), ("w", b"\xff\xff", b"\xff"))
    )
    value = r.GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", members=members)
    (row,) = rows(batch(0, [(r.encode_key(r.GroupMetadataKey(group="pay")), r.encode_value(value))]))
    member, worker = row["value"]["members"]
    assert member["subscription"]["topics"] == ["orders"] and member["assignment"]["partitions"] == []
    assert (worker["subscription"], worker["assignment"]) == ({"hex": "ffff"}, {"hex": "ff"})


def test_what_does_not_decode_is_there_as_bytes_and_says_why() -> None:
    key, value = commit("t", 0, 1)
    short, strange, tomorrow = (
        row for row in rows(batch(0, [(key, value[:5]), (b"\0\1\0", b"v"), (b"\x7f\xff\0\3pay", b"v")]))
    )
    assert short["error"] and short["value"] == {"hex": value[:5].hex()} and short["key"]["topic"] == "t"
    assert strange["error"] and strange["group_id"] is None
    assert (tomorrow["type"], tomorrow["group_id"]) == (0x7FFF, "pay")
    assert (tomorrow["key"], tomorrow["value"]) == ({"hex": "7fff0003706179"}, {"hex": "76"})


def test_a_batch_that_ends_inside_a_record_is_one_row_and_the_next_is_read() -> None:
    whole = bytearray(batch(0, [commit("t", 0, 1)]))
    whole[57:61] = (2).to_bytes(4, "big")  # it says two records, and holds one
    whole[23:27] = (1).to_bytes(4, "big")
    found = rows(sealed(whole) + batch(2, [commit("t", 0, 2)]))
    assert [row["type_name"] for row in found] == ["OffsetCommit", "unreadable", "OffsetCommit"]
    assert found[1]["error"] and (found[1]["offset"], found[2]["offset"]) == (0, 2)


def test_recorded_logs_are_read_whole() -> None:
    for name in NAMES:
        found = list(raw_rows(log_of(name)))
        assert found and all(row["type"] == -1 or row["group_id"] for row in found)
        assert not [row for row in found if "error" in row], name

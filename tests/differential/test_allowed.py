"""An allowed difference is found by its names, whatever characters they have; Kafka is not needed here."""

from __future__ import annotations

import pytest

from kgroup.coordinator.outcome import Record
from kgroup.domain import ZERO_UUID, uuid_text
from kgroup.protocol.group_records import OffsetCommitKey, OffsetCommitValue

from .allowed import reason_for
from .differences import ABSENT, Difference
from .player import Player

NAMES = [("g", "foo"), ("my group", "foo"), ("a.b", "foo"), ("x[5]", "foo"), ("offsets g", "f")]
KEPT = "a topic id beside an offset with a retention"


def player(*offsets: tuple[str, str, int]) -> Player:
    """One whose coordinator has these offsets: group, topic, time of expiry."""
    started = Player(
        {
            "kind": "start",
            "kafka": "4.3",
            "now": 0,
            "setup": {"topics": {}, "config": {}},
            "image": {"topics": [], "version": 1, "created": 1},
            "state": {"groups": {}, "offsets": {}, "pending": {}, "timers": {}},
        }
    )
    for at, (group, topic, expiry) in enumerate(offsets):
        key = OffsetCommitKey(group=group, topic=topic, partition=0)
        started.coordinator.replay(Record(key, OffsetCommitValue(offset=5, expire_timestamp=expiry)), at)
    return started


def allowed(found: Difference, by: Player) -> str | None:
    reason = reason_for(found, by)
    return None if reason is None else reason.name


@pytest.mark.parametrize(("group", "topic"), NAMES)
def test_the_id_beside_an_offset_is_found_by_any_name(group: str, topic: str) -> None:
    where = f"offsets {group}/{topic}/0[5]"
    found = Difference("state", "commit", where, "AAAAAAAAAAAAAAAAAAAAAQ", uuid_text(ZERO_UUID))
    assert allowed(found, player((group, topic, 7))) == KEPT
    assert allowed(found, player((group, topic, -1))) is None
    assert allowed(found, player()) is None, "that ours lacks the offset is a difference of its own"


@pytest.mark.parametrize(("group", "topic"), NAMES)
def test_no_judge_of_a_state_fails(group: str, topic: str) -> None:
    """It would end the campaign in place of a difference."""
    here = player((group, topic, -1))
    here.event = {"kind": "commit", "now": 0, "op": {}, "records": [], "replies": []}
    places = [
        f"{part} {group}/{topic}/1{end}" for part in ("offsets", "pending") for end in ("[5]", "[0]", "")
    ]
    places += [f"{group}.{end}" for end in ("leader", "protocol", "resolved.x", "members")]
    for where in places:
        assert allowed(Difference("state", "commit", where, ABSENT, 5), here) is None, where

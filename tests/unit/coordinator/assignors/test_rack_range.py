"""The rack-aware range of the classic protocol (KIP-881): Kafka's own answers, and what always holds."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kgroup.coordinator.assignors.client_side import ClientRangeAssignor, MemberSubscription
from tests.rack_groups import Case, assigned, case

KAFKAS = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "rack-ranges.jsonl").read_text().splitlines()
]


def without_racks(group: Case) -> Case:
    members = {name: {**told, "rack": None} for name, told in group["members"].items()}
    return {**group, "members": members}


def test_kafkas_own_assignor_gives_the_same() -> None:
    """Answers of RangeAssignor 4.3.1; tests/interop/foreign asks it anew, of more groups."""
    moved = 0
    for known in KAFKAS:
        ours = assigned(known["group"])
        assert {m: {t: list(p) for t, p in given.items()} for m, given in ours.items()} == known["assigned"]
        moved += ours != assigned(without_racks(known["group"]))
    assert moved > 10, "racks decide nothing in these groups"


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_shares_are_those_without_racks_and_everything_is_given_once(seed: int) -> None:
    group = case(seed)
    near, plain = assigned(group), assigned(without_racks(group))
    for topic in group["topics"]:
        shares = [sorted(len(given.get(topic, ())) for given in found.values()) for found in (near, plain)]
        assert shares[0] == shares[1]
    for found in (near, plain):
        given_out = [(topic, p) for given in found.values() for topic, held in given.items() for p in held]
        subscribed = {topic for told in group["members"].values() for topic in told["topics"]}
        wanted = {(t, p) for t in subscribed & group["topics"].keys() for p in range(len(group["topics"][t]))}
        assert Counter(given_out) == Counter(wanted)


def member(rack: str | None, topics: str = "t") -> MemberSubscription:
    return MemberSubscription(frozenset(topics), rack=rack)


def test_members_get_what_is_beside_them() -> None:
    members = {"a": member("r2"), "b": member("r1")}
    racks = {"t": (("r1",), ("r2",), ("r1",), ("r2",))}
    targets = ClientRangeAssignor().assign({"t": 4}, members, racks)
    assert targets == {"a": {"t": (1, 3)}, "b": {"t": (0, 2)}}


def test_topics_alike_stay_together_where_their_racks_differ() -> None:
    members = {"a": member("r1", "tu"), "b": member("r2", "tu")}
    racks = {"t": (("r1",), ("r2",)), "u": (("r2",), ("r1",))}
    targets = ClientRangeAssignor().assign({"t": 2, "u": 2}, members, racks)
    assert targets == {"a": {"t": (0,), "u": (0,)}, "b": {"t": (1,), "u": (1,)}}


def test_replicas_on_every_rack_change_nothing() -> None:
    members = {"a": member("r2"), "b": member("r1")}
    racks = {"t": (("r1", "r2"), ("r2", "r1"))}
    assert ClientRangeAssignor().assign({"t": 2}, members, racks) == {"a": {"t": (0,)}, "b": {"t": (1,)}}

"""Worked cases of the classic protocol's assignors."""

import struct

import pytest

from kgroup.coordinator.assignors.client_side import ClientRangeAssignor, MemberSubscription
from kgroup.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor, generation_of
from kgroup.coordinator.assignors.round_robin import RoundRobinAssignor


def member(topics, owned=None, generation=-1, user_data=None, instance=None):
    return MemberSubscription(frozenset(topics), owned or {}, generation, user_data, instance)


ASSIGNORS = [ClientRangeAssignor(), RoundRobinAssignor(), CooperativeStickyAssignor()]


@pytest.mark.parametrize("assignor", ASSIGNORS, ids=lambda a: a.name)
def test_no_members_and_unknown_topics(assignor):
    assert assignor.assign({"t": 2}, {}) == {}
    assert assignor.assign({"t": 2}, {"m": member(["t", "gone"])}) == {"m": {"t": (0, 1)}}
    assert assignor.assign({}, {"m": member(["gone"])}) == {"m": {}}


def test_range():
    targets = ClientRangeAssignor().assign({"t": 3, "u": 3}, {"a": member("tu"), "b": member("tu")})
    assert targets == {"a": {"t": (0, 1), "u": (0, 1)}, "b": {"t": (2,), "u": (2,)}}


def test_round_robin_deals_across_topics():
    targets = RoundRobinAssignor().assign({"t": 3, "u": 3}, {"a": member("tu"), "b": member("tu")})
    assert targets == {"a": {"t": (0, 2), "u": (1,)}, "b": {"t": (1,), "u": (0, 2)}}


def test_round_robin_skips_members_that_did_not_subscribe():
    members = {"c0": member(["t0"]), "c1": member(["t0", "t1"]), "c2": member(["t0", "t1", "t2"])}
    targets = RoundRobinAssignor().assign({"t0": 1, "t1": 2, "t2": 3}, members)
    assert targets == {"c0": {"t0": (0,)}, "c1": {"t1": (0,)}, "c2": {"t1": (1,), "t2": (0, 1, 2)}}


@pytest.mark.parametrize("assignor", [ClientRangeAssignor(), RoundRobinAssignor()], ids=lambda a: a.name)
def test_static_members_keep_their_turn_under_new_ids(assignor):
    """SM-43: turns go by instance id, and by member id only among dynamic members."""
    before = assignor.assign({"t": 4}, {"c0": member("t", instance="i0"), "c1": member("t", instance="i1")})
    after = assignor.assign({"t": 4}, {"c9": member("t", instance="i0"), "c1": member("t", instance="i1")})
    assert (before["c0"], before["c1"]) == (after["c9"], after["c1"])


@pytest.mark.parametrize(("static", "moved"), [(True, 0), (False, 9)])
def test_what_ordering_by_instance_id_saves(static, moved):
    """SM-44: nine partitions, m1 restarts as m4; by member ids alone every one of them moves."""

    def owners(*member_ids):
        instances = zip(member_ids, "ABC", strict=True)
        members = {m: member("t", instance=i if static else None) for m, i in instances}
        targets = ClientRangeAssignor().assign({"t": 9}, members)
        process = dict(zip(member_ids, "ABC", strict=True))
        return {p: process[m] for m, target in targets.items() for p in target["t"]}

    before, after = owners("m1", "m2", "m3"), owners("m4", "m2", "m3")
    assert sum(before[p] != after[p] for p in range(9)) == moved


def test_cooperative_sticky_withholds_what_another_member_still_holds():
    holder = member("t", {"t": (0, 1, 2, 3)}, generation=1)
    first = CooperativeStickyAssignor().assign({"t": 4}, {"old": holder, "new": member("t")})
    assert first == {"old": {"t": (0, 1)}, "new": {}}
    gave_up = member("t", {"t": (0, 1)}, generation=2)
    second = CooperativeStickyAssignor().assign({"t": 4}, {"old": gave_up, "new": member("t", generation=2)})
    assert second == {"old": {"t": (0, 1)}, "new": {"t": (2, 3)}}


def test_cooperative_sticky_believes_the_later_generation():
    members = {"a": member("t", {"t": (0, 1)}, 5), "b": member("t", {"t": (1, 2, 3)}, 4)}
    targets = CooperativeStickyAssignor().assign({"t": 4}, members)
    assert targets == {"a": {"t": (0, 1)}, "b": {"t": (2, 3)}}


def test_cooperative_sticky_gives_a_twice_claimed_partition_to_nobody_yet():
    members = {"a": member("t", {"t": (0, 1)}, 5), "b": member("t", {"t": (1, 2)}, 5)}
    targets = CooperativeStickyAssignor().assign({"t": 3}, members)
    assert targets == {"a": {"t": (0,)}, "b": {"t": (2,)}}


def test_cooperative_sticky_with_unlike_subscriptions():
    members = {"a": member("tu", {"t": (0, 1), "u": (0, 1)}, 1), "b": member("u", generation=1)}
    targets = CooperativeStickyAssignor().assign({"t": 2, "u": 2}, members)
    assert targets == {"a": {"t": (0, 1)}, "b": {}}


@pytest.mark.parametrize(
    ("subscription", "generation"),
    [
        (member("t", generation=7, user_data=struct.pack(">i", 3)), 7),
        (member("t", user_data=struct.pack(">i", 3)), 3),
        (member("t", user_data=struct.pack(">ih1sii", 1, 1, b"t", 0, 0) + struct.pack(">i", 4)), 4),
        (member("t", user_data=b"\0\0"), -1),
        (member("t"), -1),
    ],
    ids=["subscription v2", "Java's user data", "librdkafka's user data", "garbage", "none"],
)
def test_generation_of_a_claim(subscription, generation):
    assert generation_of(subscription) == generation


def test_user_data_is_the_generation():
    assert CooperativeStickyAssignor().user_data(258) == b"\0\0\1\2"
    assert ClientRangeAssignor().user_data(258) is None

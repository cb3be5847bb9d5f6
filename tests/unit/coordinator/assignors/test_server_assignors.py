"""Worked cases of the server-side assignors."""

import pytest

from kgroup.coordinator.assignors.interface import AssignorError, GroupSpec, MemberSpec
from kgroup.coordinator.assignors.range import RangeAssignor
from kgroup.coordinator.assignors.uniform import UniformAssignor
from kgroup.domain import Topic

A, B, C, GONE = (letter * 16 for letter in (b"a", b"b", b"c", b"x"))
TOPICS = {A: Topic("a", A, 3), B: Topic("b", B, 3), C: Topic("c", C, 4)}


def group(homogeneous=True, **members):
    return GroupSpec(
        {n: MemberSpec(frozenset(t), *rest) for n, (t, *rest) in members.items()}, TOPICS, homogeneous
    )


@pytest.mark.parametrize("assignor", [UniformAssignor(), RangeAssignor()], ids=lambda a: a.name)
@pytest.mark.parametrize("homogeneous", [True, False])
def test_no_members_no_targets_and_no_topics_empty_targets(assignor, homogeneous):
    assert assignor.assign(GroupSpec({}, TOPICS, homogeneous)) == {}
    assert assignor.assign(group(homogeneous, m=([],))) == {"m": {}}


@pytest.mark.parametrize("assignor", [UniformAssignor(), RangeAssignor()], ids=lambda a: a.name)
@pytest.mark.parametrize("homogeneous", [True, False])
def test_a_topic_that_does_not_exist_is_an_error(assignor, homogeneous):
    with pytest.raises(AssignorError, match="does not exist"):
        assignor.assign(group(homogeneous, m=([GONE],)))


def test_range_is_co_partitioned():
    targets = RangeAssignor().assign(group(m0=([A, B],), m1=([A, B],)))
    assert targets == {"m0": {A: (0, 1), B: (0, 1)}, "m1": {A: (2,), B: (2,)}}


def test_range_puts_static_members_first_in_instance_order():
    """SM-43: after the holder of instance A restarts as m4 everybody keeps their share."""
    nine = {A: Topic("a", A, 9)}

    def assign(**instances):
        members = {m: MemberSpec(frozenset([A]), {}, instance) for m, instance in instances.items()}
        return {m: t[A] for m, t in RangeAssignor().assign(GroupSpec(members, nine, True)).items()}

    assert assign(m1="A", m2="B", m3="C") == {"m1": (0, 1, 2), "m2": (3, 4, 5), "m3": (6, 7, 8)}
    assert assign(m4="A", m2="B", m3="C") == {"m4": (0, 1, 2), "m2": (3, 4, 5), "m3": (6, 7, 8)}
    assert assign(m0=None, m4="A", m2="B")["m0"] == (6, 7, 8)


def test_range_with_unlike_subscriptions():
    targets = RangeAssignor().assign(group(False, m0=([A],), m1=([A, C],), m2=([C],)))
    assert targets == {"m0": {A: (0, 1)}, "m1": {A: (2,), C: (0, 1)}, "m2": {C: (2, 3)}}


def test_range_with_more_members_than_partitions_leaves_the_last_without():
    targets = RangeAssignor().assign(group(a=([A],), b=([A],), c=([A],), d=([A],)))
    assert targets == {"a": {A: (0,)}, "b": {A: (1,)}, "c": {A: (2,)}, "d": {}}


def test_uniform_takes_only_what_a_new_member_needs():
    old = {A: (0, 1, 2), B: (0, 1, 2)}
    targets = UniformAssignor().assign(group(m0=([A, B], old), m1=([A, B],)))
    assert targets == {"m0": {A: (0, 1, 2)}, "m1": {B: (0, 1, 2)}}


def test_uniform_drops_topics_nobody_subscribes_to():
    targets = UniformAssignor().assign(group(m0=([A], {A: (0,), B: (0, 1)}), m1=([A], {A: (1, 2)})))
    assert targets == {"m0": {A: (0,)}, "m1": {A: (1, 2)}}


def test_uniform_leaves_the_larger_share_where_it_is():
    targets = UniformAssignor().assign(group(m0=([C, A], {C: (0,)}), m1=([C, A], {C: (1, 2, 3), A: (2,)})))
    assert targets["m1"] == {C: (1, 2, 3), A: (2,)}
    assert targets["m0"] == {C: (0,), A: (0, 1)}


def test_uniform_shares_tuples_among_the_topics_of_a_new_group():
    """The collector has fewer objects to look at."""
    ids = [letter * 16 for letter in (b"p", b"q", b"r")]
    topics = {i: Topic(i.decode(), i, 4) for i in ids}
    members = {f"m{n}": MemberSpec(frozenset(ids)) for n in range(6)}
    targets = UniformAssignor().assign(GroupSpec(members, topics, True))
    assert [target for _, target in sorted(targets.items())] == [
        {i: two} for i in ids for two in ((0, 1), (2, 3))
    ]
    assert targets["m2"][ids[1]] is targets["m4"][ids[2]]


def test_uniform_unlike_gives_a_loaded_member_nothing_it_need_not_take():
    targets = UniformAssignor().assign(group(False, m0=([A, C],), m1=([C],), m2=([C],)))
    assert targets["m0"] == {A: (0, 1, 2)}
    assert sorted(targets["m1"][C] + targets["m2"][C]) == [0, 1, 2, 3]


def test_uniform_unlike_moves_from_the_most_to_the_least_loaded():
    """Each topic's subscribers end within one of each other; m1 and m2, who share no topic, need not."""
    targets = UniformAssignor().assign(
        group(False, m0=([A, B], {A: (0, 1, 2), B: (0, 1, 2)}), m1=([A],), m2=([B],))
    )
    assert {m: sum(map(len, t.values())) for m, t in targets.items()} == {"m0": 2, "m1": 3, "m2": 1}


def test_uniform_unlike_spares_a_member_below_the_average():
    """b has the topic that is looked at first, and c has nothing; but it is a that has too much."""
    one = {bytes([n]) * 16: Topic(f"t{n}", bytes([n]) * 16, 1) for n in range(5)}
    topics = {A: Topic("a", A, 2), **one}
    everything = frozenset(topics)
    members = {
        "a": MemberSpec(everything, dict.fromkeys(one, (0,))),
        "b": MemberSpec(everything, {A: (0, 1)}),
        "c": MemberSpec(everything),
    }
    targets = UniformAssignor().assign(GroupSpec(members, topics, False))
    assert {m: sum(map(len, t.values())) for m, t in targets.items()} == {"a": 3, "b": 2, "c": 2}
    assert targets["b"] is members["b"].current


def test_uniform_unlike_gives_the_topics_of_a_large_group_to_one_member_after_the_other():
    """40 members subscribe to 50 topics of one partition, and one of them to a topic of its own as well."""
    fifty = {bytes([n]) * 16: Topic(f"t{n}", bytes([n]) * 16, 1) for n in range(50)}
    members = {f"m{n:02}": MemberSpec(frozenset(fifty)) for n in range(40)}
    members["m05"] = MemberSpec(frozenset([*fifty, C]))
    targets = UniformAssignor().assign(GroupSpec(members, {C: TOPICS[C], **fifty}, False))
    assert targets["m05"] == {C: (0, 1, 2, 3)}
    ones = sorted(
        (topic_id, name) for name, target in targets.items() for topic_id in target if topic_id != C
    )
    others = [name for name in members if name != "m05"]
    assert [name for _, name in ones] == [*others, *others][:50]


def test_uniform_unlike_fills_up_to_the_loads_of_the_others_first():
    """Loads are 1, 3 and 0: m2 gets one, it and m0 two each in turns, then all three one each in turns."""
    twelve = {A: Topic("a", A, 4), B: Topic("b", B, 9)}
    both = frozenset(twelve)
    members = {
        "m0": MemberSpec(both, {A: (0,)}),
        "m1": MemberSpec(both, {A: (1, 2, 3)}),
        "m2": MemberSpec(frozenset([B])),
    }
    targets = UniformAssignor().assign(GroupSpec(members, twelve, False))
    assert targets == {
        "m0": {A: (0,), B: (1, 3, 5, 8)},
        "m1": {A: (1, 2, 3), B: (6,)},
        "m2": {B: (0, 2, 4, 7)},
    }

"""Properties of the server-side assignors over arbitrary groups, however their present targets came about."""

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgroup.coordinator.assignors.interface import Assignment, GroupSpec, MemberSpec
from kgroup.coordinator.assignors.range import RangeAssignor
from kgroup.coordinator.assignors.uniform import UniformAssignor
from kgroup.domain import Topic
from tests.sampled import FULL

UNIFORM, RANGE = UniformAssignor(), RangeAssignor()


@dataclass(frozen=True)
class Situation:
    group: GroupSpec
    shuffled: GroupSpec


def topic_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


@st.composite
def situations(draw: st.DrawFn, alike: bool | None = None) -> Situation:
    counts = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    topics = {topic_id(i): Topic(f"t{i}", topic_id(i), count) for i, count in enumerate(counts)}
    names = draw(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=8, unique=True))
    homogeneous = draw(st.booleans()) if alike is None else alike
    some_topics = st.frozensets(st.sampled_from(sorted(topics)))
    if homogeneous:
        shared = draw(some_topics)
        subscriptions = dict.fromkeys(names, shared)
    else:
        subscriptions = {name: draw(some_topics) for name in names}
    current: dict[str, dict[bytes, tuple[int, ...]]] = {name: {} for name in names}
    for number, topic in topics.items():
        owners = draw(
            st.lists(st.sampled_from([*names, ""]), min_size=topic.partitions, max_size=topic.partitions)
        )
        for name in set(owners) - {""}:
            current[name][number] = tuple(p for p, owner in enumerate(owners) if owner == name)
    static = draw(st.frozensets(st.sampled_from(names)))
    members = {
        name: MemberSpec(subscriptions[name], current[name], f"i-{name}" if name in static else None)
        for name in names
    }
    order, topic_order = draw(st.permutations(names)), draw(st.permutations(sorted(topics)))
    shuffled = GroupSpec({n: members[n] for n in order}, {t: topics[t] for t in topic_order}, homogeneous)
    return Situation(GroupSpec(members, topics, homogeneous), shuffled)


def owners(targets: dict[str, Assignment]) -> dict[tuple[bytes, int], list[str]]:
    result: dict[tuple[bytes, int], list[str]] = {}
    for name, target in targets.items():
        for number, partitions in target.items():
            for partition in partitions:
                result.setdefault((number, partition), []).append(name)
    return result


def loads(targets: dict[str, Assignment]) -> dict[str, int]:
    return {name: sum(map(len, target.values())) for name, target in targets.items()}


def kept(group: GroupSpec) -> dict[str, Assignment]:
    """What each member has and still subscribes to."""
    return {
        name: {number: owned for number, owned in m.current.items() if number in m.topic_ids}
        for name, m in group.members.items()
    }


def moves(group: GroupSpec, targets: dict[str, Assignment]) -> int:
    after = owners(targets)
    return sum(after[where] != [name] for where, (name,) in owners(kept(group)).items())


@pytest.mark.parametrize("assignor", [UNIFORM, RANGE], ids=lambda a: a.name)
@given(situation=situations())
def test_every_partition_of_a_subscribed_topic_has_one_owner_who_subscribes(assignor, situation):
    """CP-46"""
    group = situation.group
    targets = assignor.assign(group)
    assert targets.keys() == group.members.keys()
    subscribed = frozenset().union(*(member.topic_ids for member in group.members.values()))
    wanted = {(number, p) for number in subscribed for p in range(group.topics[number].partitions)}
    found = owners(targets)
    assert found.keys() == wanted
    assert all(len(names) == 1 for names in found.values())
    for name, target in targets.items():
        assert target.keys() <= group.members[name].topic_ids
        assert all(partitions and list(partitions) == sorted(partitions) for partitions in target.values())


@pytest.mark.parametrize("assignor", [UNIFORM, RANGE], ids=lambda a: a.name)
@given(situation=situations())
def test_order_of_members_and_topics_does_not_matter(assignor, situation):
    assert assignor.assign(situation.group) == assignor.assign(situation.shuffled)


@pytest.mark.parametrize("assignor", [UNIFORM, RANGE], ids=lambda a: a.name)
@given(situation=situations())
def test_assigning_again_changes_nothing_and_hands_back_the_same_objects(assignor, situation):
    group = situation.group
    targets = assignor.assign(group)
    settled = GroupSpec(
        {n: MemberSpec(m.topic_ids, targets[n], m.instance_id) for n, m in group.members.items()},
        group.topics,
        group.homogeneous,
    )
    again = assignor.assign(settled)
    assert all(again[name] is targets[name] for name in targets)


@given(situation=situations(alike=True))
def test_uniform_alike_is_balanced_within_one(situation):
    sizes = loads(UNIFORM.assign(situation.group)).values()
    assert max(sizes) - min(sizes) <= 1


@given(situation=situations(alike=True))
def test_uniform_alike_moves_the_fewest_partitions_balance_allows(situation):
    group = situation.group
    targets = UNIFORM.assign(group)
    before = loads(kept(group)).values()
    quota, extra = divmod(sum(loads(targets).values()), len(group.members))
    over = [size - quota for size in before if size > quota]
    assert moves(group, targets) == sum(over) - min(extra, len(over))


@settings(max_examples=300 if FULL else 100)
@given(situation=situations(alike=False))
def test_uniform_unlike_cannot_be_improved_by_one_move(situation):
    group = situation.group
    targets = UNIFORM.assign(group)
    sizes = loads(targets)
    for name, target in targets.items():
        for number in target:
            lowest = min(sizes[n] for n, m in group.members.items() if number in m.topic_ids)
            assert sizes[name] - lowest <= 1


@given(situation=situations(alike=True))
def test_uniform_unlike_moves_the_fewest_too_when_subscriptions_are_alike(situation):
    group = GroupSpec(situation.group.members, situation.group.topics, homogeneous=False)
    targets = UNIFORM.assign(group)
    before = loads(kept(group)).values()
    quota, extra = divmod(sum(loads(targets).values()), len(group.members))
    over = [size - quota for size in before if size > quota]
    assert moves(group, targets) == sum(over) - min(extra, len(over))


@given(situation=situations())
def test_range_gives_each_topic_out_in_contiguous_shares_within_one(situation):
    group = situation.group
    targets = RANGE.assign(group)
    for number, topic in group.topics.items():
        subscribers = [n for n, m in group.members.items() if number in m.topic_ids]
        if not subscribers:
            continue
        shares = {n: targets[n].get(number, ()) for n in subscribers}
        assert all(share == tuple(range(share[0], share[-1] + 1)) for share in shares.values() if share)
        sizes = Counter(len(share) for share in shares.values())
        assert max(sizes) - min(sizes) <= 1
        static = [p for n in subscribers if group.members[n].instance_id for p in shares[n]]
        assert sorted(static) == list(range(len(static))), "static members come first"
        assert sum(map(len, shares.values())) == topic.partitions


@given(situation=situations(alike=True))
def test_range_co_partitions_topics_of_equal_size(situation):
    targets = RANGE.assign(situation.group)
    for target in targets.values():
        by_count: dict[int, set[tuple[int, ...]]] = {}
        for number in next(iter(situation.group.members.values())).topic_ids:
            share = target.get(number, ())
            by_count.setdefault(situation.group.topics[number].partitions, set()).add(share)
        assert all(len(shares) == 1 for shares in by_count.values())

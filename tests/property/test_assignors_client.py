"""Properties of the classic protocol's assignors; cooperative-sticky over whole sequences of rebalances."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.coordinator.assignors.client_side import ClientRangeAssignor, MemberSubscription
from kgroup.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kgroup.coordinator.assignors.round_robin import RoundRobinAssignor

NAMES = "abcdef"
TOPICS = "tuv"
counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 7))
wishes = st.dictionaries(st.sampled_from(NAMES), st.frozensets(st.sampled_from(TOPICS)), min_size=1)
Held = dict[str, dict[str, tuple[int, ...]]]


def partitions(target):
    return [(topic, p) for topic, held in target.items() for p in held]


def everything(partition_counts, members):
    wanted = frozenset().union(*(member.topics for member in members.values()))
    return sorted((topic, p) for topic in wanted for p in range(partition_counts.get(topic, 0)))


@pytest.mark.parametrize("assignor", [ClientRangeAssignor(), RoundRobinAssignor()], ids=lambda a: a.name)
@given(partition_counts=counts, topics=wishes)
def test_every_partition_has_one_owner_who_subscribes(assignor, partition_counts, topics):
    members = {name: MemberSubscription(wanted) for name, wanted in topics.items()}
    targets = assignor.assign(partition_counts, members)
    given_out = sorted(where for target in targets.values() for where in partitions(target))
    assert given_out == everything(partition_counts, members)
    assert all(targets[name].keys() <= topics[name] for name in topics)


@given(partition_counts=counts, rounds=st.lists(wishes, min_size=1, max_size=4))
def test_cooperative_sticky_never_gives_a_partition_to_two_and_settles(partition_counts, rounds):
    """In the second rebalance where all subscribe alike; else it may have second thoughts, but not many."""
    assignor, held, generation = CooperativeStickyAssignor(), {}, 0
    for topics in rounds:
        held = {name: held.get(name, {}) for name in topics}
        for _ in range(2 if len(set(topics.values())) == 1 else 10):
            members = {name: MemberSubscription(topics[name], held[name], generation) for name in topics}
            targets = assignor.assign(partition_counts, members)
            for name, target in targets.items():
                others = [where for other in held if other != name for where in partitions(held[other])]
                assert not set(partitions(target)) & set(others), "still held by somebody else"
            generation += 1
            held = targets
        given_out = sorted(where for target in held.values() for where in partitions(target))
        assert given_out == everything(partition_counts, members)

"""Carrying a migration out: who is restarted when, and offsets compared."""

import pytest

from kgroup.admin.migrate.execute import MovedOffset, changes, roll_order
from kgroup.admin.migrate.models import Logged
from kgroup.domain import OffsetAndMetadata, TopicPartition
from tests.unit.admin.test_migrate_plan import consumer_member, described, evidence, group

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({T0: OffsetAndMetadata(5)}, ()),
        ({T0: OffsetAndMetadata(6)}, (MovedOffset("t", 0, 5, 6),)),
        ({}, (MovedOffset("t", 0, 5, None),)),
        ({T0: OffsetAndMetadata(5), T1: OffsetAndMetadata(1)}, (MovedOffset("t", 1, None, 1),)),
        ({T0: OffsetAndMetadata(5, metadata="x")}, (MovedOffset("t", 0, 5, 5),)),
    ],
)
def test_offsets_that_are_not_the_same_are_named(after, expected):
    assert changes({T0: OffsetAndMetadata(5)}, after) == expected


def names(steps):
    return [step.instance_id or step.member_id for step in steps]


def test_static_members_first_and_the_leader_last():
    members = [
        consumer_member("d", "classic"),
        consumer_member("m1", "classic", instance="b"),
        consumer_member("m2", "classic", instance="a"),
    ]
    found = evidence(group=group(members=tuple(members)))
    assert names(roll_order(found, "upgrade")) == ["a", "b", "d"]
    assert {step.is_leader for step in roll_order(found, "upgrade")} == {None}
    led = evidence(group=group(members=tuple(members)), logged=Logged(3, "m2", {}))
    assert names(roll_order(led, "upgrade")) == ["b", "d", "a"]


def test_only_those_of_the_old_protocol_are_restarted():
    members = (consumer_member("a", "classic"), consumer_member("b"))
    found = evidence(described("a"), group=group("consumer", members=members))
    assert names(roll_order(found, "upgrade")) == ["a"]
    assert names(roll_order(found, "downgrade")) == ["b"]

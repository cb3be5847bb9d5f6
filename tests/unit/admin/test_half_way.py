"""Consumer groups half way between the protocols: what is said of their classic members, and of the roll."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.change.remove_members import Selection, plan_removal
from kgroup.admin.diagnose.checks import Diagnosis, diagnoses
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.group_records import Recorded
from kgroup.admin.discovery import ClusterView
from kgroup.admin.migrate.checks import plan_upgrade
from kgroup.admin.migrate.downgrade import plan_downgrade
from kgroup.admin.migrate.models import BLOCKED, READY, UNKNOWN, MigrationPlan
from kgroup.admin.migrate.watch import Tracker
from kgroup.admin.models import Finding, GroupDescription
from kgroup.admin.read.describe import describe, groups_only
from kgroup.admin.read.findings import find
from kgroup.cli.views.migration_watch import text
from kgroup.domain import MemberStatus
from kgroup.history.fold.consumer_state import ConsumerRecords
from kgroup.history.fold.events import Kind
from kgroup.history.fold.state import GroupState
from kgroup.history.fold.view import RecordedMember
from kgroup.protocol.group_records import ConsumerGroupMetadataValue
from kgroup.protocol.messages import consumer_group_describe as cgd
from tests.unit.admin.doctor_logs import written
from tests.unit.admin.groups import Groups, consumer_group
from tests.unit.admin.groups import consumer_member as described
from tests.unit.admin.test_doctor_checks import cluster
from tests.unit.admin.test_migrate_plan import SETTINGS, consumer_member, evidence, group, statuses
from tests.unit.history.events import event

POLICY = "group.consumer.migration.policy"
CLASSIC = 0
UUID = "p9mtlR+YSmy6KN7PQ1IpKw"
AWAY = described("s", "orders:0", instance="s", epoch=-2)


def half_way(policy: str | None = "bidirectional", **changes: object) -> MigrationPlan:
    """Two of three members speak the consumer protocol."""
    members = (consumer_member("a"), consumer_member("b"), consumer_member("c", "classic"))
    settings = {name: value for name, value in SETTINGS.items() if name != POLICY}
    settings |= {POLICY: policy} if policy is not None else {}
    there = {"group": group("consumer", members=members, assignor="uniform"), "settings": settings}
    return plan_upgrade(evidence(**there | changes))


@pytest.mark.parametrize(
    ("policy", "verdict", "status"),
    [
        ("bidirectional", READY, "ok"),
        ("Upgrade", READY, "ok"),
        ("downgrade", READY, "warn"),
        ("disabled", BLOCKED, "block"),
        (None, UNKNOWN, "unknown"),
    ],
)
def test_what_the_policy_does_to_a_roll_that_is_under_way(
    policy: str | None, verdict: str, status: str
) -> None:
    """It was ready whatever the policy; disabled, each classic member that rejoins is refused."""
    plan = half_way(policy)
    assert (plan.verdict, statuses(plan)["migration_policy"]) == (verdict, status)
    (told,) = [check for check in plan.checks if check.code == "migration_policy"]
    assert ("INCONSISTENT_GROUP_PROTOCOL" in told.message) == (policy == "disabled")
    assert ("the group is classic and stays so" in told.message) == (policy == "downgrade")


@pytest.mark.parametrize("plan", [half_way, plan_downgrade])
def test_a_roll_under_way_is_not_ready_without_a_word_about_what_is_wrong(plan: object) -> None:
    """Doctor called the group sick, and the plan said ready and no more."""
    wrong = Finding("KG101", "warn", "c has not confirmed its assignment", None)
    mixed = group("consumer", members=(consumer_member("a"), consumer_member("c", "classic")))
    made = (
        half_way(findings=(wrong,))
        if plan is half_way
        else plan_downgrade(evidence(group=mixed, findings=(wrong,)))
    )
    (told,) = [check for check in made.checks if check.code == "health"]
    assert (made.verdict, told.status, told.evidence) == (READY, "warn", {"findings": ["KG101"]})


def test_of_a_roll_under_way_the_members_that_are_left_are_named_and_judged() -> None:
    plan = half_way()
    told = {check.code: check for check in plan.checks}
    assert told["type"].message.endswith("1 of 3 members still speak the classic protocol: c")
    assert told["static_ids"].evidence == {"instance_ids": [], "dynamic": 1}
    assert told["client_software"].evidence["client_ids"] == ["c"]
    assert "session_timeout" in told and "assignor" not in told
    assert told["client_settings"].evidence == {"settings": None}


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("bidirectional", "leaves while classic members stay, it converts back"),
        ("upgrade", "it stays a consumer group (group.consumer.migration.policy=upgrade), and what that one"),
    ],
)
def test_what_follows_when_the_last_one_of_the_consumer_protocol_leaves(policy: str, said: str) -> None:
    """Whatever the policy, it was to convert back."""
    members = (consumer_member("a"), consumer_member("c", "classic"))
    plan = half_way(policy, group=group("consumer", members=members))
    (told,) = [check for check in plan.checks if check.code == "after"]
    assert said in told.message and "the last one, now a, leaves" in told.message
    before = plan_upgrade(evidence(group=group(), settings=SETTINGS | {POLICY: policy}))
    (told,) = [check for check in before.checks if check.code == "after"]
    assert said in told.message


def removal_of(*names: str) -> list[str | None]:
    fake = cluster()
    newer, older = described("n", "orders:0"), described("o", "orders:1", member_type=CLASSIC)
    Groups(fake).add(consumer_group("g", newer, older))
    plan = plan_removal(fake.cluster(), "g", Selection(member_ids=names))
    return [item.effect for item in plan.items]


def test_who_removes_the_last_one_of_the_consumer_protocol_is_told_that_the_group_turns() -> None:
    (effect,) = removal_of("n")
    assert effect is not None and "only classic members stay: the group becomes classic" in effect
    assert "classic" not in f"{removal_of('o')} {removal_of('n', 'o')}"


def stuck(
    *members: cgd.Member, state: str = "Reconciling", code: str = "KG112", heard: bool = True
) -> Diagnosis:
    """A group whose epoch 7 began 100 s ago; its classic members have 30 s sessions and poll each 300 s.

    Where they were not `heard` since, their last records are of the epoch before.
    """
    fake = cluster()
    assigned = 6 if state == "Assigning" else 7
    Groups(fake).add(consumer_group("g", *members, state=state, epoch=7, assignment_epoch=assigned))
    found = groups_only(fake.cluster(), ["g"])["g"]
    assert isinstance(found, GroupDescription)
    recorded = {
        m.member_id: RecordedMember(
            m.member_id,
            m.instance_id,
            m.client_id,
            m.client_host,
            "classic" if m.member_type == CLASSIC else "consumer",
            m.member_epoch,
            MemberStatus.REVOKING if heard and m.assignment != m.target_assignment else MemberStatus.STABLE,
            rebalance_timeout_ms=300_000,
            session_timeout_ms=30_000 if m.member_type == CLASSIC else -1,
        )
        for m in members
    }
    records = ConsumerRecords(group=ConsumerGroupMetadataValue(epoch=7))
    began = event(Kind.REBALANCE_STARTED, offset=1, timestamp_ms=900_000, epoch=7)
    seen = Recorded([began], GroupState("g", consumer=records, members=recorded).view())
    found = replace(found, findings=find(found, {}))
    facts = Facts(found, now_ms=1_000_000, since_ms=0, patience_s=10, recorded=seen)
    (told,) = [each for each in diagnoses(facts) if each.code == code]
    return told


REJOINS = (
    "has to rejoin within 300 s of the heartbeat that tells it to (its rebalance timeout), which ends at "
    "1970-01-01T00:20:00Z at the earliest; without heartbeats its session ends after 30 s"
)


@pytest.mark.parametrize("code", ["KG101", "KG112"])
def test_until_when_it_has_to_give_up_is_the_same_in_each_finding(code: str) -> None:
    told = stuck(described("o", "orders:0", "", epoch=6, member_type=CLASSIC), code=code)
    assert told.evidence[1].endswith(REJOINS)


def test_of_who_sends_no_heartbeat_it_is_told_that_its_session_bounds_it() -> None:
    """The hint said that doctor says until when, in doctor, which did not."""
    told = stuck(described("o", "orders:0", "", epoch=6), code="KG101", heard=False)
    assert told.evidence[1] == (
        "o (client client-o) on 10.0.0.1 has sent no heartbeat since its target changed: without one it is "
        "removed after consumer.session.timeout.ms"
    )


def test_a_classic_member_that_does_not_rejoin_is_the_one_that_is_waited_for() -> None:
    """It was due by the epoch's start and its rebalance timeout; that runs from a heartbeat's answer on."""
    told = stuck(
        described(UUID, "orders:0", epoch=6, member_type=CLASSIC), described("n", "orders:1", epoch=7)
    )
    assert told.message == f"Reconciling for 100 s: it waits for {UUID} of client client-{UUID} (behind)"
    assert told.hint == (
        "a classic member rejoins at its next poll, or is removed when its rebalance timeout ends; "
        f"kgroup remove-members g --member-id {UUID} removes it now"
    )
    assert told.evidence[1].endswith(REJOINS)


def test_whoever_left_for_now_is_no_reason_not_to_name_the_one_to_remove() -> None:
    """The remedy was `--member-id ID`."""
    away = described("s", "orders:1", instance="s", epoch=-2)
    told = stuck(described("o", "orders:0", epoch=6, member_type=CLASSIC), away)
    assert told.message.endswith("it waits for o (behind)")
    assert "kgroup remove-members g --member-id o removes it now" in (told.hint or "")


def test_no_heartbeat_of_a_classic_member_has_a_target_computed() -> None:
    """With group.consumer.migration.policy=upgrade such a group waits until a member joins."""
    left = described("o", "orders:0", epoch=6, member_type=CLASSIC)
    assert (stuck(left, state="Assigning").hint or "").startswith("only a member that joins has it computed")
    both = stuck(left, described("n", "orders:1", epoch=6), state="Assigning")
    assert (both.hint or "").startswith("the coordinator computes it at a heartbeat")


@pytest.mark.parametrize(
    ("members", "name", "weight"),
    [
        (
            (described("s", "orders:0", instance="s", epoch=-2), described("o", member_type=CLASSIC)),
            "absent",
            "warn",
        ),
        ((described("o", "orders:0", member_type=CLASSIC),), "unread", "error"),
        ((described("n", "orders:0"), described("o", member_type=CLASSIC)), "moving", "info"),
    ],
    ids=["one left for now", "none of the consumer protocol", "one computes it"],
)
def test_what_nobody_owns_moves_only_if_somebody_has_a_target_computed(
    members: tuple[cgd.Member, ...], name: str, weight: str
) -> None:
    """A classic member's heartbeats do not: it was moving, for ever."""
    fake = cluster()
    groups = Groups(fake).add(consumer_group("g", *members, state="Assigning", epoch=7, assignment_epoch=6))
    groups.committed["g"] = {"orders:1": 1}
    groups.ends = {"orders:1": 3}
    (told,) = describe(ClusterView(written(fake, {1: [1, 2, 3]}), retry=fake.retry()), ["g"]).groups
    (row,) = [row for row in told.offsets if row.partition == 1]
    assert row.status is not None
    assert (row.status.name, row.status.weight) == (name, weight)


def test_a_group_that_changes_its_type_with_each_restart_is_told_so() -> None:
    """Its only member of the consumer protocol restarts again and again."""
    fake = cluster()
    Groups(fake).add(consumer_group("g", described("n"), described("o", member_type=CLASSIC)))
    found = groups_only(fake.cluster(), ["g"])["g"]
    assert isinstance(found, GroupDescription)
    kinds = [Kind.REBALANCE_STARTED, Kind.DOWNGRADED, Kind.UPGRADED] * 5
    events = [event(kind, offset=n, timestamp_ms=900_000 + n, epoch=n) for n, kind in enumerate(kinds)]
    facts = Facts(found, now_ms=1_000_000, since_ms=0, patience_s=10, recorded=Recorded(events))
    (told,) = [each for each in diagnoses(facts) if each.code == "KG111"]
    became = "5 times it became a classic group, each time its last member of the consumer protocol was gone"
    assert became in told.evidence


def test_who_is_to_be_restarted_is_named_with_its_client() -> None:
    """`remaining` and a bare UUID, on the way back of each member."""
    there = replace(consumer_member(UUID), client_id="billing-0")
    seen = Tracker("g", "downgrade", stuck_after_ms=1000).observe(
        0, group("consumer", members=(there,)), (), {}
    )
    assert "1 of 1 to be restarted: " + f"{UUID} of client billing-0" in text(seen)
    assert seen.remaining == (UUID,)


def test_a_classic_member_is_named_with_its_client() -> None:
    """Brokers give those that join a consumer group a bare UUID: the finding said no more than that."""
    fake = cluster()
    classic = replace(described(UUID, "orders:0", member_type=CLASSIC), client_id="billing-0")
    Groups(fake).add(consumer_group("g", classic, described("n", "orders:1,2,3")))
    found = groups_only(fake.cluster(), ["g"])["g"]
    assert isinstance(found, GroupDescription)
    (told,) = [finding for finding in find(found, {"orders": 4}) if finding.code == "KG201"]
    assert told.message == f"1 of 2 members speak the classic protocol: {UUID} of client billing-0"


def test_a_group_with_more_classic_members_than_a_classic_one_may_have_stays() -> None:
    members = (consumer_member("a"), consumer_member("c", "classic"), consumer_member("d", "classic"))
    settings = {**SETTINGS, "group.max.size": "1"}
    plan = half_way("bidirectional", settings=settings, group=group("consumer", members=members))
    (told,) = [check for check in plan.checks if check.code == "after"]
    assert "it stays a consumer group (group.max.size=1)" in told.message

"""The plan of a migration: each thing a broker checks, and what is unknown said as unknown."""

from dataclasses import replace

import pytest

from kgroup.admin.migrate.checks import plan_upgrade
from kgroup.admin.migrate.client_kinds import CONSUMERS, KAFKA_STREAMS, Kind, kind_of_assignor
from kgroup.admin.migrate.downgrade import plan_downgrade
from kgroup.admin.migrate.evidence import member_of
from kgroup.admin.migrate.models import ALREADY, BLOCKED, READY, UNKNOWN, Evidence, Logged
from kgroup.admin.models import Finding, GroupDescription, ItemError, Member
from kgroup.domain import TopicPartition
from kgroup.protocol.messages.describe_groups import DescribedGroupMember
from kgroup.protocol.subscription import Assignment, Subscription

SETTINGS = {
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.max.size": "200",
    "group.max.size": "200",
    "group.min.session.timeout.ms": "6000",
    "group.max.session.timeout.ms": "1800000",
    "group.coordinator.rebalance.protocols": "classic,consumer,streams",
    "group.consumer.assignors": "uniform,range",
    "group.consumer.session.timeout.ms": "45000",
}


def described(name, *, metadata=None, user_data=None, instance=None, subscription=None):
    wanted = subscription or Subscription(("orders",), owned=(TopicPartition("orders", 0),))
    return DescribedGroupMember(
        member_id=name,
        group_instance_id=instance,
        client_id="c",
        client_host="/10.0.0.1",
        member_metadata=wanted.encode(3) if metadata is None else metadata,
        member_assignment=Assignment((TopicPartition("orders", 0),), user_data).encode(1),
    )


def group(kind="classic", state="Stable", **changes):
    protocol = {"classic": "consumer"}.get(kind, "consumer")
    base = GroupDescription("g", kind, protocol, state, "range", None, None, None, None, None, (), (), None)
    return replace(base, **changes)


def evidence(*members, settings=SETTINGS, **changes):
    members = tuple(member_of(member) for member in members)
    found = Evidence(group(), members, 1, True, 1, settings, None, {"consumer.session.timeout.ms": "45000"})
    return replace(found, **changes)


def statuses(plan):
    return {check.code: check.status for check in plan.checks}


def consumer_member(name, protocol="consumer", instance=None, epoch=5, regex=None):
    return Member(name, instance, "c", "h", None, protocol, epoch, "stable", ("orders",), regex, (), ())


THREE = tuple(described(f"m{n}") for n in range(3))


class TestUpgrade:
    def test_a_plain_group_is_ready(self):
        plan = plan_upgrade(evidence(*THREE))
        assert plan.verdict == READY
        told = statuses(plan)
        assert [told[c] for c in ("migration_policy", "protocol_type", "size", "embedded_protocol")] == [
            "ok"
        ] * 4
        assert told["assignment_user_data"] == "ok"

    def test_what_is_wrong_before_the_roll_is_said_and_decides_nothing(self):
        wrong = Finding("KG310", "error", "a stands still", None)
        plan = plan_upgrade(evidence(*THREE, findings=(wrong,)))
        (told,) = [check for check in plan.checks if check.code == "health"]
        assert (plan.verdict, told.status, told.evidence) == (READY, "warn", {"findings": ["KG310"]})
        assert told.message == "not healthy before the roll: KG310 a stands still"

    @pytest.mark.parametrize("plan", [plan_upgrade, plan_downgrade])
    def test_a_coordinator_that_can_store_nothing_blocks(self, plan):
        kept = Finding("KG123", "error", "too few replicas", "start broker 2")
        of = group() if plan is plan_upgrade else group("consumer", members=TestDowngrade.MEMBERS)
        why = ("too few replicas", "start broker 2")
        made = plan(evidence(*THREE, findings=(kept,), group=of, unstored=why))
        (told,) = made.blockers
        assert (made.verdict, told.code, told.hint) == (BLOCKED, "storage", "start broker 2")
        assert told.message == "joins are answered COORDINATOR_NOT_AVAILABLE: too few replicas"
        assert "health" not in statuses(made)

    def test_where_it_is_not_known_whether_the_coordinator_can_store_nothing_is_ready(self):
        hidden = ItemError("min.insync.replicas", "TOPIC_AUTHORIZATION_FAILED", "may not be read")
        made = plan_upgrade(evidence(*THREE, unstored=hidden))
        assert (made.verdict, statuses(made)["storage"]) == (UNKNOWN, "unknown")

    def test_a_group_without_findings_needs_no_word_and_one_unseen_does(self):
        told = Finding("KG306", "info", "not begun", None)
        assert "health" not in statuses(plan_upgrade(evidence(*THREE, findings=(told,))))
        failed = ItemError("g", "TOPIC_AUTHORIZATION_FAILED", "may be incomplete")
        assert statuses(plan_upgrade(evidence(*THREE, findings_error=failed)))["health"] == "info"
        silent = ItemError("g", "UNREACHABLE", "broker 1 does not answer")
        plan = plan_upgrade(evidence(*THREE, findings_error=silent))
        assert (plan.verdict, statuses(plan)["health"]) == (UNKNOWN, "unknown")

    def test_user_data_in_one_assignment_blocks_and_is_measured(self):
        plan = plan_upgrade(evidence(*THREE[:2], described("m2", user_data=b"12345678")))
        assert plan.verdict == BLOCKED
        (blocker,) = plan.blockers
        assert (blocker.code, blocker.evidence["bytes"]) == ("assignment_user_data", {"m2": 8})
        assert "GROUP_ID_NOT_FOUND" in blocker.message and blocker.hint

    def test_user_data_in_the_subscription_alone_does_not_block(self):
        """Java's cooperative-sticky writes its generation there; the broker does not mind."""
        member = described("m0", subscription=Subscription(("orders",), user_data=b"\0\0\0\1"))
        assert plan_upgrade(evidence(member)).verdict == READY

    @pytest.mark.parametrize("value", ["downgrade", "disabled", "DISABLED"])
    def test_policy(self, value):
        plan = plan_upgrade(evidence(*THREE, settings={**SETTINGS, "group.consumer.migration.policy": value}))
        assert [check.code for check in plan.blockers] == ["migration_policy"]

    @pytest.mark.parametrize(
        ("changes", "hint"),
        [
            ({"settings": {}}, "upgrade the brokers first: Kafka 4.0 and later have it"),
            (
                {
                    "settings": None,
                    "settings_error": "not authorised",
                    "settings_code": "CLUSTER_AUTHORIZATION_FAILED",
                },
                "kgroup needs DESCRIBE_CONFIGS on the cluster",
            ),
            ({"settings": None, "settings_error": "no answer", "settings_code": "UNREACHABLE"}, None),
        ],
    )
    def test_a_right_is_asked_for_where_it_is_missing(self, changes, hint):
        """Kafka 2.3 has read all its settings and has none of these: rights do not help."""
        plan = plan_upgrade(evidence(*THREE, **changes))
        told = [check for check in plan.checks if check.code in ("migration_policy", "size")]
        assert [check.hint for check in told] == [hint, hint]

    def test_settings_that_may_not_be_read_are_unknown(self):
        plan = plan_upgrade(evidence(*THREE, settings=None, settings_error="not authorised"))
        told = {check.code: check for check in plan.checks}
        assert told["migration_policy"].status == told["size"].status == "unknown"
        assert plan.verdict == UNKNOWN
        assert told["migration_policy"].evidence["group.consumer.migration.policy"] is None

    def test_another_protocol_type_blocks(self):
        plan = plan_upgrade(evidence(described("m", metadata=b"\0"), group=group(protocol_type="connect")))
        assert "protocol_type" in {check.code for check in plan.blockers}

    def test_bytes_that_do_not_parse_block(self):
        plan = plan_upgrade(evidence(*THREE[:2], described("m2", metadata=b"\0\1\0\0")))
        (blocker,) = plan.blockers
        assert blocker.code == "embedded_protocol" and "m2" in blocker.evidence["faults"]

    def test_subscriptions_hidden_by_a_rebalance_are_unknown(self):
        hidden = tuple(described(f"m{n}", metadata=b"") for n in range(2))
        told = statuses(plan_upgrade(evidence(*hidden, group=group(state="PreparingRebalance"))))
        assert (told["embedded_protocol"], told["state"]) == ("unknown", "warn")

    def test_no_subscription_seen_is_not_ready(self):
        """It was READY with 0 of 2 subscriptions seen."""
        hidden = tuple(described(f"m{n}", metadata=b"") for n in range(2))
        assert plan_upgrade(evidence(*hidden)).verdict == UNKNOWN

    def test_a_live_group_of_kafka_streams_is_told_as_that(self):
        """Roll to range, said the plan: Streams has no other assignor."""
        found = evidence(*THREE, group=group(assignor="stream"), kind=kind_of_assignor("stream"))
        plan = plan_upgrade(found)
        assert [check.code for check in plan.blockers] == ["kafka_streams"]
        assert "range" not in f"{plan.blockers[0].message} {plan.blockers[0].hint}"
        assert [check.code for check in plan.checks] == ["consumer_protocol", "kafka_streams"]

    @pytest.mark.parametrize("state", ["Stable", "Empty"])
    def test_a_group_of_connect_workers_gets_no_further_rows(self, state):
        found = evidence(group=group(protocol_type="connect", state=state))
        assert [check.code for check in plan_upgrade(found).checks] == ["consumer_protocol", "protocol_type"]

    @pytest.mark.parametrize(
        ("kind", "verdict"), [(KAFKA_STREAMS, BLOCKED), (None, UNKNOWN), (CONSUMERS, READY)]
    )
    def test_an_empty_group_is_ready_when_it_is_known_whose_it_is(self, kind, verdict):
        found = evidence(group=group(state="Empty", assignor=None), kind=Kind(kind, "traces"))
        assert plan_upgrade(found).verdict == verdict

    def test_instance_ids_that_are_not_told_are_not_none(self):
        found = evidence(*THREE)
        hidden = tuple(replace(member, instance_id_known=False) for member in found.members)
        (check,) = [c for c in plan_upgrade(replace(found, members=hidden)).checks if c.code == "static_ids"]
        assert (check.evidence["instance_ids"], "unknown" in check.message) == (None, True)

    @pytest.mark.parametrize(
        ("limit", "instance", "status"),
        [("2", None, "block"), ("3", None, "warn"), ("3", "i", "block"), ("4", "i", "ok")],
    )
    def test_size_at_its_boundaries(self, limit, instance, status):
        """A static member keeps its place while it restarts, so a full group has none for its successor."""
        members = (*THREE[:2], described("m2", instance=instance))
        plan = plan_upgrade(evidence(*members, settings={**SETTINGS, "group.consumer.max.size": limit}))
        assert statuses(plan)["size"] == status

    @pytest.mark.parametrize(("limit", "status"), [("2", "block"), ("3", "ok")])
    def test_since_kafka_4_4_a_static_member_returns_to_a_full_group(self, limit, status):
        """The setting came with that release: no request names it."""
        members = tuple(described(f"m{n}", instance=f"i{n}") for n in range(3))
        limits = {"group.consumer.max.size": limit, "group.streams.assignors": "sticky"}
        assert statuses(plan_upgrade(evidence(*members, settings=SETTINGS | limits)))["size"] == status

    @pytest.mark.parametrize(
        ("changes", "status"),
        [
            ({"serves_heartbeat": False}, "block"),
            ({"group_version": 0}, "block"),
            ({"settings": {**SETTINGS, "group.coordinator.rebalance.protocols": "classic"}}, "block"),
            ({"group_version": None}, "unknown"),
            ({"preview": True, "group_version": 0}, "warn"),
            ({"preview": True, "settings": None}, "unknown"),
            (
                {
                    "preview": True,
                    "settings": {**SETTINGS, "group.coordinator.rebalance.protocols": "classic"},
                },
                "block",
            ),
        ],
    )
    def test_whether_the_protocol_is_served(self, changes, status):
        assert statuses(plan_upgrade(evidence(*THREE, **changes)))["consumer_protocol"] == status

    def test_a_feature_is_proposed_only_where_the_release_has_it(self):
        """Kafka 3.9 has no group.version: `kafka-features upgrade` refuses it there."""
        classic = {**SETTINGS, "group.coordinator.rebalance.protocols": "classic"}
        for preview, words in ((True, "protocols=classic,consumer"), (False, "--feature group.version=1")):
            plan = plan_upgrade(evidence(*THREE, group_version=0, preview=preview, settings=classic))
            (check,) = (each for each in plan.checks if each.code == "consumer_protocol")
            assert words in check.hint
            assert ("group.version" in check.hint) is not preview

    def test_librdkafka_first_generation_blocks_a_dynamic_roll_and_warns_a_static_one(self):
        wanted = Subscription(("orders",), user_data=b"")
        sticky = group(assignor="cooperative-sticky")
        dynamic = [described(f"m{n}", subscription=wanted) for n in range(3)]
        assert plan_upgrade(evidence(*dynamic, group=sticky)).blockers[0].code == "user_data_to_come"
        static = [described(f"m{n}", subscription=wanted, instance=f"i{n}") for n in range(3)]
        plan = plan_upgrade(evidence(*static, group=sticky))
        assert (plan.verdict, statuses(plan)["user_data_to_come"]) == (READY, "warn")

    def test_an_empty_group_converts_whatever_the_policy(self):
        found = evidence(
            group=group(state="Empty"), settings={**SETTINGS, "group.consumer.migration.policy": "disabled"}
        )
        assert plan_upgrade(found).verdict == READY

    def test_session_timeouts_are_compared_once_the_log_tells_them(self):
        assert statuses(plan_upgrade(evidence(*THREE)))["session_timeout"] == "info"
        logged = Logged(3, "m0", {"m0": 600_000})
        assert statuses(plan_upgrade(evidence(*THREE, logged=logged)))["session_timeout"] == "warn"

    def test_a_session_timeout_ahead_that_may_not_be_read_is_not_the_broker_s(self):
        """The refusal was dropped, and the broker's default read as the group's: ok."""
        logged = Logged(7, None, {"m0": 45_000})
        found = evidence(*THREE, logged=logged, own_settings=None, own_error="settings of g: not authorised")
        (told,) = [check for check in plan_upgrade(found).checks if check.code == "session_timeout"]
        assert (told.status, told.evidence["consumer.session.timeout.ms"]) == ("info", None)
        assert "an unknown timeout (settings of g: not authorised)" in told.message

    def test_no_setting_is_proposed_that_the_broker_does_not_have(self):
        """Kafka 3.9 has no settings of groups, and the hint was `kgroup config set`."""
        found = evidence(*THREE, own_settings=None, own_error="settings of g: INVALID_REQUEST")
        (told,) = [check for check in plan_upgrade(found).checks if check.code == "session_timeout"]
        assert (told.status, told.hint) == ("info", None)

    def test_a_session_timeout_ahead_that_is_not_told_is_not_ok(self):
        logged = Logged(7, None, {"m0": 45_000})
        settings = {k: v for k, v in SETTINGS.items() if k != "group.consumer.session.timeout.ms"}
        found = evidence(*THREE, settings=settings, logged=logged, own_settings={})
        assert statuses(plan_upgrade(found))["session_timeout"] == "info"

    def test_a_consumer_group_is_done_or_half_way(self):
        members = (consumer_member("a"), consumer_member("b"))
        done = evidence(group=group("consumer", members=members))
        assert plan_upgrade(done).verdict == ALREADY
        mixed = evidence(group=group("consumer", members=(*members, consumer_member("c", "classic"))))
        assert plan_upgrade(mixed).verdict == READY

    def test_a_broker_that_does_not_tell_the_members_protocols_leaves_them_unknown(self):
        found = evidence(group=group("consumer", members=(consumer_member("a"),)), member_types=False)
        plan = plan_upgrade(found)
        (check,) = plan.checks
        assert (plan.verdict, check.status, check.evidence["classic"]) == (UNKNOWN, "unknown", None)


class TestPatterns:
    TOPICS = frozenset({"orders-1", "orders-10", "pay"})

    @pytest.mark.parametrize(
        ("pattern", "status"),
        [("orders-[0-9]+", "ok"), ("orders-(?=1)", "block"), ("orders-1", "warn"), ("pay", "ok")],
    )
    def test_each_is_tried_in_re2_on_the_topics_there_are(self, pattern, status):
        plan = plan_upgrade(evidence(*THREE, topic_names=self.TOPICS), [pattern])
        assert statuses(plan)["patterns"] == status

    def test_none_given_is_unknown(self):
        assert statuses(plan_upgrade(evidence(*THREE)))["patterns"] == "info"


class TestDowngrade:
    MEMBERS = (consumer_member("a"), consumer_member("b", instance="i"))

    def test_ready(self):
        plan = plan_downgrade(evidence(group=group("consumer", members=self.MEMBERS)))
        assert plan.verdict == READY

    def test_a_classic_group_is_there_already(self):
        assert plan_downgrade(evidence(*THREE)).verdict == ALREADY

    @pytest.mark.parametrize(
        ("value", "codes"),
        [("upgrade", ["migration_policy"]), ("disabled", ["migration_policy", "classic_members"])],
    )
    def test_policy(self, value, codes):
        settings = {**SETTINGS, "group.consumer.migration.policy": value}
        plan = plan_downgrade(evidence(group=group("consumer", members=self.MEMBERS), settings=settings))
        assert [check.code for check in plan.blockers] == codes

    def test_more_members_than_a_classic_group_may_have(self):
        settings = {**SETTINGS, "group.max.size": "1"}
        plan = plan_downgrade(evidence(group=group("consumer", members=self.MEMBERS), settings=settings))
        assert [check.code for check in plan.blockers] == ["size"]

    def test_a_member_that_left_for_now_holds_it_up(self):
        members = (*self.MEMBERS, consumer_member("c", instance="j", epoch=-2))
        plan = plan_downgrade(evidence(group=group("consumer", members=members)))
        assert statuses(plan)["left_for_now"] == "warn"

    def test_patterns_in_use_are_named(self):
        members = (consumer_member("a", regex="or.*"), consumer_member("b"))
        plan = plan_downgrade(evidence(group=group("consumer", members=members)))
        assert statuses(plan)["regex_in_use"] == "warn"

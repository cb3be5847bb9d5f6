"""The differences that are meant to be: each with its reason, and narrow. Nothing else may differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.domain import NO_EXPIRY, ZERO_UUID, uuid_text
from kgroup.errors import DecodeError
from kgroup.protocol.subscription import Assignment

from .differences import ABSENT, Difference
from .ours import is_gone, state_of, timer_of, votes, votes_are_tied, votes_tie

if TYPE_CHECKING:
    from .player import Player


UNREADABLE = (
    "RuntimeException: Error reading byte array",
    "RuntimeException: Tried to allocate a collection",
    "IllegalArgumentException: newLimit > capacity",
)


@dataclass(frozen=True)
class Allowed:
    """A difference that may be, and why.

    After one that `ends` the two go different ways, until both begin again with Kafka's log; one that
    `lasts` is in that log, or in what Kafka makes of it.
    """

    name: str
    reason: str
    applies: Callable[[Difference, Player], bool]
    ends: bool = False
    lasts: bool = False


def _timer_of_what_is_gone(found: Difference, player: Player) -> bool:
    """A timer that only Kafka has, of a member or a kind of group that is no more, or was no more."""
    if found.kind != "timer" or found.ours != ABSENT:
        return False
    key = timer_of(found.where)
    if key is not None and is_gone(key, player.coordinator.state):
        player.stale_timers[found.where] = found.kafka
    return player.stale_timers.get(found.where) == found.kafka


def _stale_timer_acts(_: Difference, player: Player) -> bool:
    event = player.event
    due = player.stale_timers.get(event.get("key"))
    return event["kind"] == "fire" and due is not None and due <= event["now"]


def _stale_timer_kept(found: Difference, player: Player) -> bool:
    """Both have the timer, and Kafka's still has the deadline it had when its owner was gone."""
    if found.kind != "timer" or ABSENT in (found.kafka, found.ours):
        return False
    return player.stale_timers.get(found.where) == found.kafka


def _replaced_join(found: Difference, player: Player) -> bool:
    """An older parked request of a member that has sent a newer one, or the sync of one that leaves."""
    if found.kind != "reply" or found.kafka != ABSENT:
        return False
    if found.where == "parked sync" and player.event["kind"] == "leave":
        return bool(found.ours["error_code"] == 25)
    return found.where in ("parked join", "parked sync") and bool(found.ours["error_code"] == 27)


def _pattern_never_resolved(found: Difference, _: Player) -> bool:
    return (
        found.kind == "records"
        and found.where == "ConsumerGroupRegularExpression tombstone"
        and found.ours == ABSENT
    )


def _crash_in_a_rebalance(_: Difference, player: Player) -> bool:
    """A consumer heartbeat that Kafka fails at, because the classic group has no protocol they know."""
    said = player.event.get("said", "")
    return player.event["kind"] == "consumer_heartbeat" and (
        said == "NoSuchElementException: No value present"
        or said.startswith("IllegalArgumentException: Member does not support protocol")
    )


def _unreadable_subscription(_: Difference, player: Player) -> bool:
    """Kafka fails in the middle of an operation at subscription bytes that are cut short."""
    event = player.event
    failed = f"{event.get('failed', '')} {event.get('said', '')}"
    return any(part in failed for part in UNREADABLE)


def _text_of_the_library(found: Difference, player: Player) -> bool:
    """Why a pattern is no RE2, in the words of the library that reads it."""
    begin, other = (str(side).partition(" is not a valid")[0] for side in (found.kafka, found.ours))
    refused = player.event.get("error") == 128
    return found.where == "consumer_heartbeat error_message" and refused and begin == other


def _delay_extended_by_a_flag_left_over(_: Difference, player: Player) -> bool:
    """The join timer of an initial delay fires, everybody is there, and Kafka arms it once more."""
    event = player.event
    if event["kind"] != "fire" or not event["key"].startswith("join-") or event["replies"]:
        return False
    group = event["state"]["groups"].get(event["key"].removeprefix("join-"))
    again = event["key"] in event["state"]["timers"]
    return again and group is not None and group["awaiting"] == len(group["members"])


def _assignor_failed(player: Player) -> bool:
    return player.event.get("error") == -1 and "Failed to compute" in player.event.get("said", "")


def _why_an_assignor_failed(found: Difference, player: Player) -> bool:
    text = found.where == "consumer_heartbeat error_message" and found.kafka is None
    return text and _assignor_failed(player)


def _resolution_of_a_refused_request(found: Difference, player: Player) -> bool:
    """Kafka resolves patterns again because of a request that it has refused meanwhile.

    It leaves out the pattern that lost its last subscriber in that request: the others are younger then, and
    the age of the last resolution is that of the pattern which Kafka's hash map lists first.
    """
    if found.kind not in ("records", "state"):
        return False
    if player.event["kind"] == "task":
        return player.refused_at == player.event["now"]
    return player.ages_differ and (found.where == "timer regex" or ".resolved." in found.where)


def _leader_after_leader(found: Difference, player: Player) -> bool:
    """Both let one of the members lead, after the one that led has gone or did not come back."""
    if found.kind != "state" or not found.where.endswith(".leader"):
        return False
    group = player.coordinator.state.groups.get(found.where.removesuffix(".leader"))
    if not isinstance(group, ClassicGroup) or not {found.kafka, found.ours} <= group.members.keys():
        return False
    before = player.leaders.get(group.group_id)
    return before is None or before not in (found.kafka, found.ours)


def _same_partitions(found: Difference, _: Player) -> bool:
    """Assignments in ConsumerProtocol's bytes that name the same partitions."""
    if not found.where.endswith("assignment") or not isinstance(found.kafka, str) or not found.ours:
        return False
    try:
        one, other = (Assignment.decode(bytes.fromhex(side)) for side in (found.kafka, found.ours))
    except (DecodeError, ValueError, TypeError):
        return False
    return sorted(one.partitions) == sorted(other.partitions)


def _tombstone_twice(found: Difference, player: Player) -> bool:
    if player.event["kind"] != "topic" or found.where != "OffsetCommit tombstone" or found.ours != ABSENT:
        return False
    keys = [key for key, _ in player.event["records"]]
    return len(keys) > len(set(keys))


def _emptied_group_vanishes(found: Difference, player: Player) -> bool:
    group = player.coordinator.state.groups.get(found.where)
    return (
        found.kind == "state"
        and player.event["kind"] == "join"
        and found.kafka == ABSENT
        and isinstance(group, ConsumerGroup | StreamsGroup)
        and not group.members
    )


def _replaced_while_sync_is_awaited(found: Difference, player: Player) -> bool:
    return (
        found.kind == "state"
        and ".pending_sync" in found.where
        and player.event["kind"] == "join"
        and player.event["op"].get("instance") is not None
    )


def _protocol_tie(found: Difference, player: Player) -> bool:
    """The two chose different protocols among those that all members list."""
    names = [name for name in (found.kafka, found.ours) if isinstance(name, str)]
    if player.event["kind"] == "join" and player.event["op"].get("instance") is not None:
        return votes_tie(player.coordinator.state.groups.get(player.event["op"]["group"]))
    if found.kind != "state" or not found.where.endswith(".protocol") or len(names) != 2:
        return False
    group = player.coordinator.state.groups.get(found.where.removesuffix(".protocol"))
    if not isinstance(group, ClassicGroup):
        return False
    counts = votes(group)
    return counts[found.kafka] == counts[found.ours] > 0


def _assignor_tie(found: Difference, player: Player) -> bool:
    """The two asked different assignors, for each of which as many members ask.

    Kafka 4.4 makes a new target when the one it prefers changes, and of two it prefers one or the other: one
    of the two has a group epoch more than the other, or Kafka could not compute that target.
    """
    if found.kind != "assignor" and player.event["kind"] == "consumer_heartbeat" and player.votes_bump:
        tied = player.tied or votes_are_tied(player.coordinator, player.event)
        name = player.event["op"].get("group", "")
        group = player.coordinator.state.groups.get(name)
        kafkas = player.event["state"]["groups"].get(name, {})
        apart = isinstance(group, ConsumerGroup) and kafkas.get("epoch") != group.epoch
        return tied and (apart or _assignor_failed(player))
    if found.where.endswith("].assignor_name"):
        asked, ours = {found.kafka}, found.ours
    elif found.kind == "assignor" and found.where in player.assignors and found.kafka == ABSENT:
        asked, ours = {one["name"] for one in player.event["assigned"]}, found.where
    else:
        return False
    for group in player.coordinator.state.groups.values():
        if isinstance(group, ConsumerGroup):
            counts = group.by_assignor
            if any(counts[name] == counts[ours] > 0 for name in asked - {ours}):
                return True
    return False


def _stale_subscription_type(found: Difference, player: Player) -> bool:
    """Ours must not say that all subscribe alike where they do not; the general algorithm is always right."""
    if found.kind != "assignor" or found.where != "homogeneous":
        return False
    alike = all(
        len({tuple(member["topics"]) for member in one["members"].values()}) <= 1
        for one in player.event["assigned"]
    )
    return alike or not found.ours


def _group_of_a_refused_commit(found: Difference, player: Player) -> bool:
    return (
        found.kind == "state"
        and player.event["kind"] in ("commit", "txn_commit")
        and not player.event["records"]
        and found.ours == ABSENT
        and isinstance(found.kafka, dict)
        and (found.kafka["state"], found.kafka["protocol_type"]) == ("Empty", None)
    )


def _upgrade_refused_too_late(found: Difference, player: Player) -> bool:
    """Kafka has answered the parked joins before it refuses the heartbeat that converts the group."""
    event = player.event
    if event["kind"] != "consumer_heartbeat" or "error" not in event or event["records"]:
        return False
    group = player.coordinator.state.groups.get(event["op"]["group"])
    return isinstance(group, ClassicGroup) and found.kind in ("reply", "state", "timer")


def _id_of_a_retention_commit(found: Difference, player: Player) -> bool:
    """The topic id that Kafka keeps in memory beside an offset whose record has no room for it."""
    if found.kind != "state" or not found.where.startswith("offsets ") or not found.where.endswith("[5]"):
        return False
    # A group id or topic may have spaces; and where ours lacks the offset, that is another difference.
    name = found.where.removeprefix("offsets ").removesuffix("[5]")
    offset = state_of(player.coordinator)["offsets"].get(name)
    return offset is not None and found.ours == uuid_text(ZERO_UUID) and offset[4] != NO_EXPIRY


def _member_with_two_instances(_: Difference, player: Player) -> bool:
    """The program has used a member id with one instance id, and then with another."""
    return player.two_instances


def _endpoint_without_topics(_: Difference, player: Player) -> bool:
    """Kafka trips over the endpoint of a member while the topics that its topology needs are not there."""
    event = player.event
    if (
        event["kind"] != "streams_heartbeat"
        or event.get("said") != "NoSuchElementException: No value present"
    ):
        return False
    group = player.coordinator.state.groups.get(event["op"]["group"])
    return isinstance(group, StreamsGroup) and any(m.metadata.user_endpoint for m in group.members.values())


def _configured_without_a_record(found: Difference, player: Player) -> bool:
    """Partitions of internal topics that Kafka shows as before until it writes its next record."""
    return (
        found.operation == "streams_describe"
        and ".topology." in found.where
        and found.where.endswith("].partitions")
        and (found.kafka == 0 or player.wrote_nothing)
        and found.ours != ABSENT
    )


def _cannot_load(found: Difference, _: Player) -> bool:
    return found.kind == "broken" and found.operation == "restart"


ALLOWED = (
    Allowed(
        "a log that Kafka cannot load",
        "Kafka fails at a log that it wrote itself, and its partition stays without a coordinator. Ours "
        "loads it.",
        _cannot_load,
        ends=True,
        lasts=True,
    ),
    Allowed(
        "a timer of what is gone",
        "Kafka leaves timers of members and of group types that are no more; when they fire they find "
        "nothing. Ours are cancelled.",
        _timer_of_what_is_gone,
    ),
    Allowed(
        "an older parked request is answered",
        "When a member sends its join or sync again, Kafka overwrites the older parked one's callback: "
        "that request is never answered, and its connection waits until it times out. Ours is told to "
        "ask again; so is the parked sync of a member that leaves (25).",
        _replaced_join,
    ),
    Allowed(
        "the tombstone of a pattern that was never resolved",
        "Kafka writes a tombstone for a pattern's record when its last subscriber goes, even where no "
        "record was written yet. Ours writes none: nothing that reads the log can tell.",
        _pattern_never_resolved,
    ),
    Allowed(
        "Kafka crashes in a classic group's rebalance",
        "A consumer heartbeat while no protocol is chosen, or members have changed theirs: Kafka "
        "cancels the rebalance, answers the parked joins 27 and then fails (UNKNOWN_SERVER_ERROR). Ours "
        "refuses it whole.",
        _crash_in_a_rebalance,
        ends=True,
    ),
    Allowed(
        "Kafka is stuck at an unreadable subscription",
        "Where subscription bytes end within the topics, the timer that completes the rebalance fails "
        "in Kafka and is not tried again: no join is ever answered. Ours completes it; the topics are "
        "unknown.",
        _unreadable_subscription,
        ends=True,
    ),
    Allowed(
        "an upgrade that Kafka refuses too late",
        "A consumer heartbeat that is refused after the classic group was converted for it: Kafka has "
        "cancelled the rebalance and answered the parked joins 27 by then. Ours refuses it before "
        "anything happens, and the rebalance goes on.",
        _upgrade_refused_too_late,
        ends=True,
    ),
    Allowed(
        "an initial delay that is extended for nobody",
        "Kafka leaves the mark that a member was added in the last part of an initial delay, and the "
        "next initial delay of the group is extended for it, though nobody joined meanwhile.",
        _delay_extended_by_a_flag_left_over,
        ends=True,
    ),
    Allowed(
        "a group in memory after a commit that was refused",
        "Kafka makes the simple group before it looks at the partitions; where all of them are refused, "
        "it stays in memory until a restart, without a record. Ours makes it with the first record.",
        _group_of_a_refused_commit,
        ends=True,
    ),
    Allowed(
        "a stale timer acts",
        "A timer of a classic member outlives a downgrade and a new upgrade in Kafka, and then expels "
        "the live member of the same id. Ours was cancelled.",
        _stale_timer_acts,
        ends=True,
    ),
    Allowed(
        "a stale timer is kept",
        "A downgrade cancels no join timer of a consumer group's classic members in Kafka, and after the "
        "next upgrade it is armed only if there is none: it ends at the old deadline. Ours starts anew.",
        _stale_timer_kept,
        ends=True,
    ),
    Allowed(
        "the words of the regex library",
        "RE2/J and RE2 say differently why a pattern is malformed.",
        _text_of_the_library,
    ),
    Allowed(
        "why an assignor failed",
        "Kafka's service gives no text with UNKNOWN_SERVER_ERROR; ours says what could not be computed.",
        _why_an_assignor_failed,
    ),
    Allowed(
        "patterns resolved for a refused request",
        "A heartbeat that is refused in the end has by then had Kafka's executor resolve the patterns, and"
        " keeps others from it. Of a refusal nothing remains in ours; the next heartbeat has them resolved.",
        _resolution_of_a_refused_request,
        ends=True,
    ),
    Allowed(
        "who leads after the leader",
        "When the leader is gone, Kafka lets the member lead that its hash map lists first; ours the oldest.",
        _leader_after_leader,
        ends=True,
    ),
    Allowed(
        "the order of partitions in an assignment",
        "Kafka encodes the topics of a classic member's assignment in the order of a hash map.",
        _same_partitions,
    ),
    Allowed(
        "one tombstone twice",
        "For an offset that is both committed and pending Kafka writes two equal tombstones when its topic "
        "goes.",
        _tombstone_twice,
    ),
    Allowed(
        "an empty consumer group vanishes from memory",
        "A classic join with a member id to an empty consumer group is refused (25), but Kafka has by "
        "then removed the group from memory, though not from the log. Ours keeps it.",
        _emptied_group_vanishes,
        ends=True,
    ),
    Allowed(
        "a static member replaced while its sync is awaited",
        "Kafka goes on waiting for the sync of the old member id, which cannot come, and rebalances at "
        "the sync timeout although everybody has synced. Ours waits for the new id.",
        _replaced_while_sync_is_awaited,
        ends=True,
    ),
    Allowed(
        "a tie between protocols",
        "Of two protocols with as many votes Kafka takes the one that its hash map lists first; ours "
        "the one that was voted for first.",
        _protocol_tie,
        ends=True,
    ),
    Allowed(
        "a tie between assignors",
        "Of two server assignors that as many members ask for Kafka takes the one its hash map lists first.",
        _assignor_tie,
        ends=True,
    ),
    Allowed(
        "a subscription type that is out of date",
        "Kafka keeps whether all members subscribe alike, and it is at times what was so before the last "
        "change; topics that only some subscribe to are then left without an owner. Ours is up to date.",
        _stale_subscription_type,
    ),
    Allowed(
        "a topic id beside an offset with a retention",
        "The record of a commit with a retention (version 1) has no room for the topic id; Kafka keeps "
        "the id in memory until its next restart. Ours never has it, so that a restart changes nothing.",
        _id_of_a_retention_commit,
    ),
    Allowed(
        "a member id with two instance ids",
        "When a member id comes back with another instance id, Kafka keeps the first one mapped to it "
        "and lets it use both, until it trips over the leftover. Ours knows the new one only. No client "
        "does this.",
        _member_with_two_instances,
        ends=True,
        lasts=True,
    ),
    Allowed(
        "an endpoint while topics are missing",
        "While source topics of a topology are missing, Kafka 4.3.1 answers UNKNOWN_SERVER_ERROR to every "
        "heartbeat that would tell of a member's endpoint, and the application ends. Ours tells which topics "
        "are missing, and of no partitions.",
        _endpoint_without_topics,
        ends=True,
    ),
    Allowed(
        "partitions of internal topics before the next record",
        "A topology looked at anew by a heartbeat that wrote nothing is described by Kafka as it was "
        "before, until anything is written to its partition of the log. Ours shows what it goes by.",
        _configured_without_a_record,
    ),
)


def reason_for(found: Difference, player: Player) -> Allowed | None:
    """The entry that allows the difference, or None."""
    return next((entry for entry in ALLOWED if entry.applies(found, player)), None)

"""Each recorded incident tells the story that was scripted, and no more than is proven."""

import os
import re
from pathlib import Path

import pytest

from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.explain import blame

from .incidents import KAFKA, NAMES, OURS, story_of, text_of

STREAMS = "kgroup-streams-application"
GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", KAFKA)
def test_the_story_is_the_one_on_file(name: str) -> None:
    """Golden text; KGROUP_UPDATE_GOLDEN=1 writes it anew after a new recording: read the difference."""
    path = GOLDEN / f"{name}.txt"
    told = text_of(story_of(name))
    if os.environ.get("KGROUP_UPDATE_GOLDEN"):
        path.write_text(told, encoding="utf-8")
    assert told == path.read_text(encoding="utf-8")


def without_ids_and_times(told: str) -> str:
    """The story with durations blanked and the ids that members made up numbered as they appear."""
    told = re.sub(r"(?<!session of )\b\d+ ms\b", "N ms", told)
    made_up = r"\bapp-[0-9a-f-]{18,}…|(?<![\w+/])[\w+/]{22}(?![\w+/])"
    for number, name in enumerate(dict.fromkeys(re.findall(made_up, told)), start=1):
        told = told.replace(name, f"member {number}")
    # a target lists its members by id, and so does a batch what they have
    told = re.sub(r"(target of epoch \d+: )(.*)", lambda m: m[1] + "; ".join(sorted(m[2].split("; "))), told)
    places = r"(?:^(\S+) consumer e\d+ member-[rw].*\n)(?:^\1 consumer e\d+ member-[rw].*\n)+"
    return re.sub(places, lambda m: "".join(sorted(m[0].splitlines(keepends=True))), told, flags=re.MULTILINE)


def life_of_an_application(name: str) -> list[str]:
    """What happened once its first thread had its tasks, but for commits, ids, times and places in the log.

    Before, it is a matter of milliseconds whether the internal topics or the first assignment come first.
    """
    told = [event for event in story_of(name).events if event.epoch > 3 or event.epoch < 0]
    lines = "".join(f"{e.kind} e{e.epoch}: {e.detail} <- {e.cause}\n" for e in told if e.kind != "committed")
    lines = re.sub(r"\b[\d.]+ m?s\b", "N ms", lines)
    for number, made_up in enumerate(dict.fromkeys(e.member_id for e in told if e.member_id), start=1):
        lines = lines.replace(made_up, f"thread {number}")
    lines = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "process", lines)
    return without_ids_and_times(lines).splitlines()


def test_our_own_broker_tells_of_an_application_what_kafka_tells() -> None:
    """Kafka Streams 4.3.1, the streams protocol: the same events, causes and tasks."""
    ours, kafkas = map(life_of_an_application, (STREAMS, STREAMS.removeprefix("kgroup-")))
    assert ours == kafkas and len(kafkas) > 40


@pytest.mark.parametrize("ours", [name for name in OURS if name != STREAMS])
def test_our_own_broker_tells_the_story_that_kafka_tells(ours: str) -> None:
    """The same script on either broker: the same records at the same offsets, but for ids and times."""
    on_kafka = (GOLDEN / f"{ours.removeprefix('kgroup-')}.txt").read_text(encoding="utf-8")
    assert without_ids_and_times(text_of(story_of(ours))) == without_ids_and_times(on_kafka)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_missing_and_nothing_suspicious_in_a_whole_recording(name: str) -> None:
    story = story_of(name)
    assert all(covered.from_the_start for covered in story.coverage)
    assert not [event for event in story.events if event.suspicious]


def one(events: list[Event], kind: Kind, instance: str | None = None) -> Event:
    (event,) = (e for e in events if e.kind is kind and (instance is None or e.instance_id == instance))
    return event


def all_of(events: list[Event], kind: Kind) -> list[Event]:
    return [event for event in events if event.kind is kind]


def test_a_crashed_static_member_is_gone_and_the_records_do_not_say_how() -> None:
    events = story_of("crashed-static-member").events
    gone = one(events, Kind.MEMBER_LEFT_OR_EXPIRED, "pay-1")
    assert not gone.proven and "silent for its session of 6 s" in (gone.cause or "")
    after = next(e for e in events if e.kind is Kind.REBALANCE_COMPLETED and e.offset == gone.offset)
    assert after.cause == "pay-1 left or expired"


def test_a_rolling_static_bounce_replaces_members_without_a_rebalance() -> None:
    events = story_of("rolling-static-bounce").events
    replaced = all_of(events, Kind.MEMBER_REPLACED)
    assert [e.instance_id for e in replaced] == ["pay-0", "pay-1"]
    assert all(e.epoch == e.previous_epoch == 2 for e in replaced)
    assert max(e.epoch for e in all_of(events, Kind.REBALANCE_COMPLETED)) == 2


def test_a_duplicate_instance_id_in_a_classic_group_looks_like_a_restart_and_is_told_so() -> None:
    replaced = one(story_of("duplicate-instance-classic").events, Kind.MEMBER_REPLACED)
    assert not replaced.proven
    assert "fenced" in replaced.detail and "two run with one instance id" in (replaced.cause or "")


def test_a_refused_newcomer_of_a_consumer_group_leaves_no_record() -> None:
    events = story_of("duplicate-instance-consumer").events
    assert len(all_of(events, Kind.MEMBER_JOINED)) == 1
    assert not all_of(events, Kind.MEMBER_REPLACED)


def test_partitions_of_a_member_that_left_for_now_have_no_owner_until_it_expires() -> None:
    events = story_of("consumer-group-life").events
    left = [e for e in all_of(events, Kind.MEMBER_LEFT_FOR_NOW) if e.instance_id == "pay-1"]
    back = one(events, Kind.MEMBER_REPLACED, "pay-1")
    assert len(left) == 2 and left[0].offset < back.offset < left[1].offset and back.proven
    gone = one(events, Kind.MEMBER_LEFT_OR_EXPIRED, "pay-1")
    taken = next(e for e in events if e.unowned and e.offset > gone.offset)
    assert taken.unowned_ms == taken.timestamp_ms - left[1].timestamp_ms


def test_a_stuck_revocation_names_who_held_the_partitions_and_for_how_long() -> None:
    events = story_of("stuck-revocation").events
    stuck = one(events, Kind.MEMBER_REVOKING)
    gone = next(e for e in events if e.kind is Kind.MEMBER_LEFT_OR_EXPIRED and e.member_id == stuck.member_id)
    assert "its whole rebalance timeout of 8 s" in gone.detail


def test_an_upgrade_and_the_way_back_are_told_with_what_they_cost() -> None:
    events = story_of("upgrade-and-back").events
    up, down = one(events, Kind.UPGRADED), one(events, Kind.DOWNGRADED)
    assert up.offset < down.offset and (up.protocol, down.protocol) == ("consumer", "classic")
    last = all_of(events, Kind.REBALANCE_COMPLETED)[-1]
    assert "the downgrade" in (last.cause or "") and (last.unowned_ms or 0) > 0


def test_a_rolling_upgrade_keeps_the_group_a_consumer_group() -> None:
    events = story_of("upgrade-for-good").events
    assert one(events, Kind.UPGRADED) and not all_of(events, Kind.DOWNGRADED)


def test_a_reset_by_hand_is_a_rewind_while_nobody_was_in_the_group() -> None:
    events = story_of("reset-by-hand").events
    rewinds = all_of(events, Kind.REWOUND)
    assert rewinds and all(e.proven and "no members" in (e.cause or "") for e in rewinds)
    assert one(events, Kind.COMMITTED_OUTSIDE).count == 4
    found = {b.about: b for b in blame(events, events[0].group)}
    assert found["rewind"].evidence[0].kind is Kind.GROUP_EMPTIED


def test_a_deletion_is_proven_by_the_age_of_the_offsets() -> None:
    events = story_of("deletion").events
    assert one(events, Kind.OFFSETS_DELETED).proven
    assert one(events, Kind.GROUP_DELETED).proven


def test_transactions_end_as_their_markers_say() -> None:
    story = story_of("transactions")
    assert one(story.events, Kind.TRANSACTION_COMMITTED) and one(story.events, Kind.TRANSACTION_ABORTED)
    ((_, state),) = story.states
    assert {str(p): c.offset for p, c in state.offsets.items()} == {"orders-0": 3, "orders-1": 3}
    assert not any(state.pending.values())


def test_expiry_looks_like_a_deletion_and_is_told_so_and_compressed_batches_are_read() -> None:
    gone = one(story_of("retention-zstd").events, Kind.GROUP_DELETED)
    assert not gone.proven and "do not say" in (gone.cause or "")

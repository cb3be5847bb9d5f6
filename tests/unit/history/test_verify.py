"""What `--verify` compares: every field that both the records and a describe have."""

from dataclasses import asdict
from typing import Any

import pytest

from kgroup.admin.read.replayed import description
from kgroup.history.fold.state import GroupState
from kgroup.history.replay import replay
from kgroup.history.verify import About, differences, hidden_positions, uncompared
from kgroup.protocol import group_records as r

from .incidents import NAMES, story_of
from .logs import MemoryLog, batch


def pairs_of(name: str, **options: Any) -> list[tuple[GroupState, dict[str, Any]]]:
    """Each group of a recording, and what a cluster that agrees would say of it."""
    found = []
    for partition, state in story_of(name, **options).states:
        said = asdict(description(state, partition))
        for member in said["members"]:
            if state.kind == "classic":
                member["member_epoch"] = member["target_assignment"] = None
        found.append((state, said))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_cluster_that_agrees_makes_no_difference(name: str) -> None:
    assert all(list(differences(state, said)) == [] for state, said in pairs_of(name))


ELSEWHERE: dict[str, Any] = {"topic": "elsewhere", "partitions": [0]}
GROUP = {"type": "classic", "state": "Assigning", "group_epoch": 99, "assignment_epoch": 99}
MEMBER = {
    "instance_id": "pay-9",
    "client_id": "other",
    "host": "10.9.9.9",
    "rack_id": "r",
    "protocol": "classic",
    "subscribed_topics": ["elsewhere"],
    "subscribed_regex": "e.*",
    "assignment": [ELSEWHERE],
    "target_assignment": [ELSEWHERE],
    "member_epoch": 99,
}
OFFSET = {"committed_offset": 99, "leader_epoch": 99, "metadata": "other", "partition": 99}


@pytest.mark.parametrize(
    ("where", "field"),
    [(w, f) for w, d in (("", GROUP), ("members", MEMBER), ("offsets", OFFSET)) for f in d],
)
def test_every_field_counts(where: str, field: str) -> None:
    ((state, said),) = pairs_of("upgrade-for-good")
    assert said["members"] and said["offsets"]
    place = said[where][0] if where else said
    place[field] = {"": GROUP, "members": MEMBER, "offsets": OFFSET}[where][field]
    assert list(differences(state, said))


def test_partitions_of_topics_that_are_gone_are_no_difference() -> None:
    """Brokers leave them out, whoever has them; with topics that are there they count."""
    ((state, said),) = pairs_of("upgrade-for-good")
    for member in said["members"]:
        member["assignment"] = member["target_assignment"] = []
    unlike = list(differences(state, said))
    assert unlike and all(each.about is About.PARTITIONS for each in unlike)
    assert list(differences(state, said, {})) == []
    ids = {
        t.topic_id: "orders"
        for current in state.consumer.currents.values()
        for t in current.assigned_partitions
    }
    assert list(differences(state, said, ids)) == unlike


@pytest.mark.parametrize("where", ["members", "offsets"])
def test_what_one_side_has_alone_is_a_difference(where: str) -> None:
    ((state, said),) = pairs_of("upgrade-for-good")
    said[where] = said[where][1:]
    assert len(list(differences(state, said))) == 1


def test_a_classic_rebalance_is_in_no_record() -> None:
    ((state, said),) = pairs_of("crashed-static-member")
    said |= {"state": "PreparingRebalance", "members": said["members"][:1]}
    assert list(differences(state, said)) == []
    said["state"] = "Stable"
    assert len(list(differences(state, said))) == 1


def replayed(*records: tuple[bytes, bytes | None]) -> tuple[GroupState, dict[str, Any]]:
    ((partition, state),) = replay([MemoryLog(batch(0, records))]).states
    return state, asdict(description(state, partition))


def test_what_an_old_broker_does_not_tell_is_no_difference() -> None:
    """Kafka 2.3 tells no instance ids, and has the assignment where the metadata belongs."""
    ((state, said),) = pairs_of("crashed-static-member")
    for told in said["members"]:
        told |= {"instance_id": None, "instance_id_known": False, "subscribed_topics": None}
    assert list(differences(state, said)) == []
    untold = [
        "instance ids: the broker does not report them",
        "subscriptions: the broker does not report them",
    ]
    assert uncompared(state, said) == untold
    for told in said["members"]:
        told |= {"instance_id_known": True, "subscribed_topics": ("elsewhere",)}
    assert len(list(differences(state, said))) == 2 * len(said["members"]) and not uncompared(state, said)


def test_bytes_of_other_protocols_are_compared_as_they_are() -> None:
    """Connect's workers: what they own is not known, neither here nor there, and that is not nothing."""
    worker = r.MemberMetadata(
        member_id="w", client_id="c", client_host="/h", session_timeout=1, subscription=b"s", assignment=b"a"
    )
    value = r.GroupMetadataValue(
        protocol_type="connect", generation=1, protocol="sessioned", members=(worker,)
    )
    state, said = replayed((r.encode_key(r.GroupMetadataKey(group="pay")), r.encode_value(value)))
    (told,) = said["members"]
    assert (told["assignment"], told["subscribed_topics"], told["raw_assignment"]) == (None, None, "YQ==")
    told |= {"member_epoch": None, "target_assignment": None}
    assert list(differences(state, said)) == [] and uncompared(state, said) == []
    assert list(differences(state, {**said, "members": [{**told, "raw_assignment": "Yg=="}]}))


def test_a_group_without_records_may_be_listed_while_it_is_empty() -> None:
    ((_, said),) = pairs_of("crashed-static-member")
    (told,) = differences(None, said)
    assert told.text == "the log has no record of it, the cluster reports Stable"
    assert list(differences(None, {**said, "state": "Empty", "members": [], "offsets": []})) == []
    assert list(differences(None, {**said, "state": "Empty", "members": []})), "it has commits"


@pytest.mark.parametrize("unread", [True, False], ids=["unread", "no-right-to-topics"])
def test_positions_that_the_cluster_keeps_to_itself_are_no_difference(unread: bool) -> None:
    ((state, said),) = pairs_of("crashed-static-member")
    assert said["offsets"]
    error = {"item": "offsets" if unread else said["group_id"], "code": "X", "message": "not told"}
    hidden = {**said, "offsets": [], "errors": [error]}
    assert list(differences(state, hidden)) == []
    assert uncompared(state, hidden) == ["offsets: not told"]
    assert uncompared(None, {**hidden, "state": "Empty", "members": []}) == ["offsets: not told"]


def test_those_that_it_tells_beside_are_compared() -> None:
    ((state, said),) = pairs_of("crashed-static-member")
    said["errors"] = [{"item": said["group_id"], "code": "X", "message": "may be incomplete"}]
    said["offsets"][0]["committed_offset"] += 1
    assert len(list(differences(state, {**said, "offsets": said["offsets"][:1]}))) == 1


def test_an_end_of_a_log_that_is_not_known_hides_no_position() -> None:
    ((state, said),) = pairs_of("crashed-static-member")
    said["errors"] = [{"item": "offsets", "code": "X", "message": "the end of t-0 is not known"}]
    assert hidden_positions(said) is None
    assert list(differences(state, {**said, "offsets": said["offsets"][1:]}))

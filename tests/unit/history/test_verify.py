"""What `--verify` compares: every field that both the records and a describe have."""

from dataclasses import asdict
from typing import Any

import pytest

from kgroup.cli.history_describe import description
from kgroup.history.state import GroupState
from kgroup.history.verify import differences

from .incidents import NAMES, story_of


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


def test_a_group_without_records_may_be_listed_while_it_is_empty() -> None:
    ((_, said),) = pairs_of("crashed-static-member")
    assert list(differences(None, said)) == ["the log holds nothing of it, the cluster says Stable"]
    assert list(differences(None, {**said, "state": "Empty", "members": [], "offsets": []})) == []
    assert list(differences(None, {**said, "state": "Empty", "members": []})), "it has commits"

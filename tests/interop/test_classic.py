"""Classic groups: every client kind against every server kind."""

from __future__ import annotations

import pytest

from .conftest import Case
from .driver import Client, DriverError, Member, fatal, settle
from .waiting import eventually

pytestmark = pytest.mark.interop


def test_dynamic_members_share_and_hand_over(case: Case, client: Client) -> None:
    """SM-01: without an instance id, joining and leaving rebalance at once."""
    topic = case.topic()
    everything = case.partitions(topic)
    first = case.join(client, topic)
    settle([first], everything)
    second = case.join(client, topic)
    settle([first, second], everything, each=2)
    described = eventually(lambda: (row := case.describe())["state"] == "Stable" and row)
    assert (described["type"], described["assignor"]) == ("Classic", "range")
    assert [each["instance"] for each in described["members"]] == [None, None]
    case.close(first)
    settle([second], everything)


def test_rolling_bounce_of_static_members_keeps_the_generation(
    case: Case, client: Client, java_client: Client
) -> None:
    """SM-26, SM-47, SM-52: each comes back within its session timeout, nothing moves, ids are new (SM-25)."""
    topic = case.topic(6)
    everything = case.partitions(topic, 6)
    witness = case.join(java_client, topic, instance="witness", session_ms=30_000)
    settle([witness], everything)
    bounced = [case.join(client, topic, instance=f"i{n}", session_ms=30_000) for n in range(2)]
    before = settle([witness, *bounced], everything, each=2)
    ids = _ids_by_instance(case)
    for position, member in enumerate(bounced):
        case.close(member)
        assert set(_ids_by_instance(case)) == set(ids), "closing a static member must not leave the group"
        bounced[position] = case.join(client, topic, instance=f"i{position}", session_ms=30_000)
        after = settle([witness, *bounced], everything, each=2)
        assert after[0].generation == before[0].generation
        assert after[1 + position].assignment == before[1 + position].assignment
    now = _ids_by_instance(case)
    assert now["witness"] == ids["witness"]
    assert now["i0"] != ids["i0"] and now["i1"] != ids["i1"]


def _ids_by_instance(case: Case) -> dict[str, str]:
    return {member["instance"]: member["member_id"] for member in case.describe()["members"]}


def test_static_member_away_past_its_session_timeout_is_replaced(
    case: Case, client: Client, java_client: Client
) -> None:
    """SM-33, SM-69: expiry evicts the static member; its return is a join like any other."""
    topic = case.topic()
    everything = case.partitions(topic)
    stays = case.join(java_client, topic, instance="stays", session_ms=30_000)
    goes = case.join(client, topic, instance="goes", session_ms=2_000)
    before = settle([stays, goes], everything, each=2)
    case.close(goes)
    alone = settle([stays], everything)
    assert alone[0].generation == before[0].generation + 1
    back = case.join(client, topic, instance="goes", session_ms=2_000)
    after = settle([stays, back], everything, each=2)
    assert after[0].generation > alone[0].generation


@pytest.mark.feature("fenced")
def test_second_holder_of_an_instance_id_fences_the_first(case: Case, client: Client) -> None:
    """SM-26: the newcomer takes the assignment over, the old member ends with FENCED_INSTANCE_ID."""
    topic = case.topic()
    old = case.join(client, topic, instance="one", session_ms=30_000)
    settle([old], case.partitions(topic))
    new = case.join(client, topic, instance="one", session_ms=30_000)
    settle([new], case.partitions(topic))
    assert _end_of(old) == "FENCED_INSTANCE_ID"
    assert new.state().fatal is None
    assert [member["instance"] for member in case.describe()["members"]] == ["one"]


def _end_of(member: Member) -> str:
    """What the member ends with.

    kafka-python tells when it is fenced as it joins; between joins it stops silently, and tells at a commit.
    """
    if not member.name.startswith("kafka-python"):
        return fatal(member)

    def refusal() -> str:
        if ended := member.state().fatal:
            return ended
        with pytest.raises(DriverError) as refused:
            member.commit()
        assert refused.value.code != "REBALANCE_IN_PROGRESS"
        return refused.value.code

    return eventually(refusal, what="a commit is refused for good")


def test_commit_and_resume(case: Case, client: Client) -> None:
    topic = case.topic(2)
    case.produce(topic, ["a", "b", "c"], partition=0)
    case.produce(topic, ["d"], partition=1)
    first = case.join(client, topic)
    eventually(lambda: len(first.records()) == 4, what="four records read")
    first.commit({(topic, 0): 2, (topic, 1): 1})
    assert first.committed((topic, 0), (topic, 1)) == {(topic, 0): 2, (topic, 1): 1}
    case.close(first)
    second = case.join(client, topic)
    assert eventually(second.records) == [(topic, 0, 2, "c")]
    second.commit()
    offsets = case.call("offsets", group=case.group)
    assert sorted(offsets) == [[topic, 0, 3], [topic, 1, 1]]


@pytest.mark.feature("pattern")
def test_regex_subscription_follows_new_topics(case: Case, client: Client) -> None:
    wanted, _other = case.topic(2, "yes-1"), case.topic(2, "no-1")
    member = case.join(client, pattern=f"^{case.group}-yes-.*")
    settle([member], case.partitions(wanted, 2))
    later = case.topic(1, "yes-2")
    settle([member], case.partitions(wanted, 2) | {(later, 0)})


@pytest.mark.feature("cooperative")
def test_cooperative_sticky_moves_only_what_must_move(case: Case, client: Client) -> None:
    topic = case.topic()
    everything = case.partitions(topic)
    first = case.join(client, topic, assignor="cooperative-sticky")
    settle([first], everything)
    second = case.join(client, topic, assignor="cooperative-sticky")
    held = settle([first, second], everything, each=2)
    third: Member = case.join(client, topic, assignor="cooperative-sticky")
    now = settle([first, second, third], everything)
    assert now[0].assignment <= held[0].assignment and now[1].assignment <= held[1].assignment
    assert case.describe()["assignor"] == "cooperative-sticky"

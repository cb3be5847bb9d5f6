"""joins, syncs, beats, leaves, removes: the classic protocol.

    a joins [ID] [id=] [instance=] [session=] [rebalance=] [type=] [protocols=range,roundrobin]
            [topics=t1,t2 | meta=BYTES] [owned=t1:0-3] [subscription=VERSION] [cut=BYTES_CUT_OFF]
    a syncs ID gen=1 [instance=] [type=] [protocol=] [m1=t1:0-3 m2=BYTES]
    a beats ID gen=1 [instance=]
    a leaves ID [INSTANCE/ID] [INSTANCE/] …          one batch, or one member before version 3
    admin removes INSTANCE …

A join without an id comes back with the id it is handed (KIP-394), as clients do; `id=` asks just once.
"""

from __future__ import annotations

from typing import Any

from kgroup.domain import TopicPartition
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kgroup.protocol.subscription import Subscription

from .names import Names, assignment_bytes, assignment_text, by_number, partitions_in
from .verbs import Ask, Verb, error

MEMBER_ID_REQUIRED_SINCE = 4
PROTOCOL_NAMES_SINCE = 5
LEAVE_BATCH_SINCE = 3


def _join(ask: Ask) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=ask.group_id,
        session_timeout_ms=ask.time("session", 10_000),
        rebalance_timeout_ms=ask.time("rebalance", 20_000),
        member_id=ask.member_id,
        group_instance_id=ask.given("instance"),
        protocol_type=ask.option("type", "consumer"),
        protocols=tuple(
            JoinGroupRequestProtocol(name=name, metadata=_metadata(ask))
            for name in ask.option("protocols", "range").split(",")
            if name
        ),
    )


def _metadata(ask: Ask) -> bytes:
    given = ask.given("meta")
    if given is not None:
        return given.encode()
    owned = tuple(
        TopicPartition(ask.names.topic(topic), number)
        for topic, numbers in partitions_in(ask.option("owned", ""))
        for number in numbers
    )
    topics = tuple(ask.names.topic(name) for name in ask.option("topics", "").split(",") if name)
    whole = Subscription(topics, owned=owned).encode(ask.number("subscription", 3))
    return whole[: len(whole) - ask.number("cut", 0)]


def _joined(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    names = ask.names
    member = names.member(response.member_id)
    if response.error_code:
        return f"{error(response.error_code)} {member}".strip(), {"protocol": _none(response.protocol_name)}
    fields = {
        "generation": str(response.generation_id),
        "leader": names.member(response.leader),
        "type": _none(response.protocol_type),
        "protocol": _none(response.protocol_name),
        "skip": str(response.skip_assignment).lower(),
        "members": names.members(m.member_id for m in response.members),
        "instances": ",".join(sorted(m.group_instance_id for m in response.members if m.group_instance_id)),
        "metadata": ",".join(sorted(_metadata_text(m.metadata, names) for m in response.members)),
    }
    return member, fields


def _metadata_text(data: bytes, names: Names) -> str:
    """A subscription's topics, joined by +; what is no subscription as it stands."""
    try:
        topics = Subscription.decode(data).topics
    except Exception:
        return data.decode(errors="replace")
    return "+".join(sorted(map(names.topic_symbol, topics))) or "nothing"


def _none(text: str | None) -> str:
    return "null" if text is None else text


def _learn_join(response: Any, names: Names) -> None:
    names.member(response.member_id)


def _sync(ask: Ask) -> SyncGroupRequest:
    names_protocol = ask.version >= PROTOCOL_NAMES_SINCE
    given = {name: text for name, text in ask.row.options.items() if ask.names.knows(name) or "-" in name}
    return SyncGroupRequest(
        group_id=ask.group_id,
        generation_id=ask.number("gen", -1),
        member_id=ask.member_id,
        group_instance_id=ask.given("instance"),
        protocol_type=_nullable(ask.option("type", "consumer")) if names_protocol else None,
        protocol_name=_nullable(ask.option("protocol", "range")) if names_protocol else None,
        assignments=tuple(
            SyncGroupRequestAssignment(
                member_id=ask.names.member_id(name), assignment=assignment_bytes(text, ask.names)
            )
            for name, text in given.items()
        ),
    )


def _nullable(text: str) -> str | None:
    return None if text == "null" else text


def _synced(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    if response.error_code:
        return error(response.error_code), {"assignment": assignment_text(response.assignment, ask.names)}
    return "", {
        "assignment": assignment_text(response.assignment, ask.names),
        "type": _none(response.protocol_type),
        "protocol": _none(response.protocol_name),
    }


def _beat(ask: Ask) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=ask.group_id,
        generation_id=ask.number("gen", -1),
        member_id=ask.member_id,
        group_instance_id=ask.given("instance"),
    )


def _leave(ask: Ask) -> LeaveGroupRequest:
    if ask.version < LEAVE_BATCH_SINCE:
        return LeaveGroupRequest(group_id=ask.group_id, member_id=ask.member_id)
    return LeaveGroupRequest(group_id=ask.group_id, members=tuple(_leaver(w, ask) for w in ask.arguments))


def _leaver(word: str, ask: Ask) -> MemberIdentity:
    instance, slash, name = word.rpartition("/")
    return MemberIdentity(
        member_id=ask.names.member_id(name), group_instance_id=instance or None if slash else None
    )


def _remove(ask: Ask) -> LeaveGroupRequest:
    """What an operator sends: instance ids, and nothing of member ids."""
    return LeaveGroupRequest(
        group_id=ask.group_id,
        members=tuple(
            MemberIdentity(member_id="", group_instance_id=instance, reason="removed by an operator")
            for word in ask.arguments
            for instance in word.split(",")
        ),
    )


def _left(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    if response.error_code or ask.version < LEAVE_BATCH_SINCE:
        return error(response.error_code), {}
    results: dict[str, str] = {}
    for member in response.members:
        name = ask.names.member(member.member_id)
        key = f"{member.group_instance_id}/{name}" if member.group_instance_id else name or "/"
        results[key] = error(member.error_code)
    return "NONE" if not results else "", dict(sorted(results.items(), key=lambda item: by_number(item[0])))


def _code(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    return error(response.error_code), {}


VERBS = {
    "joins": Verb(JoinGroupRequest, _join, _joined, _learn_join),
    "syncs": Verb(SyncGroupRequest, _sync, _synced),
    "beats": Verb(HeartbeatRequest, _beat, _code),
    "leaves": Verb(LeaveGroupRequest, _leave, _left),
    "removes": Verb(LeaveGroupRequest, _remove, _left),
}

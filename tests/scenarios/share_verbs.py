"""shares, surveys, starts, begins, drops: share groups (KIP-932), and what an operator asks of them.

    a shares [ID] epoch=0 topics=t1,t2 [rack=]
    admin surveys [group=h]
    admin starts [t1:0-3] [group=h]
    admin begins at=t1:0:5,t1:1:7 [group=h]
    admin drops t1,t2 [group=h]

The member id is the actor's name, unless the row names another. At epoch 0 a row says what a client must;
later rows say what they name. `starts` shows start offsets, of all partitions with state if it names none;
`begins` sets them, `drops` deletes them. `-` stands for no word about an assignment.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from kgroup.protocol.messages import alter_share_group_offsets as altering
from kgroup.protocol.messages import delete_share_group_offsets as deleting
from kgroup.protocol.messages import describe_share_group_offsets as offsets
from kgroup.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from kgroup.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

from .admin_verbs import pairs
from .names import Names, partitions_in, partitions_text
from .verbs import Ask, Verb, error


def _heartbeat(ask: Ask) -> ShareGroupHeartbeatRequest:
    given = ask.given("topics")
    return ShareGroupHeartbeatRequest(
        group_id=ask.group_id,
        member_id=ask.member_id if ask.arguments else ask.row.words[0],
        member_epoch=ask.number("epoch", 0),
        rack_id=ask.given("rack"),
        subscribed_topic_names=None if given is None else tuple(map(ask.names.topic, _words(given))),
    )


def _words(given: str) -> list[str]:
    return [word for word in given.split(",") if word != "none"]


def _answer(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    if response.error_code:
        return error(response.error_code), {"message": _plain(response.error_message, ask.names)}
    assigned = response.assignment
    return "" if response.member_id == ask.row.words[0] else response.member_id, {
        "epoch": str(response.member_epoch),
        "interval": str(response.heartbeat_interval_ms * ask.scale),
        "assigned": "-" if assigned is None else _held(assigned.topic_partitions, ask.names) or "none",
    }


def _held(topics: Iterable[Any], names: Names) -> str:
    return partitions_text((names.topic_of_id(each.topic_id), each.partitions) for each in topics)


def _plain(text: str | None, names: Names) -> str:
    return (text or "").replace(" ", "_").replace(names.prefix, "")


def _survey(ask: Ask) -> ShareGroupDescribeRequest:
    return ShareGroupDescribeRequest(group_ids=(ask.group_id,))


def _surveyed(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    (group,) = response.groups
    names = ask.names
    if group.error_code:
        return error(group.error_code), {"message": _plain(group.error_message, names)}
    members = group.members
    topics = ((m.member_id, "/".join(map(names.topic_symbol, m.subscribed_topic_names))) for m in members)
    return group.group_state, {
        "epoch": str(group.group_epoch),
        "target": str(group.assignment_epoch),
        "assignor": group.assignor_name,
        "members": names.members(m.member_id for m in members),
        "epochs": pairs(names, ((m.member_id, str(m.member_epoch)) for m in members)),
        "topics": pairs(names, topics),
        "assigned": pairs(
            names, ((m.member_id, _held(m.assignment.topic_partitions, names)) for m in members)
        ),
    }


def _starts(ask: Ask) -> offsets.DescribeShareGroupOffsetsRequest:
    asked = None
    if ask.arguments:
        asked = tuple(
            offsets.DescribeShareGroupOffsetsRequestTopic(
                topic_name=ask.names.topic(topic), partitions=tuple(numbers)
            )
            for topic, numbers in partitions_in(ask.arguments[0])
        )
    group = offsets.DescribeShareGroupOffsetsRequestGroup(group_id=ask.group_id, topics=asked)
    return offsets.DescribeShareGroupOffsetsRequest(groups=(group,))


def _started(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    (group,) = response.groups
    if group.error_code:
        return error(group.error_code), {"message": _plain(group.error_message, ask.names)}
    return "", {
        f"{ask.names.topic_symbol(topic.topic_name)}:{each.partition_index}": error(each.error_code)
        if each.error_code
        else str(each.start_offset)
        for topic in group.topics
        for each in topic.partitions
    }


def _begin(ask: Ask) -> altering.AlterShareGroupOffsetsRequest:
    wanted = [each.split(":") for each in ask.option("at", "").split(",")]
    return altering.AlterShareGroupOffsetsRequest(
        group_id=ask.group_id,
        topics=tuple(
            altering.AlterShareGroupOffsetsRequestTopic(
                topic_name=ask.names.topic(name),
                partitions=tuple(
                    altering.AlterShareGroupOffsetsRequestPartition(
                        partition_index=int(number), start_offset=int(offset)
                    )
                    for _, number, offset in rows
                ),
            )
            for name, rows in groupby(wanted, lambda row: row[0])
        ),
    )


def _begun(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    if response.error_code:
        return error(response.error_code), {"message": _plain(response.error_message, ask.names)}
    return "", {
        f"{ask.names.topic_symbol(topic.topic_name)}:{each.partition_index}": error(each.error_code)
        for topic in response.responses
        for each in topic.partitions
    }


def _forget(ask: Ask) -> deleting.DeleteShareGroupOffsetsRequest:
    topics = tuple(
        deleting.DeleteShareGroupOffsetsRequestTopic(topic_name=ask.names.topic(name))
        for name in ask.arguments[0].split(",")
    )
    return deleting.DeleteShareGroupOffsetsRequest(group_id=ask.group_id, topics=topics)


def _forgotten(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    if response.error_code:
        return error(response.error_code), {"message": _plain(response.error_message, ask.names)}
    return "", {
        ask.names.topic_symbol(topic.topic_name): error(topic.error_code) for topic in response.responses
    }


VERBS = {
    "shares": Verb(ShareGroupHeartbeatRequest, _heartbeat, _answer),
    "surveys": Verb(ShareGroupDescribeRequest, _survey, _surveyed),
    "starts": Verb(offsets.DescribeShareGroupOffsetsRequest, _starts, _started),
    "begins": Verb(altering.AlterShareGroupOffsetsRequest, _begin, _begun),
    "drops": Verb(deleting.DeleteShareGroupOffsetsRequest, _forget, _forgotten),
}

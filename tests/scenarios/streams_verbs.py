"""processes, examines: the streams protocol (KIP-1071), and what an operator asks of its groups.

    a processes [ID] epoch=0 topology=s:t1,t2+log/r:t3 [topology-epoch=1] [process=p] [rebalance=] [rack=]
                [active=s:0-1/r:0] [standby=] [instance=] [shutdown=true] [endpoint=host:9000]
    admin examines [group=h]

The member id is the actor's name, and each actor a process of its own, unless the row names another. At
epoch 0 a row says what a client must: its topology, that it has no tasks, and its rebalance timeout. Later
rows say what they name; who names active or standby tasks names all. In a topology `s:t1,t2+log` is the
subtopology s, which reads t1 and t2 and keeps the changelog `log`. `none` stands for no tasks, `-` for no
word about them.
"""

from __future__ import annotations

from typing import Any

from kgroup.coordinator.streams.topology import StatusCode
from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kgroup.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    TaskIds,
    Topology,
)
from kgroup.protocol.streams_records import Endpoint, Subtopology, TopicInfo

from .admin_verbs import pairs
from .names import Names, partitions_in, partitions_text
from .verbs import Ask, Verb, error

NOT_GIVEN = -1


def _heartbeat(ask: Ask) -> StreamsGroupHeartbeatRequest:
    epoch = ask.number("epoch", 0)
    joins = epoch == 0
    actor = ask.row.words[0]
    named = {"active", "standby", "warmup"} & ask.row.options.keys()
    host, _, port = ask.option("endpoint", "").partition(":")
    return StreamsGroupHeartbeatRequest(
        group_id=ask.group_id,
        member_id=ask.member_id if ask.arguments or "id" in ask.row.options else actor,
        member_epoch=epoch,
        instance_id=ask.given("instance"),
        rack_id=ask.given("rack"),
        rebalance_timeout_ms=ask.time("rebalance", 20_000 if joins else NOT_GIVEN),
        topology=_topology(ask),
        active_tasks=_tasks(ask, "active", joins or bool(named)),
        standby_tasks=_tasks(ask, "standby", joins or bool(named)),
        warmup_tasks=_tasks(ask, "warmup", joins or bool(named)),
        process_id=ask.option("process", actor) if joins else ask.given("process"),
        user_endpoint=Endpoint(host=host, port=int(port)) if host else None,
        shutdown_application=ask.option("shutdown", "false") == "true",
    )


def _topology(ask: Ask) -> Topology | None:
    given = ask.given("topology")
    if given is None:
        return None
    parts = []
    for text in given.split("/"):
        name, _, rest = text.partition(":")
        sources, *logs = rest.split("+")
        parts.append(
            Subtopology(
                subtopology_id=name,
                source_topics=tuple(map(ask.names.topic, sources.split(","))),
                state_changelog_topics=tuple(TopicInfo(name=ask.names.topic(log)) for log in logs),
            )
        )
    return Topology(epoch=ask.number("topology-epoch", 0), subtopologies=tuple(parts))


def _tasks(ask: Ask, kind: str, said: bool) -> tuple[TaskIds, ...] | None:
    given = ask.option(kind, "none")
    found = partitions_in("" if given == "none" else given)
    told = tuple(TaskIds(subtopology_id=name, partitions=tuple(numbers)) for name, numbers in found)
    return told if said else None


def _answer(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    if response.error_code:
        return error(response.error_code), {"message": _plain(response.error_message, ask.names)}
    status = response.status or ()
    return "" if response.member_id == ask.row.words[0] else response.member_id, {
        "epoch": str(response.member_epoch),
        "interval": str(response.heartbeat_interval_ms * ask.scale),
        "active": _told(response.active_tasks),
        "standby": _told(response.standby_tasks),
        "warmup": _told(response.warmup_tasks),
        "status": ",".join(StatusCode(each.status_code).name for each in status) or "none",
        "detail": "/".join(_plain(each.status_detail, ask.names) for each in status),
    }


def _plain(text: str | None, names: Names) -> str:
    return (text or "").replace(" ", "_").replace(names.prefix, "")


def _told(tasks: Any) -> str:
    return "-" if tasks is None else _held(tasks) or "none"


def _held(tasks: Any) -> str:
    return partitions_text((each.subtopology_id, each.partitions) for each in tasks if each.partitions)


def _examine(ask: Ask) -> StreamsGroupDescribeRequest:
    return StreamsGroupDescribeRequest(group_ids=(ask.group_id,))


def _examined(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    (group,) = response.groups
    names = ask.names
    if group.error_code:
        return error(group.error_code), {"message": _plain(group.error_message, names)}
    members = group.members
    parts = group.topology.subtopologies or () if group.topology else ()
    return group.group_state, {
        "epoch": str(group.group_epoch),
        "target": str(group.assignment_epoch),
        "topology": "/".join(
            f"{part.subtopology_id}:{','.join(map(names.topic_symbol, part.source_topics))}"
            + "".join(f"+{names.topic_symbol(t.name)}={t.partitions}" for t in part.state_changelog_topics)
            for part in parts
        ),
        "topology-epoch": str(group.topology.epoch) if group.topology else "",
        "members": names.members(m.member_id for m in members),
        "epochs": pairs(names, ((m.member_id, str(m.member_epoch)) for m in members)),
        "processes": pairs(names, ((m.member_id, m.process_id) for m in members)),
        "active": pairs(names, ((m.member_id, _held(m.assignment.active_tasks)) for m in members)),
        "standby": pairs(names, ((m.member_id, _held(m.assignment.standby_tasks)) for m in members)),
        "targets": pairs(names, ((m.member_id, _held(m.target_assignment.active_tasks)) for m in members)),
    }


VERBS = {
    "processes": Verb(StreamsGroupHeartbeatRequest, _heartbeat, _answer),
    "examines": Verb(StreamsGroupDescribeRequest, _examine, _examined),
}

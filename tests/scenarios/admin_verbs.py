"""describes, inspects, lists, deletes: what an operator asks of groups.

The rows:

    admin describes [group=h] [version=5] [ops=true]             classic groups
    admin inspects [group=h]                                     consumer groups
    admin lists [states=Stable,Empty] [types=classic]            only groups of this scenario
    admin deletes g,h
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kgroup.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.list_groups import ListGroupsRequest

from .names import Names, assignment_text, by_number, partitions_text
from .verbs import Ask, Verb, alike, error


def _describe(ask: Ask) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(
        groups=(ask.group_id,), include_authorized_operations=ask.option("ops", "false") == "true"
    )


def _described(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    (group,) = response.groups
    names = ask.names
    head = group.group_state if not group.error_code else f"{error(group.error_code)} {group.group_state}"
    return head, {
        "type": group.protocol_type,
        "protocol": group.protocol_data,
        "members": names.members(m.member_id for m in group.members),
        "instances": pairs(names, ((m.member_id, m.group_instance_id or "") for m in group.members)),
        "clients": pairs(names, ((m.member_id, m.client_id) for m in group.members)),
        "hosts": ",".join(sorted({m.client_host for m in group.members})),
        "metadata": pairs(names, ((m.member_id, _size(m.member_metadata)) for m in group.members)),
        "assignments": pairs(
            names, ((m.member_id, assignment_text(m.member_assignment, names)) for m in group.members)
        ),
        "ops": str(group.authorized_operations),
        "message": (group.error_message or "").replace(" ", "_").replace(names.prefix, ""),
    }


def _size(data: bytes) -> str:
    return "some" if data else ""


def pairs(names: Names, values: Iterable[tuple[str, str]]) -> str:
    found = {names.member(member_id): value for member_id, value in values}
    return ",".join(f"{name}:{found[name]}" for name in sorted(found, key=by_number) if found[name])


def _inspect(ask: Ask) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(
        group_ids=(ask.group_id,), include_authorized_operations=ask.option("ops", "false") == "true"
    )


def _inspected(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    (group,) = response.groups
    names = ask.names
    message = (group.error_message or "").replace(" ", "_").replace(names.prefix, "")
    if group.error_code:
        return error(group.error_code), {"message": message}
    members = group.members
    return group.group_state, {
        "epoch": str(group.group_epoch),
        "target": str(group.assignment_epoch),
        "assignor": group.assignor_name,
        "members": names.members(m.member_id for m in members),
        "epochs": pairs(names, ((m.member_id, str(m.member_epoch)) for m in members)),
        "instances": pairs(names, ((m.member_id, m.instance_id or "") for m in members)),
        "racks": pairs(names, ((m.member_id, m.rack_id or "") for m in members)),
        "subscribed": pairs(
            names,
            (
                (m.member_id, "+".join(sorted(names.topic_symbol(t) for t in m.subscribed_topic_names)))
                for m in members
            ),
        ),
        "regexes": pairs(
            names, ((m.member_id, names.topic_symbol(m.subscribed_topic_regex or "")) for m in members)
        ),
        "assigned": pairs(names, ((m.member_id, _held(m.assignment, names)) for m in members)),
        "targets": pairs(names, ((m.member_id, _held(m.target_assignment, names)) for m in members)),
        "types": pairs(names, ((m.member_id, _TYPES[m.member_type]) for m in members)),
        "ops": str(group.authorized_operations),
    }


_TYPES = {-1: "unknown", 0: "classic", 1: "consumer"}


def _held(assignment: Any, names: Names) -> str:
    return partitions_text(
        (names.topic_symbol(t.topic_name), t.partitions) for t in assignment.topic_partitions if t.partitions
    )


def _list(ask: Ask) -> ListGroupsRequest:
    return ListGroupsRequest(
        states_filter=tuple(part for part in ask.option("states", "").split(",") if part),
        types_filter=tuple(part for part in ask.option("types", "").split(",") if part),
    )


def _listed(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    if response.error_code:
        return error(response.error_code), {}
    names = ask.names
    found = {
        names.group(group.group_id): "/".join((group.group_state, group.protocol_type, group.group_type))
        for group in response.groups
        if group.group_id.startswith(names.prefix)
    }
    return "nothing" if not found else "", dict(sorted(found.items()))


def _delete(ask: Ask) -> DeleteGroupsRequest:
    named = [name for word in ask.arguments for name in word.split(",")]
    return DeleteGroupsRequest(groups_names=tuple(ask.names.group_id(name) for name in named))


def _deleted(response: Any, ask: Ask) -> tuple[str, dict[str, str]]:
    return alike({ask.names.group(r.group_id): error(r.error_code) for r in response.results})


VERBS = {
    "describes": Verb(DescribeGroupsRequest, _describe, _described),
    "inspects": Verb(ConsumerGroupDescribeRequest, _inspect, _inspected),
    "lists": Verb(ListGroupsRequest, _list, _listed),
    "deletes": Verb(DeleteGroupsRequest, _delete, _deleted),
}

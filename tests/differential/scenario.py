"""A program that differs, in the notation of tests/scenarios: what Kafka was asked and what it answered.

Only what that notation has words for: members of group "g" in either protocol, time, topics at the start and
settings. The right side has what matters most of each reply; whoever keeps the scenario adds the rest.
"""

from __future__ import annotations

import json
from typing import Any

from kgroup.errors import ErrorCode
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

Event = dict[str, Any]
REPLIES: dict[str, Any] = {
    "join": JoinGroupResponse,
    "sync": SyncGroupResponse,
    "heartbeat": HeartbeatResponse,
    "leave": LeaveGroupResponse,
    "consumer_heartbeat": ConsumerGroupHeartbeatResponse,
}


class NoWords(Exception):
    """The notation cannot say this."""


class Writer:
    """Writes the rows; knows members by the names that the notation gives them."""

    def __init__(self, title: str, setup: dict[str, Any], start_ms: int) -> None:
        self.now, self.due = start_ms, False
        self.names: dict[str, str] = {}
        self.asked: dict[int, tuple[str, str, int]] = {}
        self.lines = [f"== {title}", "only virtual: time is moved by hand"]
        config = {"group.initial.rebalance.delay.ms": "3000", **setup["config"]}
        self.lines += [f"config {name}={value}" for name, value in config.items()]
        if setup.get("racks"):
            raise NoWords("racks")
        sizes = " ".join(f"{name}={size}" for name, size in setup["topics"].items())
        self.row(f"topics {sizes}", [])

    def row(self, left: str, told: list[str]) -> None:
        self.lines.append(f"{left:<60} | {'; '.join(told) or '-'}")

    def _add(self, told: list[str]) -> None:
        """What a timer without delay released belongs to the row that armed it."""
        left, _, right = self.lines[-1].partition(" | ")
        self.lines[-1] = f"{left} | {'; '.join([*([] if right == '-' else [right]), *told])}"

    def event(self, event: Event) -> None:
        """One operation, or the time that passes until the next."""
        kind, due = event["kind"], self.due
        self.due = any(deadline <= event["now"] for deadline in event["state"]["timers"].values())
        if kind in ("fire", "task", "advanced", "tasks"):
            told = self._told(event)
            waited, self.now = event["now"] - self.now, event["now"]
            if waited:
                self.row(f"wait {waited}", told)
            elif told:
                self._add(told)
            return
        if due or kind not in REPLIES or event["op"]["group"] != "g":
            raise NoWords(kind)
        self.asked[event["ticket"]] = event["client"], kind, event["version"]
        data, version = bytes.fromhex(event["request"]), event["version"]
        self.row(f"{event['client']} {getattr(self, '_' + kind)(data, version, event)}", self._told(event))

    def member(self, member_id: str, actor: str = "") -> str:
        """The member's name; its first mention in a reply numbers it."""
        if not member_id:
            return ""
        numbered = sum(name.startswith("m") for name in self.names.values())
        return self.names.setdefault(member_id, actor or f"m{numbered + 1}")

    def _known(self, member_id: str) -> str:
        return self.names.get(member_id) or member_id

    def _join(self, data: bytes, version: int, event: Event) -> str:
        request = JoinGroupRequest.decode(data, version)
        protocols = event["op"]["protocols"]
        first = {key: value for key, value in protocols[0].items() if key not in ("name", "owned")}
        if any({k: v for k, v in p.items() if k not in ("name", "owned")} != first for p in protocols):
            raise NoWords("subscriptions that differ")
        if {"raw", "user", "rack"} & first.keys():
            raise NoWords("subscription")
        said = f"joins {self._known(request.member_id) or 'id='} topics={','.join(first['topics'])}"
        said += f" protocols={','.join(p['name'] for p in protocols)} version={version}"
        said += f" session={request.session_timeout_ms} rebalance={request.rebalance_timeout_ms}"
        said += f" subscription={first['version']}" + (f" cut={first['cut']}" if first.get("cut") else "")
        said += _option("instance", request.group_instance_id)
        return said + (f" type={request.protocol_type}" if request.protocol_type != "consumer" else "")

    def _sync(self, data: bytes, version: int, event: Event) -> str:
        request = SyncGroupRequest.decode(data, version)
        if any(share for share in event["op"].get("shares", ())):
            raise NoWords("assignments")
        said = f"syncs {self._known(request.member_id)} gen={request.generation_id} version={version}"
        if version >= 5:
            said += f" type={request.protocol_type} protocol={request.protocol_name}"
        return said + _option("instance", request.group_instance_id)

    def _heartbeat(self, data: bytes, version: int, _: Event) -> str:
        request = HeartbeatRequest.decode(data, version)
        said = f"beats {self._known(request.member_id)} gen={request.generation_id}"
        return said + _option("instance", request.group_instance_id)

    def _leave(self, data: bytes, version: int, _: Event) -> str:
        request = LeaveGroupRequest.decode(data, version)
        if version < 3:
            return f"leaves {self._known(request.member_id)} version={version}"
        leavers = [
            (f"{m.group_instance_id}/" if m.group_instance_id else "") + self._known(m.member_id)
            for m in request.members
        ]
        return f"leaves {' '.join(leavers)} version={version}"

    def _consumer_heartbeat(self, data: bytes, version: int, event: Event) -> str:
        request = ConsumerGroupHeartbeatRequest.decode(data, version)
        if version == 0 or event["op"].get("owned") == "own" or not request.member_id:
            raise NoWords("what a member owns")
        name = self.member(request.member_id, event["client"])
        said = f"heartbeats{'' if name == event['client'] else ' ' + name} epoch={request.member_epoch}"
        names, owned = request.subscribed_topic_names, request.topic_partitions
        if names is not None:
            said += f" topics={','.join(names) or 'none'}"
        said += "" if owned is None else " owned=none"
        said += f" rebalance={request.rebalance_timeout_ms}" if request.rebalance_timeout_ms >= 0 else ""
        said += _option("regex", request.subscribed_topic_regex) + _option("rack", request.rack_id)
        return said + _option("assignor", request.server_assignor) + _option("instance", request.instance_id)

    def _told(self, event: Event) -> list[str]:
        return [self._reply(reply["ticket"], bytes.fromhex(reply["reply"])) for reply in event["replies"]]

    def _reply(self, ticket: int, data: bytes) -> str:
        client, kind, version = self.asked[ticket]
        reply = REPLIES[kind].decode(data, version)
        error = ErrorCode(reply.error_code).name
        if kind == "join":
            name = self.member(reply.member_id)
            whole = f"{name} generation={reply.generation_id} leader={self.member(reply.leader)}"
            return f"{client}: {f'{error} {name}'.strip() if reply.error_code else whole}"
        if reply.error_code or kind == "heartbeat":
            return f"{client}: {error}"
        if kind == "consumer_heartbeat":
            name = self.member(reply.member_id)
            return f"{client}: {'' if name == client else f'{name} '}epoch={reply.member_epoch}"
        return f"{client}: *"


def _option(name: str, value: str | None) -> str:
    if value is not None and (not value or " " in value or "|" in value):
        raise NoWords(name)
    return "" if value is None else f" {name}={value}"


def as_scenario(trace: bytes, title: str) -> str | None:
    """The program as a scenario, or None where the notation has no words for it."""
    lines = [json.loads(line) for line in trace.splitlines()]
    try:
        writer = Writer(title, lines[0]["setup"], lines[1]["now"])
        for event in lines[2:]:
            writer.event(event)
    except NoWords:
        return None
    return "\n".join(writer.lines)

"""The members that are present: the connection of each, and which of them are frozen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from kgroup.broker.call import AnyCall, Peer
from kgroup.coordinator.sessions import MemberName
from kgroup.errors import ConfigError
from kgroup.protocol.messages.leave_group import LeaveGroupRequest

Key: TypeAlias = tuple[str, str]
"""Group and member id."""
PRUNED_AT = 10_000
OWN_CLIENT = "kgroup-testing"
"""The client id of a test's own questions: no rule and no frozen broker concerns them."""


class Presence:
    """Members by group and member id, for as long as their connections are open."""

    def __init__(self) -> None:
        self.frozen: dict[Key, MemberName] = {}
        self._heard: dict[Key, Peer] = {}

    def note(self, call: AnyCall, member_id: str) -> None:
        """Note that the member uses this call's connection."""
        if call.peer is not None:
            if len(self._heard) >= PRUNED_AT:
                self._heard = {key: peer for key, peer in self._heard.items() if peer.is_open}
            self._heard[call.body.group_id, member_id] = call.peer

    def lives(self, group_id: str, member_id: str) -> bool:
        """Return whether a member counts as sending heartbeats: connected, and not frozen."""
        key = group_id, member_id
        peer = self._heard.get(key)
        return peer is not None and peer.is_open and key not in self.frozen

    def frozen_by(self, call: AnyCall) -> Key | None:
        """Return the frozen member that sent the call; one that LeaveGroup names only if it sent it."""
        body = call.body
        if not isinstance(body, LeaveGroupRequest):
            key = sender(call)
            return key if key in self.frozen else None
        named = ((body.group_id, member.member_id) for member in body.members)
        keys = [*named, (body.group_id, body.member_id)]
        return next((key for key in keys if key in self.frozen and self._heard.get(key) is call.peer), None)


def sender(call: AnyCall) -> Key | None:
    """Return the member that a call names as its sender; None if it names none."""
    body = call.body
    member_id = getattr(body, "member_id", "")
    return (body.group_id, member_id) if member_id and hasattr(body, "group_id") else None


def the_one(name: str, group_id: str | None, known: Iterable[MemberName], what: str) -> MemberName:
    """Return the member of that member id, instance id or client id; ConfigError unless there is just one."""
    there = [member for member in known if group_id in (None, member.group_id)]
    matching = [member for member in there if name in member[1:]]
    if len(matching) == 1:
        return matching[0]
    where = "" if group_id is None else f" in {group_id}"
    if matching:
        ids = ", ".join(f"{member.member_id} of {member.group_id}" for member in matching)
        raise ConfigError(f"{len(matching)} members{where} are called {name!r}", f"name one by its id: {ids}")
    names = ", ".join(dict.fromkeys(member.instance_id or member.member_id for member in there))
    raise ConfigError(
        f"no {what}{where} is called {name!r}", f"there are {names}" if names else "there is none"
    )

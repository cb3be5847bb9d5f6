"""Findings, and members and commands as they write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kgroup.admin.read.open_transactions import OpenTransaction
from kgroup.admin.shell import command, list_item
from kgroup.durations import utc
from kgroup.history.fold.view import RecordedMember

Found: TypeAlias = tuple[str, str, Sequence[str]]
"""The message of a finding, what to do about it, and its evidence."""
END_IT = "end it: restart its producer, or kafka-transactions.sh find-hanging, then abort"
"""What to do about a transaction that does not end."""


def name_of(member: RecordedMember) -> str:
    """Return the instance id, or the member id, with the client id where it is a bare UUID (KIP-848)."""
    return (member.instance_id or member.member_id) + member.of_client


def whereabouts(member: RecordedMember) -> str:
    """Return a member with its client id and host: a member id alone does not identify a process."""
    client = f" (client {member.client_id})" if member.client_id else ""
    return f"{member.instance_id or member.member_id}{client} on {member.host.removeprefix('/')}"


def transaction_text(open_: OpenTransaction) -> str:
    """Return an open transaction with its producer, and since when it is open."""
    since = f" since {utc(open_.start_ms)}" if open_.start_ms >= 0 else ""
    return f"transactional id {open_.transactional_id!r}, producer {open_.producer_id}, {open_.state}{since}"


def one_host(members: Iterable[RecordedMember]) -> str:
    """Return the one host of several members, as an addition to a sentence; "" if they have more."""
    hosts = [member.host.removeprefix("/") for member in members]
    return f", all on host {hosts[0]}" if len(hosts) > 1 and len(set(hosts)) == 1 else ""


def removal_of(group_id: str, suspects: Sequence[RecordedMember]) -> str:
    """Return the command that removes the one suspect; for several, a general one."""
    way = "--member-id ID"
    if len(suspects) == 1 and suspects[0].instance_id is not None:
        way = f"--instance-id {list_item(suspects[0].instance_id)}"
    elif len(suspects) == 1:
        way = f"--member-id {list_item(suspects[0].member_id)}"
    elif suspects and all(member.instance_id for member in suspects):
        way = "--instance-id ID"
    return command("remove-members", group_id, options=way)

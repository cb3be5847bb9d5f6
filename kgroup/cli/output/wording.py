"""Groups and members in words, shared by `list`, `describe` and `remove-members`."""

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from kgroup.admin.models import Assignment, ItemError, Member, Tasks
from kgroup.admin.statuses import PartitionStatus
from kgroup.cli.exit_codes import ExitCode, of_kafka_code
from kgroup.cli.output.tables import Block, Painted
from kgroup.domain import MemberStatus, count_of, ranges
from kgroup.errors import ErrorCode

STATE_STYLES: Mapping[str, str] = {
    "Stable": "green",
    MemberStatus.STABLE: "green",
    "Empty": "dim",
    "Dead": "red",
    "PreparingRebalance": "yellow",
    "CompletingRebalance": "yellow",
    "Assigning": "yellow",
    "Reconciling": "yellow",
    MemberStatus.REVOKING: "yellow",
    MemberStatus.WAITING: "yellow",
    MemberStatus.LEFT: "red",
}
STATUS_STYLES: Mapping[str, str] = {
    **dict.fromkeys(PartitionStatus, "yellow"),
    **dict.fromkeys(("idle", "reading"), "green"),
    **dict.fromkeys(("gone", "recreated", "beyond-end", "unleadered", "purged", "damaged", "stalled"), "red"),
}
_UUID = re.compile(r"(?P<name>.*-)?(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
# Kafka writes it URL-safe, librdkafka does not.
_KAFKA_UUID = re.compile(r"[A-Za-z0-9_+/-]{22}")


MARKS: Mapping[str, str] = {"error": "!!", "warn": "!", "info": "·"}
"""The severities of findings, the worst first, and how text marks them."""
_FINDING_STYLES = {"error": "red", "warn": "yellow"}


class _Found(Protocol):
    """A finding of a description or of a check-up."""

    @property
    def code(self) -> str: ...
    @property
    def severity(self) -> str: ...
    @property
    def message(self) -> str: ...


def finding_line(finding: _Found) -> Block:
    """Return the first line of a finding."""
    line = f"{MARKS[finding.severity]} {finding.code} {finding.message}"
    style = _FINDING_STYLES.get(finding.severity)
    return line if style is None else Painted(line, style)


def more_findings(findings: Sequence[_Found], top: int | None) -> Iterator[str]:
    """Yield how many findings `--top` leaves out, if any."""
    if top is not None and len(findings) > top:
        yield f"and {count_of(len(findings) - top, 'more finding')}"


UNKNOWN = "?"
"""An unknown number or name in a table; "-" is none."""


def assignment_text(assignment: Assignment) -> str:
    """Return `orders:0-2 pay:1`, or `-` for nothing."""
    return " ".join(f"{entry.topic}:{ranges(entry.partitions)}" for entry in assignment) or "-"


def owned_text(member: Member) -> str:
    """Return a member's partitions, or why they are unknown."""
    if member.assignment is not None:
        return assignment_text(member.assignment)
    if member.raw_assignment is not None:
        return f"unknown ({count_of(len(b64decode(member.raw_assignment)), 'byte')})"
    return "unknown"


def tasks_text(tasks: Tasks | None) -> str | None:
    """Return `active 0:0-2, standby 1:0`; None where the group has no tasks."""
    if tasks is None:
        return None
    roles = (("active", tasks.active), ("standby", tasks.standby), ("warm-up", tasks.warmup))
    texts = [
        f"{role} " + " ".join(f"{entry.subtopology_id}:{ranges(entry.partitions)}" for entry in entries)
        for role, entries in roles
        if entries
    ]
    return ", ".join(texts) or "none"


def short_member_id(member_id: str, instance_id: str | None = None) -> str:
    """Return a member id cut to its distinctive part, for terminals only.

    The part that repeats the instance id, shown in the column before, is omitted.
    """
    if instance_id:
        member_id = member_id.removeprefix(f"{instance_id}-")
    match = _UUID.fullmatch(member_id)
    if match:
        return f"{match['name'] or ''}{match['uuid'][:4]}…"
    return member_id[:8] if _KAFKA_UUID.fullmatch(member_id) else member_id


def short_process_id(process_id: str) -> str:
    """Return a process id cut short, as Streams makes UUIDs; a short one is unchanged."""
    return f"{process_id[:8]}…" if len(process_id) > 12 else process_id


def lag_text(total: int | None, at_least: int | None, unknown: int, partitions: int) -> str:
    """Return `lag 12480`, `lag at least 310 (2 of 9 partitions unknown)`, or `lag unknown`."""
    if total is not None:
        return f"lag {total}"
    if at_least is None:
        return "lag unknown"
    why = (
        f"{unknown} of {count_of(partitions, 'partition')} unknown"
        if unknown
        else "not all partitions are seen"
    )
    return f"lag at least {at_least} ({why})"


def absent(group_id: str, hint: str | None = "kgroup list shows which groups there are") -> ItemError:
    """Return the error for a group that does not exist."""
    return ItemError(group_id, "GROUP_ID_NOT_FOUND", f"group {group_id} does not exist", hint)


def exit_codes(errors: Iterable[ItemError]) -> list[ExitCode]:
    """Return the exit code of each error."""
    return [of_code_name(error.code) for error in errors]


def of_seen(code: ExitCode, unseen: Iterable[ItemError]) -> ExitCode:
    """Return the exit code of a result with `code`, given what could not be seen.

    A failure stays; OK becomes NOT_AUTHORISED where rights are the only reason, else PARTIAL.
    """
    names = [error.code for error in unseen]
    if not names or code not in (ExitCode.OK, ExitCode.NOT_AUTHORISED):
        return code
    return only_rights(names)


def only_rights(names: Iterable[str]) -> ExitCode:
    """Return NOT_AUTHORISED where all of these errors are about missing rights, else PARTIAL."""
    codes = {of_code_name(name) for name in names}
    return ExitCode.NOT_AUTHORISED if codes == {ExitCode.NOT_AUTHORISED} else ExitCode.PARTIAL


def of_code_name(name: str) -> ExitCode:
    """Return the exit code for a Kafka error's name or for one of kgroup's own."""
    if name in ("UNREACHABLE", "OUTCOME_UNKNOWN"):
        return ExitCode.UNREACHABLE
    if name == "SAFETY_REFUSED":
        return ExitCode.REFUSED
    known = ErrorCode.__members__.get(name)
    return ExitCode.FAILED if known is None else of_kafka_code(known)

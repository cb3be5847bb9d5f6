"""One entry of `kgroup explain`."""

from dataclasses import dataclass
from enum import StrEnum


class EntryKind(StrEnum):
    """The kinds of entries."""

    ERROR = "error"
    GROUP_STATE = "group-state"
    MEMBER_STATE = "member-state"
    PARTITION_STATUS = "partition-status"
    FINDING = "finding"
    LOG_LINE = "log-line"


@dataclass(frozen=True, slots=True)
class Entry:
    """A code or state with an operator's explanation.

    `classic` and `consumer` are its meanings in each protocol, None where it does not occur; `next` are
    commands with `GROUP` to fill in; `severity` is that of a finding, None where there is none.
    """

    name: str
    kind: EntryKind
    meaning: str
    classic: str | None = None
    consumer: str | None = None
    cause: str | None = None
    next: tuple[str, ...] = ()
    code: int | None = None
    retriable: bool | None = None
    aliases: tuple[str, ...] = ()
    severity: str | None = None

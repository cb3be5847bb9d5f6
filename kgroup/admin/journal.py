"""Every change kgroup made to a cluster, in a local file of JSON lines that is only appended to.

A change takes two lines with one id: `begin` before the first request is sent, with the plan and what was
there before, and `end` with the result of each item. A begin without an end is an interrupted change.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import UnionType
from typing import Any, TypeGuard

from kgroup.admin.models import ChangeStatus
from kgroup.admin.refusals import code_name
from kgroup.client.retry import OutcomeUnknown
from kgroup.domain import Document
from kgroup.errors import KgroupError, StorageError
from kgroup.portable import lock

FILE_NAME = "journal.jsonl"
LAST = "LAST"
"""What stands for the id of the newest entry."""
INTERRUPTED, OUTCOME_UNKNOWN = "INTERRUPTED", "OUTCOME_UNKNOWN"
IN_DOUBT = frozenset({INTERRUPTED, OUTCOME_UNKNOWN})
"""The codes of items whose outcome is unknown until the cluster is read again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One change: `results` is None when it was cut off before its end was written; times in ms UTC."""

    id: str
    command: str
    cluster_id: str | None
    time_ms: int
    plan: Mapping[str, Any]
    before: Mapping[str, Any]
    results: tuple[Mapping[str, Any], ...] | None = None
    end_ms: int | None = None


@dataclass(slots=True)
class Change:
    """A change in progress: its journal entry's id and the items' outcomes so far."""

    id: str
    results: list[Mapping[str, object]] = field(default_factory=list)


@dataclass(frozen=True)
class Journal:
    """The journal at `path`; safe for several processes at once. StorageError when it cannot be used."""

    path: Path
    now_ms: Callable[[], int] = field(default=lambda: time.time_ns() // 1_000_000)

    @classmethod
    def default(cls) -> Journal:
        """Return the user's own journal, in the platform's folder for state."""
        from platformdirs import user_state_path

        return cls(user_state_path("kgroup") / FILE_NAME)

    def begin(
        self, command: str, cluster_id: str | None, plan: Mapping[str, object], before: Mapping[str, object]
    ) -> str:
        """Record, durably, a change about to be made; return its id."""

        def line(number: int) -> Document:
            return {
                "id": f"j-{number:04d}",
                "phase": "begin",
                "time_ms": self.now_ms(),
                "command": command,
                "cluster_id": cluster_id,
                "plan": plan,
                "before": before,
            }

        return str(self._append(line)["id"])

    def end(self, entry_id: str, results: Iterable[Mapping[str, object]]) -> None:
        """Record the outcome of each item."""
        items = list(results)
        self._append(lambda _: {"id": entry_id, "phase": "end", "time_ms": self.now_ms(), "results": items})

    @contextmanager
    def change(
        self,
        command: str,
        cluster_id: str | None,
        plan: Mapping[str, object],
        before: Mapping[str, object],
        items: Sequence[Mapping[str, object]] = ({},),
    ) -> Iterator[Change]:
        """Record a change around its requests: begun before the first, ended on any outcome.

        `items` name the items in the order of their results. Items without a result when an error or Ctrl-C
        ends the change are journalled as failed, with the error's code, or INTERRUPTED.
        """
        made = Change(self.begin(command, cluster_id, plan, before))
        try:
            yield made
        except BaseException as error:
            code, effect = INTERRUPTED, "what became of it is not known"
            if isinstance(error, KgroupError):
                code = OUTCOME_UNKNOWN if isinstance(error, OutcomeUnknown) else code_name(error)
                effect = error.message
            failure = {"result": ChangeStatus.FAILED, "error_code": code, "effect": effect}
            rest = [{**item, **failure} for item in items[len(made.results) :]]
            self.end(made.id, [*made.results, *rest])
            raise
        self.end(made.id, made.results)

    def entries(self) -> tuple[Entry, ...]:
        """Return all changes, oldest first; a last line cut short by a crash is omitted."""
        by_id: dict[str, Entry] = {}
        try:
            lines = self.path.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise StorageError(f"the journal {self.path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise StorageError(f"the journal {self.path} is damaged: it is not UTF-8", _ASIDE) from None
        for number, text in enumerate(lines, 1):
            line: object = None
            with contextlib.suppress(ValueError):
                line = json.loads(text)
            if not _is_line(line):
                if number < len(lines) or line is not None:
                    raise StorageError(f"the journal {self.path} is damaged in line {number}", _ASIDE)
            elif line["phase"] == "begin":
                by_id[line["id"]] = Entry(
                    line["id"],
                    line["command"],
                    line["cluster_id"],
                    line["time_ms"],
                    line["plan"],
                    line["before"],
                )
            elif line["id"] in by_id:
                begun, results = by_id[line["id"]], tuple(line["results"])
                by_id[line["id"]] = replace(begun, results=results, end_ms=line["time_ms"])
        return tuple(by_id.values())

    def find(self, entry_id: str) -> Entry | None:
        """Return one change by id, or the newest for LAST."""
        known = self.entries()
        if entry_id.upper() == LAST:
            return known[-1] if known else None
        return next((entry for entry in known if entry.id == entry_id), None)

    def _append(self, make: Callable[[int], Document]) -> Document:
        """Append the line that `make` returns for the next number; numbers count the file's changes."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # 0600: plans name groups and hosts.
            with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
                lock(file.fileno(), wait=True)
                written = file.read()
                line = make(written.count(b'"phase": "begin"') + 1)
                start = written.rfind(b"\n") + 1
                # A line without its end is left by a crash: it was never acknowledged.
                file.seek(start)
                file.truncate()
                file.write(json.dumps(line).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StorageError(
                f"the journal {self.path} cannot be written: {error.strerror}",
                "nothing is changed without a journal entry; make the folder writable",
            ) from None
        return line


def actor() -> str:
    """Return who makes changes, as user@host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user id without a name
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


_ASIDE = "mend the line, or move the file aside to begin a new journal"
_BEGIN: Mapping[str, type | UnionType] = {
    "id": str,
    "command": str,
    "cluster_id": str | None,
    "time_ms": int,
    "plan": dict,
    "before": dict,
}
_END: Mapping[str, type | UnionType] = {"id": str, "time_ms": int, "results": list}


def _is_line(line: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a line is one that `begin` or `end` writes."""
    if not isinstance(line, dict):
        return False
    fields = {"begin": _BEGIN, "end": _END}.get(line["phase"]) if isinstance(line.get("phase"), str) else None
    if fields is None or not all(isinstance(line.get(name), kind) for name, kind in fields.items()):
        return False
    return all(isinstance(result, dict) for result in line.get("results", ()))

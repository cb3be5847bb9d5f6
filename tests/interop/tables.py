"""Kafka's tools print tables; here they become rows, and the dump tool's lines become records."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from kgroup.protocol.subscription import Subscription

DEFAULTS: tuple[object, ...] = (None, 0, [], False, -1, "")
_RECORD = re.compile(r"^\| offset: (\d+) .*? key: (\{.*\}) payload: (.*)$")


def rows(text: str) -> list[dict[str, str]]:
    """The rows of the first table, by column name; a value stands below its column's name."""
    lines = [line for line in text.splitlines() if line.strip()]
    start = next((n for n, line in enumerate(lines) if line.startswith("GROUP ")), None)
    if start is None:
        return []
    columns = [(match[1], match.start()) for match in re.finditer(r"(\S+)(?: \(ID\))?", lines[start])]
    ends = [at for _, at in columns[1:]] + [None]
    return [
        {name: line[at:end].strip() for (name, at), end in zip(columns, ends, strict=True)}
        for line in lines[start + 1 :]
    ]


def dumped_records(text: str) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Key and value of each record as `kafka-dump-log --offsets-decoder` prints them; None is a tombstone."""
    return [(key, value) for _, key, value in dumped_at(text)]


def dumped_at(text: str) -> Iterator[tuple[int, dict[str, Any], dict[str, Any] | None]]:
    """As `dumped_records`, of any of the tool's decoders, each with its offset."""
    for match in filter(None, map(_RECORD.match, text.splitlines())):
        value = None if match[3] in ("null", "<DELETE>") else json.loads(match[3])
        yield int(match[1]), json.loads(match[2]), value


def invalid_batches(text: str) -> list[str]:
    """Batch lines the dump tool does not call valid."""
    batches = [line for line in text.splitlines() if line.startswith("baseOffset:")]
    return [line for line in batches if "isvalid: true" not in line]


def unlike(ours: Any, theirs: Any, at: str = "") -> Iterator[str]:
    """Where the two differ. A field that Kafka leaves out has its default value with us."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        told = {re.sub("([A-Z])", r"_\1", name).lower(): value for name, value in theirs.items()}
        for name in ours.keys() | told.keys():
            if name not in told:
                if ours[name] not in DEFAULTS:
                    yield f"{at}.{name} is ours only"
            elif name not in ours:
                yield f"{at}.{name} is theirs only"
            elif name in ("subscription", "assignment", "metadata"):
                yield from unlike_payload(ours[name], told[name], f"{at}.{name}")
            else:
                yield from unlike(ours[name], told[name], f"{at}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            yield from unlike(a, b, f"{at}[{i}]")
    elif ours != theirs:
        yield f"{at}: {ours!r} is {theirs!r} there"


def unlike_payload(ours: Any, theirs: Any, at: str) -> Iterator[str]:
    """Subscriptions and assignments, which Kafka prints in full or as base64."""
    if isinstance(theirs, str) and isinstance(ours, dict):
        theirs = {"topics": list(Subscription.decode(base64.b64decode(theirs)).topics)}
    if isinstance(theirs, dict) and "assignedPartitions" in theirs:
        places = [f"{t['topic']}-{p}" for t in theirs["assignedPartitions"] for p in t["partitions"]]
        if ours["partitions"] != places:
            yield at
    elif isinstance(theirs, dict):
        if ours["topics"] != theirs["topics"]:
            yield at
    elif ours != theirs:
        yield at

"""Kafka's tools print tables; here they become rows, and the dump tool's lines become records."""

from __future__ import annotations

import json
import re
from typing import Any

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
    matches = (_RECORD.match(line) for line in text.splitlines())
    return [
        (json.loads(match[2]), None if match[3] in ("null", "<DELETE>") else json.loads(match[3]))
        for match in matches
        if match
    ]


def invalid_batches(text: str) -> list[str]:
    """Batch lines the dump tool does not call valid."""
    batches = [line for line in text.splitlines() if line.startswith("baseOffset:")]
    return [line for line in batches if "isvalid: true" not in line]

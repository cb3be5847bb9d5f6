"""What bob saw on Kafka 4.3.1, row by row, so that kgroup is held to it where no Kafka is."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from .visible import Seen

KAFKA = "4.3.1"
"""The release whose answers are recorded."""
RECORDED = Path(__file__).with_name(f"kafka_{KAFKA}.jsonl.gz")


def write(seen: dict[str, Seen]) -> None:
    """Replace the record."""
    lines = "".join(json.dumps([name, answer], sort_keys=True) + "\n" for name, answer in seen.items())
    RECORDED.write_bytes(gzip.compress(lines.encode(), mtime=0))


def read() -> dict[str, Seen]:
    """The record."""
    return dict(json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines())

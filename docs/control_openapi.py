"""Writes docs/control.openapi.json: what the control port of `kgroup serve --control` serves."""

from __future__ import annotations

import json
from pathlib import Path

from kgroup.broker.control.port.openapi import document as described

FILE = Path(__file__).with_name("control.openapi.json")


def document() -> str:
    """Return the file as the operations are."""
    return json.dumps(described(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(document(), encoding="utf-8")

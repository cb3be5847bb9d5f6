"""What `lag` says live, as a recording has it."""

from __future__ import annotations

from typing import Any


def as_recorded(live: Any, recorded: Any) -> Any:
    """Return the JSON of a group with the recorded status that `lag`, without history, did not know."""
    rows = []
    for row, known in zip(live["offsets"], recorded["offsets"], strict=True):
        status = row["status"]
        unread = status["unseen"] is not None and status["unseen"]["look"] == "history"
        rows.append({**row, "status": known["status"]} if unread else row)
    return {**live, "offsets": rows}

"""Whom a described group expects, in words."""

from collections.abc import Iterator

from kgroup.admin.models import Registration
from kgroup.cli.output.wording import UNKNOWN
from kgroup.domain import first_of

SHOWN = 8


def wait_text(wait_ms: int | None) -> str:
    """How long a group waits for those that are missing."""
    return "its rebalance timeout" if wait_ms is None else f"{wait_ms / 1000:g} s"


def lines(registration: Registration) -> Iterator[str]:
    """Yield a line about registered ids and one about active members and standbys, where there are such."""
    told = registration
    if told.instance_ids is not None:
        missing = UNKNOWN if told.missing is None else (first_of(told.missing, SHOWN) or "nobody")
        parts = [f"registered {len(told.instance_ids)}", f"missing {missing}"]
        if told.missing != ():
            parts.append(f"waits up to {wait_text(told.wait_ms)}")
        if told.held:
            parts.append(f"held {first_of(told.held, SHOWN)}")
        yield " · ".join(parts)
    if told.target_size is not None:
        active = UNKNOWN if told.active is None else str(len(told.active))
        standby = UNKNOWN if told.standby is None else (first_of(told.standby, SHOWN) or "nobody")
        yield f"target size {told.target_size} · active {active} · standby {standby}"

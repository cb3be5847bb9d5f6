"""The expected members of a described group, in words."""

from collections.abc import Iterator

from kgroup.admin.models import Registration
from kgroup.cli.output.wording import UNKNOWN
from kgroup.domain import first_of

SHOWN = 8


def wait_text(wait_ms: int | None) -> str:
    """Return how long a group waits for missing members."""
    return "its rebalance timeout" if wait_ms is None else f"{wait_ms / 1000:g} s"


def lines(registration: Registration) -> Iterator[str]:
    """Yield a line about registered ids and one about active members and standbys, where there are any."""
    if registration.instance_ids is not None:
        missing = (
            UNKNOWN if registration.missing is None else (first_of(registration.missing, SHOWN) or "none")
        )
        parts = [f"registered {len(registration.instance_ids)}", f"missing {missing}"]
        if registration.missing != ():
            parts.append(f"waits up to {wait_text(registration.wait_ms)}")
        if registration.held:
            parts.append(f"held {first_of(registration.held, SHOWN)}")
        yield " · ".join(parts)
    if registration.target_size is not None:
        active = UNKNOWN if registration.active is None else str(len(registration.active))
        standby = (
            UNKNOWN if registration.standby is None else (first_of(registration.standby, SHOWN) or "none")
        )
        yield f"target size {registration.target_size} · active {active} · standby {standby}"

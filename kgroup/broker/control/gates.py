"""Gates: a scenario that is played decides which requests of its group are served yet."""

from __future__ import annotations

from typing import Protocol

from kgroup.broker.call import AnyCall


class Gate(Protocol):
    """Stands before one group; what it does not admit waits for the next `Control.open_gate`."""

    def admits(self, call: AnyCall) -> bool:
        """Return whether the request may be served now."""
        ...

    def served(self, call: AnyCall) -> None:
        """Take notice of a request that was served, before anything else happens."""
        ...

"""A test's view of the rules that it set: which of them fired, when, on which requests."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from kgroup.arguments import checked
from kgroup.domain import count_of
from kgroup.errors import FaultUnused, TimedOut

if TYPE_CHECKING:
    from kgroup.broker.control.faults.installed import FaultSet, Hit
    from kgroup.testing.serving import Serving


class Fault:
    """Rules that were set together; leaving its `with` removes them and checks those that must fire."""

    def __init__(self, serving: Serving, faults: FaultSet) -> None:
        self._serving = serving
        self._set = faults

    @property
    def id(self) -> int:
        """The number of the set at the control port."""
        return self._set.id

    @property
    def fired(self) -> tuple[Hit, ...]:
        """The requests that the rules acted on, or counted, in time order."""
        return tuple(self._serving.do(lambda: self._set.hits))

    @property
    def hits(self) -> int:
        """The number of requests in `fired`."""
        return len(self.fired)

    @property
    def left(self) -> int:
        """How many requests the rules will still act on; -1 if one of them has no limit."""
        return self._serving.do(lambda: self._set.left)

    @checked
    def wait(self, hits: int = 1, *, timeout_s: float = 30.0) -> tuple[Hit, ...]:
        """Return `fired` once it has so many requests; TimedOut says how many there were."""
        control = self._serving.control
        if not self._serving.call(control.until_hit(self._set, hits, timeout_s)):
            raise TimedOut(
                f"{self} had {self.hits} of {count_of(hits, 'request')} in {timeout_s:g} s",
                "\n".join(str(installed.rule.shown()) for installed in self._set.rules),
            )
        return self.fired

    def remove(self) -> None:
        """Disable the rules; `fired` stays. Safe to call twice."""
        self._serving.do(lambda: self._serving.control.faults.remove(self.id))

    def check(self) -> None:
        """Raise FaultUnused if a rule that must fire acted on no request."""
        if self._set.must_fire:
            self._check()

    def _check(self) -> None:
        unused = [installed.rule for installed in self._set.rules if not installed.hits]
        if unused:
            rules = "; ".join(str(rule.shown()) for rule in unused)
            raise FaultUnused(
                f"no request met the rule {rules}", "observe=True shows which requests there are"
            )

    def __str__(self) -> str:
        return f"fault {self.id}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()
        must_fire, self._set.must_fire = self._set.must_fire, False
        if kind is None and must_fire:
            self._check()

"""What ends a run: an invariant that does not hold."""


class Violation(AssertionError):
    """An invariant does not hold; `name` is what it is called in `invariants`."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name, self.detail = name, detail

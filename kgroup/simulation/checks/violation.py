"""The end of a run: an invariant that does not hold."""


class Violation(AssertionError):
    """An invariant that does not hold. `name` is as in docs/simulation.md."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name, self.detail = name, detail

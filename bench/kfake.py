"""kfake, the broker of franz-go's own tests, as a process beside ours: a coordinator in Go, all in memory."""

from __future__ import annotations

from pathlib import Path

from tests.interop.server import Server
from tests.interop.toolchain import built, locked, run

FOLDER = Path(__file__).with_name("kfake")


def executable() -> Path:
    """Built from the Go module, once for each state of its files; a first build fetches it."""
    sources = [FOLDER / "go.mod", FOLDER / "go.sum", FOLDER / "main.go"]
    with locked():
        return built("kfake", sources, _build) / "kfake"


def _build(to: Path) -> None:
    run(["go", "build", "-o", str(to / "kfake"), "."], FOLDER)


class Kfake(Server):
    """One broker on loopback; settings are its own, nothing is kept on disk."""

    kind = "kfake"
    ready_line = "kfake: serving on"

    def command(self) -> list[str]:
        return [str(executable()), str(self.port)]

    def prepare(self) -> None:
        """There is no folder to make ready."""

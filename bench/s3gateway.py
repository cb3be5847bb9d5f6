"""Versity's S3 gateway as a process: objects are files in a folder, served by Go at the rate of the disk."""

from __future__ import annotations

from pathlib import Path

from tests.interop.server import Server
from tests.interop.toolchain import built, locked, run
from tests.s3 import ACCESS

FOLDER = Path(__file__).with_name("s3gateway")
COMMAND = "github.com/versity/versitygw/cmd/versitygw"


def executable() -> Path:
    """Built from the Go module, once for each state of its files; a first build fetches it."""
    sources = [FOLDER / "go.mod", FOLDER / "go.sum"]
    with locked():
        return built("s3gateway", sources, _build) / "s3gateway"


def _build(to: Path) -> None:
    run(["go", "build", "-o", str(to / "s3gateway"), COMMAND], FOLDER)


class S3Gateway(Server):
    """One server on loopback, with the keys of the tests' own; its folder's file system keeps attributes."""

    kind = "s3gateway"
    ready_line = "Admin/S3 service listening on"

    @property
    def endpoint(self) -> str:
        return f"http://{self.bootstrap}"

    def command(self) -> list[str]:
        access, secret = ACCESS
        keys = ["--access", access, "--secret", secret]
        return [str(executable()), *keys, "--port", self.bootstrap, "posix", str(self.data_dir)]

    def prepare(self) -> None:
        self.data_dir.mkdir()

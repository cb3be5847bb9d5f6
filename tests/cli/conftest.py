"""Run the command line in this process, with a config and data folder of its own."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kgroup.cli.app import run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Kgroup = Callable[..., Ran]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("BOOTSTRAP_SERVER", "LOCAL", "CONTEXT", "COMMAND_CONFIG", "OUTPUT"):
        monkeypatch.delenv(f"KGROUP_{name}", raising=False)


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "config" / "kgroup" / "config.yaml"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def kgroup(capsys: pytest.CaptureFixture[str]) -> Kgroup:
    def call(*argv: str) -> Ran:
        capsys.readouterr()
        code = run(argv)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return call

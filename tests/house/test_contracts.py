"""The contracts that `make check` runs refuse what they are there for."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house.repository import PACKAGE, ROOT, modules

LINTER = Path(sys.executable).with_name("lint-imports")
FLOORS, ROOMS = ROOT / "pyproject.toml", ROOT / "tests" / "house" / "rooms.ini"
Lint = Callable[[Path], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Every module of kgroup by its name, with nothing in it but the imports that a contract excuses.

    So all there is to refuse is what is planted, and an excuse that nothing needs is refused as ever.
    """
    for module in modules():
        place = tmp_path / PACKAGE.name / module.relative_to(PACKAGE)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    contracts = tomllib.loads(FLOORS.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    for excused in (line for contract in contracts for line in contract.get("ignore_imports", ())):
        plant(tmp_path, *excused.split(" -> "))
    return tmp_path


@pytest.fixture
def lint(tree: Path) -> Lint:
    def lint(contracts: Path) -> subprocess.CompletedProcess[str]:
        command = [str(LINTER), "--config", str(contracts), "--no-cache"]
        return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)

    return lint


def plant(tree: Path, module: str, imported: str) -> None:
    place = tree / module.replace(".", "/")
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    assert path.exists()
    path.write_text(f"import {imported}\n", encoding="utf-8")


@pytest.mark.parametrize("contracts", [FLOORS, ROOMS], ids=lambda path: path.name)
def test_a_house_without_an_import_breaks_no_contract(lint: Lint, contracts: Path) -> None:
    done = lint(contracts)
    assert (done.returncode, "0 broken" in done.stdout) == (0, True), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "imported", "contract"),
    [
        ("kgroup.coordinator.state", "kgroup.broker.server", "Imports point down"),
        ("kgroup.log.partition", "kgroup.history.replay", "Imports point down"),
        ("kgroup.coordinator.state", "time", "The machine touches no I/O, clock or chance"),
        ("kgroup.history.fold.state", "asyncio", "The fold touches no I/O, clock or chance"),
        # OC-26: the coordinators of the ZooKeeper era and of today know nothing of each other.
        (
            "kgroup.zookeeper.coordinator.machine",
            "kgroup.coordinator.coordinator",
            "The machine of the ZooKeeper era touches no I/O, clock or chance",
        ),
        ("kgroup.coordinator.coordinator", "kgroup.zookeeper.coordinator.machine", "Imports point down"),
        ("kgroup.cli.env.zookeeper", "kgroup.zookeeper.store.session", "ZooKeeper has one entrance"),
    ],
)
def test_an_import_that_climbs_is_refused(
    tree: Path, lint: Lint, module: str, imported: str, contract: str
) -> None:
    plant(tree, module, imported)
    done = lint(FLOORS)
    assert (done.returncode, f"{contract} BROKEN" in done.stdout) == (1, True), done.stdout + done.stderr
    assert f"{module} -> {imported}" in done.stdout


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("kgroup.history.decode.scan", "kgroup.history.fold.state"),
        ("kgroup.broker.tickets", "kgroup.broker.watchers"),
    ],
)
def test_a_circle_between_siblings_is_refused(tree: Path, lint: Lint, one: str, other: str) -> None:
    plant(tree, one, other)
    assert lint(ROOMS).returncode == 0
    plant(tree, other, one)
    done = lint(ROOMS)
    assert (done.returncode, "No room imports one that imports it BROKEN" in done.stdout) == (1, True)

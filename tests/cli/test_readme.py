"""Every block of the README is run, and so are the sessions of docs/: they print what the pages say."""

import runpy
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.readme import (
    ROOT,
    SAID,
    SESSIONS,
    blocks,
    environment,
    play,
    stuck_and_stable,
    uncoloured,
    without_what_varies,
)

PICTURES = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
PLAYED = [(page, session) for page in SESSIONS for session in blocks("console", page=page)]
SCRIPTS = blocks("sh")


@pytest.fixture
def bootstrap() -> Iterator[str]:
    with stuck_and_stable() as address:
        yield address


@pytest.mark.parametrize(("page", "session"), PLAYED, ids=[s.splitlines()[0][2:42] for _, s in PLAYED])
def test_session(page: str, session: str, tmp_path: Path) -> None:
    """After a change of what a command prints, or paints: `make pictures`."""
    picture, played = PICTURES["name_of"](page, session), ""
    with SESSIONS[page]() as bootstrap:
        for command, shown, printed in play(session, bootstrap, tmp_path):
            assert without_what_varies(uncoloured(printed)) == without_what_varies(shown), command
            played += f"$ {command}\n{printed}"
    kept = (PICTURES["FOLDER"] / f"{picture}.svg").read_text(encoding="utf-8")
    assert PICTURES["alike"](PICTURES["drawn"](picture, played), kept)


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script: str, bootstrap: str, tmp_path: Path) -> None:
    """`make` targets are looked at, not run: the tests run under one of them."""
    if script.startswith("make "):
        done = subprocess.run(["make", "-n", *script.split()[1:]], cwd=ROOT, capture_output=True, text=True)
    else:
        done = subprocess.run(
            ["bash", "-euc", script.replace(SAID, bootstrap)],
            env=environment(bootstrap, tmp_path),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr


def test_where_serve_cannot_start_no_script_waits_for_ever(tmp_path: Path) -> None:
    """What a reader types goes on line by line: the loop has to end by itself."""
    (script,) = (script for script in SCRIPTS if "kgroup serve" in script)
    (tmp_path / "data").write_text("a file, so no folder of a cluster")
    done = subprocess.run(
        ["bash", "-c", script],
        env=environment(SAID, tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0 and "Traceback" not in done.stderr


def test_the_two_commands_come_first() -> None:
    assert [script.strip() for script in SCRIPTS[:2]] == ["make demo", "make test"]


def test_the_tour_waits_for_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    command = ["make", "-n", "demo", f"VENV={tmp_path / 'none'}"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[-1] for line in lines if "pip install" in line] == ["'.[demo]'"]
    assert not [line for line in lines if "setup.py" in line]

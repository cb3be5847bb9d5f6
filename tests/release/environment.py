"""What `make dist` built, installed into an empty environment: no checkout, no compiler, its own home."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DIST = ROOT / "dist"
TOOLS = Path(sys.executable).parent
# For make, in any checkout: with the tools of this one, as they are.
WITHOUT_SETUP = (f"VENV={TOOLS.parent}", "-o", str(TOOLS.parent / ".release"))
KINDS = {"sdist": "*.tar.gz", "plain": "*-py3-none-any.whl", "compiled": "*-cp*.whl"}


def built(kind: str) -> Path:
    """The one file of that kind in dist/."""
    found = sorted(DIST.glob(KINDS[kind]))
    if len(found) != 1:
        raise FileNotFoundError(f"dist/ holds {len(found)} files {KINDS[kind]}: run `make dist`")
    return found[0]


@dataclass(frozen=True)
class Environment:
    """A virtual environment with kgroup in it; commands run in `cwd`, with nothing else on the PATH."""

    kind: str
    prefix: Path
    cwd: Path

    @classmethod
    def make(
        cls, python: Path, kind: str, folder: Path, *beside: str, extra: str = "[demo]", own_pip: bool = False
    ) -> Environment:
        """Install what was built with `python` below `folder`, with other packages from the index.

        A pip of its own takes longer to put there than kgroup does: ours does it, unless that is asked for.
        """
        made = cls(kind, folder / "venv", folder / "cwd")
        made.cwd.mkdir()
        without = [] if own_pip else ["--without-pip"]
        subprocess.run([python, "-m", "venv", *without, made.prefix], check=True)
        made.pip("install", "--quiet", f"{built(kind)}{extra}", *beside)
        return made

    @property
    def bin(self) -> Path:
        return self.prefix / "bin"

    def variables(self) -> dict[str, str]:
        """The environment of a new account that has what pip itself was told, and no kgroup of ours."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.startswith(("PIP_", "SSL_", "REQUESTS_")) or name.lower().endswith("_proxy")
        }
        home = {"HOME": str(self.cwd), "PATH": str(self.bin), "LANG": "C.UTF-8"}
        # pip's own settings lie in the home of whoever runs the tests.
        settings = Path(os.environ.get("XDG_CONFIG_HOME", Path.home() / ".config")) / "pip" / "pip.conf"
        told = {"PIP_CONFIG_FILE": str(settings)} if settings.exists() else {}
        return {**told, **kept, **home}

    def run(self, *command: str, code: int = 0) -> str:
        """What a command prints; AssertionError with what it complained of if it does not end with `code`."""
        done = subprocess.run(command, cwd=self.cwd, env=self.variables(), capture_output=True, text=True)
        assert done.returncode == code, f"{command} ended with {done.returncode}: {done.stderr[-2000:]}"
        return done.stdout

    def pip(self, *arguments: str) -> str:
        """What our pip prints that does this there."""
        there = ["--python", str(self.bin / "python"), "--disable-pip-version-check"]
        return self.run(sys.executable, "-m", "pip", *there, *arguments)

    def kgroup(self, *arguments: str) -> str:
        """What `kgroup` prints there."""
        return self.run(str(self.bin / "kgroup"), *arguments)

    def python(self, code: str) -> str:
        """What a line of Python prints there."""
        return self.run(str(self.bin / "python"), "-c", code).strip()


@cache
def checkout(*arguments: str) -> str:
    """What the checkout's own `kgroup` prints."""
    command = [sys.executable, "-m", "kgroup", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout

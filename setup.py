"""Compiles the loops that read logs with mypyc, if KGROUP_COMPILE=1 asks for it; else kgroup is plain Python.

The same sources are compiled, so there is nothing to keep equal; decision 66 has what it is worth. Isolated
builds (`pip wheel`, `pip install` of a URL) get mypy from `release/backend.py`.
"""

import glob
import os

from setuptools import setup

# Paths or patterns; the Makefile reads them here, to compile again what changed.
COMPILED = ("kgroup/history/decode/[a-z]*.py",)
SOURCES = sorted(path for each in COMPILED for path in glob.glob(each))
# What else is installed decides nothing: a machine that builds has none of kgroup's dependencies.
ALONE = ["--no-site-packages", "--follow-imports=silent"]


def compiled() -> list[object]:
    """The extension modules that were asked for."""
    if os.environ.get("KGROUP_COMPILE") != "1":
        return []
    from mypyc.build import mypycify

    place = {"group_name": "kgroup.history.loops", "target_dir": os.path.join("build", "mypyc")}
    # Symbols for a debugger hold the folder they were built in.
    return list(mypycify([*ALONE, *SOURCES], **place, debug_level="0"))


setup(ext_modules=compiled())

"""How kgroup is built: by setuptools, with mypyc where KGROUP_COMPILE=1 asks for compiled loops.

Without that variable neither mypy nor a C compiler is wanted by anything. `setup.py` says what is compiled.
"""

import os
from collections.abc import Mapping

from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]
COMPILER = "mypy>=2.4,<3"


def get_requires_for_build_wheel(config_settings: Mapping[str, str] | None = None) -> list[str]:
    """What a wheel is built with, beside setuptools."""
    # setuptools would run setup.py to find out, which imports what is only being asked for.
    return [COMPILER] if os.environ.get("KGROUP_COMPILE") == "1" else []


def get_requires_for_build_editable(config_settings: Mapping[str, str] | None = None) -> list[str]:
    """What an editable install is built with; its loops are compiled in place, by `make setup`."""
    return []

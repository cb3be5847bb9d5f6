"""The tests that Windows cannot run, each with its reason; `make test-portable` prints them."""

from __future__ import annotations

import sys

IS_WINDOWS = sys.platform == "win32" or hasattr(sys.modules.get("sitecustomize"), "REFUSED")
"""Also where tests/windows/hidden shows kgroup a Windows."""
LEFT_OUT: dict[str, str] = {}
"""By the beginning of a test's id."""


def reason(test: str) -> str | None:
    """Return why a test is left out; None for one that runs."""
    return next((why for start, why in LEFT_OUT.items() if test.startswith(start)), None)

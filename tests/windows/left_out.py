"""The tests that Windows cannot run, each with its reason; `make test-portable` prints them."""

from __future__ import annotations

import sys

IS_WINDOWS = sys.platform == "win32" or hasattr(sys.modules.get("sitecustomize"), "REFUSED")
"""Also where tests/windows/hidden shows kgroup a Windows."""
LIMITS = "the test lowers a limit of its process, which Windows does not have"
LEFT_OUT = {
    "tests/unit/broker/test_fairness.py::test_more_connections_than_descriptors": LIMITS,
    "tests/unit/broker/test_few_files.py": LIMITS,
    "tests/unit/log/test_open_files.py::test_a_log_that_fails_to_open": "no folder is synced there",
    "tests/unit/log/test_open_files.py::test_logs_leave_as_many_files": LIMITS,
    "tests/unit/log/test_open_files.py::test_the_soft_limit_is_raised": LIMITS,
    "tests/unit/log/test_open_files.py::test_where_connections_have_taken_theirs": LIMITS,
    "tests/unit/runtime/test_room_for_partitions.py": "no call takes room there",
}
"""Reasons by the beginning of a test's id."""


def reason(test: str) -> str | None:
    """Return why a test is left out; None for one that runs."""
    return next((why for start, why in LEFT_OUT.items() if test.startswith(start)), None)

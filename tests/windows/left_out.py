"""The tests that Windows cannot run, each with its reason; `make test-portable` prints them."""

from __future__ import annotations

import sys

IS_WINDOWS = sys.platform == "win32" or hasattr(sys.modules.get("sitecustomize"), "REFUSED")
"""Also where tests/windows/hidden shows kgroup a Windows."""
LIMITS = "the test lowers a limit of its process, which Windows does not have"
MODES = "a file's mode protects nothing there"
POSIX_SHELL = "the commands are those for a POSIX shell"
NO_READER = "no process is given its end of a pipe there"
LEFT_OUT = {
    "tests/cli/test_completion_in_shells.py": "bash, zsh and fish are typed into at a POSIX terminal",
    "tests/cli/test_commands_of_pages.py::test_the_config_file_of_the_page": MODES,
    "tests/cli/test_config.py::TestConfigFile::test_secrets_others_may_read": MODES,
    "tests/cli/test_demo_next.py::test_a_client_without_share_consumers": POSIX_SHELL,
    "tests/cli/test_doctor_many.py::test_a_process_that_was_killed": NO_READER,
    "tests/cli/test_doctor_many.py::test_it_tells_what_one_process_tells": NO_READER,
    "tests/cli/test_doctor_many.py::test_one_partition_that_cannot_be_read": NO_READER,
    "tests/cli/test_examples.py": "the examples are scripts of a POSIX shell",
    "tests/cli/test_extras.py::test_a_checkout": POSIX_SHELL,
    "tests/cli/test_extras.py::test_a_tool_of_uv": POSIX_SHELL,
    "tests/cli/test_extras.py::test_kerberos": "the extra is not for Windows",
    "tests/cli/test_extras.py::test_pip": POSIX_SHELL,
    "tests/cli/test_extras.py::test_uv": POSIX_SHELL,
    "tests/cli/test_extras.py::test_without_a_pip": POSIX_SHELL,
    "tests/cli/test_secrets.py::TestFilesThatOthersMayRead": MODES,
    "tests/cli/test_serve_secured.py::test_a_password_comes_from_somewhere_safe[arguments7": MODES,
    "tests/cli/test_serve_secured.py::test_secrets_that_others_may_read": MODES,
    "tests/cli/test_webhook.py::TestWhereTheSecretComesFrom::test_a_file_that_others": MODES,
    "tests/exam/test_plans.py": "each plan is carried out in a copy of the process, and none forks there",
    "tests/unit/broker/test_fairness.py::test_more_connections_than_descriptors": LIMITS,
    "tests/unit/broker/test_few_files.py": LIMITS,
    "tests/unit/log/test_open_files.py::test_a_log_that_fails_to_open": "no folder is synced there",
    "tests/unit/log/test_open_files.py::test_logs_leave_as_many_files": LIMITS,
    "tests/unit/log/test_open_files.py::test_the_soft_limit_is_raised": LIMITS,
    "tests/unit/log/test_open_files.py::test_where_connections_have_taken_theirs": LIMITS,
    "tests/unit/runtime/test_room_for_partitions.py": "no call takes room there",
}
"""Reasons by the beginning of a test's id. A whole file is not even imported on Windows itself."""


def reason(test: str) -> str | None:
    """Return why a test is left out; None for one that runs."""
    return next((why for start, why in LEFT_OUT.items() if test.startswith(start)), None)

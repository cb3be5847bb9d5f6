"""What all tests start from."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import kgroup
from tests.s3 import S3Server, s3_server
from tests.sampled import left_out
from tests.windows.left_out import IS_WINDOWS, LEFT_OUT, reason

settings.register_profile("kgroup", deadline=None)
settings.load_profile("kgroup")
collect_ignore = [
    test.removeprefix("tests/") for test in LEFT_OUT if "::" not in test and sys.platform == "win32"
]
OPEN = Path("/proc/self/fd")
LONGEST = (
    "kgroup",
    "kafka",
    "differential",
    "foreign-apps",
    "test_registered_members",
    "scenarios-set",
    "test_share_groups-kafka 4.4.0",
    "test_share_groups-kgroup 4.4.0",
    "test_hostile",
    "test_old_groups",
    "foreign",
    "test_rolling_deployments",
    "test_mechanisms_served-kgroup",
    "test_mechanisms_served-kafka",
    "test_rights_of_commands",
    "test_half_a_cluster",
    "test_record",
    "test_fleet",
    "test_frozen_member",
    "test_testing_examples",
    "test_kinds_of_groups",
    "incidents-kafka",
    "incidents-kgroup",
    "test_same_answers",
)
"""Groups of the interop suite that took a minute and more of a busy machine, the longest first."""
FILES_LEFT = 100
"""More than what fixtures of the whole session may have opened meanwhile."""


def pytest_sessionstart() -> None:
    """What was compiled hides its source: tests of an older state would decide nothing."""
    for compiled in Path(kgroup.__file__).parent.rglob("*.so"):
        source = compiled.with_name(compiled.name.partition(".")[0] + ".py")
        if source.exists() and source.stat().st_mtime > compiled.stat().st_mtime:
            pytest.exit(f"{source.name} is newer than what was compiled of it: run `make setup`", 3)


def pytest_configure() -> None:
    """A shell that runs us in the background has us ignore Ctrl-C, and the processes under test with us."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> list[str]:
    """Name what is left out, and why."""
    return [f"left out on Windows: {test}: {why}" for test, why in LEFT_OUT.items() if IS_WINDOWS]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search nothing for garbage meanwhile: of what thousands of tests are made all is kept."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the full run plays, and what Windows cannot run, by name and reason.

    The longest groups come first, so that no process is alone with one in the end.
    """
    if left := left_out(items):
        config.hook.pytest_deselected(items=left)
    items.sort(key=_rank)
    for item in items if IS_WINDOWS else ():
        if why := reason(item.nodeid):
            item.add_marker(pytest.mark.skip(reason=f"left out on Windows: {why}"))


def _rank(item: pytest.Item) -> int:
    """The place of the item's group among the longest; it stays where it was among its like."""
    marker = item.get_closest_marker("xdist_group")
    group = marker.args[0] if marker else None
    return LONGEST.index(group) if group in LONGEST else len(LONGEST)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """A command that ends with its process leaves signals as it set them, and what it made out of sight.

    Hypothesis asks the collector who refers to an object of its own, and takes it for lost.
    """
    gc.unfreeze()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


@pytest.fixture(scope="module", autouse=True)
def files_closed() -> Iterator[None]:
    """A module of tests closes what it opened: a process has few numbers for files."""
    if not OPEN.exists():  # but for Linux
        yield
        return
    before = len(os.listdir(OPEN))
    yield
    left = len(os.listdir(OPEN)) - before
    assert left < FILES_LEFT, f"{left} files are still open"


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server on loopback; each test makes buckets of its own."""
    with s3_server() as server:
        yield server

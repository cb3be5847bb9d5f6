"""The incidents chosen are played once, several together; each cell of the table is a test of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from tests.interop.conftest import require
from tests.sampled import FULL, RECORD

from .playing import INCIDENTS, Played, Theatre
from .results import lines, record


@pytest.fixture(scope="session")
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], Played]:
    """What became of an incident on a kind of broker; the first question plays all that were chosen."""
    require("java", "javac", "mvn")
    done: dict[str, dict[str, Future[Played]]] = {}

    def get(kind: str, name: str) -> Played:
        if kind not in done:
            params = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
            chosen = dict.fromkeys(p["incident"] for p in params if p.get("kind") == kind and "incident" in p)
            done[kind] = Theatre(kind, tmp_path_factory.mktemp(kind)).play(INCIDENTS[n] for n in chosen)
        return done[kind][name].result(0)

    return get


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of what was played; recorded when that was asked for."""
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    told = [dict(getattr(report, "user_properties", ())) for report in reports]
    rows = [each["cell"] for each in told if "cell" in each]
    if rows and FULL:
        terminalreporter.section("the exam: incidents, commands, brokers")
        for line in lines(rows):
            terminalreporter.line(line)
    if RECORD:
        record(rows)

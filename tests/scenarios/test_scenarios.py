"""Every scenario on the hosts that need no Java: the bare machine, the embedded broker, the broker on TCP."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .hosts import BareMachine, EmbeddedHost, Host
from .language import Scenario, load
from .runner import Failed, play
from .tcp_host import TcpHost

FOLDER = Path(__file__).parent
SCENARIOS = [scenario for path in sorted(FOLDER.glob("*/*.scenario")) for scenario in load(path)]
HOSTS: dict[str, Callable[[dict[str, str]], Host]] = {
    "bare": BareMachine,
    "embedded": EmbeddedHost,
    "tcp": TcpHost,
}


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        pytest.param(name, scenario, id=f"{name}-{scenario.title}")
        for name in HOSTS
        for scenario in SCENARIOS
        if name in scenario.hosts
    ],
)
def test_scenario(name: str, scenario: Scenario) -> None:
    """CP-55: on the bare machine a coordinator loaded from the log after every row has the same state."""
    host = HOSTS[name](scenario.config)
    told = ""
    try:
        play(scenario, host)
    except Failed as failed:
        told = str(failed)
    finally:
        host.close()
    if told:
        pytest.fail(told, pytrace=False)

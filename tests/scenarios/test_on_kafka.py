"""The same scenarios on Apache Kafka itself: what they say is what Kafka does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.conftest import require

from .kafka_host import KafkaBroker, KafkaHost
from .language import Scenario
from .runner import Failed, play
from .test_scenarios import SCENARIOS

pytestmark = [pytest.mark.interop, pytest.mark.xdist_group("scenarios")]


LIMITS = {
    "group.max.size": "1",
    "group.streams.max.size": "2",
    "group.streams.num.standby.replicas": "1",
    "offset.metadata.max.bytes": "3",
}
"""One broker serves the scenarios that want any of these: each asks for one limit and meets no other.

Not group.consumer.max.size, which a scenario of group.max.size would meet.
"""


def _config(scenario: Scenario) -> dict[str, str]:
    return LIMITS if scenario.config and scenario.config.items() <= LIMITS.items() else scenario.config


def _broker_settings(scenario: Scenario) -> tuple[bool, list[tuple[str, str]]]:
    return scenario.waits, sorted(_config(scenario).items())


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    require("java", "mvn")
    made = KafkaBroker()
    yield made
    made.stop()


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(scenario, id=scenario.title)
        for scenario in sorted(SCENARIOS, key=_broker_settings)
        if "kafka" in scenario.hosts
    ],
)
def test_scenario_on_kafka(broker: KafkaBroker, scenario: Scenario) -> None:
    host = KafkaHost(broker, _config(scenario), waits=scenario.waits)
    told = ""
    try:
        play(scenario, host)
    except Failed as failed:
        told = str(failed)
    finally:
        host.close()
    if told:
        pytest.fail(told, pytrace=False)

"""The same scenarios on Apache Kafka itself: what they say is what Kafka does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.interop.conftest import require
from tests.sampled import in_full

from .kafka_host import KafkaBroker, KafkaHost
from .language import Scenario
from .runner import Failed, play
from .test_scenarios import SCENARIOS

pytestmark = pytest.mark.interop


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


CASES = sorted((each for each in SCENARIOS if "kafka" in each.hosts), key=_broker_settings)
ALONE = in_full(
    "of its broker's settings there are one or two scenarios, and a broker takes seconds to start"
)
FEW = 3
SIZES = Counter(str(_broker_settings(scenario)) for scenario in CASES)


PLAIN: tuple[bool, list[tuple[str, str]]] = (False, [])


def _marks(scenario: Scenario) -> list[pytest.MarkDecorator]:
    """Most want a broker of the same settings; beside them the others start theirs in turn."""
    settings = _broker_settings(scenario)
    group = pytest.mark.xdist_group("scenarios" if settings == PLAIN else "scenarios-set")
    return [group, ALONE] if SIZES[str(settings)] < FEW else [group]


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(each, id=each.title, marks=_marks(each)) for each in CASES],
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

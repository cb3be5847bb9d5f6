"""docs/kafka-4.4.md: what it calls built is there, and what it calls not built has its row in not-built.

That it leaves no difference out is seen where Kafka's jars are (tests/kafka_release).
"""

import re

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.errors import ErrorCode
from kgroup.protocol import registry
from kgroup.protocol.group_records import record_classes
from kgroup.protocol.releases import NEWEST, Change
from tests.house.repository import ROOT

DECLARED, BEHAVIOUR = (ROOT / "docs" / "kafka-4.4.md").read_text(encoding="utf-8").split("## Behaviour")
MESSAGES = {
    cls.__name__: cls
    for key in registry.KAFKA_APIS
    for cls in (registry.request_class(key), registry.response_class(key))
} | {cls.__name__: cls for pair in record_classes().values() for cls in pair}
SETTINGS = {
    "broker setting": GroupConfig().as_text(),
    "group setting": GroupConfig().of_groups(),
}
NOT_BUILT = (ROOT / "docs" / "not-built.md").read_text(encoding="utf-8")


def answers() -> dict[str, str]:
    """What kgroup does about each difference, by the difference as `tests.kafka_release --from` prints it."""
    return _rows(DECLARED)


def _rows(text: str) -> dict[str, str]:
    _, *found = re.findall(r"^\| (.+) \| (.+) \|$", text, re.MULTILINE)
    return dict(found)


def _is_built(difference: str) -> bool:
    if found := re.match(r"(\w+) v(\d+)", difference):
        name, version = found[1], int(found[2])
        cls = MESSAGES[name]
        return version in (NEWEST.versions(cls.API) if cls.API >= 0 else cls.VERSIONS)
    if found := re.match(r"API (\d+) ", difference):
        return int(found[1]) in registry.KAFKA_APIS
    if found := re.match(r"error (\w+): new, (\d+)", difference):
        return ErrorCode[found[1]] == int(found[2])
    if found := re.match(r"feature (\S+): (\d+)", difference):
        return NEWEST.levels.get(found[1]) == int(found[2])
    kind, _, name = difference.partition(":")[0].rpartition(" ")
    return name in SETTINGS.get(kind, ())


@pytest.mark.parametrize(("difference", "answer"), answers().items())
def test_each_answer_is_true(difference: str, answer: str) -> None:
    verdict, _, what = answer.partition(": ")
    assert verdict in ("built", "not built") and what
    assert (verdict == "built") == _is_built(difference)
    if verdict == "not built":
        assert f"\n| {what}" in NOT_BUILT


def test_each_change_of_behaviour_is_named() -> None:
    assert _rows(BEHAVIOUR) == {change.value[1]: "built" for change in Change}

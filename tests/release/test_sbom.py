"""Whoever gets a build can say what is in it, and under which licences."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.release.environment import DIST

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def document() -> Any:
    (file,) = DIST.glob("kgroup-*.cdx.json")
    return json.loads(file.read_text())


def _all(component: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for part in component.get("components", []):
        yield part
        yield from _all(part)


def test_it_is_what_cyclonedx_says_it_is(document: Any) -> None:
    # Of the extra `release`, which is not there when other tests are collected.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    version = SchemaVersion.from_version(document["specVersion"])
    assert JsonStrictValidator(version).validate_str(json.dumps(document)) is None


def test_everything_has_a_version_and_a_licence(document: Any) -> None:
    components = list(_all(document))
    assert [each["name"] for each in components if not (each.get("version") and each.get("licenses"))] == []


def test_it_names_what_was_compiled_into_a_wheel(document: Any) -> None:
    """Obstore is written in Rust: its crates come in one file of machine code."""
    (obstore,) = (each for each in document["components"] if each["name"] == "obstore")
    assert "object_store" in {each["name"] for each in obstore["components"]}


def test_the_licences_name_each_of_them(document: Any) -> None:
    (file,) = DIST.glob("kgroup-*-licenses.txt")
    text = file.read_text("utf-8")
    assert [each for each in _all(document) if f"{each['name']} {each['version']}: " not in text] == []
    assert "Apache License" in text and "UNKNOWN" not in text

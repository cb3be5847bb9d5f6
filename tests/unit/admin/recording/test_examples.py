"""The dashboard, the rules and the page name metrics that are exported, and miss none that matters."""

import json
import re
from pathlib import Path

import jsonschema
import kubernetes_validate
import pytest
import yaml

from kgroup.admin.recording.metrics import FAMILIES

ROOT = Path(__file__).parents[4]
EXAMPLES = ROOT / "examples" / "record"
NAME = re.compile(r"\bkgroup_[a-z_]+\b(?!\*)")


def named(text: str) -> set[str]:
    return set(NAME.findall(text))


@pytest.mark.parametrize("place", ["grafana.json", "alerts.yaml"])
def test_every_metric_that_an_example_names_is_exported(place: str) -> None:
    text = (EXAMPLES / place).read_text(encoding="utf-8")
    assert len(named(text)) > 5 and named(text) <= FAMILIES.keys()


def test_the_options_in_a_file_follow_their_schema() -> None:
    schema = json.loads((EXAMPLES / "config.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(yaml.safe_load((EXAMPLES / "record.yaml").read_text(encoding="utf-8")), schema)
    for wrong in ({"kep": "30d"}, {"keep": ["30d"]}, {"group": "orders"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_the_page_names_every_metric_of_groups() -> None:
    page = (ROOT / "docs" / "record.md").read_text(encoding="utf-8")
    wanted = {name for name in FAMILIES if not name.startswith("kgroup_record_")}
    assert wanted <= named(page) <= FAMILIES.keys() | {"kgroup_record_"}


def test_the_dashboard_has_panels_with_queries_that_no_other_covers() -> None:
    panels = json.loads((EXAMPLES / "grafana.json").read_text(encoding="utf-8"))["panels"]
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in panels})
    assert all(target["expr"] and target["legendFormat"] for panel in panels for target in panel["targets"])


def test_each_rule_says_what_it_is_about() -> None:
    (group,) = yaml.safe_load((EXAMPLES / "alerts.yaml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]:
        assert rule["annotations"]["summary"] and named(rule["expr"])


MANIFESTS = ("kubernetes.yaml", "kubernetes-url.yaml")


@pytest.mark.parametrize("name", MANIFESTS)
def test_the_manifest_and_the_unit_run_what_there_is(name: str) -> None:
    from kgroup.cli.frame.lazy import walk

    (record,) = [command for command in walk() if command.name == "record"]
    options = {name for parameter in record.params for name in parameter.opts}
    (manifest,) = yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8"))
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    assert manifest["spec"]["replicas"] == 1
    unit = (EXAMPLES / "kgroup-record.service").read_text(encoding="utf-8")
    (line,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
    for words in (container["args"], line.split()):
        assert {word for word in words if word.startswith("--")} <= options | {"--command-config"}


def test_at_a_url_no_volume_keeps_anything() -> None:
    text = (EXAMPLES / "kubernetes-url.yaml").read_text(encoding="utf-8")
    spec = yaml.safe_load(text)["spec"]
    assert {key for volume in spec["template"]["spec"]["volumes"] for key in volume} == {
        "name",
        "secret",
        "emptyDir",
    }
    assert "volumeClaimTemplates" not in spec and spec["strategy"] == {"type": "Recreate"}


@pytest.mark.parametrize("name", MANIFESTS)
@pytest.mark.parametrize("version", ["1.29", kubernetes_validate.latest_version()])
def test_kubernetes_takes_the_manifest(version: str, name: str) -> None:
    """By the API's own schema, and no field that it does not know."""
    for document in yaml.safe_load_all((EXAMPLES / name).read_text(encoding="utf-8")):
        kubernetes_validate.validate(document, version, strict=True)

"""The history page as text: whatever a name is, it stays one page."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.conftest import Kgroup
from tests.cli.live import Client


def test_a_name_that_means_something_in_a_script_element_does_not_blank_the_page(
    cluster: Client, on_cluster: Kgroup, tmp_path: Path
) -> None:
    """`<!--<script` makes a browser look for a second end of the element, which never comes."""
    name = "<!--<script>x</script>"
    cluster.commit(name, "orders", {0: 1})
    page = tmp_path / "page.html"
    assert on_cluster("replay-log", name, "--html", str(page)).code == 0
    text = page.read_text(encoding="utf-8")
    assert "<!--" not in text
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)
    assert data is not None and "<" not in data[1]
    assert [group["name"] for group in json.loads(data[1])["groups"]] == [name]


def test_a_page_shows_no_control_character_and_is_its_owners_alone(
    cluster: Client, on_cluster: Kgroup, tmp_path: Path
) -> None:
    name = "page-\u202egnp.exe\x9b31m\x1b[2J"
    cluster.commit(name, "orders", {0: 1})
    history, plans, costs = (tmp_path / page for page in ("history.html", "plans.html", "costs.html"))
    assert on_cluster("replay-log", name, "--html", str(history)).code == 0
    on_cluster("upgrade", "plan", "page-*", "--html", str(plans))
    assert on_cluster("simulate", "--members", "2", "--partitions", "2", "--html", str(costs)).code == 0
    for page in (history, plans, costs):
        text = page.read_text(encoding="utf-8")
        assert [c for c in text if not c.isprintable() and c != "\n"] == []
        assert page.stat().st_mode & 0o777 == 0o600
    for page in (history, plans):
        data = re.search(r'type="application/json">(.*?)</script>', page.read_text(encoding="utf-8"), re.S)
        assert data is not None
        shown = json.dumps(json.loads(data[1]), ensure_ascii=False)
        assert json.dumps(r"page-\u202egnp.exe\x9b31m\x1b[2J") in shown


def test_a_scenario_replaces_no_file(cluster: Client, on_cluster: Kgroup, tmp_path: Path) -> None:
    cluster.commit("told-once", "orders", {0: 1})
    path = tmp_path / "incident.yaml"
    argv = ("replay-log", "told-once", "--scenario", str(path))
    assert on_cluster(*argv).code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("edited by hand")
    again = on_cluster(*argv)
    assert (again.code, "is there already" in again.err) == (1, True)
    assert path.read_text() == "edited by hand"


def test_moments_stay_in_one_piece_at_100_columns() -> None:
    from kgroup.cli.output.tables import Column, Table, folded_lines

    columns = tuple(Column(name) for name in ("id", "time", "command", "groups", "outcome"))
    row = {
        "id": "j-0001",
        "time": "2026-11-22T03:55:57.584Z",
        "command": "reset-offsets",
        "groups": ["a-group-with-quite-a-long-name", "another-group-with-a-long-name"],
        "outcome": "12 done, 3 failed, 1 unchanged",
    }
    out = "\n".join(folded_lines(Table(columns, [row]), columns, True, 100, paint=False))
    assert "2026-11-22T03:55:57.584Z" in out
    assert max(map(len, out.splitlines())) <= 100


def test_times_of_a_page_say_utc(cluster: Client, on_cluster: Kgroup, tmp_path: Path) -> None:
    """Its reader on call has another clock beside it."""
    cluster.commit("page-utc", "orders", {0: 1})
    page = tmp_path / "page.html"
    assert on_cluster("replay-log", "page-utc", "--html", str(page)).code == 0
    (made,) = re.findall(r"const iso=.*", page.read_text(encoding="utf-8"))
    assert 'replace("Z"," UTC")' in made

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

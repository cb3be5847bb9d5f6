"""The pages that commands write, on a phone and on a desk, light and dark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgroup.domain import TopicPartition
from kgroup.history.replay import replay
from kgroup.history.sources.logs import segment_logs
from kgroup.pipeline.ask.plot import page as plot_page
from kgroup.pipeline.ask.timeline import Ends, Span, timeline
from kgroup.runtime.cluster import Cluster
from tests.browser.axe import axe
from tests.browser.chromium import look
from tests.cli.damage import INCIDENTS
from tests.cli.live import Client, served

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("pages")]
NARROW, WIDE = 390, 1280
LOGS = ("upgrade-and-back", "consumer-group-life")

MINUTE = 60_000
PLACES = [TopicPartition("orders", n) for n in range(2)]
EXECUTABLE = Path(sys.executable).with_name("kgroup")
LOOK = Path(__file__).with_name("pages.js").read_text(encoding="utf-8")


def write(page: Path, *command: str) -> None:
    done = subprocess.run([EXECUTABLE, *command, "--html", page], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pages of each command, of groups with short and with long names."""
    folder = tmp_path_factory.mktemp("pages")
    for name in LOGS:
        write(folder / f"log-{name}.html", "replay-log", "--files", str(INCIDENTS / name))
    write(folder / "simulate.html", "simulate", "--scenario", "zone-loss")
    with served(Cluster(config={"group.initial.rebalance.delay.ms": "0"})) as address:
        client = Client(address)
        client.create_topic("orders", 4)
        client.commit("empty-group-of-the-department-of-invoices-and-dunning-in-eu-west-1", "orders", {0: 0})
        client.classic_group("pay", "orders", {"pay-0": [0, 1], "pay-1": [2, 3]})
        write(folder / "plan-all.html", "upgrade", "plan", "--all-groups", "-b", address)
        write(folder / "plan-empty.html", "upgrade", "plan", "empty-*", "-b", address)
        client.close()
    for name, ends in {"bound": Ends(MINUTE * 45, dict.fromkeys(PLACES, 1 << 40)), "no-ends": None}.items():
        (folder / f"plot-{name}.html").write_text(plot_page(drawn(ends)), encoding="utf-8")
    return folder


def drawn(ends: Ends | None) -> Any:
    events = replay(segment_logs([INCIDENTS / "rolling-static-bounce"])).events
    first = events[0].timestamp_ms
    moved = None if ends is None else ends._replace(at_ms=first + ends.at_ms)
    spans = [Span(first + MINUTE * n, place, 3 + n % 5, 100 * n) for n in range(30) for place in PLACES]
    return timeline(events[0].group, events, spans, 60, moved, "complete", first + MINUTE * 30)


@pytest.fixture(scope="module", params=["light", "dark"])
def seen(
    request: pytest.FixtureRequest, pages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    jobs = [(f"/{page.name}", width) for page in pages.iterdir() for width in (NARROW, WIDE)]
    flags = ["--blink-settings=preferredColorScheme=0"] if request.param == "dark" else []
    looked = look(pages, jobs, LOOK, tmp_path_factory.mktemp("browser"), *flags, files={"/axe.js": axe()})
    assert {each["dark"] for each in looked} == {request.param == "dark"}
    assert len(looked) == len(jobs) > 10
    return looked


def said(seen: list[dict[str, Any]], key: str) -> dict[str, Any]:
    return {f"{each['page']} {each['width']}": each[key] for each in seen if each[key]}


def test_nothing_is_wider_than_the_screen(seen: list[dict[str, Any]]) -> None:
    assert [each["page"] for each in seen if each["scrolled"] > each["width"]] == []
    assert said(seen, "outside") == {}


def test_labels_do_not_overlap_and_can_be_read(seen: list[dict[str, Any]]) -> None:
    assert said(seen, "overlaps") == {}
    assert said(seen, "small") == {}


def test_a_plan_has_no_empty_column(seen: list[dict[str, Any]]) -> None:
    assert {key: found for key, found in said(seen, "empty").items() if "plan" in key} == {}


def test_charts_have_axes(seen: list[dict[str, Any]]) -> None:
    axes = {
        each["page"]: each["axes"] for each in seen if "simulate" in each["page"] or "plot" in each["page"]
    }
    assert len(axes) == 3 and all(len(found) >= 2 and min(found) >= 4 for found in axes.values())


def test_nothing_is_asked_for(seen: list[dict[str, Any]]) -> None:
    assert said(seen, "asked") == {}


def test_it_is_accessible(seen: list[dict[str, Any]]) -> None:
    assert said(seen, "violations") == {}

"""The history page as a browser shows it: headless Chromium draws it and tells what it drew."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import browser, console

from .record_incidents import TARGET

pytestmark = pytest.mark.interop
EXECUTABLE = Path(sys.executable).with_name("kgroup")
# Points at everything, zooms, goes back, and leaves what it saw in the document.
PROBE = """<script>
{const svg=document.querySelector("svg"),tip=document.getElementById("tip"),seen={};
const all=s=>[...svg.querySelectorAll(s)],number=(e,name)=>Number(e.getAttribute(name));
seen.rows=all("text[x='4']").map(e=>e.textContent);
const row=top=>all("text[x='4']").find(e=>number(e,"y")==top+12).textContent;
const told=e=>{e.dispatchEvent(new MouseEvent("mousemove",{clientX:9,clientY:9}));const text=tip.textContent;
 seen.shown=tip.style.display;
 e.dispatchEvent(new MouseEvent("mouseleave"));seen.hidden=tip.style.display;return text};
seen.bars=all("rect").map(e=>[row(number(e,"y")),e.getAttribute("class"),told(e)]);
seen.places=all("rect").map(e=>[number(e,"x"),number(e,"width"),svg.clientWidth]);
seen.marks=all(".mark").map(e=>[e.getAttribute("class").split(" ")[1],told(e)]);
const axis=()=>all(".axis").map(e=>e.textContent),box=svg.getBoundingClientRect();seen.axis=axis();
svg.dispatchEvent(new WheelEvent("wheel",{deltaY:-100,clientX:box.left+box.width/2,cancelable:true}));
seen.zoomed=axis();
svg.dispatchEvent(new MouseEvent("dblclick"));seen.back=axis();
seen.asked=performance.getEntriesByType("resource").map(e=>e.name);
document.body.appendChild(document.createElement("pre")).id="seen";
document.getElementById("seen").textContent=JSON.stringify(seen);console.log("probe ended")}
</script>"""


def drawn(incident: str, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """What the probe saw on the incident's page, and the lines of the browser's console."""
    page = folder / "page.html"
    files = str(TARGET / incident)
    subprocess.run(
        [EXECUTABLE, "replay-log", "--files", files, "--html", page],
        check=True,
        capture_output=True,
        timeout=60,
    )
    text = page.read_text(encoding="utf-8")
    assert text.count("</body>") == 1
    page.write_text(text.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    with browser(folder, page.as_uri(), "--window-size=1600,900", "--dump-dom") as running:
        document, errors = running.communicate(timeout=90)
    seen = re.search(r'<pre id="seen">(.*?)</pre>', document, re.DOTALL)
    assert seen, errors
    return json.loads(html.unescape(seen[1])), console(errors)


def told_by_the_timeline(incident: str) -> list[dict[str, Any]]:
    command = [str(EXECUTABLE), "replay-log", "--files", str(TARGET / incident), "-o", "json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    events: list[dict[str, Any]] = json.loads(done.stdout)["data"]["events"]
    return events


def owned_by(seen: dict[str, Any], member: str) -> list[str]:
    """The partitions of each bar in the member's row, in the order of time."""
    return [text.split("\n")[1].split(" (")[0] for row, _, text in seen["bars"] if row == member]


def test_members_over_time_with_owners_gaps_and_rebalances(tmp_path: Path) -> None:
    """The upgrade and the way back: who owned what when, and for how long orders:2-3 had no owner."""
    seen, console = drawn("upgrade-and-back", tmp_path)
    assert console == ["probe ended"], "an error, or something else, on the console"
    assert seen["asked"] == [], "the page asked for something"
    first, newcomer, *others = seen["rows"]
    assert first == "pay-0" and others == ["no owner", "events"]
    held = owned_by(seen, "pay-0")
    assert held[0] == "orders:0-3" and "orders:0-1" in held and held[-1] == "orders:0-3"
    assert owned_by(seen, newcomer) == ["-", "orders:2-3"]
    events = told_by_the_timeline("upgrade-and-back")
    assert [mark for mark, _ in seen["marks"]] == [event["event"] for event in events]
    gaps = [text for row, _, text in seen["bars"] if row == "no owner"]
    waits = [event["unowned_ms"] for event in events if event["unowned_ms"] is not None]
    assert waits and [int(re.search(r"no owner for (\d+) ms", gap)[1]) for gap in gaps] == waits  # type: ignore[index]
    assert all(x >= 0 and width > 0 and x + width <= full for x, width, full in seen["places"])


def test_hover_tells_the_cause_and_the_wheel_zooms(tmp_path: Path) -> None:
    """A crashed static member: the page does not claim to know how it ended."""
    seen, console = drawn("crashed-static-member", tmp_path)
    assert console == ["probe ended"]
    (gone,) = (text for mark, text in seen["marks"] if mark == "member-left-or-expired")
    assert "(not proven)" in gone and "because: expired, or removed by an admin" in gone
    assert (seen["shown"], seen["hidden"]) == ("block", "none")
    assert seen["zoomed"] != seen["axis"] == seen["back"]

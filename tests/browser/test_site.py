"""The site as a browser shows it: `make browser` builds it before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from kgroup.api import __all__ as PUBLIC
from kgroup.cli.frame.generated import man_name
from kgroup.cli.frame.lazy import walk
from tests.browser.axe import axe
from tests.browser.chromium import look

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("site")]
SITE = Path(__file__).parents[2] / "build" / "site"
NARROW, WIDE = 390, 1280
# One page of each kind.
KINDS = ("index", "docs/findings", "docs/reading-output", "man/kgroup-lag", "kgroup/testing/index")

EVERYTHING = """
const all = (selector, of) => [...document.querySelectorAll(selector)].map(of);
return {
  scrolled: document.documentElement.scrollWidth,
  ids: all("[id]", e => e.id),
  links: all("a[href]", e => e.href),
  asked: window.performance.getEntriesByType("resource").map(e => e.name),
  pictures: all("article img", e => [e.src, e.width, e.height, e.getAttribute("width"), e.naturalWidth]),
  headings: all("h1", e => e.textContent).length,
  markdown: all("article p, article li, article td", e => e.textContent.trim())
    .filter(text => /^([-*|] |#+ |```|:::)|\\]\\(|\\\\[<|*_]/.test(text)),
};
"""
SEARCH = """
document.querySelector(".md-search__button").click();
async function until(found) {
  for (;;) {
    const e = found();
    if (e) return e;
    await new Promise(requestAnimationFrame);
  }
}
const hosts = () => [...document.querySelectorAll("div")].map(e => e.shadowRoot);
const box = await until(() => hosts().find(e => e && e.querySelector("input")));
box.querySelector("input").value = "KG310";
box.querySelector("input").dispatchEvent(new Event("input", {bubbles: true}));
await until(() => box.querySelector("a[href]"));
return {
  found: [...box.querySelectorAll("a[href]")].map(e => [new URL(e.href).pathname, e.textContent]),
  asked: window.performance.getEntriesByType("resource").map(e => e.name),
};
"""
AXE = """
const script = document.createElement("script");
script.src = "/axe.js";
await new Promise(done => { script.onload = done; document.head.append(script); });
const still = document.createElement("style");
still.textContent = "*{transition:none!important}";
document.head.append(still);
const wcag = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], violations = [];
for (const scheme of width > 1000 ? ["default", "slate"] : ["default"]) {
  document.body.setAttribute("data-md-color-scheme", scheme);
  const found = await window.axe.run(document, {runOnly: wcag, resultTypes: ["violations"]});
  violations.push(...found.violations.flatMap(v => v.nodes.map(n => `${scheme} ${v.id}: ${n.html}`)));
}
return {violations};
"""


def pages() -> list[str]:
    return sorted(f"/{path.relative_to(SITE)}" for path in SITE.rglob("*.html") if path.name != "404.html")


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return look(SITE, [(page, NARROW) for page in pages()], EVERYTHING, tmp_path_factory.mktemp("site"))


def test_nothing_is_wider_than_a_phone(seen: list[dict[str, Any]]) -> None:
    assert [(each["page"], each["scrolled"]) for each in seen if each["scrolled"] > NARROW] == []


def test_links_and_anchors_lead_somewhere(seen: list[dict[str, Any]]) -> None:
    ids = {each["page"]: set(each["ids"]) for each in seen}
    assert list(dead(seen, ids)) == []


def dead(seen: list[dict[str, Any]], ids: dict[str, set[str]]) -> Iterator[tuple[str, str]]:
    for each in seen:
        for link in sorted(set(each["links"])):
            address, anchor = urldefrag(link)
            path = unquote(urlsplit(address).path)
            if urlsplit(address).hostname != "127.0.0.1":
                continue
            there = path.rstrip("/") + "/index.html" if (SITE / path[1:]).is_dir() else path
            if not (SITE / there[1:]).is_file() or (anchor and unquote(anchor) not in ids.get(there, ())):
                yield each["page"], link


def test_no_other_host_is_asked(seen: list[dict[str, Any]]) -> None:
    asked = {(each["page"], name) for each in seen for name in each["asked"]}
    assert len(asked) > len(seen)
    assert [each for each in asked if urlsplit(each[1]).hostname not in {"127.0.0.1", None}] == []


def test_pictures_have_sizes_and_are_there(seen: list[dict[str, Any]]) -> None:
    pictures = [(each["page"], *picture) for each in seen for picture in each["pictures"]]
    assert len(pictures) >= 2
    assert [each for each in pictures if not all(each)] == []


def test_markdown_is_understood(seen: list[dict[str, Any]]) -> None:
    """Python's Markdown wants blank lines that GitHub does not."""
    assert [(each["page"], each["markdown"]) for each in seen if each["markdown"]] == []
    assert [each["page"] for each in seen if each["headings"] != 1] == []


def test_search_finds_a_finding(tmp_path: Path) -> None:
    (seen,) = look(SITE, [("/index.html", WIDE)], SEARCH, tmp_path, patience_s=60)
    assert {"/docs/findings.html"} <= {path for path, _ in seen["found"]}
    assert all("KG310" in text for _, text in seen["found"])
    assert {urlsplit(name).hostname for name in seen["asked"]} <= {"127.0.0.1", None}


@pytest.mark.parametrize("width", [NARROW, WIDE])
def test_it_is_accessible(width: int, tmp_path: Path) -> None:
    jobs = [(f"/{name}.html", width) for name in KINDS]
    seen = look(SITE, jobs, AXE, tmp_path, files={"/axe.js": axe()})
    assert {each["page"]: each["violations"] for each in seen if each["violations"]} == {}


def test_every_command_and_every_document_has_a_page() -> None:
    made = set(pages())
    assert {f"/man/{man_name(command.path)}.html" for command in walk()} <= made
    documents = (path.relative_to(SITE.parents[1]) for path in (SITE.parents[1] / "docs").rglob("*.md"))
    assert {f"/{re.sub('README$', 'index', str(path.with_suffix('')))}.html" for path in documents} <= made


def test_the_api_has_every_public_name(seen: list[dict[str, Any]]) -> None:
    """mkdocstrings leaves out a name that it does not find, and the build goes on."""
    ids = {found for each in seen if "/kgroup/" in each["page"] for found in each["ids"]}
    assert {"kgroup.connect", "kgroup.testing.Cluster.advance", *(f"kgroup.api.{n}" for n in PUBLIC)} <= ids


def test_pages_for_language_models_are_there() -> None:
    text = (SITE / "llms.txt").read_text(encoding="utf-8")
    named = re.findall(r"\]\((\S+)\)", text)
    assert named and [name for name in named if not (SITE / name).is_file()] == []

"""Writes what an environment carries: `make sbom` has a CycloneDX file and the licences' texts from it.

A wheel with compiled parts names them in `dist-info/sboms` (PEP 770): they are carried, too.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

# Declared by the project, and not by the wheels that have it in them.
KNOWN = {"openssl": "Apache-2.0"}
TEXTS = ("LICENSE", "LICENCE", "COPYING", "NOTICE")


def main(environment: Path, name: str) -> None:
    """Write `NAME.cdx.json` and `NAME-licenses.txt`; end with 1 where a licence is unknown."""
    tool = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", str(environment)]
    document = json.loads(subprocess.run(tool, check=True, capture_output=True).stdout)
    (site,) = environment.glob("lib/python*/site-packages")
    found = {each.name: each for each in distributions(path=[str(site)])}
    for component in document["components"]:
        _complete(component, found[component["name"]])
    if unknown := [each["name"] for each in _all(document) if not each.get("licenses")]:
        sys.exit(f"error: licence unknown: {', '.join(unknown)}; find it, and name it in release/carried.py")
    Path(f"{name}.cdx.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    texts = (_text(component, found[component["name"]]) for component in document["components"])
    Path(f"{name}-licenses.txt").write_text("\n".join(texts), "utf-8")


def _complete(component: dict[str, Any], distribution: Distribution) -> None:
    """Add what its wheel says is compiled into it, and the licence that only that list names."""
    inside = [
        json.loads(file.read_text())
        for file in distribution.files or ()
        if file.parent.name == "sboms" and file.suffix == ".json"
    ]
    if inside:
        # References of one list may mean something else in another.
        component["components"] = [
            {key: part[key] for key in ("type", "name", "version", "purl", "licenses") if key in part}
            for each in inside
            for part in each["components"]
        ]
    for part in component.get("components", []):
        if not part.get("licenses") and part["name"] in KNOWN:
            part["licenses"] = [{"expression": KNOWN[part["name"]]}]
    named = (each["metadata"].get("component", {}).get("licenses") for each in inside)
    if not component.get("licenses") and (licences := next(filter(None, named), None)):
        component["licenses"] = licences


def _all(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for component in document.get("components", []):
        yield component
        yield from _all(component)


def _text(component: dict[str, Any], distribution: Distribution) -> str:
    files = [file for file in distribution.files or () if file.name.upper().startswith(TEXTS)]
    texts = [file.read_text("utf-8").strip() for file in files if ".dist-info" in file.parts[0]]
    inside = sorted(_head(part) for part in component.get("components", []))
    within = ["Compiled into it:\n" + "\n".join(inside)] if inside else []
    head = f"{'=' * 80}\n{_head(component)}"
    return "\n\n".join([head, *(texts or ["Its wheel has no text of the licence."]), *within, ""])


def _head(component: dict[str, Any]) -> str:
    named = (each.get("expression") or each["license"].get("id") for each in component["licenses"])
    said = [name for name in named if name] or [each["license"]["name"] for each in component["licenses"]]
    return f"{component['name']} {component['version']}: {', '.join(said)}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

"""The accessibility checker axe-core, from npm, in `.cache/interop/`: `python -m tests.browser.axe`."""

from pathlib import Path

from tests.interop.toolchain import built, locked, npm

PACKAGE = Path(__file__).with_name("package.json")


def axe() -> str:
    """Return its script."""
    with locked():
        folder = built("axe", [PACKAGE], lambda to: npm([PACKAGE], to))
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


if __name__ == "__main__":
    axe()

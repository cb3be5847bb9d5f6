"""Prints the size of the house, at a commit and now: `make figures BEFORE=c7260e8`."""

import ast
import re
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
WORD = re.compile(r"\S*\w\S*")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
GENERATED = re.compile(r"(requirements|broker-versions|protocol-coverage|rights|incidents)\.(md|csv)")


def figures(root: Path) -> dict[str, float]:
    """Return what is counted in a tree, by its name."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / "kgroup").rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lines = sum(text.count("\n") for text in texts.values())
    helpers = sum(_one_use_helpers(tree) for tree in trees.values())
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md"), *(root / "docs").glob("*.csv")]
    words = {path: len(WORD.findall(path.read_text(encoding="utf-8"))) for path in pages}
    classes = Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    packages, megabytes = _installed(root)
    return {
        "lines in kgroup/": lines,
        "files in kgroup/": len(texts),
        "lines in tests/": sum(p.read_bytes().count(b"\n") for p in (root / "tests").rglob("*.py")),
        "words in README, CONTRIBUTING, CHANGELOG, SECURITY, docs/": sum(words.values()),
        "of them on generated pages": sum(n for p, n in words.items() if GENERATED.fullmatch(p.name)),
        "private helpers used once": helpers,
        "per 1,000 lines": round(1000 * helpers / lines, 1),
        "imports inside functions": sum(_late_imports(tree) for tree in trees.values()),
        "import circles, imports for types included": _circles(root, trees),
        "public classes of one name in several modules": sum(
            count > 1 for name, count in classes.items() if name[0] != "_"
        ),
        "packages that the core installs, kgroup included": packages,
        "MB of them, without kgroup": megabytes,
    }


def _one_use_helpers(tree: ast.Module) -> int:
    """Private functions and methods that their own module names once, where they are called."""
    defined = [n.name for n in ast.walk(tree) if isinstance(n, FUNCTION) and re.match(r"_[^_]", n.name)]
    named = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    return sum(named[name] == 1 for name in defined)


def _late_imports(tree: ast.Module) -> int:
    inside = {
        id(each)
        for function in ast.walk(tree)
        if isinstance(function, FUNCTION)
        for each in ast.walk(function)
        if isinstance(each, ast.Import | ast.ImportFrom)
    }
    return len(inside)


def _circles(root: Path, trees: dict[Path, ast.Module]) -> int:
    """Groups of modules that import each other when they are loaded, or for their types."""
    names = {".".join(path.relative_to(root).with_suffix("").parts): path for path in trees}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph = {name: {*_imported(trees[path], names)} - {name} for name, path in names.items()}
    reached = {name: _reached(name, graph) for name in graph}
    circles = {frozenset(o for o in reached[n] if n in reached[o]) for n in graph if n in reached[n]}
    return len(circles)


def _imported(tree: ast.AST, names: dict[str, Path]) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from {whole if whole in names else node.module} & names.keys()
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & names.keys()
        elif not isinstance(node, FUNCTION):
            yield from _imported(node, names)


def _reached(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


def _installed(root: Path) -> tuple[int, int]:
    """How many packages the core brings, and their MB, as they lie in this environment."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, int] = {}
    waiting = [Requirement(text) for text in project["dependencies"]]
    while waiting:
        wanted = waiting.pop()
        if wanted.name.lower() in found:
            continue
        try:
            package = distribution(wanted.name)
        except PackageNotFoundError:
            continue
        files = (Path(str(file.locate())) for file in package.files or ())
        found[wanted.name.lower()] = sum(file.stat().st_size for file in files if file.is_file())
        extras = ("", *wanted.extras)
        needed = map(Requirement, package.requires or ())
        waiting += [n for n in needed if not n.marker or any(n.marker.evaluate({"extra": e}) for e in extras)]
    return len(found) + 1, round(sum(found.values()) / 1e6)


if __name__ == "__main__":
    commit = sys.argv[1]
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with TemporaryDirectory() as folder:
        with tarfile.open(fileobj=BytesIO(archive)) as tree:
            # Python 3.11 knows filters from 3.11.4 on, and Debian's is older.
            tree.extraction_filter = getattr(tarfile, "data_filter", None)
            tree.extractall(folder)
        before = figures(Path(folder))
    print(f"{'':<60}{commit:>10}{'now':>10}")
    for name, now in figures(ROOT).items():
        print(f"{name:<60}{before[name]:>10,}{now:>10,}")

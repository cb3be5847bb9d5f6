"""House rule of the views: they word and print values, which admin, history and pipeline have made."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.repository import PACKAGE, name_of, nodes

VIEWS = sorted((PACKAGE / "cli" / "views").glob("*.py"))
SESSIONS = {
    "ClusterView": "kgroup.admin.discovery",
    "Source": "kgroup.admin.read.source",
    "Transport": "kgroup.protocol.transport",
    "OffsetsLog": "kgroup.history.sources.logs",
    "Folder": "kgroup.history.sources.folders",
    "Store": "kgroup.pipeline.tables.store",
}
"""What a cluster, a log, a recording or tables are reached by, and where each is defined."""
NAMED = re.compile(rf"\b(?:{'|'.join(SESSIONS)})\b")


def _top(module: str) -> dict[str, ast.AST]:
    """The functions and classes at a module's top level, by name; none outside of kgroup."""
    spec = importlib.util.find_spec(module) if module.startswith("kgroup") else None
    if spec is None or spec.origin is None:
        return {}
    top = nodes(Path(spec.origin))[0]
    assert isinstance(top, ast.Module)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {each.name: each for each in top.body if isinstance(each, kinds)}


def _annotations(defined: ast.AST) -> Iterator[str]:
    """What a function takes and returns; of a class what its fields are, and its methods."""
    for node in ast.walk(defined):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield ast.unparse(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield ast.unparse(node.returns)


def reaches(module: str, name: str) -> bool:
    """Whether a name is a session, takes one or opens one; of a module, whether anything in it does."""
    defined = _top(module)
    if name in defined:
        return name in SESSIONS or any(map(NAMED.search, _annotations(defined[name])))
    within = f"{module}.{name}"
    return any(reaches(within, each) for each in _top(within)) if _is_module(within) else False


def _is_module(name: str) -> bool:
    try:
        return name.startswith("kgroup") and importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize(("name", "module"), SESSIONS.items())
def test_a_session_is_where_this_rule_has_it(name: str, module: str) -> None:
    assert name in _top(module)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("kgroup.cli.env.session", "open_admin"),
        ("kgroup.cli.inputs.history", "opened"),
        ("kgroup.admin.migrate.fleet", "plan_fleet"),
        ("kgroup.admin.migrate", "fleet"),
        ("kgroup.admin.read.verifying", "compare"),
        ("kgroup.history.replay", "replay"),
        ("kgroup.pipeline.ask.story", "story_in"),
    ],
)
def test_what_opens_plans_or_replays_is_found(module: str, name: str) -> None:
    assert reaches(module, name)


@pytest.mark.parametrize("path", VIEWS, ids=name_of)
def test_a_view_gets_what_it_words(path: Path) -> None:
    """It neither has a session, nor a function that takes or opens one."""
    found = [
        f"{node.module}.{alias.name}"
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if reaches(str(node.module), alias.name)
    ]
    found += [text for text in _annotations(nodes(path)[0]) if NAMED.search(text)]
    assert found == [], "the command calls it, and hands the view the result"


@pytest.mark.parametrize("path", VIEWS, ids=name_of)
def test_a_view_does_not_wait(path: Path) -> None:
    names = {node.attr for node in nodes(path) if isinstance(node, ast.Attribute)}
    names |= {alias.name for node in nodes(path) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert not names & {"sleep", "retry", "looks", "repeating"}

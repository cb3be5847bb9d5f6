"""House rules of the code: sizes, who may import what, nothing of this machine."""

import ast
import importlib
import importlib.util
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

import kgroup
from kgroup.cli.frame.registry import COMMANDS
from tests.house.repository import PACKAGE, ROOT, imported, modules, name_of, nodes, tracked

MAX_ANY = 150
EXCUSED = re.compile(r"# fmt: (skip|off)")
ONLY_IN = {"typer": "cli", "rich": "cli", "pyspark": "pipeline"}
PAST_ADMIN = re.compile(r"\badmin\.(?:_|ask|at_once)")
# Spelt in pieces, or this file would break its own rule.
MACHINE_PATHS = re.compile(r"(?<![\w./~-])/(?:" + "|".join(("work", "root", "home/[a-z]", "Users")) + r")/")
OF_THE_MACHINE = ("/tmp/" + "ref", ".m2/" + "repository")


def test_the_formatter_has_the_last_word():
    own = [path for path in tracked() if path.suffix == ".py"]
    assert [name_of(path) for path in own if EXCUSED.search(path.read_text(encoding="utf-8"))] == []


PLURAL = re.compile(
    r" (?:[a-z]+ )?(?:partitions|records|members|groups|offsets|topics|rows|files|waves|consumers|commits"
    r"|batches|times|events|rebalances|rules|settings|steps|workers|processes|assignments)\b| [a-z ]*\(s\)"
)
COUNTED = ("admin", "cli", "history", "pipeline", "scenario", "simulation", "testing", "zookeeper/groups")
NO_COUNT_OF_ONE = {
    "of": "more than one silent member",
    "have": "a verb",
    "members": "a count in words",
    "count": "more than one member that shares an id; more than one member of a generation",
    "RECORDS": "a constant",
    "LIMIT": "a constant",
    "len(unknown)": "more than one",
    "len(places)": "more than one",
    "done": "a verb",
    "self.file": "a name",
    "partitions": "what was typed",
}
"""Values before a plural that are never a count of one, and why."""


def test_a_count_has_its_noun_in_the_right_number():
    """One partition was "1 partitions" in a hundred places."""
    found = [
        f"{name_of(path)}:{value.lineno}: {{{text}}}{follows.value[:20]}"
        for path in modules()
        if any(path.is_relative_to(PACKAGE / folder) for folder in COUNTED)
        for node in nodes(path)
        if isinstance(node, ast.JoinedStr)
        for value, follows in pairwise(node.values)
        if isinstance(value, ast.FormattedValue)
        and isinstance(follows, ast.Constant)
        and PLURAL.match(follows.value)
        and (text := ast.unparse(value.value)) not in NO_COUNT_OF_ONE
        and not text.startswith("count_of(")
    ]
    assert found == [], "kgroup.domain.count_of has both numbers"


def test_no_time_is_local():
    """A screen of `watch` showed the operator's clock beside the brokers' times."""
    local = [
        f"{name_of(path)}:{node.lineno}"
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (
            (
                ast.unparse(node.func) in ("time.strftime", "datetime.now")
                and len(node.args) < 2 - ("now" in node.func.attr)
            )
            or ast.unparse(node.func) in ("time.localtime", "time.ctime", "datetime.today")
            or (node.func.attr == "fromtimestamp" and len(node.args) < 2)
        )
    ]
    assert local == []


def test_types_are_named_where_they_can_be():
    # Any is for what JSON, YAML and C libraries hand over; what the house makes itself has a name.
    used = {
        name_of(path): sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes(path))
        for path in modules()
    }
    assert sum(used.values()) < MAX_ANY, sorted(used.items(), key=lambda item: -item[1])[:9]


def test_no_group_of_a_regular_expression_repeats_possessively():
    # Python before 3.11.5 matches them wrongly where the group backtracks (gh-106052).
    strings = {
        (name_of(path), node.value)
        for path in modules()
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert [found for found in strings if re.search(r"(?<!\\)\)[*+?]\+", found[1])] == []


@pytest.mark.parametrize(("library", "package"), ONLY_IN.items())
def test_libraries_that_belong_to_one_package(library, package):
    users = {path for path in modules() if library in imported(path)}
    assert [name_of(p) for p in users if not p.is_relative_to(PACKAGE / package)] == []


def test_one_module_names_what_typer_keeps_private():
    """The next release of typer breaks that one (decision 77)."""
    private = {
        name_of(path)
        for path in (*modules(), *(ROOT / "tests").rglob("*.py"))
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("typer")
        and any(part.startswith("_") for part in f"{node.module}.{node.names[0].name}".split("."))
    }
    assert private == {"kgroup/cli/click.py"}


def test_nothing_that_is_read_can_run_code():
    """Between a process and its own child multiprocessing brings its own; what is stored is data."""
    named = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "marshal", "shelve", "copyreg"}
    own = {"__setstate__", "__reduce_ex__", "read_pickle", "allow_pickle"}
    found = []
    for path in modules():
        names = {each.id for each in nodes(path) if isinstance(each, ast.Name)}
        names |= {each.attr for each in nodes(path) if isinstance(each, ast.Attribute)}
        names |= {each.name for each in nodes(path) if isinstance(each, ast.FunctionDef)}
        names |= {each.arg for each in nodes(path) if isinstance(each, ast.keyword) and each.arg}
        found += [(name_of(path), bad) for bad in (set(imported(path)) & named) | (names & own)]
    assert found == []


def test_the_command_line_does_what_it_does_with_a_cluster_through_admin():
    """No command sends a request: it calls a function of kgroup.admin, which keeps time and a journal."""
    past = [
        f"{name_of(path)}:{number}"
        for path in modules()
        if path.is_relative_to(PACKAGE / "cli")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if PAST_ADMIN.search(line)
    ]
    assert past == []


SENTENCES = {"caution", "effect", "hint", "message", "reason", "refusal"}
"""Fields that hold sentences for people."""


def _reads_a_sentence(node: ast.AST) -> bool:
    """Whether an expression asks what a sentence contains, begins or ends with."""
    asked: list[ast.expr] = []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in ("startswith", "endswith", "find", "index"):
            asked = [node.func.value]
        elif node.func.attr in ("match", "fullmatch", "search"):
            asked = node.args
    elif isinstance(node, ast.Compare) and any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
        asked = node.comparators
    return any(isinstance(each, ast.Attribute) and each.attr in SENTENCES for each in asked)


def test_no_decision_reads_a_sentence():
    """What a sentence says is a value next to it: a code, a flag or a member of an enum."""
    found = [
        f"{name_of(path)}:{node.lineno}: {ast.unparse(node)}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if _reads_a_sentence(node) and isinstance(node, ast.expr)
    ]
    assert found == []


_VERBS = "|".join(sorted(COMMANDS.keys() - {"explain", "simulate"}))
COMMAND_WITH_A_NAME = re.compile(rf"\bkgroup (?:{_VERBS}) (?:[^{{}}]* )?$")


def test_names_in_commands_to_paste_are_quoted():
    """`kgroup describe {group_id}` would run what a group's name holds: kgroup.admin.shell quotes it."""
    found = []
    for path in modules():
        for node in nodes(path):
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            for before, value in zip(parts, parts[1:], strict=False):
                text = before.value if isinstance(before, ast.Constant) else ""
                quoted = isinstance(value, ast.FormattedValue) and isinstance(value.value, ast.Call)
                if COMMAND_WITH_A_NAME.search(str(text)) and not quoted:
                    found.append(f"{name_of(path)}:{node.lineno}")
    assert found == []


def test_no_path_of_a_machine_in_the_repository():
    found = []
    for path in tracked():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{name_of(path)}:{number}: {line.strip()[:80]}"
            for number, line in enumerate(text.splitlines(), 1)
            if MACHINE_PATHS.search(line) or any(name in line for name in OF_THE_MACHINE)
        ]
    assert found == []


def test_no_merge_is_left_half_way():
    left = []
    for path in tracked():
        text = path.read_bytes()
        if any(text.startswith(mark) or b"\n" + mark in text for mark in (b"<<<<<<< ", b">>>>>>> ")):
            left.append(name_of(path))
    assert left == []


def test_missing_extras_are_asked_for_in_one_way():
    """By the module that knows how kgroup was installed, and extras that there are."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    asked = "".join(
        path.read_text(encoding="utf-8")
        for path in modules()
        if path.is_relative_to(PACKAGE) and path.name != "extras.py"
    )
    assert not re.search(r"\b(pip|pipx|uv) (tool )?(install|inject)", asked)
    wanted = re.findall(r"""\b(?:require_extra|extra_hint)\(\s*["'](\w+)""", asked)
    assert len(wanted) > 9 and set(wanted) <= extras.keys()


def test_no_text_installs_kgroup_by_name():
    """The name is on no index: whoever takes it there would be installed."""
    by_name = re.compile(
        r"""\b(pip3?|pipx|uvx?) .*(install|inject|run|with|from) (.*[ '"])?kgroup(?![\w./-])"""
    )
    texts = [path for path in tracked() if path.suffix in {"", ".ipynb", ".md", ".py", ".sh", ".yaml"}]
    found = [
        f"{name_of(path)}: {each[0]}"
        for path in texts
        if not path.is_relative_to(ROOT / "tests")
        for each in by_name.finditer(path.read_text(encoding="utf-8"))
        if "--no-index" not in each[0]
    ]
    assert found == []


def test_a_forge_runs_what_make_test_runs():
    """Windows has no make, so its workflow names the same tests once more."""
    (chosen,) = re.findall(r'^PLAIN := (".*")$', (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert f"-m {chosen}" in (ROOT / ".github/workflows/ci.yml").read_text()


def test_the_version_stands_in_one_place():
    """`make release` writes it there, and the heading of its changes."""
    others = ("pyproject.toml", "setup.py", "README.md", "llms.txt")
    assert [name for name in others if kgroup.__version__ in (ROOT / name).read_text(encoding="utf-8")] == []


def test_every_module_says_what_it_is():
    silent = [
        name_of(path)
        for path in modules()
        if path.read_text(encoding="utf-8").strip() and ast.get_docstring(nodes(path)[0]) is None
    ]
    assert silent == []


def test_every_package_says_what_is_in_it():
    silent = [
        name_of(path)
        for path in modules()
        if path.name == "__init__.py" and not ast.get_docstring(nodes(path)[0])
    ]
    assert silent == []


def test_test_modules_have_names_of_their_own():
    """Pytest refuses to collect two test modules of one name outside packages."""
    names = [
        path.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if not (path.parent / "__init__.py").exists()
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize("path", sorted((ROOT / "bench").glob("*.py")), ids=lambda path: path.name)
def test_a_benchmark_imports_what_there_is(path: Path) -> None:
    """Benchmarks are run by hand, so a name that moved is found when a reader types the page's command."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kgroup"):
            # Read, not imported: the pipeline's modules want extras that `make test` does not install.
            names = _names_at_the_top(str(node.module))
            for name in node.names:
                there = name.name in names or importlib.util.find_spec(f"{node.module}.{name.name}")
                assert there, f"{node.module} has no {name.name}"


def _names_at_the_top(module: str) -> set[str]:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None, f"there is no module {module}"
    names: set[str] = set()
    for node in ast.walk(ast.parse(Path(spec.origin).read_text("utf-8"))):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names.add(node.name)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.ImportFrom() | ast.Import():
                names.update(alias.asname or alias.name for alias in node.names)
    return names

"""Errors that a user reads are sentences: they say with a verb what is the case, and ask nothing."""

import ast
import re
from pathlib import Path

from tests.house.repository import modules, name_of, nodes

RAISED = {"ConfigError", "KgroupError", "SafetyRefused", "StorageError", "Unreachable"}
NOT_HERE = ("broker", "coordinator", "log", "protocol", "runtime", "transactions", "zookeeper")
"""Rooms whose errors are about bytes and records, or answers on the wire; others put them into words."""
VERB = re.compile(
    r"\b(is|are|was|were|has|have|had|can|cannot|could|does|did|may|must|needs?|will|would|"
    r"allows|answer(s|ed)|asks|begins|belongs?|changed|closed|committed|contradict|decodes|differ|end(s|ed)|"
    r"exclude|exists?|expects|failed|gives|goes|holds?|keeps|knows|lacks|lies|listen|matches|measures|names?|never|"
    r"overwrites|printed|prints|reads?|refused|repeats|says|serves?|shrunk|speaks?|starts|stopped|takes|tells|"
    r"took|waited|wants?)\b"
)
COMPOSED = frozenset({"… (authenticating)", "the append …"})


def _text(node: ast.expr | None) -> str:
    """What an expression says, with … for what is known only when it runs."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _text(node.left) + _text(node.right)
    return "…"


def _messages(path: Path) -> list[tuple[int, str]]:
    """The messages of errors that are made in a module, with their lines."""
    found = []
    for node in nodes(path):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        message: ast.expr | None = None
        if node.func.id in RAISED and node.args:
            message = node.args[0]
        elif node.func.id in ("Failure", "ItemError") and len(node.args) > 2:
            message = node.args[2]
        if message is not None:
            found.append((node.lineno, _text(message)))
    return found


def _is_sentence(text: str) -> bool:
    # A message that ends with another is one where that is.
    composed = text.endswith(": …") or text in COMPOSED or not re.search("[a-z]", text)
    return composed or (not text.endswith("?") and VERB.search(text) is not None)


def test_errors_are_sentences() -> None:
    told = [
        (f"{name_of(path)}:{line}", text)
        for path in modules()
        if name_of(path).split("/")[1] not in NOT_HERE and "/decode/" not in name_of(path)
        for line, text in _messages(path)
    ]
    assert len(told) > 300
    assert [each for each in told if not _is_sentence(each[1])] == []

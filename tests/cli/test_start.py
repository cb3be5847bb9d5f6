"""What help and completion load, and what is left for later is whole when it comes."""

import subprocess
import sys

import pytest

from kgroup.cli.frame import offered, tree
from kgroup.cli.frame.lazy import walk

RUN = (
    "import os, sys; from kgroup.cli.app import run; code = run({argv!r}); print('typer.main' in sys.modules)"
)

LATER = "from kgroup.cli.frame.light import leave_for_later; leave_for_later('typer'); import typer"


def said(code: str, **variables: str) -> list[str]:
    """The lines that a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**variables}
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["--version"], []])
def test_what_is_not_a_command_loads_no_more_of_typer_than_it_needs(argv: list[str]) -> None:
    assert said(RUN.format(argv=argv))[-1] == "False"


def test_a_command_loads_the_rest() -> None:
    assert said(RUN.format(argv=["list", "--help"]))[-1] == "True"


@pytest.mark.parametrize("name", ["Option", "Context", "main", "colors", "__version__"])
def test_a_package_left_for_later_is_the_whole_package(name: str) -> None:
    """In whatever order it is imported, by whoever."""
    told = f"import typer; print(repr(typer.{name}).partition(' at ')[0])"
    assert said(f"{LATER}; {told}") == said(f"import typer.main; {told}")


def test_a_name_that_is_not_in_it_is_missing() -> None:
    code = f"{LATER}; import typer; print(hasattr(typer, 'nonsense'), hasattr(typer, 'Typer'))"
    assert said(code) == ["False True"]


def typed(*words: str) -> dict[str, str]:
    """What bash tells a program whose last word is to be completed."""
    return {
        "_KGROUP_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(("kgroup", *words)),
        "COMP_CWORD": str(len(words)),
    }


def of_the_tree(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What the command tree offers for the last word."""
    for name, value in typed(*words).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        tree.run([])
    return capsys.readouterr().out.removesuffix("\n")


BEHIND = [tuple(command.path.split()) for command in walk()]


@pytest.mark.parametrize("words", [(), *BEHIND], ids=" ".join)
@pytest.mark.parametrize("begun", ["", "l", "-", "--", "--to"])
def test_what_is_offered_without_the_tree_is_what_the_tree_offers(
    words: tuple[str, ...],
    begun: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = offered.answer([], typed(*words, begun))
    if begun.startswith("-") and words:
        told = of_the_tree(capsys, monkeypatch, *words, begun)
        assert said is None or sorted(said.split()) == sorted(told.split())
        assert begun == "--to" or said is not None
    elif not words and not begun.startswith("-"):
        assert said == of_the_tree(capsys, monkeypatch, begun)
    else:
        assert said is None


@pytest.mark.parametrize(
    "words",
    [
        ("cluster", "us"),
        ("cluster", "user", ""),
        ("offsets", "im"),
        ("describe", "a", "b", "--s"),
        ("cluster", "acl", "add", "--"),
    ],
)
def test_subcommands_and_options_behind_arguments(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = offered.answer([], typed(*words))
    assert said
    assert sorted(said.split()) == sorted(of_the_tree(capsys, monkeypatch, *words).split())


@pytest.mark.parametrize(
    "words",
    [
        ("describe", ""),
        ("describe", "--section", "su"),
        ("describe", "--all-groups", "--se"),
        ("nonsense", "--"),
        ("cluster", "nonsense", ""),
        ("describe", "'a b'", "--se"),
        ("describe", "--nothing-begins-so"),
    ],
)
def test_values_and_what_is_not_plain_are_left_to_the_tree(words: tuple[str, ...]) -> None:
    assert offered.answer([], typed(*words)) is None


@pytest.mark.parametrize("columns", ["80", "100", "300"])
def test_help_is_that_of_the_tree(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    said = offered.answer(["--help"], {"COLUMNS": columns})
    assert tree.run(["--help"]) == 0
    assert said is not None
    assert capsys.readouterr().out == said + "\n"


@pytest.mark.parametrize("columns", ["60", "90"])
def test_help_of_other_widths_is_left_to_the_tree(columns: str) -> None:
    assert offered.answer(["--help"], {"COLUMNS": columns}) is None


@pytest.mark.parametrize("argv", [[], ["list"], ["--help", "list"], ["--version"]])
def test_other_command_lines_are_left_to_the_tree(argv: list[str]) -> None:
    assert offered.answer(argv, {}) is None


def test_without_its_files_everything_is_left_to_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered, "FOLDER", "nowhere")
    assert offered.answer(["--help"], {"COLUMNS": "80"}) is None
    assert offered.answer([], typed("li")) is None


def test_help_and_names_load_nothing_of_typer() -> None:
    code = "import sys; from kgroup.cli.app import run; run(['--help']); "
    code += (
        "print([m for m in ('typer', 'kgroup.cli.frame.tree', 'inspect', 'dataclasses') if m in sys.modules])"
    )
    assert said(code)[-1] == "[]"

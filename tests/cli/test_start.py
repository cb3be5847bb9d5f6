"""What help and completion load, and what is left for later is whole when it comes."""

import subprocess
import sys

import pytest

RUN = (
    "import os, sys; from kgroup.cli.app import run; code = run({argv!r}); print('typer.main' in sys.modules)"
)


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
    assert said(f"import kgroup.cli; {told}") == said(f"import typer.main; {told}")


def test_a_name_that_is_not_in_it_is_missing() -> None:
    code = "import kgroup.cli, typer; print(hasattr(typer, 'nonsense'), hasattr(typer, 'Typer'))"
    assert said(code) == ["False True"]

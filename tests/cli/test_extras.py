"""What an extra brings is asked for before it is used, by the extra's name."""

import sys
import tomllib
from pathlib import Path

import pytest

from kgroup.errors import ConfigError, require_extra
from tests.cli.conftest import Kgroup

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_what_is_there_is_not_missing() -> None:
    require_extra("serve", "this", "json", "re")


def test_what_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(ConfigError) as refused:
        require_extra("serve", "this", "json", "jwt", "no_such_library")
    assert str(refused.value) == "this needs jwt, no_such_library"
    assert refused.value.hint == "install the extra: pip install 'kgroup[serve]'"


def test_what_does_not_load_is_missing_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """gssapi without libkrb5 ended in a traceback: its package is found, and fails as it is imported."""
    (tmp_path / "half_installed.py").write_text("raise ImportError('libx.so.2: cannot open it')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="needs half_installed, which does not load: libx.so.2"):
        require_extra("kerberos", "this", "half_installed")


@pytest.mark.parametrize(
    ("library", "extra", "command"),
    [
        ("confluent_kafka", "demo", "demo"),
        ("httpx", "http", "list --rest http://127.0.0.1:1"),
        ("httpx", "http", "watch orders --notify http://127.0.0.1:1 --local FOLDER"),
        ("prometheus_client", "serve", "serve --local FOLDER --port 0 --metrics 0"),
    ],
)
def test_a_command_without_its_extra_names_it(
    library: str, extra: str, command: str, kgroup: Kgroup, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    ran = kgroup(*command.replace("FOLDER", str(tmp_path / "data")).split())
    assert ran.code == 2 and f"kgroup[{extra}]" in ran.err and "Traceback" not in ran.err


def test_the_core_needs_no_library_of_an_extra() -> None:
    """Libraries of extras are not in the core too: then the extra would bring nothing."""
    core = {name.split(">")[0].split("=")[0] for name in PROJECT["dependencies"]}
    extras = {
        name.split(">")[0].split("=")[0].split("[")[0]
        for extra, names in PROJECT["optional-dependencies"].items()
        for name in names
        if extra != "dev"
    }
    assert core & extras == set()

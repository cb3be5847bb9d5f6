"""What an extra brings is asked for before it is used, by the extra's name."""

import json
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from kgroup.errors import ConfigError
from kgroup.extras import extra_hint, install_command, require_extra
from tests.cli.conftest import Kgroup

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_what_is_there_is_not_missing() -> None:
    require_extra("serve", "this", "json", "re")


def test_what_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with pytest.raises(ConfigError) as refused:
        require_extra("serve", "this", "json", "jwt", "no_such_library")
    assert str(refused.value) == "this needs jwt, no_such_library"
    assert refused.value.hint == extra_hint("serve")


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
        ("mcp.server.lowlevel", "mcp", "mcp -b 127.0.0.1:1"),
        ("prometheus_client", "serve", "serve --local FOLDER --port 0 --metrics 0"),
    ],
)
def test_a_command_without_its_extra_names_it(
    library: str, extra: str, command: str, kgroup: Kgroup, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    ran = kgroup(*command.replace("FOLDER", str(tmp_path / "data")).split())
    assert ran.code == 2 and f"install the extra {extra}: " in ran.err and "Traceback" not in ran.err


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


@dataclass
class Place:
    """An environment with kgroup's metadata in it, as an installer leaves it."""

    prefix: Path
    metadata: Path

    def came_from(self, url: str, **more: object) -> None:
        (self.metadata / "direct_url.json").write_text(json.dumps({"url": url, **more}))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Python runs in an environment of pip's; of kgroup its metadata is found there."""
    made = Place(tmp_path / "env", tmp_path / "site" / "kgroup-0.1.0.dist-info")
    (made.prefix / "bin").mkdir(parents=True)
    (made.prefix / "bin" / "pip").touch()
    made.metadata.mkdir(parents=True)
    lines = [
        f'Requires-Dist: {needed}{" and" if ";" in needed else ";"} extra == "{extra}"'
        for extra, needs in PROJECT["optional-dependencies"].items()
        for needed in needs
    ]
    (made.metadata / "METADATA").write_text("\n".join(["Name: kgroup", "Version: 0.1.0", *lines, ""]))
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.setattr(sys, "prefix", str(made.prefix))
    monkeypatch.setattr(sys, "executable", str(made.prefix / "bin" / "python3"))
    return made


def test_pip_installs_an_extras_packages_and_nothing_by_kgroups_name(place: Place) -> None:
    pip = place.prefix / "bin" / "pip"
    assert extra_hint("demo") == f"install the extra demo: {pip} install 'confluent-kafka>=2.4'"
    needed = "'httpx>=0.28,<1' 'pyjwt>=2.10' 'prometheus-client>=0.22'"
    assert extra_hint("serve") == f"install the extra serve: {pip} install {needed}"
    for extra in PROJECT["optional-dependencies"].keys() - {"dev"}:
        assert "kgroup" not in extra_hint(extra).replace(str(place.prefix), "")


def test_without_a_pip_beside_python_that_of_python_or_uv_installs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.prefix / "bin" / "pip").unlink()
    # Setuptools' finder warns whoever looks for pip's module once a library has imported this one.
    monkeypatch.setitem(sys.modules, "distutils", ModuleType("distutils"))
    assert install_command("a", "b>=2") == f"{sys.executable} -m pip install a 'b>=2'"
    monkeypatch.setattr("kgroup.extras._has_pip", lambda: False)
    assert install_command("a", "b>=2") == f"uv pip install --python {sys.executable} a 'b>=2'"


def test_pipx_injects_into_its_environment(place: Place) -> None:
    (place.prefix / "pipx_metadata.json").write_text("{}")
    assert extra_hint("demo") == "install the extra demo: pipx inject env 'confluent-kafka>=2.4'"


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ('path = "/dist/kgroup-0.1.0-py3-none-any.whl"', "/dist/kgroup-0.1.0-py3-none-any.whl"),
        ('extras = ["http"], path = "/dist/k.whl"', "'/dist/k.whl[http]'"),
        ('editable = "/src/kgroup"', "--editable /src/kgroup"),
    ],
)
def test_uv_installs_its_tool_again_with_all_that_was_beside_it(
    source: str, shown: str, place: Place
) -> None:
    """`uv tool install --with` leaves out what it was given before."""
    beside = '{ name = "httpx", specifier = ">=0.28" }, { name = "kazoo", extras = ["sasl"] }'
    receipt = f'[tool]\nrequirements = [{{ name = "kgroup", {source} }}, {beside}]\n'
    (place.prefix / "uv-receipt.toml").write_text(receipt)
    words = "--with 'httpx>=0.28' --with 'kazoo[sasl]' --with 'confluent-kafka>=2.4'"
    assert extra_hint("demo") == f"install the extra demo: uv tool install {words} {shown}"


def test_a_tool_of_uv_from_an_index_is_not_installed_by_its_name(place: Place) -> None:
    (place.prefix / "uv-receipt.toml").write_text('[tool]\nrequirements = [{ name = "kgroup" }]\n')
    assert install_command("a") == f"{place.prefix}/bin/pip install a"


def test_a_checkout_is_installed_with_the_extra(place: Place) -> None:
    place.came_from("file:///src/my%20kgroup", dir_info={"editable": True})
    pip = place.prefix / "bin" / "pip"
    assert extra_hint("demo") == f"install the extra demo: {pip} install -e '/src/my kgroup[demo]'"
    place.came_from("file:///dist/kgroup-0.1.0-py3-none-any.whl", archive_info={})
    assert extra_hint("demo") == f"install the extra demo: {pip} install 'confluent-kafka>=2.4'"


def test_windows_has_quotes_of_its_own(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgroup.extras.os", SimpleNamespace(name="nt"))
    (place.prefix / "bin" / "pip.exe").touch()
    assert install_command("a", "b>=2") == f'{place.prefix}/bin/pip.exe install a "b>=2"'


def test_a_standalone_has_no_extras_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert extra_hint("demo") == "the extra demo is not part of this build; use the wheel"
    assert install_command("a") == "it is not part of this build; use the wheel"


def test_kgroup_without_metadata_names_its_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as in a zip on an executor of Spark."""
    monkeypatch.setattr(sys, "path", [])
    assert extra_hint("demo") == "install kgroup's wheel with the extra demo"


def test_kerberos_names_the_headers_it_wants(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    said = extra_hint("kerberos")
    assert "libkrb5-dev" in said and "krb5-devel" in said and said.endswith("pip install 'gssapi>=1.8'")
    monkeypatch.setattr(sys, "platform", "win32")
    assert extra_hint("kerberos") == "the extra kerberos has no packages for this system"


def test_no_extra_has_a_marker_but_that_it_is_not_for_windows() -> None:
    """But for what this repository is built and tested with: no command asks for it."""
    asked = {n: needs for n, needs in PROJECT["optional-dependencies"].items() if n not in ("dev", "release")}
    markers = {needed.partition("; ")[2] for needs in asked.values() for needed in needs}
    assert markers == {"", "sys_platform != 'win32'"}

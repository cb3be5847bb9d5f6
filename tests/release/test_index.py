"""The wheel, and what an index returns, installed by pip, pipx and uv: each does what it is for."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import URLError

import pytest
from packaging.requirements import Requirement

import kgroup
from tests.interop.server import free_port
from tests.release.environment import ROOT, TOOLS, WITHOUT_SETUP, Environment, built
from tests.release.stuck import verdict
from tests.sampled import in_full

pytestmark = [pytest.mark.release, pytest.mark.timeout(300)]
# For those who develop kgroup.
OURS = {"dev", "release", "site", "standalone"}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An index on loopback with what `make upload` sent; for other packages it redirects to pip's."""
    port = free_port()
    own = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
    )
    behind = os.environ.get("PIP_INDEX_URL") or own.stdout.strip()
    command = [TOOLS / "pypi-server", "run", "-i", "127.0.0.1", "-p", str(port), "-P", ".", "-a", "."]
    command += ["--fallback-url", behind] if behind else []
    server = subprocess.Popen([*command, tmp_path_factory.mktemp("index")], stderr=subprocess.DEVNULL)
    try:
        _answered(f"http://127.0.0.1:{port}/", server)
        login = {"TWINE_USERNAME": "any", "TWINE_PASSWORD": "any"}
        send = ["make", "upload", f"UPLOAD=http://127.0.0.1:{port}/", *WITHOUT_SETUP]
        subprocess.run(send, cwd=ROOT, env=os.environ | login, check=True)
        yield f"http://127.0.0.1:{port}/simple/"
    finally:
        server.terminate()
        server.wait()


def _answered(url: str, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=10).close()
            return
        except URLError:
            continue
    raise AssertionError(f"pypiserver has ended with {server.returncode}")


def _by_pip(here: Environment, what: str, *where: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", here.prefix], check=True)
    here.run(str(here.bin / "python"), "-m", "pip", "install", "-q", *where, what)


def _by_pipx(here: Environment, what: str, *where: str) -> None:
    here.run(str(TOOLS / "pipx"), "install", "--quiet", "--python", sys.executable, *where, what)


def _by_uv(here: Environment, what: str, *where: str) -> None:
    from_index = ["--default-index", where[1]] if where else []
    here.run(str(TOOLS / "uv"), "tool", "install", "--quiet", "--python", sys.executable, *from_index, what)


TOOLS_OF = (_by_pipx, _by_uv)


@pytest.mark.parametrize(
    ("install", "source"),
    [
        (_by_pip, "wheel"),
        *(
            pytest.param(by, "wheel", marks=in_full("it takes the same wheel from an index"))
            for by in TOOLS_OF
        ),
        *(pytest.param(by, "index", marks=pytest.mark.xdist_group("index")) for by in (_by_pip, *TOOLS_OF)),
    ],
)
def test_from_nothing_to_a_verdict(
    install: Callable[..., None], source: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    # Below the account's home, where pipx and uv put their commands.
    here = Environment("plain", tmp_path / ".local", tmp_path)
    if source == "index":
        install(here, "kgroup[http]", "--index-url", request.getfixturevalue("index"))
    else:
        install(here, str(built("plain")))
    assert here.kgroup("--version") == f"kgroup {kgroup.__version__}\n"
    assert "!! KG112" in verdict([here.bin / "kgroup"], here.cwd, env=here.variables())


def _packages(extra: str) -> set[str]:
    """Return the packages that an extra names for this system, with those of the extras in it."""
    needs = [Requirement(each) for each in EXTRAS[extra]]
    here = [each for each in needs if each.marker is None or each.marker.evaluate()]
    inner = {name for each in here if each.name == "kgroup" for name in each.extras}
    return {each.name for each in here if each.name != "kgroup"}.union(*map(_packages, inner))


@pytest.mark.xdist_group("index")
@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - OURS))
def test_each_extra_can_be_had(extra: str, index: str, tmp_path: Path) -> None:
    """Resolved, not installed: Spark alone has 400 MB."""
    wanted = _packages(extra)
    uv = [TOOLS / "uv", "pip", "install", "--dry-run", "--default-index", index]
    if "pyspark" in wanted:
        # Has no wheel, and uv reads all of it to see what it needs: where it is installed it is not asked.
        place = ["--python", sys.executable, "--reinstall-package", "kgroup"]
    else:
        made = [TOOLS / "uv", "venv", "--quiet", "--python", sys.executable, tmp_path / "venv"]
        subprocess.run(made, check=True)
        place = ["--python", tmp_path / "venv"]
    done = subprocess.run([*uv, *place, f"kgroup[{extra}]"], capture_output=True, text=True, check=True)
    added = {name.lower() for name in re.findall(r"^ \+ ([\w.-]+)==", done.stderr, re.MULTILINE)}
    assert "kgroup" in added
    assert "pyspark" in wanted or {name.lower() for name in wanted} <= added


INSTALLED = """
import sys
from importlib.metadata import distribution

for name in sys.argv[1:]:
    distribution(name)
print(sys.prefix)
"""


@in_full("each of them is resolved: installing all takes ten minutes")
@pytest.mark.timeout(900)
@pytest.mark.xdist_group("index")
@pytest.mark.parametrize("install", [_by_pip, *TOOLS_OF])
# Kerberos's package is built, and there is no compiler.
@pytest.mark.parametrize("extra", sorted(EXTRAS.keys() - OURS - {"kerberos"}))
def test_each_tool_installs_each_extra(
    install: Callable[..., None], extra: str, index: str, tmp_path: Path
) -> None:
    here = Environment("plain", tmp_path / ".local", tmp_path)
    install(here, f"kgroup[{extra}]", "--index-url", index)
    python = shlex.split((here.bin / "kgroup").read_text().partition("\n")[0].removeprefix("#!"))
    place = Path(here.run(*python, "-c", INSTALLED, "kgroup", *_packages(extra)).strip())
    assert place.is_relative_to(tmp_path)
    shutil.rmtree(place)

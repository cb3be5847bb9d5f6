"""Everything `make dist` built is installed where there is no checkout and no compiler, and used there."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import kgroup
from kgroup.pipeline.spark.installed import digest
from tests.release.environment import DIST, KINDS, ROOT, Environment, built, checkout
from tests.release.interpreters import present
from tests.sampled import in_full, sampled

pytestmark = [pytest.mark.release, pytest.mark.timeout(600)]
OURS = f"{sys.version_info.major}.{sys.version_info.minor}"
INCIDENTS = ROOT / "tests" / "data" / "incidents"
# The compiled wheel is for the Python that built it; every other takes the plain one.
CASES = [(OURS, kind) for kind in KINDS] + [(version, "plain") for version in present() if version != OURS]
KEPT = {*CASES[: len(KINDS)], CASES[-1]}
LOOPS = {"sdist": "plain Python", "plain": "plain Python", "compiled": "compiled"}


@pytest.fixture(
    scope="session",
    params=[
        pytest.param(
            case,
            marks=[
                pytest.mark.xdist_group("-".join(case)),
                *([] if case in KEPT else [in_full("another Python is the newest of this machine")]),
            ],
        )
        for case in CASES
    ],
    ids=["-".join(case) for case in CASES],
)
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Environment]:
    version, kind = request.param
    yield Environment.make(present()[version], kind, tmp_path_factory.mktemp(f"{kind}-{version}"))


def test_it_says_which_loops_run_and_from_where(installed: Environment) -> None:
    first, python, place, *loops = installed.kgroup("--version", "-v").splitlines()
    assert first == f"kgroup {kgroup.__version__}"
    assert str(installed.prefix) in python
    assert Path(place.removeprefix("from ")).is_relative_to(installed.prefix)
    assert loops == [f"reading logs: {LOOPS[installed.kind]} (kgroup.history.decode)"]


def test_it_is_the_source_of_the_checkout(installed: Environment) -> None:
    """So an executor that has it knows itself in the zip of a driver."""
    place = installed.kgroup("--version", "-v").splitlines()[2].removeprefix("from ")
    assert digest(Path(place)) == digest(Path(kgroup.__file__).parent)


def test_the_demo_runs(installed: Environment) -> None:
    assert "serve --local ./data" in installed.kgroup("demo")


def test_the_documentation_is_there(installed: Environment) -> None:
    for page in ("exit-codes", "decisions/0023"):
        (file,) = (ROOT / "docs").glob(f"{page}*.md")
        assert installed.kgroup("docs", page) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("incident", ["crashed-static-member", "upgrade-and-back", "retention-zstd"])
def test_a_log_is_replayed_as_by_the_checkout(installed: Environment, incident: str) -> None:
    command = ("replay-log", "--files", str(INCIDENTS / incident), "-o", "json")
    told = json.loads(installed.kgroup(*command))
    assert told == json.loads(checkout(*command))
    assert told["data"]["events"]


def test_the_man_pages_are_where_man_looks(installed: Environment) -> None:
    pages = {page.name: page.read_text() for page in (installed.prefix / "share/man/man1").glob("kgroup*")}
    assert pages == {page.name: page.read_text() for page in (ROOT / "man").iterdir()}


@pytest.mark.parametrize(
    ("place", "script"),
    [
        ("share/bash-completion/completions", "kgroup.bash"),
        ("share/zsh/site-functions", "_kgroup"),
        ("share/fish/vendor_completions.d", "kgroup.fish"),
    ],
)
def test_the_completions_are_where_shells_look(installed: Environment, place: str, script: str) -> None:
    assert (installed.prefix / place / script).read_text() == (ROOT / "completions" / script).read_text()


def test_bash_completes_a_command(installed: Environment) -> None:
    script = installed.prefix / "share/bash-completion/completions/kgroup.bash"
    typed = "COMP_LINE='kgroup rep'; COMP_POINT=10; _kgroup_completion kgroup rep"
    asked = f'. "{script}"; {typed}; echo "${{COMPREPLY[@]}}"'
    assert installed.run("/bin/bash", "--norc", "-c", asked) == "replay-log\n"


def test_the_page_of_a_history_is_in_it(installed: Environment) -> None:
    """Data files are what a wheel loses first."""
    page = installed.cwd / "history.html"
    log = str(INCIDENTS / "crashed-static-member")
    installed.kgroup("replay-log", "--files", log, "--html", str(page))
    assert "<html" in page.read_text()


@pytest.mark.parametrize(
    ("abi", "kind"),
    [
        ("cp" + OURS.replace(".", ""), "compiled"),
        ("cp313t", "plain"),
        ("cp314t", "plain"),
        ("cp314", "plain"),
    ],
)
def test_pip_takes_the_right_wheel(abi: str, kind: str, tmp_path: Path) -> None:
    """Compiled for the Python it was built with, plain for every other, and for those without a GIL."""
    platform = built("compiled").stem.rpartition("-")[2].split(".")[0]
    version = abi[2] + "." + abi[3:].rstrip("t")
    place = ["--no-index", "--find-links", str(DIST), "--no-deps", "--only-binary", ":all:"]
    target = ["--implementation", "cp", "--python-version", version, "--abi", abi, "--platform", platform]
    here = Environment("none", Path(sys.prefix), tmp_path)
    (tmp_path / "got").mkdir()
    here.run(sys.executable, "-m", "pip", "download", "-q", *place, *target, "-d", "got", "kgroup")
    assert [path.name for path in (tmp_path / "got").iterdir()] == [built(kind).name]


TESTED = """
from confluent_kafka import Consumer, __version__
from kgroup.testing import Cluster

with Cluster({"orders": 2}) as kafka:
    kafka.produce("orders", ["a", "b"])
    consumer = Consumer(
        {**kafka.client(), "group.id": "pay", "client.id": "pay-0", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    print(__version__, sorted(kafka.until(lambda: consumer.poll(0.1)).value() for _ in range(2)))
    kafka.freeze("pay-0")
    kafka.advance("45s")
    print(kafka.describe("pay").state)
    kafka.thaw("pay-0")
    consumer.close()
"""


@pytest.mark.parametrize("client", sampled(["2.4.0", "2.16.1"], {"2.4.0"}, "the demo has a new one"))
def test_users_keep_their_client(client: str, tmp_path: Path) -> None:
    """Old and new confluent-kafka install with the wheel, and a test of theirs runs."""
    here = Environment.make(present()[OURS], "plain", tmp_path, f"confluent-kafka=={client}", extra="")
    assert here.python(TESTED).splitlines() == [f"{client} [b'a', b'b']", "Empty"]


def test_a_test_environment_needs_no_kafka_client_of_ours(tmp_path: Path) -> None:
    here = Environment.make(present()[OURS], "plain", tmp_path, "pytest", extra="", own_pip=True)
    installed = json.loads(here.run(str(here.bin / "python"), "-m", "pip", "list", "--format", "json"))
    assert {each["name"] for each in installed} & {"confluent-kafka", "kafka-python", "aiokafka"} == set()
    hint = here.python("from kgroup.extras import extra_hint; print(extra_hint('demo'))")
    command = f"{here.bin / 'pip'} install 'confluent-kafka>=2.4'"
    assert hint == f"install the extra demo: {command}"
    here.run("/bin/sh", "-c", command)
    here.python("from kgroup.extras import require_extra; require_extra('demo', 'this', 'confluent_kafka')")
    (here.cwd / "test_theirs.py").write_text(
        "def test_it(kafka_fresh):\n"
        "    kafka_fresh.produce(kafka_fresh.create_topic('orders', 1).name, ['a'])\n"
        "    assert [record.value for record in kafka_fresh.read('orders')] == [b'a']\n"
    )
    assert "1 passed" in here.run(str(here.bin / "python"), "-m", "pytest", "-q", "test_theirs.py")

"""Completion as it is typed in bash, zsh and fish: no name runs, and each reads back as itself."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kgroup.admin.read.describe import describe
from kgroup.runtime.cluster import Cluster
from tests.cli.completion_answers import STAND_IN
from tests.cli.live import Client, served
from tests.cli.typed_shell import PROMPT, TypedShell

HOSTILE = [
    "$(>hit)",
    "`>hit`",
    ";>hit;",
    "|>hit",
    "&>hit",
    "&&>hit",
    ">hit",
    "<hit",
    "$(touch${IFS}hit)",
    "$HOME",
    "${HOME}",
    "$'a\\n'",
    '$"a"',
    "'",
    '"',
    "''",
    "a\"b'c",
    "it's",
    "\\",
    "\\\\",
    "a\\",
    "\\n",
    "a b",
    " a",
    "a ",
    "a\nb",
    "a\n",
    "\na",
    "a\tb",
    "*",
    "?",
    "[a-z]*",
    "{a,b}",
    "~root",
    "!!",
    "!1",
    "a!b!",
    "#c",
    "=ls",
    "a=b",
    "a:b:c",
    "a,b",
    "-rf",
    "--execute",
    "(a)",
    "%1",
    "^a^b",
    "a@b",
    "\x1b[31m",
    "\x07\r\x7f",
    "ü—漢字",
    "\u202eabc",
    "\xa0\u3000",
    "\x9b31m",
    "\U0001f600",
    "a\x00b"[:1] + "\u0301",
]
SHELLS = ["bash", "zsh", "fish"]
GROUPS = {f"p{number:02}{name}": f"p{number:02}" for number, name in enumerate(HOSTILE)}


@pytest.fixture(scope="module")
def brokers() -> Iterator[Client]:
    with served(Cluster(offsets_partitions=1)) as bootstrap:
        client = Client(bootstrap)
        client.create_topic("orders", 3)
        for group in (*GROUPS, "--execute", "two `>hit`$(>hit);x", "two `>hit`$(>hit);y"):
            client.commit(group, "orders", {0: 0})
        client.classic_group("team's $(>hit)", "orders", {"a,b $(>hit)": [0], "c;>hit": [1]})
        yield client
        client.close()


class Typing:
    """A shell whose `kgroup` answers as the real one, and keeps what it is run with."""

    def __init__(self, shell: str, folder: Path, bootstrap: str) -> None:
        (folder / "bin").mkdir()
        (folder / "bin" / "kgroup").write_text(STAND_IN.format(folder=folder))
        (folder / "bin" / "kgroup").chmod(0o755)
        for pipe in ("ask", "reply"):
            os.mkfifo(folder / pipe)
        # Apart from what the test has: whatever else is there, a name has made it.
        self.empty = folder / "empty"
        self.empty.mkdir()
        environment = {**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"}
        environment |= {"KGROUP_BOOTSTRAP_SERVER": bootstrap, "XDG_CACHE_HOME": str(folder / "cache")}
        self.config = folder / "config" / "kgroup" / "config.yaml"
        self.config.parent.mkdir(parents=True)
        environment["XDG_CONFIG_HOME"] = str(folder / "config")
        self.name, self._folder = shell, folder
        self._answers = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.completion_answers", str(folder)],
            env=environment | {"_KGROUP_COMPLETE": shell},
        )
        self.shell = TypedShell(shell, folder / "home", self.empty, environment)

    def close(self) -> None:
        self.shell.close()
        self._answers.kill()
        self._answers.wait()

    def run(self, line: str) -> list[str]:
        """Type a line and Enter; what `kgroup` was run with."""
        argv, prompts = self._folder / "argv", self.shell.screen.count(PROMPT)
        argv.unlink(missing_ok=True)
        self.shell.type(line + "\r")
        self.shell.until(lambda: argv.exists() and self.shell.screen.count(PROMPT) > prompts)
        assert list(self.empty.iterdir()) == []
        return [os.fsdecode(word) for word in argv.read_bytes().split(b"\0")[:-1]]


@pytest.fixture(scope="module", params=SHELLS)
def typing(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, brokers: Client
) -> Iterator[Typing]:
    if not shutil.which(request.param):
        pytest.skip(f"{request.param} is not installed; .ci/run installs it")
    typing = Typing(request.param, tmp_path_factory.mktemp(request.param), brokers.bootstrap)
    yield typing
    typing.close()


@pytest.mark.parametrize("quote", ["", "'", '"'], ids=["plain", "single", "double"])
def test_a_group_of_any_name_is_inserted_as_itself(typing: Typing, quote: str) -> None:
    wanted = {name: start for name, start in GROUPS.items() if typing.name != "fish" or "\t" not in name}
    typed = "".join(f"{quote}{start}\t" for start in wanted.values())
    assert typing.run(f"kgroup describe {typed}") == ["describe", *wanted]


def test_a_name_of_which_nothing_is_typed(typing: Typing) -> None:
    """What the shell reads otherwise at the start of a word: ~, =, #, a dash."""
    for name in {name[0]: name for name in HOSTILE if not name[0].isalnum()}.values():
        typing.config.write_text(yaml.safe_dump({"contexts": {name: {"local": "/x/y"}}}))
        unoffered = typing.name == "fish" and ("\t" in name or name.startswith("~"))
        assert typing.run("kgroup list -C \t") == ["list", "-C", *([] if unoffered else [name])]


def test_an_option_is_no_group(typing: Typing) -> None:
    """A group called --execute is offered behind -- only, and the option only before."""
    assert typing.run("kgroup delete -- --exe\t") == ["delete", "--", "--execute"]
    assert typing.run("kgroup delete --exec\t") == ["delete", "--execute"]


@pytest.mark.parametrize("quote", ["", "'", '"'], ids=["plain", "single", "double"])
def test_what_several_names_have_in_common(typing: Typing, quote: str) -> None:
    assert typing.run(f"kgroup describe {quote}tw\ty\t") == ["describe", "two `>hit`$(>hit);y"]


def test_words_before_and_after(typing: Typing) -> None:
    """A name that stands in the line is read as the shell reads it; what is typed may be in its middle."""
    group = "team's $(>hit)"
    typed = r"""kgroup remove-members "team's \$(>hit)" --instance-id """
    assert typing.run(f"{typed}a\t")[1:] == [group, "--instance-id", r"a\,b $(>hit)"]
    assert typing.run(f"{typed}'c;>hit',a\t")[1:] == [group, "--instance-id", r"c;>hit,a\,b $(>hit)"]
    back = "\x1b[D" * len(" --quiet")
    assert typing.run(f"kgroup describe tea --quiet{back}\t") == ["describe", group, "--quiet"]


def test_brokers_with_a_port(typing: Typing, brokers: Client) -> None:
    """bash ends a word at each : and =."""
    where = f"-b {brokers.bootstrap}"
    start = HOSTILE[0]
    assert typing.run(f"kgroup describe {where} p00\t")[-1] == f"p00{start}"
    assert typing.run(f"kgroup {where} reset-offsets p00\t --topic ord\t")[-1] == "orders"
    assert typing.run("kgroup reset-offsets p00\t --topic orders:2\t")[-1] == "orders:2"
    assert typing.run("kgroup reset-offsets p00\t --topic orders:0,2\t")[-1] == "orders:0,2"
    assert typing.run("kgroup list --topic=ord\t")[-1] == "--topic=orders"
    assert typing.run(f"kgroup describe --bootstrap-server={brokers.bootstrap} p00\t")[-1] == f"p00{start}"
    colon = f"p{HOSTILE.index('a:b:c'):02}a:b"
    assert typing.run(f"kgroup describe {colon}\t")[-1] == f"{colon}:c"


def test_members_contexts_and_shells(typing: Typing, brokers: Client) -> None:
    typing.config.write_text("contexts: {staging: {local: /x/y}}\n")
    assert typing.run("kgroup context use \t") == ["context", "use", "staging"]
    assert typing.run("kgroup completion f\t") == ["completion", "fish"]
    (member,) = (
        m
        for m in describe(brokers.admin, ["team's $(>hit)"]).groups[0].known_members
        if m.instance_id == "c;>hit"
    )
    start = f"kgroup remove-members tea\t --member-id {member.member_id[:1]}"
    assert typing.run(f"{start}\t")[-1] == member.member_id


def test_a_file_where_kgroup_offers_nothing(typing: Typing) -> None:
    (typing.config.parent / "client $(x).properties").touch()
    typed = f"kgroup list --command-config {typing.config.parent}/cl\t"
    assert typing.run(typed)[-1] == f"{typing.config.parent}/client $(x).properties"

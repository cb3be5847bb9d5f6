"""`make release`: what it refuses, what it writes, and that it sends nothing unless it is told where to."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.release.environment import ROOT, WITHOUT_SETUP

# What stands in for the builds: they have tests of their own.
MAKEFILE = """
dist sbom:
\tmkdir -p dist && cp kgroup/version.py dist/$@
upload:
\techo $(UPLOAD) >dist/uploaded
"""
CHANGED = "## [Unreleased]\n\n- More.\n\n"
OLDER = "## [0.1.0] - 2026-01-31\n\n- The first.\n"


class Checkout:
    """A repository with what the script reads and writes."""

    def __init__(self, folder: Path, changes: str, makefile: str = MAKEFILE) -> None:
        self.folder = folder
        (folder / "kgroup").mkdir()
        self.write("kgroup/version.py", '"""The version."""\n\n__version__ = "0.0.1"\n')
        self.write("CHANGELOG.md", f"# Changelog\n\n{changes}")
        self.write("Makefile", makefile)
        self.write(".gitignore", "dist/\n")
        self.git("init", "--quiet")
        self.git("config", "user.name", "Someone")
        self.git("config", "user.email", "someone@example.com")
        # A release signs nothing, whatever its account is used to.
        self.git("config", "commit.gpgSign", "false")
        self.git("add", ".")
        self.git("commit", "--quiet", "-m", "All of it")
        self.git("config", "commit.gpgSign", "true")
        self.git("config", "tag.gpgSign", "true")
        self.git("config", "gpg.program", "false")

    def git(self, *arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, "utf-8")

    def read(self, name: str) -> str:
        return (self.folder / name).read_text("utf-8")

    def release(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code and what was complained of."""
        command = [sys.executable, str(ROOT / "release" / "__main__.py"), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        return done.returncode, done.stderr

    def state(self) -> tuple[str, str, str]:
        return self.git("log", "--format=%H"), self.git("tag"), self.git("status", "--porcelain")


@pytest.mark.parametrize("heading", ["## [Unreleased]", "## [0.2.0] - unreleased"])
def test_a_release_is_a_commit_a_tag_a_note_and_what_was_built(heading: str, tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, f"{heading}\n\n### Added\n- More.\n\n{OLDER}")
    assert checkout.release("0.2.0") == (0, "")
    assert '__version__ = "0.2.0"\n' in checkout.read("kgroup/version.py")
    days = re.findall(r"^## \[0\.2\.0\] - (\d{4}-\d\d-\d\d)$", checkout.read("CHANGELOG.md"), re.MULTILINE)
    assert checkout.read("CHANGELOG.md") == (
        f"# Changelog\n\n## [0.2.0] - {days[0]}\n\n### Added\n- More.\n\n{OLDER}"
    )
    assert checkout.read("dist/kgroup-0.2.0-notes.md") == "### Added\n- More.\n"
    assert checkout.read("dist/dist") == checkout.read("dist/sbom") == checkout.read("kgroup/version.py")
    assert checkout.git("log", "-1", "--format=%s", "v0.2.0") == "Release 0.2.0\n"
    assert checkout.git("status", "--porcelain") == ""
    assert not (tmp_path / "dist" / "uploaded").exists()


def test_it_uploads_where_it_is_told(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, CHANGED + OLDER)
    assert checkout.release("0.2.0", "--upload", "https://index.example.com/")[0] == 0
    assert checkout.read("dist/uploaded") == "https://index.example.com/\n"


@pytest.mark.parametrize(
    ("version", "changes", "said"),
    [
        (
            "0.1.0",
            CHANGED + OLDER,
            "0.1.0 is not newer than 0.1.0, the last release",
        ),
        ("0.1.0rc1", CHANGED + OLDER, "0.1.0rc1 is not newer than 0.1.0"),
        ("0.0.9", CHANGED + OLDER, "0.0.9 is not newer than 0.1.0"),
        ("next", CHANGED, "'next' is no version: write it as 0.2.0"),
        ("v0.2", CHANGED, "an index would name v0.2 otherwise: write 0.2"),
        ("0.2.0", "## [Unreleased]\n\n### Added\n\n" + OLDER, "the top entry of CHANGELOG.md"),
        ("0.2.0", OLDER, "CHANGELOG.md says nothing of this release: its top entry is 0.1.0 of 2026-01-31"),
        ("0.2.0", "Nothing yet.\n", "CHANGELOG.md has no entry"),
    ],
)
def test_it_refuses_in_words(version: str, changes: str, said: str, tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, changes)
    before = checkout.state()
    code, words = checkout.release(version)
    assert (code, checkout.state()) == (1, before)
    assert words.startswith("error: ") and said in words


def test_a_tag_is_a_release_too(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, CHANGED)
    checkout.git("tag", "--no-sign", "-am", "was", "v0.3.0")
    assert "0.2.0 is not newer than 0.3.0" in checkout.release("0.2.0")[1]


@pytest.mark.parametrize("name", ["kgroup/version.py", "kgroup/new.py"])
def test_it_refuses_a_dirty_tree(name: str, tmp_path: Path) -> None:
    """Files that git does not know would be in the wheel."""
    checkout = Checkout(tmp_path, CHANGED)
    checkout.write(name, "# not yet\n")
    code, words = checkout.release("0.2.0")
    assert code == 1 and re.search(rf"changes without a commit.*{re.escape(name)}", words, re.DOTALL)
    assert checkout.read(name) == "# not yet\n"


def test_what_cannot_be_built_leaves_the_checkout_as_it_was(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, CHANGED, MAKEFILE.replace("mkdir", "false && mkdir"))
    before = checkout.state()
    code, words = checkout.release("0.2.0")
    assert (code, checkout.state()) == (1, before)
    assert "0.2.0 could not be built" in words and "0.0.1" in checkout.read("kgroup/version.py")


def test_an_upload_that_fails_says_how_to_repeat_it(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, CHANGED, MAKEFILE.replace("echo", "false &&"))
    code, words = checkout.release("0.2.0", "--upload", "https://index.example.com/")
    assert code == 1 and "once more: make upload UPLOAD=https://index.example.com/" in words
    assert checkout.git("tag") == "v0.2.0\n"


def test_what_the_environment_says_uploads_nothing() -> None:
    told = os.environ | {"UPLOAD": "https://index.example.com/"}
    command = ["make", "upload", *WITHOUT_SETUP]
    done = subprocess.run(command, cwd=ROOT, env=told, capture_output=True, text=True)
    assert done.returncode == 2 and "where to? make upload UPLOAD=URL" in done.stderr

"""`make release VERSION=0.2.0`: from a clean checkout to dist/, a commit and a tag; uploads only where told.

Nothing is signed and nothing is pushed. What fails before the tag leaves the checkout as it was.
"""

import argparse
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from packaging.version import InvalidVersion, Version

CHANGELOG = Path("CHANGELOG.md")
STANDS_IN = Path("kgroup/version.py")
ENTRY = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<when>\S+))?$", re.MULTILINE)


def main() -> None:
    """Release, or say what stands in the way and end with 1."""
    asked = argparse.ArgumentParser(prog="make release", usage="make release VERSION=0.2.0 [UPLOAD=URL]")
    asked.add_argument("version")
    asked.add_argument("--upload", metavar="URL")
    given = asked.parse_args()
    try:
        release(given.version, given.upload)
    except ValueError as refused:
        sys.exit(f"error: {refused}")


def release(version: str, upload: str | None) -> None:
    """Check, write the version and the heading, commit, build, tag, and upload where told."""
    require_clean()
    changes = CHANGELOG.read_text(encoding="utf-8")
    require_newer(version, changes)
    note = top_entry(changes)
    stands = STANDS_IN.read_text("utf-8")
    STANDS_IN.write_text(re.sub(r'"[^"]+"$', f'"{version}"', stands, flags=re.MULTILINE), "utf-8")
    CHANGELOG.write_text(dated(changes, version), "utf-8")
    # The build takes its time from the commit: whoever builds from the tag gets the same bytes.
    subprocess.run(["git", "commit", "--quiet", "--no-gpg-sign", "-am", f"Release {version}"], check=True)
    try:
        subprocess.run(["make", "--no-print-directory", "dist", "sbom"], check=True)
        Path("dist", f"kgroup-{version}-notes.md").write_text(note, "utf-8")
        subprocess.run(["git", "tag", "--no-sign", "-am", f"kgroup {version}", f"v{version}"], check=True)
    except (subprocess.CalledProcessError, KeyboardInterrupt):
        subprocess.run(["git", "reset", "--quiet", "--hard", "HEAD^"], check=True)
        raise ValueError(f"{version} could not be built, as said above; the checkout is as it was") from None
    print(f"released {version}: dist/, and the commit and tag v{version}, which nothing has pushed")
    if upload is None:
        print("uploaded nothing; next: make upload UPLOAD=URL")
    elif subprocess.run(["make", "--no-print-directory", "upload", f"UPLOAD={upload}"]).returncode:
        raise ValueError(f"not everything was uploaded; once more: make upload UPLOAD={upload}")


def require_clean() -> None:
    """Refuse a tree whose files are not those of its last commit: they would be built."""
    if left := _git("status", "--porcelain"):
        raise ValueError(f"the checkout has changes without a commit; commit or remove them:\n{left}")


def require_newer(version: str, changes: str) -> None:
    """Refuse what is no version, or not newer than each that has a tag or a dated entry."""
    try:
        new = Version(version)
    except InvalidVersion:
        raise ValueError(f"{version!r} is no version: write it as 0.2.0 or 0.2.0rc1") from None
    if str(new) != version or new.local:
        raise ValueError(f"an index would name {version} otherwise: write {new.public}")
    tagged = [tag.removeprefix("v") for tag in _git("tag", "--list", "v[0-9]*").split()]
    dated_ones = [entry["name"] for entry in ENTRY.finditer(changes) if not _unreleased(entry)]
    last = max((Version(name) for name in (*tagged, *dated_ones)), default=None)
    if last is not None and new <= last:
        raise ValueError(f"{version} is not newer than {last}, the last release: choose a higher VERSION")


def top_entry(changes: str) -> str:
    """Return the text below the first heading; ValueError if it is of a release, or says nothing."""
    entries = [*ENTRY.finditer(changes)]
    if not entries:
        raise ValueError(f"{CHANGELOG} has no entry: write what changed under a heading '## [Unreleased]'")
    top, *older = entries
    if not _unreleased(top):
        raise ValueError(
            f"{CHANGELOG} says nothing of this release: its top entry is {top['name']} of {top['when']}; "
            f"write what changed under a heading '## [Unreleased]' above it"
        )
    text = changes[top.end() : older[0].start() if older else len(changes)].strip()
    if not any(line.strip() and not line.startswith("#") for line in text.splitlines()):
        raise ValueError(f"the top entry of {CHANGELOG}, {top[0]!r}, is empty: write what a user notices")
    return f"{text}\n"


def dated(changes: str, version: str) -> str:
    """Return the changelog with version and date as its top entry's heading."""
    return ENTRY.sub(f"## [{version}] - {datetime.now(UTC):%Y-%m-%d}", changes, count=1)


def _unreleased(entry: re.Match[str]) -> bool:
    return "unreleased" in (entry["name"].lower(), entry["when"])


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.rstrip()


if __name__ == "__main__":
    main()

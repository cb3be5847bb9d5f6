"""`release/Containerfile` as a builder of images reads it, and the kgroup in what it builds.

Its base comes from no package registry: Debian's own Python of that version stands in for it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

import kgroup
from tests.release.environment import ROOT
from tests.release.stuck import verdict
from tests.sampled import in_full

pytestmark = [
    pytest.mark.release,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("image"),
    in_full("its base is made of Debian's packages, which takes two minutes"),
]
FILE = ROOT / "release" / "Containerfile"
MANIFEST = ROOT / "examples" / "record" / "kubernetes.yaml"
DEBIAN = "trixie"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
NEEDED = ("buildah", "debootstrap", "unshare")


@dataclass(frozen=True)
class Builder:
    """buildah with a store of its own; what it runs sees this machine's network."""

    store: Path

    def line(self, *arguments: str | Path) -> list[str | Path]:
        """Return the line that runs buildah."""
        return ["buildah", "--root", self.store, "--runroot", self.store / "run", *arguments]

    def __call__(self, *arguments: str | Path) -> str:
        """Return what buildah prints; AssertionError with what it complained of."""
        done = subprocess.run(self.line(*arguments), capture_output=True, text=True)
        assert done.returncode == 0, f"{arguments} ended with {done.returncode}: {done.stderr[-2000:]}"
        return done.stdout.strip()


@dataclass(frozen=True)
class Image:
    """A container of the image, and what its builder stored of it."""

    builder: Builder
    container: str
    config: dict[str, list[str]]

    def line(self, *command: str, user: str = "") -> list[str | Path]:
        """Return the line that runs a command in it, as that user or its own; what it starts ends with it."""
        spaces = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
        how = ("--isolation", "chroot", *(["--user", user] if user else []))
        return [*spaces, *self.builder.line("run", *how, self.container, "--", *command)]

    def run(self, *command: str, user: str = "", code: int = 0) -> str:
        """Return what a command in it prints; AssertionError if it does not end with `code`."""
        done = subprocess.run(self.line(*command, user=user), capture_output=True, text=True)
        assert done.returncode == code, f"{command} ended with {done.returncode}: {done.stderr[-2000:]}"
        return done.stdout


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing or os.geteuid():
        pytest.skip(f"an image takes root's rights, {', '.join(NEEDED)}")
    folder = tmp_path_factory.mktemp("image")
    builder = Builder(folder / "store")
    try:
        (base,) = set(re.findall(r"^FROM (\S+)", FILE.read_text(), re.MULTILINE))
        _make_base(builder, base)
        (folder / "pip.conf").write_text(f"[global]\ncert = {CERTIFICATES}\n{_index()}")
        # As this machine's pip finds packages; the builder leaves no mount in an image.
        seen = {CERTIFICATES: CERTIFICATES, str(folder / "pip.conf"): "/etc/pip.conf"}
        mounts = [f"--volume={here}:{there}:ro" for here, there in seen.items()]
        how = ("--isolation", "chroot", "--pull-never", *mounts)
        builder("build", *how, "--file", FILE, "--tag", "kgroup", ROOT)
        config = json.loads(builder("inspect", "--type", "image", "kgroup"))["OCIv1"]["config"]
        yield Image(builder, builder("from", "--pull-never", "kgroup"), config)
    finally:
        builder("rm", "--all")
        builder("rmi", "--all", "--force")


def _make_base(builder: Builder, name: str) -> None:
    """Store an image of that name: Debian's essential packages, its Python, and a pip beside it."""
    (version,) = re.findall(r"python:([\d.]+)-slim$", name)
    container = builder("from", "scratch")
    place = Path(builder("mount", container))
    packages = "--include=python3-dev,ca-certificates"
    made = ["debootstrap", "--variant=minbase", packages, DEBIAN, place]
    done = subprocess.run(made, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (place / "usr/bin" / f"python{version}").exists(), f"Debian {DEBIAN} has another Python"
    (place / "usr/local/bin/python").symlink_to("/usr/bin/python3")
    for rule in place.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
        rule.unlink()  # Debian's; a base's Python belongs to who builds on it
    library = place / f"usr/local/lib/python{version}/dist-packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", library, "pip"], check=True)
    script = place / "usr/local/bin/pip"
    script.write_text('#!/bin/sh\nexec python -m pip "$@"\n')
    script.chmod(0o755)
    builder("umount", container)
    builder("commit", "--quiet", container, name)


def _index() -> str:
    told = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    listed = subprocess.run(told, capture_output=True, text=True).stdout.strip()
    url = os.environ.get("PIP_INDEX_URL") or listed
    return f"index-url = {url}\n" if url else ""


def test_it_starts_kgroup_and_without_a_command_its_help(image: Image) -> None:
    start = image.config["Entrypoint"]
    assert image.run(*start, "--version") == f"kgroup {kgroup.__version__}\n"
    assert "doctor" in image.run(*start, *image.config["Cmd"])


def test_its_loops_are_compiled(image: Image) -> None:
    shown = image.run("kgroup", "--version", "-v")
    assert "reading logs: compiled" in shown


def test_a_new_volume_belongs_to_its_user(image: Image) -> None:
    assert image.run("stat", "-c", "%U", "/data") == "kgroup\n" == image.run("id", "-un")


def test_nothing_that_built_it_is_left(image: Image) -> None:
    assert image.run("sh", "-c", "ls -d /source /wheels; command -v gcc; true") == ""


def test_the_manifest_of_record_starts_it(image: Image) -> None:
    """As an account that the image does not know, without a home; exit code 5, as no broker is there."""
    pod = yaml.safe_load(MANIFEST.read_text())["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    here = {
        "/recording": "/tmp/recording",
        "kafka:9092": "127.0.0.1:1",
        "/etc/kgroup/client.properties": "/dev/null",
        "0.0.0.0:9405": "0",
    }
    command = [here.get(word, word) for word in (*container["command"], *container["args"])]
    assert not here.keys() & set(command)
    user = str(pod["securityContext"]["runAsUser"])
    said = image.run("env", "HOME=/", *command, "--stop-after", "1s", user=user, code=5)
    assert image.run("ls", "/tmp/recording", user=user).split() == ["observed"], said


def test_from_nothing_to_a_verdict(image: Image) -> None:
    assert "KG112" in verdict(image.line(*image.config["Entrypoint"]), ROOT, "/data/stuck")

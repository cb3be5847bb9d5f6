"""Build kgroup without Python into dist/standalone: a folder, one file, a Debian package (decision 71)."""

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from auditwheel.elfutils import elf_find_versioned_symbols
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "standalone"
TARGET = ROOT / "dist" / "standalone"
PLACES = {
    "share/man": "share/man",
    "share/bash-completion/completions/kgroup.bash": "share/bash-completion/completions/kgroup",
    "share/zsh/site-functions": "share/zsh/vendor-completions",
    "share/fish": "share/fish",
}
"""Where Debian's man and shells look below /usr, by the place below a prefix."""

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONTROL = """\
Package: kgroup
Version: {version}
Architecture: amd64
Maintainer: the authors of kgroup <unknown@localhost>
Installed-Size: {size}
Depends: libc6 (>= {glibc})
Section: admin
Priority: optional
Description: {summary}
 A program for Kafka's consumer groups. It needs no Python.
"""


def main() -> None:
    """Build all three, in the order in which each is made of the last."""
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    (wheel,) = (ROOT / "dist").glob("kgroup-*-cp*.whl")
    version = wheel.name.split("-")[1]
    home = environment(wheel)
    folder = frozen(home)
    glibc = max(glibcs(folder), key=lambda each: [int(part) for part in each.split(".")])
    single = single_file(folder, f"kgroup-{version}-linux-x86_64")
    package = debian(folder, version, glibc)
    for made in (folder, single, package):
        size = sum(file.lstat().st_size for file in [made, *made.rglob("*")])
        print(f"{made.relative_to(ROOT)}: {size / 1e6:.0f} MB")
    print(f"needs Linux x86_64 with glibc {glibc} or newer")


def environment(wheel: Path) -> Path:
    """Return a new virtual environment with the wheel, what the program carries, and what builds it."""
    home = WORK / "venv"
    run(sys.executable, "-m", "venv", "--clear", home)
    # PyInstaller compiles what it takes.
    how = ("--quiet", "--disable-pip-version-check", "--no-compile", "-c", ROOT / "requirements.lock")
    run(home / "bin/pip", "install", *how, f"{wheel}[standalone]")
    return home


def frozen(home: Path) -> Path:
    """Return the folder that PyInstaller makes, with what belongs to it."""
    places = ("--distpath", TARGET, "--workpath", WORK / "work")
    run(home / "bin/pyinstaller", "--noconfirm", "--log-level", "ERROR", *places, HERE / "kgroup.spec")
    folder = TARGET / "kgroup"
    for each in PLACES:
        below = home / each
        copy = shutil.copytree if below.is_dir() else shutil.copy2
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        copy(below, folder / each)
    shutil.copy2(ROOT / "LICENSE", folder)
    return folder


def glibcs(folder: Path) -> Iterator[str]:
    """Yield the versions of glibc that a program or library in the folder names."""
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                try:
                    elf = ELFFile(file)
                except ELFError:
                    continue
                names = [name for _, name in elf_find_versioned_symbols(elf)]
                yield from (name.removeprefix("GLIBC_") for name in names if name.startswith("GLIBC_2"))


def single_file(folder: Path, name: str) -> Path:
    """Return the folder as one file: a script that unpacks once, and what it unpacks."""
    packed = WORK / "kgroup.tar"
    same = ("--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0")
    run("tar", *same, "-cf", packed, "-C", folder.parent, folder.name)
    content = gzip.compress(packed.read_bytes(), 9, mtime=0)
    script = (HERE / "unpack.sh").read_text(encoding="utf-8")
    script = script.replace("@BUILD@", f"{name}-{hashlib.sha256(content).hexdigest()[:12]}")
    script = script.replace("@LINES@", str(script.count("\n") + 1))
    single = TARGET / name
    single.write_bytes(script.encode() + content)
    single.chmod(0o755)
    return single


def debian(folder: Path, version: str, glibc: str) -> Path:
    """Return the folder as a Debian package."""
    root = WORK / "deb"
    shutil.rmtree(root, ignore_errors=True)
    program = root / "usr/lib/kgroup"
    shutil.copytree(folder, program, symlinks=True)
    (root / "usr/bin").mkdir()
    (root / "usr/bin/kgroup").symlink_to("../lib/kgroup/kgroup")
    for place, debians in PLACES.items():
        (root / "usr" / debians).parent.mkdir(parents=True, exist_ok=True)
        (program / place).rename(root / "usr" / debians)
    shutil.rmtree(program / "share")
    for page in (root / "usr/share/man").rglob("*.1"):
        page.with_name(f"{page.name}.gz").write_bytes(gzip.compress(page.read_bytes(), 9, mtime=0))
        page.unlink()
    (root / "usr/share/doc/kgroup").mkdir(parents=True)
    (program / "LICENSE").rename(root / "usr/share/doc/kgroup/copyright")
    size = sum(path.lstat().st_size for path in root.rglob("*")) // 1024
    (root / "DEBIAN").mkdir()
    # A candidate comes before its release.
    facts = {
        "version": re.sub(r"(a|b|rc|\.dev)(?=\d)", r"~\1", version),
        "size": size,
        "glibc": glibc,
        "summary": PROJECT["description"].rstrip("."),
    }
    (root / "DEBIAN/control").write_text(CONTROL.format(**facts), encoding="utf-8")
    run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, TARGET)
    (package,) = TARGET.glob("kgroup_*_amd64.deb")
    return package


def run(*command: str | Path) -> None:
    """Run a command; end with its code if it fails. Builds of the same sources are to be the same."""
    reproducible = {"SOURCE_DATE_EPOCH": "0", "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env={**os.environ, **reproducible}, stdout=sys.stderr)
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()

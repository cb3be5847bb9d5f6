"""A root without Python: this machine's glibc, shell and dpkg, or Debian's smallest by debootstrap."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = (
    *("sh", "cat", "cp", "env", "ls", "mkdir", "mktemp", "mv", "rm", "tail", "tar", "gzip"),
    *("dpkg", "dpkg-deb", "dpkg-query", "dpkg-split", "diff", "ldconfig", "start-stop-daemon"),
)
MISSING = "a clean root takes root's rights, dpkg and unshare"


def available() -> bool:
    """Return whether this account can make and enter a root of its own."""
    tools = all(shutil.which(name) for name in ("dpkg", "unshare", "chroot"))
    return tools and os.geteuid() == 0 and not subprocess.run(["unshare", "--mount", "true"]).returncode


@dataclass(frozen=True)
class CleanRoot:
    """A folder to enter as root directory."""

    path: Path

    @classmethod
    def assembled(cls, path: Path) -> "CleanRoot":
        """Copy programs of this machine with their libraries; of its packages dpkg knows only libc6."""
        for folder in ("dev", "proc", "root", "tmp", "usr/bin", "var/lib/dpkg/info", "var/lib/dpkg/updates"):
            (path / folder).mkdir(parents=True)
        for link in ("bin", "sbin", "usr/sbin"):
            (path / link).symlink_to("bin" if "/" in link else "usr/bin")
        listed = subprocess.run(
            ["dpkg-query", "--listfiles", "libc6"], capture_output=True, text=True, check=True
        )
        needed = {
            path for path in map(Path, listed.stdout.splitlines()) if ".so" in path.name and path.is_file()
        }
        for name in PROGRAMS:
            found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
            assert found, f"this machine has no {name}"
            shutil.copy(found, path / "usr/bin" / name)
            needed |= _libraries(found)
        for library in needed:
            target = path / library.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
        status = subprocess.run(["dpkg-query", "--status", "libc6"], capture_output=True, check=True)
        (path / "var/lib/dpkg/status").write_bytes(status.stdout)
        return cls(path)

    @classmethod
    def bootstrapped(cls, path: Path) -> "CleanRoot":
        """Let debootstrap install Debian's essential packages, from where this machine has its own."""
        release = Path("/etc/os-release").read_text(encoding="utf-8")
        (name,) = re.findall("^VERSION_CODENAME=(.+)$", release, re.MULTILINE)
        subprocess.run(["debootstrap", "--variant=minbase", name, path], check=True)
        return cls(path)

    def entered(self, *command: str | Path) -> list[str | Path]:
        """Return the line that runs a command inside; what it starts ends with it."""
        spaces = ("--mount", "--pid", "--fork", "--kill-child", f"--root={self.path}", "--mount-proc=/proc")
        plain = ("HOME=/root", "LANG=C.UTF-8", "PATH=/usr/bin:/usr/sbin")
        return ["unshare", *spaces, "/usr/bin/env", "-i", *plain, *command]

    def run(self, *command: str | Path, code: int = 0) -> str:
        """Return what a command inside prints; AssertionError if it does not end with `code`."""
        done = subprocess.run(self.entered(*command), capture_output=True, text=True)
        assert done.returncode == code, f"{command} ended with {done.returncode}: {done.stderr[-2000:]}"
        return done.stdout

    def files(self) -> set[Path]:
        """Return everything below /usr."""
        return {path.relative_to(self.path) for path in (self.path / "usr").rglob("*")}


def _libraries(program: str) -> set[Path]:
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return {Path(found) for found in re.findall(r"(/\S+) \(0x", listed)}

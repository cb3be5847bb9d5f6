"""A Kerberos realm on loopback: MIT's krb5kdc in a folder of its own, with the keytabs a test asks for."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

from .server import free_port

REALM = "KGROUP.TEST"
_SBIN = f"/usr/sbin:/usr/lib/mit/sbin:/usr/local/sbin:{os.environ.get('PATH', '')}"


def missing() -> str | None:
    """The program of MIT Kerberos that is not installed, if one is not."""
    wanted = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
    return next((name for name in wanted if shutil.which(name, path=_SBIN) is None), None)


class Kdc:
    """The realm KGROUP.TEST while the context is open; `environment` leads this machine's clients to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.config = folder / "krb5.conf"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf")}

    def __enter__(self) -> Self:
        self._write()
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master-secret")
        self._process = subprocess.Popen(
            [self._program("krb5kdc"), "-n", "-r", REALM], env={**os.environ, **self.environment}
        )
        deadline = time.monotonic() + 20
        while not self._answers():
            assert time.monotonic() < deadline, "the KDC did not come up"
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(10)

    def keytab(self, principal: str) -> Path:
        """A new principal, and a file with its key."""
        file = self.folder / f"{principal.replace('/', '-')}.keytab"
        self.run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {principal}")
        self.run("kadmin.local", "-r", REALM, "-q", f"ktadd -k {file} {principal}")
        return file

    def ticket(self, principal: str, keytab: Path) -> Path:
        """A cache with a ticket of the principal, as kinit leaves it."""
        cache = self.folder / f"{principal}.ccache"
        self.run("kinit", "-k", "-t", str(keytab), "-c", str(cache), principal)
        return cache

    def run(self, *command: str) -> None:
        subprocess.run(
            [self._program(command[0]), *command[1:]],
            env={**os.environ, **self.environment},
            check=True,
            capture_output=True,
            timeout=60,
        )

    def _program(self, name: str) -> str:
        found = shutil.which(name, path=_SBIN)
        assert found is not None
        return found

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _write(self) -> None:
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
        )
        (self.folder / "kdc.conf").write_text(
            f"[realms]\n {REALM} = {{\n  database_name = {self.folder}/principal\n"
            f"  key_stash_file = {self.folder}/stash\n  acl_file = {self.folder}/acl\n"
            f"  kdc_listen = 127.0.0.1:{self.port}\n  kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            "  max_life = 1h\n }\n"
            f"[logging]\n kdc = FILE:{self.folder}/kdc.log\n"
        )

"""The SCRAM users of a cluster: their stored credentials, in a file of its own (KIP-554)."""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from kgroup.log.files import CREDENTIALS
from kgroup.runtime.kept_file import KeptFile
from kgroup.security.scram import ScramCredential, ScramMechanism

NOT_IT = "does not hold the users of this cluster"
HINT = "restore it from a backup; without it, all SCRAM users have to be added again"
Key: TypeAlias = tuple[str, ScramMechanism]


class Credentials:
    """User and mechanism → credential; every change is on disk when the call returns, for its owner only.

    Without a folder it lives in memory. StorageError for a file that cannot be read or written, is damaged,
    or belongs to another cluster than `cluster_id`.
    """

    def __init__(self, folder: Path | None, cluster_id: str = "") -> None:
        path = folder / CREDENTIALS if folder else None
        self._file = KeptFile(path, cluster_id, "users", NOT_IT, HINT) if path else None
        self._known: dict[Key, ScramCredential] = {}
        if self._file and self._file.path.exists():
            self._known = dict(self._file.read(_read))

    @property
    def known(self) -> Mapping[Key, ScramCredential]:
        """All of them."""
        return self._known

    def find(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """Return a user's credential for this mechanism; None for a user without one."""
        return self._known.get((user, mechanism))

    def change(self, changes: Mapping[Key, ScramCredential | None]) -> None:
        """Set credentials, or remove those that are None: all of them, or with StorageError none."""
        known = {**self._known}
        for key, credential in changes.items():
            if credential is None:
                known.pop(key, None)
            else:
                known[key] = credential
        if self._file is not None:
            self._file.write(
                [
                    {
                        "user": user,
                        "mechanism": mechanism.spelling,
                        "salt": b64encode(credential.salt).decode(),
                        "stored_key": b64encode(credential.stored_key).decode(),
                        "server_key": b64encode(credential.server_key).decode(),
                        "iterations": credential.iterations,
                    }
                    for (user, mechanism), credential in sorted(known.items())
                ],
                private=True,
            )
        self._known = known


def _read(entry: dict[str, Any]) -> tuple[Key, ScramCredential]:
    key = str(entry["user"]), ScramMechanism.named(entry["mechanism"])
    return key, ScramCredential(
        b64decode(entry["salt"]),
        b64decode(entry["stored_key"]),
        b64decode(entry["server_key"]),
        int(entry["iterations"]),
    )

"""The SCRAM users of a cluster: what is kept of their passwords, in a file of its own (KIP-554)."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from kgroup.domain import Document
from kgroup.errors import StorageError
from kgroup.log.files import CREDENTIALS, replace_file
from kgroup.security.scram import ScramCredential, ScramMechanism

FORMAT = 1
Key: TypeAlias = tuple[str, ScramMechanism]


class Credentials:
    """User and mechanism → credential; every change is on disk when the call returns, for its owner only.

    Without a folder it lives in memory. StorageError for a file that cannot be read or written, is damaged,
    or belongs to another cluster than `cluster_id`.
    """

    def __init__(self, folder: Path | None, cluster_id: str = "") -> None:
        self._path = folder / CREDENTIALS if folder else None
        self._cluster_id = cluster_id
        self._known: dict[Key, ScramCredential] = {}
        if self._path and self._path.exists():
            self._read(self._path)

    @property
    def known(self) -> Mapping[Key, ScramCredential]:
        """All of them."""
        return self._known

    def find(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        """What is kept of a user's password for this mechanism; None for a user who has none."""
        return self._known.get((user, mechanism))

    def change(self, changes: Mapping[Key, ScramCredential | None]) -> None:
        """Set or, where it is None, take away credentials: all of them, or with StorageError none."""
        known = {**self._known}
        for key, credential in changes.items():
            if credential is None:
                known.pop(key, None)
            else:
                known[key] = credential
        if self._path is not None:
            self._write(self._path, known)
        self._known = known

    def _write(self, path: Path, known: Mapping[Key, ScramCredential]) -> None:
        users = [
            {
                "user": user,
                "mechanism": mechanism.spelling,
                "salt": b64encode(credential.salt).decode(),
                "stored_key": b64encode(credential.stored_key).decode(),
                "server_key": b64encode(credential.server_key).decode(),
                "iterations": credential.iterations,
            }
            for (user, mechanism), credential in sorted(known.items())
        ]
        content: Document = {"format": FORMAT, "cluster_id": self._cluster_id, "users": users}
        content["checksum"] = _checksum(content)
        try:
            replace_file(path, json.dumps(content, indent=1) + "\n", private=True)
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}") from None

    def _read(self, path: Path) -> None:
        try:
            found = json.loads(path.read_bytes())
            if found["format"] != FORMAT:
                raise ValueError(f"its format is {found['format']}, this kgroup reads {FORMAT}")
            if found.pop("checksum") != _checksum(found):
                raise ValueError("its checksum is wrong")
            if found["cluster_id"] != self._cluster_id:
                raise ValueError(f"it belongs to cluster {found['cluster_id']}, not {self._cluster_id}")
            self._known = {
                (str(each["user"]), ScramMechanism.named(each["mechanism"])): ScramCredential(
                    b64decode(each["salt"]),
                    b64decode(each["stored_key"]),
                    b64decode(each["server_key"]),
                    int(each["iterations"]),
                )
                for each in found["users"]
            }
        except OSError as error:
            raise StorageError(f"cannot read {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StorageError(
                f"{path} does not hold the users of this cluster: {error}",
                hint="restore it from a backup; without it, all SCRAM users have to be added again",
            ) from None


def _checksum(content: Document) -> int:
    return zlib.crc32(json.dumps(content).encode())

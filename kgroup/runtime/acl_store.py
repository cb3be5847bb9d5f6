"""The rules of a cluster on disk: every change is there when the call returns.

A file of its own next to the catalog. A damaged or missing file, or one of another cluster, is an error:
without it nothing is known of what is allowed, and "no rules" may mean that everything is.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kgroup.errors import StorageError
from kgroup.log.files import ACLS
from kgroup.runtime.catalog import Catalog
from kgroup.runtime.kept_file import KeptFile
from kgroup.runtime.settings import BrokerSettings, split_principals
from kgroup.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from kgroup.security.authorizer import Authorizer

NOT_IT = "is not a file of access rules"
HINT = "restore it from a backup; nothing is served without it, as everything might be allowed"


def access_rules(
    folder: Path | None, cluster_id: str, catalog: Catalog, settings: BrokerSettings
) -> AclStore | None:
    """Return the rules of a cluster with an authorizer; None without one, whatever is in the folder.

    The catalog records that there were some: from then on, a folder without rules is an error.
    """
    if not settings.authorizer:
        return None
    store = AclStore(folder, cluster_id, settings, known=ACLS in catalog.settled)
    catalog.settle(ACLS)
    return store


class AclStore:
    """An authorizer whose rules survive the process; in memory without a folder.

    StorageError for a file that cannot be read or written, is damaged or of another cluster than
    `cluster_id`, or is gone though it existed once (`known`).
    """

    def __init__(
        self, folder: Path | None, cluster_id: str, settings: BrokerSettings, *, known: bool
    ) -> None:
        path = folder / ACLS if folder else None
        self._file = KeptFile(path, cluster_id, "acls", NOT_IT, HINT) if path else None
        acls: Iterable[Acl] = ()
        if self._file and self._file.path.exists():
            acls = self._file.read(_read)
        elif self._file and known:
            raise StorageError(f"{path} is missing: it holds the cluster's access rules", hint=HINT)
        else:
            self._save(())
        super_users = split_principals(settings.super_users)
        self.authorizer = Authorizer(acls, super_users, open_by_default=settings.open_by_default)

    def add(self, acls: Iterable[Acl]) -> None:
        """Put these rules in force; StorageError, and none of them is."""
        new = [acl for acl in dict.fromkeys(acls) if acl not in self.authorizer.acls]
        if new:
            self._save((*self.authorizer.acls, *new))
        for acl in new:
            self.authorizer.add(acl)

    def remove(self, acls: Iterable[Acl]) -> None:
        """Remove these rules; StorageError, and all are still there."""
        gone = self.authorizer.acls & frozenset(acls)
        if gone:
            self._save(self.authorizer.acls - gone)
        for acl in gone:
            self.authorizer.remove(acl)

    def _save(self, acls: Iterable[Acl]) -> None:
        if self._file is not None:
            self._file.write(
                [
                    {
                        "resource_type": acl.resource_type.name,
                        "name": acl.name,
                        "pattern": acl.pattern.name,
                        "principal": acl.principal,
                        "host": acl.host,
                        "operation": acl.operation.name,
                        "permission": acl.permission.name,
                    }
                    for acl in sorted(acls)
                ]
            )


def _read(entry: dict[str, str]) -> Acl:
    return Acl(
        ResourceType[entry["resource_type"]],
        entry["name"],
        PatternType[entry["pattern"]],
        entry["principal"],
        entry["host"],
        Operation[entry["operation"]],
        Permission[entry["permission"]],
    )

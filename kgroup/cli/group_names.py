"""Groups named on the command line: ids as they are, globs as the groups they match."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kgroup.cli.exit_codes import ExitCode, Failure

if TYPE_CHECKING:
    from kgroup.admin.admin import Admin


def resolve(admin: "Admin", names: Iterable[str]) -> list[str]:
    """Group ids in the order named, those of a glob by id, none twice; the cluster is asked only for globs.

    A plain id need not exist. Failure (not found) for a glob that matches nothing.
    """
    from fnmatch import fnmatchcase

    wanted = list(names)
    existing = [g.group_id for g in admin.list_groups().groups] if any(map(is_glob, wanted)) else []
    found: dict[str, None] = {}
    for name in wanted:
        if not is_glob(name) or name in existing:
            found[name] = None
            continue
        matching = [group for group in existing if fnmatchcase(group, name)]
        if not matching:
            hint = "kgroup list shows the groups there are"
            raise Failure(ExitCode.NOT_FOUND, "GROUP_ID_NOT_FOUND", f"no group matches {name!r}", hint, name)
        found.update(dict.fromkeys(matching))
    return list(found)


def is_glob(name: str) -> bool:
    """Whether a name has a wildcard in it."""
    return any(character in name for character in "*?[")

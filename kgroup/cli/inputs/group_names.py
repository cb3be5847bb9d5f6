"""Groups named on the command line: ids literally, patterns as the groups they match.

A name with a wildcard (`*`, `?`, `[`) is a pattern, and `[*]` is the star itself: a group called `*` is named
by `'[*]'`. A group whose id equals the pattern counts as matched; where that is ambiguous, a change is
refused.
"""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from glob import escape
from shlex import quote
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from kgroup.admin.models import ItemError, Listing
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.output.wording import of_seen
from kgroup.domain import value
from kgroup.errors import SafetyRefused

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView


@runtime_checkable
class Lists(Protocol):
    """A source beside Kafka that lists all its groups: a tree in ZooKeeper."""

    def list_groups(self) -> Listing: ...


@value
class Named:
    """The groups meant; `unseen` says why a pattern may match more."""

    groups: tuple[str, ...]
    unseen: tuple[ItemError, ...] = ()


def expand(
    source: "Lists | ClusterView", names: Iterable[str], *, change: bool = False, waiting: bool = False
) -> Named:
    """Return group ids in the order named, a pattern's sorted, none twice; only patterns ask the cluster.

    A plain id need not exist. Raise Failure for a pattern without a match: NOT_FOUND where all groups are
    seen. With `change`, SafetyRefused for a pattern that is also the id of one group among others. With
    `waiting`, a pattern may match nothing as long as not all groups are seen.
    """
    typed = list(names)
    if not any(map(is_glob, typed)):
        return Named(tuple(dict.fromkeys(typed)))
    listing = _listing(source)
    existing = [group.group_id for group in listing.groups]
    expanded: dict[str, None] = {}
    for name in typed:
        matching = [group for group in existing if matches(name, group)] if is_glob(name) else [name]
        if not matching and not (waiting and listing.errors):
            code = of_seen(ExitCode.OK, listing.errors)
            if code is ExitCode.OK:
                hint: str | None = "kgroup list shows which groups there are"
                message = f"no group matches {name!r}"
                raise Failure(ExitCode.NOT_FOUND, "GROUP_ID_NOT_FOUND", message, hint, name)
            why = "; ".join(error.message for error in listing.errors)
            message = f"no group that can be seen matches {name!r}, and not all can be seen: {why}"
            hint = next((error.hint for error in listing.errors if error.hint), None)
            raise Failure(code, "NOT_SEEN", message, hint, name)
        if change and name in existing and is_glob(name) and matching != [name]:
            count = len(matching)
            others = f"; all {count}: {quote(name.replace('*', '**', 1))}" if "*" in name else ""
            raise SafetyRefused(
                f"{name!r} is the id of one group, and as a pattern it matches {count}",
                f"that group alone: {quote(escape(name))}{others}",
            )
        expanded.update(dict.fromkeys(matching))
    return Named(tuple(expanded), listing.errors)


def every(source: "Lists | ClusterView") -> Named:
    """Return all groups, by id."""
    listing = _listing(source)
    return Named(tuple(group.group_id for group in listing.groups), listing.errors)


def _listing(source: "Lists | ClusterView") -> Listing:
    from kgroup.admin.read.listing import list_groups

    return source.list_groups() if isinstance(source, Lists) else list_groups(source)


def is_glob(name: str) -> bool:
    """Return whether a name contains a wildcard."""
    return any(character in name for character in "*?[")


def absent(names: Iterable[str], there: Collection[str]) -> list[str]:
    """Return the names that are no pattern and not among those `there`."""
    return [name for name in names if not is_glob(name) and name not in there]


def matches(name: str, group: str) -> bool:
    """Return whether a name on the command line means this group: by its exact id, or as a pattern."""
    return group == name or fnmatchcase(group, name)

"""Shell completions of a word: groups, topics, instance ids, contexts, states and conditions.

A cluster is asked for a second at most and its answer kept for a few more, since a shell asks at every key. A
failure prints nothing: a completion can only report it as an empty offer.
"""

import contextlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from kgroup.admin import shell
from kgroup.admin.discovery import ClusterView
from kgroup.cli.env.config import load_config
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import connection_of
from kgroup.cli.frame.generated import SHELLS
from kgroup.cli.frame.shared_options import shared_names
from kgroup.errors import KgroupError

if TYPE_CHECKING:
    from kgroup.admin.models import Member
    from kgroup.cli.click import Context, Parameter


PATIENCE_S = 1.0
KEPT_S = 15.0
Offer: TypeAlias = Callable[["Context", str], Iterable[str]]


def complete(offer: Offer) -> Callable[["Context", "Parameter", str], list[str]]:
    """Return `offer` in the form a parameter needs: the offered words that begin as typed."""

    def asked(ctx: "Context", parameter: "Parameter", incomplete: str) -> list[str]:
        with contextlib.suppress(KgroupError, OSError, ValueError):
            return sorted(word for word in offer(ctx, incomplete) if word.startswith(incomplete))
        return []

    return asked


def offer_for(path: str, parameter: "Parameter") -> Offer | None:
    """Return the offer for a parameter of the command `path`, by its metavar."""
    kind = (parameter.metavar or parameter.name or "").strip("[]{}….").upper()
    if path == "cluster topics" and kind == "GLOB":
        return topics
    if path in ("context use", "context show") and kind == "NAME":
        return contexts
    if "--topic" in parameter.opts:
        return partitions if kind.startswith("T[") else topics
    if "--context" in parameter.opts:
        return contexts
    if "--events" in parameter.opts and path != "watch":
        return events
    if "--undo" in parameter.opts:
        return undoable
    if "--instance-id" in parameter.opts:
        return None if path == "member run" else instances
    if "--member-id" in parameter.opts:
        return members
    return _BY_KIND.get(kind)


def groups(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the groups of the cluster that the words so far name."""
    from kgroup.admin.read.listing import list_groups

    return _of_cluster(ctx, "groups", lambda admin: [g.group_id for g in list_groups(admin).groups])


def topics(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the topics of the cluster without internal ones."""
    from kgroup.admin.topics import topics as described

    return _of_cluster(ctx, "topics", lambda admin: [t.name for t in described(admin) if not t.internal])


def partitions(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the topics; behind `TOPIC:` its partitions, after those of a comma list already typed."""
    from kgroup.admin.topics import topics as described

    topic, colon, listed = incomplete.partition(":")
    if not colon:
        return topics(ctx, incomplete)
    numbers = _of_cluster(
        ctx,
        f"partitions of {topic}",
        lambda admin: [str(p.partition) for t in described(admin, [topic]) for p in t.partitions],
    )
    done = listed[: listed.rfind(",") + 1]
    return [f"{topic}:{done}{number}" for number in numbers]


def instances(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the instance ids in the groups named so far, after those of a comma list already typed."""
    return _listed(incomplete, _ids(ctx, "instances", lambda member: member.instance_id))


def members(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the member ids in the groups named so far, after those of a comma list already typed."""
    return _listed(incomplete, _ids(ctx, "members", lambda member: member.member_id))


def _ids(ctx: "Context", what: str, id_of: Callable[["Member"], str | None]) -> list[str]:
    """Return an id of each member of the groups named so far, of those that have one."""
    from kgroup.admin.read.describe import describe

    named = ctx.params.get("group") or ()
    names = [named] if isinstance(named, str) else list(named)
    return _of_cluster(
        ctx,
        f"{what} of {names}",
        lambda admin: [
            id_
            for group in (describe(admin, names, offsets=False).groups if names else ())
            for member in group.known_members
            if (id_ := id_of(member))
        ],
    )


def _listed(incomplete: str, ids: Iterable[str]) -> Iterable[str]:
    """Return the ids as values of a comma list, behind those already typed; none that it would change."""
    done = re.sub(r"(?s)^(.*(?<!\\),)?.*", r"\1", incomplete)
    return [done + text for name in ids if shell.items(text := name.replace(",", "\\,")) == [name]]


def contexts(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the contexts of the config file."""
    return load_config().contexts


def settings(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the settings of the group named so far, as its broker knows them."""
    from kgroup.admin.settings import group_settings

    group = ctx.params.get("group") or ""
    if not group:
        return []
    return _of_cluster(
        ctx, f"settings of {group}", lambda admin: [s.name for s in group_settings(admin, group)]
    )


def assignments(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the same, ready for a value."""
    return [f"{name}=" for name in settings(ctx, incomplete)]


def entries(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the changes in the journal."""
    from kgroup.admin.journal import Journal

    return ["LAST", *(entry.id for entry in Journal.default().entries())]


def undoable(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the changes in the journal that --undo takes."""
    from kgroup.admin.change.undo import CHANGES
    from kgroup.admin.journal import Journal

    return ["LAST", *(entry.id for entry in Journal.default().entries() if entry.command in CHANGES)]


def events(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the kinds of events, after those of a comma list already typed."""
    from kgroup.history.fold.events import Kind

    done = incomplete.rpartition(",")[0]
    return [f"{done},{kind}" if done else str(kind) for kind in Kind]


def states(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the states groups may be in."""
    from kgroup.admin.models import STATES

    return STATES


def conditions(ctx: "Context", incomplete: str) -> Iterable[str]:
    """Return the conditions to wait for; after `member=` the instance ids of the groups."""
    from kgroup.admin.read.conditions import KINDS

    if incomplete.startswith("member="):
        return [f"member={name}" for name in _ids(ctx, "instances", lambda member: member.instance_id)]
    return [kind.partition("=")[0] + ("=" if "=" in kind else "") for kind in KINDS]


_BY_KIND: dict[str, Offer] = {
    **dict.fromkeys(("GROUP", "GLOB", "FROM", "TO"), groups),
    "TOPIC": topics,
    "STATE": states,
    "CONDITION": conditions,
    "SETTING": settings,
    "SETTING=VALUE": assignments,
    "ID|LAST": entries,
    "BASH|ZSH|FISH": lambda ctx, incomplete: SHELLS,
}


def _of_cluster(ctx: "Context", what: str, ask: Callable[["ClusterView"], list[str]]) -> list[str]:
    """Return the answer of the cluster the words so far name, or the one cached a moment ago."""
    if ctx.params.get("zookeeper") or ctx.params.get("rest"):
        # Another place than the settings name, and too slow to ask at every key.
        return []
    values = {name: ctx.params.get(name) for name in shared_names()}
    # Messages would go to the terminal, into the line being typed.
    env = Env.of("completion", values | {"quiet": True}, os.environ)
    where = {s.name: s.value for s in env.settings().settings.values() if s.name != "timeout"}
    key = json.dumps([what, sorted(where.items())])
    kept = _Kept()
    names = kept.find(key)
    if names is None:
        from kgroup.client.retry import Retry
        from kgroup.client.transport import SocketTransport

        names = []
        connection = connection_of(env)
        # A folder that is not served would have to be opened, locked and read for it.
        if not isinstance(connection, Path):
            transport = SocketTransport(replace(connection, request_timeout_s=PATIENCE_S))
            try:
                names = ask(ClusterView(transport, Retry(timeout_s=PATIENCE_S)))
            finally:
                transport.close()
        kept.put(key, names)
    return names


class _Answer(TypedDict):
    """An offer and its time."""

    time: float
    words: list[str]


class _Kept:
    """Answers of the last few seconds, in a file of the user's own."""

    def __init__(self) -> None:
        from platformdirs import user_cache_path

        self._path = user_cache_path("kgroup") / "completion.json"
        self._now = time.time()
        self._answers: dict[str, _Answer] = {}
        with contextlib.suppress(OSError, ValueError):
            read = json.loads(self._path.read_text(encoding="utf-8"))
            self._answers = {k: v for k, v in read.items() if 0 <= self._now - v["time"] < KEPT_S}

    def find(self, key: str) -> list[str] | None:
        """Return the cached answer; None if there is no recent one."""
        answer = self._answers.get(_digest(key))
        return None if answer is None else list(answer["words"])

    def put(self, key: str, words: list[str]) -> None:
        """Cache an answer; it does not matter if it cannot be written."""
        self._answers[_digest(key)] = {"time": self._now, "words": words}
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(self._answers, file)


def _digest(key: str) -> str:
    """Return a digest: settings may be secrets, and the file holds no more of them than this."""
    from hashlib import sha256

    return sha256(key.encode()).hexdigest()

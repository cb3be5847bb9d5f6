"""The dimensions of a state, and states drawn from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from random import Random

DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "protocol": ("classic", "consumer", "mixed", "share", "streams"),
    "subscription": ("names", "pattern", "pattern-of-nothing", "two-applications", "other-topic", "assign"),
    "owner": (
        "live",
        "slow",
        "dead-static",
        "left",
        "hung",
        "releasing",
        "looping",
        "hot",
        "overloaded",
        "none",
    ),
    "commits": (
        "fresh",
        "old",
        "none",
        "outside",
        "other-id",
        "set-back",
        "restored",
        "transacted",
        "aborting",
        "pending",
    ),
    "log": (
        "growing",
        "idle",
        "bursts",
        "trimmed",
        "emptied",
        "compacted",
        "control-only",
        "open",
        "uncommitted",
        "transactions",
        "aborted",
        "grown",
        "deleted",
        "recreated",
        "damaged",
        "cut",
    ),
    "repeats": ("none", "all"),
    "membership": ("stable", "flapping", "rebalance", "stuck", "full", "shared-id"),
    "since": ("45", "5", "20", "120", "400", "1200", "4500"),
    "healed": ("no", "8", "40", "200"),
    "others": ("busy", "quiet", "alone"),
    "width": ("two", "nine"),
    "crew": ("two", "six"),
    "second": ("none", "hung", "open", "trimmed", "damaged"),
    "delay": ("prompt", "lazy", "interval", "rarely"),
    "retention": ("week", "near", "past"),
    "stamps": ("right", "late", "backfill", "ahead", "stray"),
    "visibility": (
        "all",
        "history",
        "read",
        "topics",
        "groups",
        "settings",
        "broker",
        "replicas",
        "lagging",
        "cleaned",
        "rolled",
        "scratched",
        "unasked",
    ),
    "clock": ("right", "ahead", "behind", "apart"),
    "policy": ("bidirectional", "upgrade", "downgrade", "disabled"),
    "room": ("enough", "two", "one", "classic-one", "short-session"),
    "client": ("java", "librdkafka", "user-data", "undecodable", "own-assignor", "other-type"),
}
"""The values of each dimension; the first is the sound one. `mixed`: a consumer group on its way from the
classic protocol, or back to it: one of its members speaks that. `replicas`: all is seen, and
`__consumer_offsets` has too few replicas in sync for anything to be stored; `lagging`: so it has, and how
many it needs may not be seen. `cleaned`, `rolled`: compaction
left only the newest of its records for each key, of all and of those before the last minute. `scratched`: a
part of its batches fails its checksum. `unasked`: all may be seen, and doctor is told to leave the history
out. `width`: the partitions of the topic that the subject is of; the first member reads them all.
`crew`: the members, unless the first is `alone`; if all leave, six do so one after the other by the seed.
`second`: what else goes wrong, with the other topic, half or twice as long ago: its owner commits nothing any
more, or its log is as in `log`. `since`: seconds since what went wrong did.
`healed`: seconds since that ended: who hung or died goes on, who left is back, the transaction is committed.
`uncommitted`: a transaction is open as in `open`, other records come, and the readers take all of them.
`transactions`: all is written in transactions that take a minute each.
`apart`: the clock of the looker is right, and that of one of three brokers five minutes ahead.
`streams`: with an odd seed its topology keeps state, which members restore before they read.
`retention`: the first records are near its end, or all but the last minutes' are beyond it, not
deleted yet.
`cut`: a new leader lacks the last records that were committed as read, and others came since.
`restored`: a tool commits what is read, with the leader epoch of another cluster.
`stamps`: the times that producers give to records: as of now, or of minutes or a month ago, or to come;
or of one record alone. `transacted`: every commit is in a transaction of its reader's producer (KIP-447),
and with an odd seed another one was aborted before. `aborting`, `pending`: so too, and the subject's reader
aborts all of the subject, or died in one. `repeats`: who lives commits its offsets every five seconds,
whether it got on or not. `delay`: in a share group each record of a partition takes 20 s, a minute or 200 s,
one after the other. With `assign`, a `hung` reader has stopped. `releasing`: a share group's members finish
nothing of the subject any more: by the seed each record is released again and again, or its locks time out.
"""
HEALED_OWNERS = ("dead-static", "left", "hung", "looping", "none")
TRANSACTED = ("transacted", "aborting", "pending")
SEEN = ("visibility", "clock")
"""The dimensions of who looks: one played state is looked at in each of their ways."""
PLANNED = ("policy", "room", "client")
"""The dimensions that only plans are asked about."""
PLAYED = tuple(name for name in DIMENSIONS if name not in (*SEEN, *PLANNED))


@dataclass(frozen=True)
class State:
    """One value of each dimension, and the seed of what they leave open."""

    values: tuple[str, ...]
    seed: int = 0

    def __getattr__(self, name: str) -> str:
        if name not in DIMENSIONS:
            raise AttributeError(name)
        return self.values[_PLACE[name]]

    def but(self, **values: str) -> State:
        """The same state with other values of some dimensions."""
        found = list(self.values)
        for name, value in values.items():
            found[_PLACE[name]] = value
        return State(tuple(found), self.seed)

    @property
    def first_is_classic(self) -> bool:
        """Whether it is the first member of a mixed group that speaks the classic protocol.

        A static member of that protocol cannot leave for now, and no other takes an id over from one alive.
        """
        by_seed = self.seed // 2 % 2 == 0
        return self.owner != "left" and (by_seed or self.membership == "shared-id")

    @property
    def odd(self) -> dict[str, str]:
        """The dimensions that differ from the sound default."""
        return {n: v for n, v in zip(DIMENSIONS, self.values, strict=True) if v != DIMENSIONS[n][0]}

    @property
    def pairs(self) -> Iterator[tuple[str, str]]:
        """The pairs of values that meet in this state."""
        yield from combinations((f"{n}={v}" for n, v in zip(DIMENSIONS, self.values, strict=True)), 2)

    def __str__(self) -> str:
        return " ".join([*(f"{n}={v}" for n, v in self.odd.items()), f"seed={self.seed}"])

    @classmethod
    def parse(cls, text: str) -> State:
        """The state that `str` gave; ValueError for a dimension or a value that does not exist."""
        found, seed = SOUND, 0
        for part in text.split():
            name, _, value = part.partition("=")
            if name == "seed":
                seed = int(value)
                continue
            if value not in DIMENSIONS.get(name, ()):
                raise ValueError(f"{part!r} is no value of a dimension")
            found = found.but(**{name: value})
        return State(found.values, seed)


_PLACE = {name: number for number, name in enumerate(DIMENSIONS)}
SOUND = State(tuple(values[0] for values in DIMENSIONS.values()))


def drawn(seed: int) -> State:
    """One state: about half of its dimensions are sound, and what cannot meet is changed to what can."""
    by = Random(seed)
    values = {
        n: by.choice(v) if by.random() < 0.55 else v[0] for n, v in DIMENSIONS.items() if n not in PLANNED
    }
    *usual, longest = DIMENSIONS["since"]
    # The longest takes as much time as ten others.
    values["since"] = longest if by.random() < 0.02 else by.choice(usual)
    values |= dict.fromkeys(SEEN, "all") | {"clock": "right"} | {n: DIMENSIONS[n][0] for n in PLANNED}
    return possible(State(tuple(values.values()), seed))


def drawn_for_plans(seed: int) -> State:
    """The same state, with what only plans are asked about."""
    by = Random(-seed)
    values = {n: by.choice(DIMENSIONS[n]) if by.random() < 0.5 else DIMENSIONS[n][0] for n in PLANNED}
    return possible(drawn(seed).but(**values))


def possible(state: State) -> State:
    """The state without what cannot be in a cluster together."""
    nothing = state.subscription == "pattern-of-nothing" and state.client == "librdkafka"
    if state.protocol != "classic" or nothing:
        # Who owns nothing has no user data to add.
        state = state.but(client="java")
    elif state.room == "classic-one":
        # A classic group that is too large loses members when its coordinator begins.
        state = state.but(room="enough")
    if state.protocol == "share":
        # It has no owners, no commits and no patterns.
        kept = ("hung", "releasing", "looping", "overloaded", "none")
        owner = state.owner if state.owner in kept else "live"
        subscription = state.subscription if state.subscription == "two-applications" else "names"
        log = state.log if state.log in ("idle", "bursts", "trimmed", "emptied") else "growing"
        state = state.but(owner=owner, subscription=subscription, log=log, commits="fresh")
        state = state.but(membership="stable", second="none")
        if owner == "overloaded":
            # Ten records come while one is taken.
            delay = "lazy" if state.delay == "prompt" else state.delay
            state = state.but(log="growing", others="busy", delay=delay)
    elif state.owner == "releasing":
        state = state.but(owner="live")
    if state.protocol == "streams":
        # Its members have one topology, and without a source topic the group is not ready.
        there = state.log not in ("deleted", "recreated", "grown", "uncommitted", "transactions")
        state = state.but(subscription="names", log=state.log if there else "growing")
    if state.owner == "slow" and state.delay == "rarely":
        # It takes half of what there is at each of many moments.
        state = state.but(delay="interval")
    if state.log == "compacted" and state.stamps == "stray":
        # The one record with a wrong time is compacted away in one partition, and left in another.
        state = state.but(stamps="ahead")
    if state.protocol == "mixed" and state.subscription == "assign":
        state = state.but(protocol="consumer")
    if state.protocol == "mixed" and state.others == "alone":
        state = state.but(others="busy")
    if state.subscription == "assign":
        # A consumer with assign() is no member: nobody joins, and its commits come from outside.
        commits = "transacted" if state.commits in TRANSACTED else "outside"
        owner = "hung" if state.owner == "hung" else "none"
        state = state.but(owner=owner, commits=commits, membership="stable", others="busy")
    if state.subscription in ("pattern-of-nothing", "two-applications") and state.others == "alone":
        state = state.but(others="busy")
    if state.commits == "outside" and state.owner != "none" and state.subscription != "assign":
        # A group with members refuses a commit of none.
        state = state.but(commits="fresh")
    if state.commits in ("set-back", "restored"):
        # A tool does it while nobody is a member.
        state = state.but(owner="none", log="growing", membership="stable")
    if state.commits == "other-id" and state.log == "recreated":
        state = state.but(commits="fresh")
    if state.subscription == "other-topic" and state.owner in ("none", "left", "looping"):
        state = state.but(owner="live")
    if state.protocol == "classic" and state.owner == "left":
        # A classic static member that stops says nothing: it is a dead one.
        state = state.but(owner="dead-static")
    if state.owner in ("hot", "overloaded") and state.protocol != "share":
        # One partition has so much to read that its reader does not get to the next, or to the end.
        plain = state.protocol not in ("share", "streams") and state.subscription in ("names", "pattern")
        commits = "transacted" if state.commits in TRANSACTED else "fresh"
        state = state.but(owner=state.owner if plain else "live", log="growing", commits=commits)
        state = state.but(membership="stable", delay="prompt", others="busy")
    if state.owner == "looping" and (state.protocol, state.membership) != ("classic", "rebalance"):
        state = state.but(membership="stable")
    if state.membership == "full":
        state = state.but(crew="six")
    elif state.protocol == "mixed" and state.membership in ("rebalance", "stuck"):
        # The members that do not rejoin hold up the others one by one.
        state = state.but(crew="two")
    heals = state.owner in HEALED_OWNERS or state.log == "open"
    # What a member of a share group has acquired comes back when it likes, and a transaction with offsets
    # ends when its producer goes on.
    heals = heals and state.subscription != "assign" and state.commits != "pending"
    heals = heals and (state.protocol, state.owner) != ("share", "looping")
    if state.healed != "no" and (not heals or int(state.healed) + 2 > int(state.since)):
        state = state.but(healed="no")
    classic = state.protocol == "classic" or (state.protocol == "mixed" and state.first_is_classic)
    if state.membership == "shared-id" and not classic:
        # A second process with a member's instance id is refused while that one lives.
        state = state.but(membership="flapping")
    if state.protocol == "share" or state.owner == "none" or state.commits in (*TRANSACTED, "other-id"):
        # There is no offset, nobody who commits one, or what it would replace is what goes wrong.
        state = state.but(repeats="none")
    if state.subscription == "assign":
        state = state.but(repeats="none")
    if state.membership != "stable" and (state.owner == "none" or state.others == "alone"):
        state = state.but(membership="stable")
    return state

"""Plays incidents on a broker, several at once, asks every command about each, and marks the answers."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kgroup.admin.recording.lines import CLOSED
from tests.interop.coordinating import coordinates
from tests.interop.kafka import AUTHORIZED, SHARED, RealKafka
from tests.interop.kgroup_server import KgroupServer
from tests.interop.recording import Recording
from tests.interop.security.servers import LockedKafka, LockedKgroup
from tests.interop.server import Server
from tests.interop.streams_incident import STREAMS_BROKER
from tests.ran import Ran

from .scene import Scene
from .truth import COMMANDS, MISSING, NONE, RIGHT, WRONG, Mark, Next, Recorded, Truth, at, marked

KINDS = ("kafka", "kgroup")
AT_ONCE = int(os.environ.get("KGROUP_INCIDENTS_AT_ONCE", "5"))
LOOKS = 3
"""The looks after which an incident is opened or closed: two show it, and one before may show half of it."""
COMMON = {
    "group.consumer.session.timeout.ms": "5000",
    "group.consumer.assignment.interval.ms": "0",
    **{key: str(value) for key, value in STREAMS_BROKER.items()},
}
BROKERS: dict[str, dict[str, str]] = {
    "common": COMMON,
    "small": {
        **COMMON,
        "group.max.size": "3",
        "offsets.retention.minutes": "1",
        "offsets.retention.check.interval.ms": "2000",
    },
    "restarted": COMMON,
    "share": {**COMMON, **SHARED},
    "locked": {**COMMON, **AUTHORIZED},
}
"""Brokers by the settings that incidents need; those of one broker are played together."""
CHANGES = r"kgroup (?:remove-members|reset-offsets|offsets delete|delete|config set)\b"
READS = r"kgroup (?:blame|replay-log|describe|lag|explain) \S+(?: --[a-z-]+(?: [^\s;,-][^\s;,]*)?)*"

Script = Callable[[Scene], Truth]


@dataclass(frozen=True)
class Incident:
    """A script that brings the incident about and returns its truth, at the moment to ask about it."""

    number: int
    name: str
    script: Script
    broker: str
    sample: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def title(self) -> str:
        """The script's first line."""
        return (self.script.__doc__ or "").partition("\n")[0]


INCIDENTS: dict[str, Incident] = {}


def incident(
    number: int, *, broker: str = "common", sample: tuple[str, ...] = (), kinds: tuple[str, ...] = KINDS
) -> Callable[[Script], Script]:
    """Enter a script into the exam; `make interop` plays it too on the kinds of brokers in `sample`."""

    def entered(script: Script) -> Script:
        name = script.__name__.replace("_", "-")
        INCIDENTS[name] = Incident(number, name, script, broker, sample, kinds)
        return script

    return entered


@dataclass(frozen=True)
class Played:
    """What became of an incident: its truth, a mark for each cell, and what was said."""

    truth: Truth
    marks: dict[str, Mark]
    answers: dict[str, Ran]


def play(incident: Incident, server: Server, folder: Path, recording: Recording) -> Played:
    """Bring the incident about, ask, mark, take the next step and see what it does; a recorder looks on."""
    # A name that none of the words of a truth is part of.
    name = f"app{list(INCIDENTS).index(incident.name):02}"
    with Scene(server, name, folder / incident.name) as scene:
        truth = incident.script(scene)
        answers, marks = {}, {}
        for cell in COMMANDS:
            for says in truth.says(cell):
                answers[cell] = says.answer or scene.asked(cell, says.argv)
                marks[cell] = marked(cell, answers[cell], says)
                if marks[cell].verdict in (WRONG, MISSING):
                    break
        marks["cause"] = _cause(scene, truth.cause, answers["doctor"])
        recording.looks(LOOKS)
        before = _recorded(scene, truth.record, recording)
        marks["next"] = _next(scene, truth.next, answers["doctor"])
        recording.looks(LOOKS)
        ended = truth.next is not None and marks["next"].verdict == RIGHT
        marks["record"] = (
            before if before.verdict == WRONG else _recorded(scene, truth.record, recording, ended)
        )
    return Played(truth, marks, answers)


def _cause(scene: Scene, cause: str | None, doctor: Ran) -> Mark:
    """Whether doctor, and after it one command that it proposes, name the cause."""
    if cause is None:
        return Mark(NONE)
    said, tried = [doctor.out], []
    if doctor.out and not re.search(cause, doctor.out, re.S):
        text = scene.asked("doctor", ("doctor", "-o", "table")).out
        for command in dict.fromkeys(re.findall(READS, text)):
            tried.append(command)
            said.append(scene.kgroup(*shlex.split(command)[1:]).out)
    if any(re.search(cause, each, re.S) for each in said):
        return Mark(RIGHT)
    after = f", nor {', '.join(tried)}" if tried else " and proposes no command"
    return Mark(MISSING, f"doctor does not name {cause}{after}")


def _recorded(scene: Scene, truth: Recorded | None, recording: Recording, ended: bool = False) -> Mark:
    """Whether the recorder has opened the one incident that there is, and closed it if that has `ended`."""

    def mark() -> Mark:
        mine = [each for each in recording.changes() if any(scene.name in group for group in each.groups)]
        told = "; ".join(f"{each.event} {each.key}: {each.title}, {each.caused_by}" for each in mine)
        opened, last = {each.id for each in mine}, {each.id: each for each in mine}
        if truth is None or len(opened) > 1:
            return Mark(WRONG, f"{len(opened)} incidents: {told}") if opened else Mark(RIGHT)
        for each in last.values():
            # Of a transaction that ended the group's finding may be left for a moment.
            named = any(re.search(truth.key, change.key) for change in mine)
            if not (named and re.search(truth.code, " ".join(each.codes))):
                return Mark(WRONG, f"another incident: {told}")
            if not re.search(truth.caused_by, each.caused_by):
                return Mark(WRONG, f"caused by something else: {told}")
            if ended and truth.closes and each.event != CLOSED:
                return Mark(MISSING, f"it does not end: {told}")
        return Mark(RIGHT) if opened or truth.passes else Mark(MISSING, "no incident was opened")

    with contextlib.suppress(AssertionError):
        scene.until(lambda: mark().verdict != MISSING, "the incident is recorded")
    return mark()


def _hints(doctor: Ran) -> str:
    found = at("groups.findings").found(doctor.data)
    return "\n".join(f"{each['hint'] or ''}\n{each['message']}" for each in found)


def _next(scene: Scene, step: Next | None, doctor: Ran) -> Mark:
    """Carry out the next step that doctor proposes; whether the state afterwards is what was promised."""
    hints = _hints(doctor)
    if step is None:
        proposed = re.search(CHANGES, hints)
        return (
            Mark(WRONG, f"proposes {proposed[0]}where there is nothing to mend") if proposed else Mark(RIGHT)
        )
    proposed = re.search(step.proposed, hints, re.S)
    if not proposed:
        return Mark(MISSING, f"doctor does not propose {step.proposed}")
    if step.by_hand:
        step.by_hand(scene)
    elif failed := _carried_out(scene, proposed[0]):
        return Mark(WRONG, failed)
    try:
        step.promised(scene)
    except AssertionError as broken:
        return Mark(WRONG, f"after {proposed[0]}: {broken}")
    return Mark(RIGHT)


def _carried_out(scene: Scene, command: str) -> str:
    """Run a command, one that changes something first as a plan; what went wrong."""
    words = shlex.split(command)[1:]
    runs = [words, [*words, "--execute", "--yes"]] if re.match(CHANGES, command) else [words]
    for run in runs:
        done = scene.kgroup(*run)
        if done.code:
            return f"kgroup {' '.join(run)} ended with {done.code}: {done.out[-300:]} {done.err[-300:]}"
    return ""


@dataclass
class Theatre:
    """Plays incidents on brokers of one kind; each broker is started when its first incident is due."""

    kind: str
    folder: Path

    def play(
        self, incidents: Iterable[Incident], ended: Callable[[str, Future[Played]], None] = lambda *_: None
    ) -> dict[str, Future[Played]]:
        """All of these, a broker of each settings after the other; `ended` is called as each one ends."""
        futures: dict[str, Future[Played]] = {}
        for each in incidents:
            future = futures[each.name] = Future()
            future.add_done_callback(functools.partial(ended, each.name))
        for broker in BROKERS:
            chosen = [INCIDENTS[name] for name in futures if INCIDENTS[name].broker == broker]
            if chosen:
                self._on(broker, chosen, futures)
        return futures

    def _on(self, broker: str, chosen: list[Incident], futures: dict[str, Future[Played]]) -> None:
        base = self.folder / broker
        base.mkdir()
        with (
            self._server(broker, base) as server,
            Recording(server, base / "recording", base, interval="2s") as recording,
            ThreadPoolExecutor(AT_ONCE) as pool,
        ):
            coordinates(server)

            def one(incident: Incident) -> None:
                try:
                    futures[incident.name].set_result(play(incident, server, self.folder, recording))
                except BaseException as failed:
                    futures[incident.name].set_exception(failed)

            # The longest first, an hour of deployments.
            list(pool.map(one, sorted(chosen, key=lambda each: -each.number)))

    def _server(self, broker: str, base: Path) -> Server:
        if broker == "locked":
            locked = LockedKafka if self.kind == "kafka" else LockedKgroup
            return locked(base, BROKERS[broker])
        return (RealKafka if self.kind == "kafka" else KgroupServer)(BROKERS[broker], base=base)

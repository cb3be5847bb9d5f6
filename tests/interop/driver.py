"""Real clients behind one interface, whatever language they are written in.

A driver is a child process that hosts many clients and speaks JSON lines: `{"id", "op", ...}` in,
`{"id", "result"}` or `{"id", "error", "message"}` out. There is one in Java (KafkaConsumer, Admin,
transactions), one in Go (franz-go, sarama, kafka-go) and one in Python (librdkafka, kafka-python, aiokafka).
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .waiting import eventually

Partition = tuple[str, int]
TIMEOUT = 45.0
ROOT = Path(__file__).resolve().parents[2]


class DriverError(Exception):
    """An operation failed; `code` is the name of Kafka's error code where there is one."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class MemberEnded(Exception):
    """A member that should be in the group ended with an error."""


class Driver:
    """A driver process; requests may be in flight together and are answered as they end."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=ROOT
            )
        self._ids = itertools.count(1)
        self._pending: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether it takes no more requests: it was closed or killed, or ended by itself."""
        assert self.process.stdin is not None
        return self.process.stdin.closed or self.process.poll() is not None

    def begin(self, op: str, **arguments: Any) -> Future[Any]:
        """Send a request; the future ends with its result or a DriverError."""
        number, future = next(self._ids), Future[Any]()
        assert self.process.stdin is not None
        with self._lock:
            self._pending[number] = future
            self.process.stdin.write(json.dumps({"id": number, "op": op, **arguments}) + "\n")
            self.process.stdin.flush()
        return future

    def call(self, op: str, timeout: float = TIMEOUT, **arguments: Any) -> Any:
        """The result of one request; DriverError when it fails there."""
        return self.begin(op, **arguments).result(timeout)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            reply = json.loads(line)
            future = self._pending.pop(reply["id"])
            if "error" in reply:
                future.set_exception(DriverError(reply["error"], reply["message"]))
            else:
                future.set_result(reply["result"])
        for future in self._pending.values():
            future.set_exception(DriverError("DRIVER_ENDED", self.log.read_text(errors="replace")[-2000:]))

    def close(self) -> None:
        """End the process by closing its input."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.process.stdout.close()


@dataclass(frozen=True)
class State:
    """What a member says of itself at one moment."""

    assignment: frozenset[Partition]
    generation: int | None  # classic generation or member epoch; None where the client does not tell
    member_id: str | None
    fatal: str | None  # the code that ended it
    rebalances: int  # how often it was given an assignment
    read: int  # records


@dataclass(frozen=True)
class Member:
    """A consumer inside a driver."""

    driver: Driver
    name: str

    def state(self) -> State:
        row = self.driver.call("state", name=self.name)
        return State(
            frozenset((topic, partition) for topic, partition in row["assignment"]),
            row.get("generation"),
            row.get("member_id"),
            row.get("fatal"),
            row["rebalances"],
            row["read"],
        )

    def records(self) -> list[tuple[str, int, int, str]]:
        """(topic, partition, offset, value) of all that was read, in order."""
        return [tuple(row) for row in self.driver.call("records", name=self.name)]

    def heard(self) -> list[tuple[str, list[int]]]:
        """Each callback of its rebalance listener: its name and its partitions, in order."""
        return [(callback, partitions) for callback, partitions in self.driver.call("heard", name=self.name)]

    def commit(self, offsets: dict[Partition, int] | None = None) -> None:
        """Commit the given offsets, or all positions, and wait for the answer."""
        rows = None if offsets is None else [[t, p, offset] for (t, p), offset in offsets.items()]
        self.driver.call("commit", name=self.name, offsets=rows)

    def committed(self, *partitions: Partition) -> dict[Partition, int]:
        """Committed offsets as this member fetches them; partitions without one are left out."""
        rows = self.driver.call("committed", name=self.name, partitions=[list(each) for each in partitions])
        return {(topic, partition): offset for topic, partition, offset in rows}

    def close(self, leave: bool | None = None) -> None:
        """Close; leaving the group (True), staying in it (False), or as the client does by itself."""
        self.driver.call("close", name=self.name, leave=leave)


@dataclass
class Client:
    """One kind of client: how its consumers are configured, and which features it has."""

    name: str
    driver: Driver
    features: frozenset[str] = frozenset()
    _names: itertools.count[int] = field(default_factory=itertools.count)

    def start(
        self,
        bootstrap: str,
        group: str,
        topics: str | list[str] | None = None,
        *,
        pattern: str | None = None,
        instance: str | None = None,
        protocol: str = "classic",
        assignor: str | None = None,
        session_ms: int = 10_000,
        commits: bool = False,
        config: dict[str, str] | None = None,
    ) -> Member:
        """Start a consumer; it joins by itself. `settle` and `Member.state` tell how that went.

        With `commits` (Java only) it commits what it reads, and what it lets go of in onPartitionsRevoked.

        `config` goes on top, in the client's own names. The assignor is `range` unless given; under the
        consumer protocol the broker chooses, and knows the session timeout.
        """
        name = f"{self.name}-{next(self._names)}"
        self.driver.call(
            "start",
            client=self.name,
            name=name,
            bootstrap=bootstrap,
            group=group,
            instance=instance,
            topics=[topics] if isinstance(topics, str) else topics,
            pattern=pattern,
            protocol=protocol,
            assignor=assignor or ("range" if protocol == "classic" else None),
            session_ms=session_ms,
            commits=commits,
            config=config or {},
        )
        return Member(self.driver, name)

    def admin(self, op: str, bootstrap: str, **arguments: Any) -> Any:
        """`list`, `describe`, `offsets` or `remove`, by this client's own admin calls."""
        return self.driver.call(f"admin.{op}", client=self.name, bootstrap=bootstrap, **arguments)


def settle(
    members: list[Member], partitions: set[Partition], each: int = 1, within_s: float = 120
) -> list[State]:
    """Wait until the members share exactly these partitions, each holding at least `each`; their states.

    MemberEnded as soon as one of them ends with an error.
    """

    def states() -> list[State] | None:
        seen = [member.state() for member in members]
        if any(state.fatal for state in seen):
            raise MemberEnded(seen)
        held = [partition for state in seen for partition in state.assignment]
        assert sorted(held) == sorted(partitions), seen
        assert all(len(state.assignment) >= each for state in seen), seen
        return seen

    return eventually(states, within_s, "the members share all partitions")


def fatal(member: Member) -> str:
    """Wait until the member ends with an error; the error's code."""
    return eventually(lambda: member.state().fatal or "", what="the member ends with an error")

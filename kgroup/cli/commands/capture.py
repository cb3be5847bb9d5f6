"""`kgroup capture`: record what groups write before compaction takes its history."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import LEAST_S, limit_of_many, open_admin, stop_after_s
from kgroup.cli.exit_codes import ExitCode, of_batch, of_error
from kgroup.cli.frame.declaring import STOP_AFTER, option
from kgroup.cli.frame.options import command as make
from kgroup.cli.inputs.locations import StorageOption, storage_options
from kgroup.domain import SHARE_STATE_TOPIC, count_of
from kgroup.durations import parse_duration
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError
from kgroup.storage.location import Location

if TYPE_CHECKING:
    from kgroup.history.sources.capture import Capture, Keeper, PartitionCapture
    from kgroup.protocol.transport import Transport

_LOOK_S = 30.0
"""How often to look for a topic that does not exist yet."""
_REPORT_S = 10.0
"""How often progress is reported; with --verbose after each poll that found something."""


@make(
    "capture",
    examples=(
        ("kgroup capture --out ./history -b broker:9092", "record until Ctrl-C; run again to continue"),
        ("kgroup capture --out ./history --once", "what is there now, then stop; for cron"),
        ("kgroup capture --out s3://backups/history --once", "the same, into an object store"),
    ),
    has_json=False,
)
def command(
    env: Env,
    out: Annotated[str, option("--out DIR|URL", "Folder, or URL, to record into.")],
    once: Annotated[bool, option("--once", "Record what is there now, then stop.")] = False,
    every: Annotated[str, option("--every DURATION", "How often to poll.")] = "1s",
    upload_every: Annotated[
        str, option("--upload-every DURATION", "How often objects are put at a URL, at the least.")
    ] = "1m",
    stop_after: Annotated[str | None, option(STOP_AFTER, "Stop after this long.  [default: never]")] = None,
    storage_option: StorageOption = None,
) -> ExitCode:
    """Record the live __consumer_offsets topic, so that compaction cannot take its history.

    Where there are share groups, __share_group_state as well.

    Run it again with the same folder to continue where it stopped. Writes one compressed segment per day, in
    Kafka's own format; at a URL, an object whenever there is enough for one. Read them with replay-log.
    """
    pause, often = max(0.05, parse_duration(every, "--every")), parse_duration(upload_every, "--upload-every")
    keeper = _keeper(env, out, storage_option)
    if once and stop_after is not None:
        raise ConfigError("--once and --stop-after exclude each other")
    with open_admin(env, stop_after_s=limit_of_many(env) if once else stop_after_s(stop_after)) as admin:
        recording = Recording(admin.transport, env.settings().timeout_s(), keeper)
        reporter = Reporter(env, recording)
        if not once:
            env.note(f"recording {count_of(len(recording.parts), 'partition')} into {out}; Ctrl-C ends it")
        upload_s = time.monotonic() + often
        try:
            while True:
                recording.poll()
                left_s = env.limit.left() - LEAST_S
                ends = once or left_s <= 0
                if ends or time.monotonic() >= upload_s:
                    recording.flush()
                    upload_s = time.monotonic() + often
                reporter.report()
                if ends:
                    # The result of the last poll: PARTIAL if some partitions were not read, the common reason
                    # if none was.
                    failed = [of_error(error) for error in recording.failures.values()]
                    return of_batch(failed, len(failed) < len(recording.parts))
                time.sleep(min(pause, left_s))
        except KeyboardInterrupt:
            recording.flush()
            raise
        finally:
            env.note(reporter.summary(out))


def _keeper(env: Env, out: str, options: list[str] | None) -> "Path | Keeper":
    place, chosen = Location.parse(out), storage_options(env, options)
    if place.is_local:
        return place.local
    from kgroup.history.sources.uploads import Uploads

    return Uploads(place, chosen)


class Recording:
    """The topics of a capture: `__consumer_offsets`, and `__share_group_state` once it exists."""

    def __init__(self, transport: "Transport", timeout_s: float, keeper: "Path | Keeper") -> None:
        from kgroup.history.sources.capture import Capture
        from kgroup.history.sources.live import LiveTopic

        self._transport, self._timeout_s, self._keeper = transport, timeout_s, keeper
        self._offsets = Capture(LiveTopic(transport, timeout_s), keeper)
        self._state: Capture | None = None
        self._unseen: KgroupError | None = None
        self._look_s = time.monotonic()
        self._look()

    def _look(self) -> None:
        """Begin to record the state of share groups, if it exists; a failure to see it is kept."""
        from kgroup.history.sources.capture import Capture
        from kgroup.history.sources.live import LiveTopic

        self._look_s, self._unseen = time.monotonic() + _LOOK_S, None
        try:
            topic = LiveTopic(self._transport, self._timeout_s, with_names=False, name=SHARE_STATE_TOPIC)
        except KgroupError as error:
            if not (isinstance(error, BrokerRefused) and error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                self._unseen = error
            return
        self._state = Capture(topic, self._keeper)

    def poll(self) -> None:
        """Record all that there is now."""
        if self._state is None and time.monotonic() >= self._look_s:
            self._look()
        for capture in self._captures:
            capture.poll()

    def flush(self) -> None:
        """Store all that is buffered."""
        for capture in self._captures:
            capture.flush()

    @property
    def _captures(self) -> "list[Capture]":
        return [self._offsets] if self._state is None else [self._offsets, self._state]

    @property
    def parts(self) -> "dict[str, PartitionCapture]":
        """The recorded partitions, by name."""
        return {self._name(c, number): part for c in self._captures for number, part in c.parts.items()}

    @property
    def failures(self) -> dict[str, KgroupError]:
        """Partitions not read to their end by the last poll, and why, by name."""
        found = {self._name(c, number): why for c in self._captures for number, why in c.failures.items()}
        return found if self._unseen is None else {**found, SHARE_STATE_TOPIC: self._unseen}

    def _name(self, capture: "Capture", number: int) -> str:
        return f"partition {number}" if capture is self._offsets else f"{SHARE_STATE_TOPIC}-{number}"


@dataclass
class Reporter:
    """Progress reports on stderr: gaps and failures at once, progress at intervals."""

    env: Env
    recording: Recording
    reported: set[tuple[str, int, int]] = field(default_factory=set)
    unread: dict[str, str] = field(default_factory=dict)
    batches: int = 0
    next_s: float = 0.0

    def report(self) -> None:
        """Report what is new since the last time."""
        for name, part in self.recording.parts.items():
            for first, last in part.gaps:
                if (name, first, last) not in self.reported:
                    self.reported.add((name, first, last))
                    self.env.note(f"{name}: offsets {first} to {last} were gone already")
        now = {name: error.message for name, error in self.recording.failures.items()}
        for name, message in now.items():
            if self.unread.get(name) != message:
                self.env.note(f"error: {name} was not read: {message}")
        for name in sorted(self.unread.keys() - now.keys()):
            self.env.note(f"{name} is read again")
        self.unread = now
        batches = self._sum("batches")
        if batches > self.batches and time.monotonic() >= self.next_s:
            self.batches, self.next_s = batches, time.monotonic() + (0 if self.env.verbose else _REPORT_S)
            self.env.note(self._text())

    def summary(self, out: str) -> str:
        """Return what was recorded, and what was not."""
        text = f"{self._text()} of {count_of(len(self.recording.parts), 'partition')} into {out}"
        if self.unread:
            text += f"; NOT READ: {', '.join(self.unread)}"
        return text

    def _text(self) -> str:
        return (
            f"recorded {count_of(self._sum('batches'), 'batch', 'es')}, "
            f"{count_of(self._sum('bytes_kept'), 'byte')}"
        )

    def _sum(self, name: str) -> int:
        return sum(getattr(part, name) for part in self.recording.parts.values())

"""`kgroup capture`: record `__consumer_offsets` before compaction takes its history."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import open_admin
from kgroup.cli.exit_codes import ExitCode, of_batch, of_error
from kgroup.cli.frame.declaring import option
from kgroup.cli.frame.options import command as make
from kgroup.cli.inputs.locations import StorageOption, storage_options
from kgroup.durations import parse_duration
from kgroup.storage.location import Location

if TYPE_CHECKING:
    from kgroup.history.sources.capture import Capture, Keeper

_TELL_S = 10.0
"""How often progress is told; with --verbose after each look that found something."""


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
    every: Annotated[str, option("--every DURATION", "How often to look; a bare number is ms.")] = "1s",
    upload_every: Annotated[
        str, option("--upload-every DURATION", "How often objects are put at a URL, at the least.")
    ] = "1m",
    storage_option: StorageOption = None,
) -> ExitCode:
    """Record the live __consumer_offsets topic, so that compaction cannot take its history.

    Run it again with the same folder to continue where it stopped. Writes one compressed segment per day, in
    Kafka's own format; at a URL, an object whenever there is enough for one. Read them with replay-log.
    """
    from kgroup.history.sources.capture import Capture
    from kgroup.history.sources.live import LiveTopic

    pause, often = max(0.05, parse_duration(every)), parse_duration(upload_every)
    keeper = _keeper(env, out, storage_option)
    with open_admin(env) as admin:
        capture = Capture(LiveTopic(admin.transport, env.settings().timeout_s()), keeper)
        teller = Teller(env, capture)
        if not once:
            env.note(f"recording {len(capture.parts)} partitions into {out}; Ctrl-C ends it")
        upload_s = time.monotonic() + often
        try:
            while True:
                capture.poll()
                if once or time.monotonic() >= upload_s:
                    capture.flush()
                    upload_s = time.monotonic() + often
                teller.tell()
                if once:
                    # How a single look ended: PARTIAL if some partitions were not read, the common reason
                    # if none was.
                    failed = [of_error(error) for error in capture.failures.values()]
                    return of_batch(failed, len(failed) < len(capture.parts))
                time.sleep(pause)
        except KeyboardInterrupt:
            capture.flush()
            raise
        finally:
            env.note(teller.summary(out))


def _keeper(env: Env, out: str, options: list[str] | None) -> "Path | Keeper":
    place, chosen = Location.parse(out), storage_options(env, options)
    if place.is_local:
        return place.local
    from kgroup.history.sources.uploads import Uploads

    return Uploads(place, chosen)


@dataclass
class Teller:
    """Says on stderr what a capture does: gaps and failures as they come, how far it is once in a while."""

    env: Env
    capture: "Capture"
    told: set[tuple[int, int, int]] = field(default_factory=set)
    unread: dict[int, str] = field(default_factory=dict)
    batches: int = 0
    next_s: float = 0.0

    def tell(self) -> None:
        """Say what is new since the last time."""
        for partition, part in self.capture.parts.items():
            for first, last in part.gaps:
                if (partition, first, last) not in self.told:
                    self.told.add((partition, first, last))
                    self.env.note(f"partition {partition}: offsets {first} to {last} were gone already")
        now = {partition: error.message for partition, error in self.capture.failures.items()}
        for partition, message in now.items():
            if self.unread.get(partition) != message:
                self.env.note(f"error: partition {partition} was not read: {message}")
        for partition in sorted(self.unread.keys() - now.keys()):
            self.env.note(f"partition {partition} is read again")
        self.unread = now
        batches = self._sum("batches")
        if batches > self.batches and time.monotonic() >= self.next_s:
            self.batches, self.next_s = batches, time.monotonic() + (0 if self.env.verbose else _TELL_S)
            self.env.note(self._text())

    def summary(self, out: str) -> str:
        """Return what was recorded, and what was not."""
        text = f"{self._text()} of {len(self.capture.parts)} partitions into {out}"
        if self.unread:
            text += f"; NOT READ: partition {', '.join(map(str, sorted(self.unread)))}"
        return text

    def _text(self) -> str:
        return f"recorded {self._sum('batches')} batches, {self._sum('bytes_kept')} bytes"

    def _sum(self, name: str) -> int:
        return sum(getattr(part, name) for part in self.capture.parts.values())

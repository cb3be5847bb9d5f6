"""`kgroup capture`: record what groups write before compaction takes its history."""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from kgroup.cli.declaring import STOP_AFTER, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import LEAST_S, limit_of_many, open_admin, stop_after_s
from kgroup.cli.exit_codes import ExitCode, of_batch, of_error
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.locations import StorageOption, UploadEvery, storage_options
from kgroup.domain import count_of
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError
from kgroup.storage.location import Location

if TYPE_CHECKING:
    from kgroup.history.sources.capture import Gone
    from kgroup.history.sources.topics import Recording

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
    upload_every: UploadEvery = "1m",
    stop_after: Annotated[str | None, option(STOP_AFTER, "Stop after this long.  [default: never]")] = None,
    storage_option: StorageOption = None,
) -> ExitCode:
    """Record the live __consumer_offsets topic, so that compaction cannot take its history.

    Where there are share groups, __share_group_state as well.

    Run it again with the same folder to continue where it stopped. Writes one compressed segment per day, in
    Kafka's own format; at a URL, an object whenever there is enough for one. Read them with replay-log.
    """
    from kgroup.history.sources.folders import folder_at
    from kgroup.history.sources.topics import Recording

    pause, often = max(0.05, parse_duration(every, "--every")), parse_duration(upload_every, "--upload-every")
    folder = folder_at(Location.parse(out), storage_options(env, storage_option))
    if once and stop_after is not None:
        raise ConfigError("--once and --stop-after exclude each other")
    with open_admin(env, stop_after_s=limit_of_many(env) if once else stop_after_s(stop_after)) as admin:

        def noticed(name: str, gone: "Gone") -> None:
            env.note(f"{name}: {gone.text} were gone already")

        recording = Recording(admin.transport, env.settings().timeout_s(), folder, noticed)
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


@dataclass
class Reporter:
    """Progress reports on stderr: failures at once, progress at intervals."""

    env: Env
    recording: "Recording"
    unread: dict[str, str] = field(default_factory=dict)
    batches: int = 0
    next_s: float = 0.0

    def report(self) -> None:
        """Report what is new since the last time."""
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

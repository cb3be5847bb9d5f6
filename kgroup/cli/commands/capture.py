"""`kgroup capture`: record `__consumer_offsets` before compaction takes its history."""

import time
from pathlib import Path
from typing import Annotated

import typer

from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.options import command as make


@make(
    "capture",
    examples=(
        ("kgroup capture --out ./history -b broker:9092", "record until Ctrl-C; start again to go on"),
        ("kgroup capture --out ./history --once", "what there is now, and end; for cron"),
    ),
    has_json=False,
)
def command(
    env: Env,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of the recording.")],
    once: Annotated[bool, typer.Option("--once", help="Record what there is now, and end.")] = False,
    every: Annotated[
        str, typer.Option("--every", metavar="DURATION", help="How often to look; a bare number is ms.")
    ] = "1s",
) -> ExitCode:
    """Record the live __consumer_offsets topic, so that compaction cannot take its history.

    Resumable: run it again with the same folder and it goes on where it stopped. One segment a day, in
    Kafka's own format, compressed. Read it with replay-log --files DIR.
    """
    from kgroup.cli.env import parse_duration
    from kgroup.cli.session import open_admin
    from kgroup.history.capture import Capture
    from kgroup.history.live import LiveTopic

    pause = max(0.05, parse_duration(every))
    with open_admin(env) as admin:
        capture = Capture(LiveTopic(admin.cluster.transport, env.settings().timeout_s()), out)
        told: set[tuple[int, int, int]] = set()
        while True:
            kept = capture.poll()
            for partition, part in capture.parts.items():
                for first, last in part.gaps:
                    if (partition, first, last) not in told:
                        told.add((partition, first, last))
                        env.note(f"partition {partition}: offsets {first} to {last} were gone already")
            if env.verbose and kept:
                env.note(f"recorded {kept} batches")
            if once:
                total = sum(part.batches for part in capture.parts.values())
                env.note(f"recorded {total} batches of {len(capture.parts)} partitions into {out}")
                return ExitCode.OK
            time.sleep(pause)

"""`kgroup record`: the log and what only looks show, kept as a service; incidents; metrics."""

import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.models import ItemError
from kgroup.admin.refusals import item_error
from kgroup.cli.declaring import STOP_AFTER, argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import open_admin, stop_after_s
from kgroup.cli.env.webhook import CLOSING_S, PostLimits, webhook_at
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.option_file import config_option
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.group_names import absent, is_glob, matches
from kgroup.cli.inputs.locations import StorageOption, UploadEvery, storage_options
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.wording import of_seen
from kgroup.cli.views.checkups import left_out_of
from kgroup.domain import OFFSETS_TOPIC, Document
from kgroup.durations import duration_ms, iso, parse_duration
from kgroup.errors import ConfigError, StorageError
from kgroup.extras import require_extra
from kgroup.numbers import whole_number
from kgroup.storage.location import Location

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView
    from kgroup.admin.recording.lines import Incident
    from kgroup.admin.recording.look import Find
    from kgroup.admin.recording.recorder import Recorder, State
    from kgroup.history.sources.folders import Folder

_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZE = re.compile(r"([0-9]{1,15})\s*(|kB|MB|GB|TB)")
SETTLED = "notified"


@make(
    "record",
    examples=(
        ("kgroup record ./recording -b broker:9092", "record until Ctrl-C or SIGTERM; run again to continue"),
        ("kgroup record ./recording --keep 30d --max-size 50GB", "and no more than that"),
        (
            "kgroup record ./recording --notify https://hooks.local/a --notify-format slack",
            "and post incidents",
        ),
        ("kgroup record s3://backups/recording", "into an object store: nothing stays on this machine"),
        ("kgroup record ./recording --metrics 9405", "and serve 127.0.0.1:9405/metrics and /healthz"),
    ),
    has_json=False,
)
def command(
    env: Env,
    out: Annotated[str, argument("DIR|URL", "Folder, or URL, to record into.")],
    group: Annotated[
        list[str] | None, option("--group GLOB", "These groups only; repeatable.  [default: all]")
    ] = None,
    every: Annotated[str, option("--every DURATION", "How often to poll the log.")] = "1s",
    interval: Annotated[str, option("--interval DURATION", "How often to look at the groups.")] = "10s",
    window: Annotated[str, option("--window DURATION", "As for doctor.")] = "1h",
    without: Annotated[str | None, option("--without A,B,…", "As for doctor.")] = None,
    patience: Annotated[str, option("--patience DURATION", "As for doctor.")] = "10s",
    keep: Annotated[str | None, option("--keep DURATION", "Remove what is older.  [default: never]")] = None,
    max_size: Annotated[
        str | None, option("--max-size SIZE", "Remove the oldest beyond this: 500MB, 50GB.")
    ] = None,
    incidents: Annotated[str, option("--incidents SEVERITY", "Least severity: error|warn.")] = "error",
    notify: Annotated[str | None, option("--notify URL", "Post each change of an incident.")] = None,
    notify_secret_file: Annotated[
        Path | None, option("--notify-secret-file FILE", "As for watch: the secret that signs the posts.")
    ] = None,
    notify_format: Annotated[str, option("--notify-format FORMAT", "json|alertmanager|slack.")] = "json",
    metrics: Annotated[
        str | None, option("--metrics [HOST:]PORT", "/metrics and /healthz, on loopback by default.")
    ] = None,
    config: Annotated[Path | None, config_option()] = None,
    metrics_limit: Annotated[
        int, option("--metrics-limit N", "Series of groups and partitions at most.", min=1)
    ] = 10_000,
    upload_every: UploadEvery = "1m",
    storage_option: StorageOption = None,
    stop_after: Annotated[str | None, option(STOP_AFTER, "Stop after this long.  [default: never]")] = None,
) -> ExitCode:
    """Record as a service: __consumer_offsets as capture does, and what only looks at the groups show.

    Stores check-ups, lag, members with their hosts, and ends of logs, wherever they differ from the look
    before; opens, updates and closes incidents. Lives through outages, and names each gap. Read it with
    replay-log, blame, doctor --at and lag --at; all take --files DIR, or the URL. Where __consumer_offsets
    may not be read, it looks only.
    """
    from kgroup.admin.recording.lease import alone
    from kgroup.admin.recording.look import Terms
    from kgroup.admin.recording.recorder import Limits, Recorder
    from kgroup.history.sources.folders import folder_at

    if incidents not in ("error", "warn"):
        raise ConfigError(f"--incidents {incidents!r} is unknown", "error or warn")
    terms = Terms(
        max(1000, duration_ms(interval, "--interval")),
        duration_ms(window, "--window"),
        left_out_of(without),
        parse_duration(patience, "--patience"),
    )
    limits = Limits(
        max(0.05, parse_duration(every, "--every")),
        parse_duration(upload_every, "--upload-every"),
        None if keep is None else duration_ms(keep, "--keep"),
        None if max_size is None else _bytes(max_size),
    )
    folder = folder_at(Location.parse(out), storage_options(env, storage_option))
    stop = threading.Event()
    with ExitStack() as open_:
        ends_s = stop_after_s(stop_after)
        admin = open_.enter_context(open_admin(env, stop_after_s=ends_s))
        open_.enter_context(alone(folder, admin, env.note))
        post = open_.enter_context(_posting(env, folder, notify, notify_secret_file, notify_format))
        recorder = Recorder(
            admin,
            folder,
            _find(group or ()),
            terms,
            limits,
            severity=incidents,
            note=env.note,
            changed=post,
        )
        if metrics is not None:
            open_.callback(_served(env, recorder, metrics, metrics_limit))
        with _stopped_by_signals(stop):
            every_s = f"{terms.interval_ms / 1000:g} s"
            env.note(f"recording into {out}, with a look every {every_s}; Ctrl-C ends it")
            recorder.run(stop, ends_s=admin.retry.clock() + ends_s)
    return ExitCode.OK if stop.is_set() else _seen_at_the_end(env, recorder.state)


def _seen_at_the_end(env: Env, state: "State") -> ExitCode:
    """Report what the last look, and the last poll of the log, could not see; return the exit code."""
    from kgroup.admin.recording.look import ABSENT

    looked = state.looked
    dark = [] if state.unread is None else [item_error(OFFSETS_TOPIC, state.unread)]
    if looked is not None:
        dark += [*looked.unseen, *([looked.failed] if looked.failed else [])]
        dark += [error for error in looked.errors.values() if error.code != ABSENT]
    if state.disk is not None:
        dark.append(ItemError("", "FAILED", state.disk))
    code = of_seen(ExitCode.OK if looked is not None else ExitCode.PARTIAL, dark)
    return show(env, Result({}, errors=dark, exit_code=code))


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"--max-size {text!r} is not a size", "write 500MB, 50GB or a number of bytes")
    return int(match[1]) * _UNITS[match[2]]


def _find(patterns: Sequence[str]) -> "Find":
    """Return what lists the groups to look at: a pattern may match none for now."""
    from kgroup.admin.read.listing import list_groups

    def find(cluster: "ClusterView") -> tuple[list[str], tuple[ItemError, ...]]:
        if patterns and not any(map(is_glob, patterns)):
            return list(patterns), ()
        listing = list_groups(cluster)
        names = [group.group_id for group in listing.groups]
        if patterns:
            names = [name for name in names if any(matches(pattern, name) for pattern in patterns)]
            names += absent(patterns, names)
        return names, listing.errors

    return find


@contextmanager
def _posting(
    env: Env, folder: "Folder", url: str | None, secret_file: Path | None, form: str
) -> "Iterator[Callable[[Incident], None]]":
    """Post changes of incidents, first those that an earlier run could not deliver.

    A file keeps the number of the last one that was settled: the others are posted by the next run.
    """
    from kgroup.admin.recording.bodies import FORMATS
    from kgroup.admin.recording.recorder import changes_after, resumed
    from kgroup.history.sources.folders import read_small

    if form not in FORMATS:
        raise ConfigError(f"--notify-format {form!r} is unknown", "one of " + ", ".join(FORMATS))

    def settled(id_: str) -> None:
        try:
            folder.write(SETTLED, f"{id_.rpartition('-')[2]}\n".encode())
        except StorageError as error:
            env.note(f"warning: {error.message}; {id_} may be posted again")

    endless = PostLimits(tries=sys.maxsize, queue=sys.maxsize)
    hook = webhook_at(env, url, secret_file, limits=endless, settled=settled)
    if hook is None:
        yield lambda incident: None
        return
    stored = read_small(folder, SETTLED)
    if stored is None:
        number = resumed(folder)[0].number
        settled(f"-{number}")
    else:
        number = whole_number(stored.decode("utf-8", "replace").strip(), f"{folder}/{SETTLED}")

    def post(incident: "Incident") -> None:
        name: Document = {"group_id": incident.title, "event": incident.event, "time": iso(incident.at_ms)}
        hook.put(name, id_=f"inc_{incident.id}-{incident.number}", content=FORMATS[form](incident))

    for change in changes_after(folder, number):
        post(change)
    try:
        yield post
    finally:
        hook.close(CLOSING_S)


def _served(env: Env, recorder: "Recorder", address: str, most: int) -> Callable[[], None]:
    """Serve metrics and health; return what ends that."""
    require_extra("metrics", "--metrics", "prometheus_client")
    from kgroup.admin.recording.metrics import Metrics
    from kgroup.scrapes import LOOPBACK

    host, _, port = address.rpartition(":")
    served = Metrics(lambda: recorder.state, most)
    where = served.start(host.strip("[]") or LOOPBACK, whole_number(port, "--metrics"))
    env.note(f"metrics: http://{where}/metrics, health: http://{where}/healthz")
    return served.stop


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the recorder after its current step."""
    before = {n: signal.signal(n, lambda *_: stop.set()) for n in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

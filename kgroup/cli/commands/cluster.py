"""`kgroup cluster`: brokers, topics, users and access rules."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any

from kgroup.admin.models import ChangeStatus, ItemError
from kgroup.cli.commands.cluster_acls import acls
from kgroup.cli.commands.cluster_users import users
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.config import LocalTarget
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.frame.changes import with_undo
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.inputs.group_names import absent
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import of_seen
from kgroup.domain import Document, count_of
from kgroup.errors import ConfigError, ErrorCode, Unreachable
from kgroup.log.directory import owner_of

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView


_TOPIC_COLUMNS = (
    Column("name", "TOPIC"),
    Column("count", "PARTITIONS", right=True),
    Column("replicas", right=True),
    Column("leaderless", right=True),
    Column("topic_id", wide=True),
)


_METRIC_COLUMNS = (Column("mbean"), Column("metric"), Column("value", right=True))


@make(
    "cluster status",
    examples=(
        ("kgroup cluster status --local", "brokers, controller and sizes"),
        ("kgroup cluster status --local ./data -o wide", "with the coordinator's metrics"),
    ),
)
def status(env: Env) -> ExitCode:
    """Show the brokers, the controller and the number of topics and partitions.

    The metrics of the embedded cluster have Kafka's names. While it is served, they come from the process
    that serves it, if it was started with --metrics. Kafka does not show metrics to its clients.
    """
    from kgroup.admin.topics import cluster_status

    with open_admin(env) as admin:
        status = cluster_status(admin)
        where = identity(admin, env)
        metrics, why_none = metrics_of(env, admin)
    controller = "none" if status.controller_id is None else status.controller_id
    line = f"cluster {status.cluster_id}   controller {controller}   "
    if status.topics is None:
        line += f"topics at least {status.topics_seen}   partitions unknown"
    else:
        line += f"topics {status.topics}   partitions {status.partitions}"
    line += f" ({status.leaderless} without leader)" if status.leaderless else ""
    brokers = [asdict(node) for node in status.brokers]
    table = Table((Column("id", "BROKER", right=True), Column("host"), Column("port", right=True)), brokers)
    names = [str(node.id) for node in status.brokers]
    blocks: list[str | Table] = [line, "", table]
    if env.output.format == "wide":
        rows = [in_words(metric) for metric in metrics or ()]
        blocks += ["", Table(_METRIC_COLUMNS, rows) if metrics is not None else f"no metrics: {why_none}"]
    data = {**asdict(status), "metrics": metrics, "metrics_note": why_none}
    del data["errors"]  # they are the envelope's
    result = Result(
        data,
        blocks,
        items="brokers",
        names=names,
        errors=status.errors,
        exit_code=of_seen(ExitCode.OK, status.errors),
        cluster=where,
    )
    return show(env, result)


@make(
    "cluster topics",
    examples=(
        ("kgroup cluster topics -b broker:9092", "every topic but the internal ones"),
        ("kgroup cluster topics 'pay*' -o json", "by name, with leaders and replicas"),
    ),
)
def topics(
    env: Env,
    glob: Annotated[list[str] | None, argument("[GLOB]…", "Only these names.")] = None,
    internal: Annotated[bool, option("--internal", "Include internal topics.")] = False,
) -> ExitCode:
    """List topics with their partitions; exit code 6 if some may be hidden."""
    from kgroup.admin.topics import list_topics

    with open_admin(env) as admin:
        seen, unseen = list_topics(admin)
        shown = [
            topic
            for topic in seen
            if (internal or not topic.internal)
            and (not glob or any(fnmatchcase(topic.name, pattern) for pattern in glob))
        ]
        where = identity(admin, env)
    there = {topic.name for topic in seen}
    errors = [
        ItemError(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name, f"there is no topic {name}")
        for name in ([] if unseen else absent(glob or (), there))
    ]
    rows = [
        {
            **asdict(topic),
            "count": len(topic.partitions),
            "replicas": max((len(p.replicas) for p in topic.partitions), default=0),
            "leaderless": sum(p.leader < 0 for p in topic.partitions),
        }
        for topic in shown
    ]
    data = {"topics": [asdict(topic) for topic in shown]}
    table = Table(_TOPIC_COLUMNS, rows)
    result = Result(
        data,
        (table,),
        items="topics",
        names=[topic.name for topic in shown],
        errors=[*unseen, *errors],
        exit_code=of_batch([ExitCode.NOT_FOUND] * len(errors), bool(shown)) or of_seen(ExitCode.OK, unseen),
        cluster=where,
    )
    return show(env, result)


@make(
    "cluster create-topic",
    examples=(("kgroup cluster create-topic orders --partitions 6 --local", "in the embedded cluster"),),
)
def create_topic(
    env: Env,
    name: Annotated[str, argument("", "The topic.")],
    partitions: Annotated[int | None, option("--partitions N", "[default: the broker's]", min=1)] = None,
    replication_factor: Annotated[
        int | None, option("--replication-factor N", "[default: the broker's]", min=1)
    ] = None,
    config: Annotated[list[str] | None, option("--config KEY=VALUE", "A topic setting; repeatable.")] = None,
) -> ExitCode:
    """Create a topic."""
    from kgroup.admin.topics import create_topic as create

    settings = dict(text.partition("=")[::2] for text in config or ())
    if "" in settings:
        raise ConfigError("--config takes KEY=VALUE", "for example --config retention.ms=3600000")
    with open_admin(env, makes=True) as admin:
        asked = {"partitions": partitions, "replication_factor": replication_factor, "configs": settings}
        made = {"topic": name}
        with admin.change("cluster create-topic", {**made, **asked}, {}, [made]) as entry:
            topic = create(admin, name, partitions or -1, replication_factor or -1, settings)
            entry.results.append({**made, "result": ChangeStatus.DONE})
        where = identity(admin, env)
    text = f"{topic.name} created with {count_of(len(topic.partitions), 'partition')}   journal {entry.id}"
    undo = "undo: none; kgroup deletes no topics"
    data = {"topic": asdict(topic), "journal_id": entry.id}
    return show(env, with_undo(Result(data, (text,), names=[topic.name], cluster=where), undo))


command = subcommands(
    "cluster", "Brokers, topics, users and access rules.", status, topics, create_topic, users, acls
)


REMOTE = "Kafka exposes its metrics over JMX only, not to its clients"
NO_ENDPOINT = "the cluster is served without --metrics"


def metrics_of(env: Env, admin: "ClusterView") -> tuple[list[Document] | None, str | None]:
    """Return Kafka's names and the numbers, or None and why there are none.

    Raise KgroupError when the process that serves the cluster announced an endpoint that does not answer.
    """
    target = env.target()
    if not isinstance(target, LocalTarget):
        return None, REMOTE
    from kgroup.broker.embedded import EmbeddedTransport

    transport = admin.transport
    if isinstance(transport, EmbeddedTransport):
        from kgroup.broker.metrics import snapshot

        return [asdict(metric) for metric in snapshot(transport.cluster)], None

    owner = owner_of(target.directory)
    if owner is None or not owner.metrics:
        return None, NO_ENDPOINT
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(owner.metrics, timeout=env.settings().timeout_s())
    try:
        connection.request("GET", "/metrics.json")
        metrics: list[Document] = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError) as error:
        raise Unreachable(f"the metrics at {owner.metrics} cannot be read: {error}") from None
    finally:
        connection.close()
    return metrics, None


def in_words(metric: Mapping[str, Any]) -> Document:
    """Return a metric as a row of the table: its name followed by its tags."""
    tags = ",".join(f"{key}={value}" for key, value in metric["tags"].items())
    return {**metric, "metric": metric["name"] + (f"{{{tags}}}" if tags else "")}

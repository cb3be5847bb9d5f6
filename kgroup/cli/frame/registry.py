"""The commands by name, so that `kgroup --help` needs to import none of them."""

from kgroup.domain import value

READ = "READ"
CHANGE = "CHANGE"
MIGRATE = "MIGRATE"
INSPECT = "INSPECT"
LOCAL = "LOCAL"
PANELS = (READ, CHANGE, MIGRATE, INSPECT, LOCAL)
KINDS = frozenset({"group", "groups", "consumer-group", "consumer-groups", "consumergroup", "cg"})
"""What kafkactl and kubectl say before a group's name."""
OFFSETS = frozenset({"offset", "consumer-group-offset", "consumer-group-offsets", "cgo"})
"""What kafkactl calls the committed offsets of a group."""


@value
class CommandEntry:
    """A top-level command: its module is `kgroup.cli.commands.<name>`, dashes as underscores."""

    name: str
    panel: str
    help: str

    @property
    def module(self) -> str:
        return "kgroup.cli.commands." + self.name.replace("-", "_")


COMMANDS: dict[str, CommandEntry] = {
    entry.name: entry
    for entry in (
        CommandEntry("list", READ, "List the groups of the cluster, of every protocol."),
        CommandEntry("describe", READ, "Describe groups: state, members, offsets, lag and findings."),
        CommandEntry("lag", READ, "Show how far groups are behind, in records and in time."),
        CommandEntry("watch", READ, "Watch groups as they change."),
        CommandEntry("wait", READ, "Wait until groups are stable, empty or without lag."),
        CommandEntry("doctor", READ, "Say what is wrong with groups, with the evidence."),
        CommandEntry("coordinator", READ, "Show which broker and offsets partition hold a group."),
        CommandEntry(
            "explain", READ, "Say what an error code, a state or a log line means and what to do next."
        ),
        CommandEntry("remove-members", CHANGE, "Remove members by instance id, member id or host."),
        CommandEntry("reset-offsets", CHANGE, "Move committed offsets, with a plan and an undo."),
        CommandEntry("offsets", CHANGE, "Export, import, delete and clone committed offsets."),
        CommandEntry("delete", CHANGE, "Delete empty groups, after exporting their committed offsets."),
        CommandEntry("journal", CHANGE, "List and show the changes kgroup made."),
        CommandEntry("regex", MIGRATE, "Check topic patterns as brokers read them."),
        CommandEntry("upgrade", MIGRATE, "Move groups to the consumer protocol: plan, execute, watch, run."),
        CommandEntry(
            "downgrade", MIGRATE, "Move a group back to the classic protocol: plan, execute, watch."
        ),
        CommandEntry("demo", LOCAL, "A tour on an embedded cluster with real consumers."),
        CommandEntry("replay-log", INSPECT, "Show what happened to groups, from __consumer_offsets."),
        CommandEntry("blame", INSPECT, "Say what caused a group's last rebalance, rewind or deletion."),
        CommandEntry(
            "offsets-topic", INSPECT, "Show statistics of __consumer_offsets, and decode its records."
        ),
        CommandEntry("capture", INSPECT, "Record __consumer_offsets before compaction takes its history."),
        CommandEntry(
            "record", INSPECT, "Record groups as a service: history, check-ups, incidents, metrics."
        ),
        CommandEntry("mcp", INSPECT, "Serve read-only tools to an agent (MCP, on stdin and stdout)."),
        CommandEntry("simulate", LOCAL, "Say what a scenario costs a group, in virtual time."),
        CommandEntry(
            "pipeline", INSPECT, "Turn the history of every group into tables, and query them, with Spark."
        ),
        CommandEntry("serve", LOCAL, "Serve the embedded cluster on TCP."),
        CommandEntry("cluster", LOCAL, "Brokers, topics, users and access rules."),
        CommandEntry(
            "member", LOCAL, "Run a synthetic group member; register the members a group waits for."
        ),
        CommandEntry("config", LOCAL, "Show kgroup's settings; get and set those of a group."),
        CommandEntry("context", LOCAL, "List, show or switch the named clusters."),
        CommandEntry("options", LOCAL, "Show the options that every command has."),
        CommandEntry("commands", LOCAL, "List the commands; in JSON with all their options."),
        CommandEntry("docs", LOCAL, "Print a page of the documentation."),
        CommandEntry("completion", LOCAL, "Print the completion script for a shell."),
        CommandEntry("schema", LOCAL, "Print the JSON Schema of a command's output."),
    )
}

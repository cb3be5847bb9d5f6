"""Words for groups and members."""

from dataclasses import replace

import pytest

from kgroup.admin.models import (
    Described,
    Finding,
    GlobalStore,
    GroupDescription,
    Member,
    OffsetRow,
    StreamsProcess,
    StreamsTopology,
    SubtopologyNodes,
    SubtopologyTasks,
    SubtopologyTopics,
    Tasks,
    TopicAssignment,
    TopologyDescription,
    TopologyNode,
)
from kgroup.cli.output.tables import (
    Column,
    Painted,
    Table,
    cell_text,
    folded_lines,
    plain_lines,
    stacked_lines,
    too_narrow,
    wrapped,
)
from kgroup.cli.output.wording import UNKNOWN, assignment_text, of_code_name, short_member_id
from kgroup.cli.views.description import Pick, blocks, member_columns, member_rows
from kgroup.domain import ranges


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([5, 0, 1, 3], "0-1,3,5"), ([1, 2], "1-2")],
)
def test_ranges(numbers, text):
    assert ranges(numbers) == text


@pytest.mark.parametrize(
    ("member_id", "short"),
    [
        ("orders-1-70c8a1b2-0000-4000-8000-000000000000", "orders-1-70c8…"),
        ("70c8a1b2-0000-4000-8000-000000000000", "70c8…"),
        ("qJWqZhGeQrmDoSRm2Pu5yg", "qJWqZhGe"),
        ("CbWALjYsQXKa+DS2phJHXw", "CbWALjYs"),
        ("by-hand", "by-hand"),
    ],
)
def test_short_member_ids(member_id, short):
    assert short_member_id(member_id) == short


def test_numbers_and_codes():
    assert [int(of_code_name(n)) for n in ("UNREACHABLE", "NON_EMPTY_GROUP", "NO_SUCH_CODE")] == [7, 4, 1]


def test_cells():
    assert [cell_text(v) for v in (None, "", (), True, False, 0, ["a", "b"], "a\tb")] == [
        *("-", "-", "-", "yes", "no", "0", "a,b", "a\\tb"),
    ]


@pytest.mark.parametrize(
    ("member_id", "instance_id", "short"),
    [
        ("orders-1-70c8a1b2-0000-4000-8000-000000000000", "orders-1", "70c8…"),
        ("orders-10-70c8a1b2-0000-4000-8000-000000000000", "orders-1", "orders-10-70c8…"),
        ("orders-1", "orders-1", "orders-1"),
    ],
)
def test_a_member_id_does_not_repeat_the_instance_id(member_id, instance_id, short):
    assert short_member_id(member_id, instance_id) == short


NAMES = Table(
    (Column("name"), Column("current"), Column("state", style={"stable": "green"})),
    [{"name": "shop.payments-settlement.worker-0", "current": "orders:0-9 pay:0-9", "state": "stable"}],
)


@pytest.mark.parametrize("width", range(34, 70))
def test_names_fold_at_dots_and_dashes_within_the_width(width):
    lines = list(folded_lines(NAMES, NAMES.columns, True, width, paint=False))
    assert max(map(len, lines)) <= width
    (name,) = NAMES.columns[:1]
    *folded, last = folded_lines(NAMES, (name,), False, width - 22, paint=False)
    assert "".join([*folded, last]) == NAMES.rows[0]["name"]
    assert all(line[-1] in ".-" for line in folded)


def test_without_colour_nothing_is_painted():
    lines = list(folded_lines(NAMES, NAMES.columns, True, 40, paint=False))
    assert "\x1b" not in "".join(lines)
    assert "\x1b[32m" in "".join(folded_lines(NAMES, NAMES.columns, True, 40, paint=True))


@pytest.mark.parametrize("members", [50, 200])
def test_a_large_group_takes_a_line_per_member(members):
    """At 120 columns, with names as long as pods have them and several topics each."""
    assigned = tuple(TopicAssignment(f"shop.payments.settled-v{n}", (0, 1, 2)) for n in range(4))
    name = "payments-settlement-worker"
    known = [
        member(
            member_id=f"{name}-{n}-70c8a1b2-0000-4000-8000-{n:012}",
            instance_id=f"{name}-{n}",
            assignment=assigned,
        )
        for n in range(members)
    ]
    shown = blocks(group(*known), ("members",), "instance", short=True)
    (table,) = (block for block in shown if isinstance(block, Table))
    columns = table.chosen(None, wide=False)
    lines = list(folded_lines(table, columns, True, 120, paint=True))
    assert len(lines) == members + 1


def test_the_sick_member_comes_first_and_the_largest_lag_when_asked():
    rows = [
        {"state": s, "lag": lag} for s, lag in (("stable", 1), ("stable", 9), ("left", 0), ("stable", "?"))
    ]
    assert [row["lag"] for row in Pick("lag")(rows)] == ["?", 9, 1, 0]
    assert [row["lag"] for row in Pick(top=3)(rows)] == [0, "?", 9]
    assert Pick()(rows) == rows
    told = group(member(member_id="a"), member(member_id="b", state="waiting"))
    assert [row["state"] for row in member_rows(told, "instance", short=False)] == ["waiting", "stable"]


def test_columns_line_up_and_nothing_trails():
    table = Table(
        (Column("a"), Column("n", right=True), Column("z")),
        [{"a": "x", "n": 5}, {"a": "long", "n": 10, "z": "e"}],
    )
    assert list(plain_lines(table, table.columns, headers=True)) == [
        "A      N  Z",
        "x      5  -",
        "long  10  e",
    ]


def member(**changes):
    values = {
        "member_id": "m",
        "instance_id": None,
        "client_id": "c",
        "host": "10.0.0.1",
        "rack_id": None,
        "protocol": "consumer",
        "member_epoch": 6,
        "state": "stable",
        "subscribed_topics": ("orders",),
        "subscribed_regex": None,
        "assignment": (TopicAssignment("orders", (0, 1)), TopicAssignment("pay", (0, 1, 2))),
        "target_assignment": None,
    }
    return Member(**{**values, **changes})


def group(*members):
    return GroupDescription(
        *("pay-svc", "consumer", "consumer", "Reconciling", "uniform", None, 7, 7, None, 3),
        *(members, (), 12480),
    )


def test_a_revoking_member_shows_what_it_gives_up():
    target = (TopicAssignment("orders", (1,)), TopicAssignment("pay", (0, 1, 2)))
    (row,) = member_rows(group(member(state="revoking", target_assignment=target)), "instance", short=False)
    assert (row["state"], row["assignment"], row["target_assignment"]) == (
        "revoking orders:0",
        "orders:0-1 pay:0-2",
        "orders:1 pay:0-2",
    )


def test_target_is_told_apart_from_unknown():
    same = member()
    rows = member_rows(
        group(
            same,
            member(member_id="n", target_assignment=same.assignment),
            member(member_id="o", target_assignment=()),
        ),
        "member",
        short=False,
    )
    assert [row["target_assignment"] for row in rows] == [None, "=", "-"]
    assert assignment_text(()) == "-"


def test_dynamic_members_come_last():
    rows = member_rows(
        group(member(member_id="a"), member(member_id="z", instance_id="i")), "instance", short=False
    )
    assert [row["instance_id"] for row in rows] == ["i", None]


def test_headline():
    headline, totals = blocks(group(member()), ("summary",), "instance", short=False)
    assert headline.startswith("pay-svc   consumer (KIP-848)   Reconciling   assignor uniform   ")
    assert headline.endswith("   epoch 7 (assignment 7)   __consumer_offsets-3")
    assert totals == "members 1 · partitions 0 · lag 12480"


ROW = {"name": "orders", "what": "three short words", "long": "x:0-9 " * 20, "none": None}
WIDE = Table(tuple(Column(name) for name in ("name", "what", "long", "none")), [ROW, ROW])


@pytest.mark.parametrize("width", [20, 40, 60, 100])
def test_a_row_that_does_not_fit_becomes_a_block(width):
    lines = list(stacked_lines(WIDE, WIDE.columns, width))
    assert max(map(len, lines)) <= width
    assert " ".join("".join(lines).split()).count("x:0-9") == 40
    assert not any("NONE" in line for line in lines)


def test_when_a_table_is_folded_and_when_it_is_stacked():
    told = {width: too_narrow(WIDE, WIDE.columns, True, width) for width in (30, 40, 60)}
    assert told == {30: True, 40: False, 60: False}


@pytest.mark.parametrize("line", ["word " * 40, "y" * 200, "  indented " + "z" * 90, "", "short"])
def test_lines_are_broken_and_nothing_is_lost(line):
    pieces = list(wrapped(line, 40, 6))
    assert max(map(len, pieces)) <= 40
    assert "".join("".join(pieces).split()) == "".join(line.split())
    assert all(piece.startswith("      ") for piece in pieces[1:])


def test_what_is_not_known_is_not_shown_as_nothing():
    connect = member(assignment=None, raw_assignment="A" * 416, subscribed_topics=None)
    silent = member(member_id="n", assignment=None, instance_id_known=False, protocol="classic")
    raw, hidden = member_rows(group(connect, silent), "instance", short=False)
    assert (raw["partitions"], raw["assignment"]) == ("?", "unknown (312 bytes)")
    assert (hidden["partitions"], hidden["assignment"], hidden["instance_id"]) == ("?", "unknown", "?")
    unknown = replace(group(), members=None)
    assert "members unknown" in "\n".join(
        map(str, blocks(unknown, ("summary", "members"), "instance", False))
    )
    assert "does not report which are static" in "\n".join(
        map(str, blocks(group(silent), ("summary",), "instance", False))
    )


def test_a_members_lag_is_unknown_when_that_of_a_partition_is():
    rows = tuple(
        OffsetRow("orders", n, at, 9, None if at is None else 9 - at, None, None, "m", None)
        for n, at in enumerate((4, None))
    )
    (row,) = member_rows(replace(group(member()), offsets=rows), "instance", short=False)
    assert row["lag"] == UNKNOWN


def test_tasks_of_streams_members():
    tasks = Tasks((SubtopologyTasks("0", (0, 1)),), (SubtopologyTasks("1", (2,)),), ())
    streams = replace(group(member(tasks=tasks, target_tasks=tasks)), type="streams")
    (row,) = member_rows(streams, "instance", short=False)
    assert (row["tasks"], row["target_tasks"]) == ("active 0:0-1, standby 1:2", "=")
    assert "tasks" in {c.key for c in member_columns((streams,))} - {
        c.key for c in member_columns((group(),))
    }


def test_streams_members_by_process_and_what_they_run():
    def thread(name, process):
        return member(member_id=name, process=StreamsProcess(process, 3, "10.0.0.2:8080", ()))

    parts = (
        SubtopologyTopics("0", ("words",), (), ()),
        SubtopologyTopics("1", (), ("app-again",), ("app-counts-changelog",)),
    )
    streams = replace(
        group(thread("a", "host-2"), thread("b", "host-1"), thread("c", "host-2")),
        type="streams",
        topology=StreamsTopology(3, parts, None, Described.UNKNOWN),
    )
    members, said, topology, described = [
        block for block in blocks(streams, ("members",), "instance", False) if block
    ]
    assert [(row["process"], row["member_id"]) for row in members.rows] == [
        ("host-1", "b"),
        ("host-2", "a"),
        ("host-2", "c"),
    ]
    assert {row["endpoint"] for row in members.rows} == {"10.0.0.2:8080"}
    assert said == "topology of epoch 3"
    assert [row["changelog_topics"] for row in topology.rows] == [(), ("app-counts-changelog",)]
    assert described == "the application's own description of it: unknown"
    unknown = replace(streams, assignor=None)
    assert "assignor unknown" in next(blocks(unknown, ("summary",), "instance", False))
    assert "assignor unknown" not in next(
        blocks(replace(unknown, type="classic"), ("summary",), "instance", False)
    )


def test_what_an_application_says_of_its_topology():
    def node(name, kind, **fields):
        empty = {"source_topics": (), "sink_topic": None, "stores": (), "successors": ()}
        return TopologyNode(name, kind, **(empty | fields))

    told = TopologyDescription(
        (SubtopologyNodes("0", (node("count", "processor", stores=("counts",), successors=("out",)),)),),
        (
            GlobalStore(
                node("all", "source", source_topics=("rates",)), node("fill", "processor", stores=("rates",))
            ),
        ),
    )
    topology = StreamsTopology(3, (), told, Described.AVAILABLE)
    streams = replace(group(member()), type="streams", topology=topology)
    *_, said, nodes = [block for block in blocks(streams, ("members",), "instance", False) if block]
    assert said == "the application's own description of it: as below"
    assert [(r["subtopology_id"], r["name"], r["type"], r["topics"], r["stores"]) for r in nodes.rows] == [
        ("0", "count", "processor", (), ("counts",)),
        ("global", "all", "source", ("rates",), ()),
        ("global", "fill", "processor", (), ("rates",)),
    ]


TOPICS = [f"shop.payments.settlement.reconciliation.events.enriched.by-country.v{n}" for n in (1, 2)]
LAGS = Table(
    (Column("topic"), Column("partition", right=True), Column("lag", right=True), Column("member_id")),
    [{"topic": name, "partition": 12, "lag": 345678, "member_id": "billing-7f9c"} for name in TOPICS],
)


@pytest.mark.parametrize("width", [60, 80])
def test_a_long_topic_is_cut_in_its_middle_and_its_numbers_stay(width):
    """It was folded over three lines, and the numbers stood beside its first part."""
    lines = list(folded_lines(LAGS, LAGS.columns, True, width, paint=False))
    assert len(lines) == 3 and max(map(len, lines)) <= width
    assert all(line.startswith("shop.pay") and "12  345678  billing-7f9c" in line for line in lines[1:])
    assert lines[1] != lines[2], "a cut that makes two topics one is none"


def test_topics_that_a_cut_would_make_one_are_folded():
    alike = ["a" * 40 + middle + "z" * 40 for middle in "xy"]
    table = Table(LAGS.columns, [{**LAGS.rows[0], "topic": name} for name in alike])
    text = "".join(folded_lines(table, table.columns, True, 60, paint=False))
    assert "…" not in text and "x" in text and "y" in text


def test_top_bounds_findings_the_worst_first_and_counts_the_rest():
    found = tuple(Finding(f"KG10{n}", "error" if n == 3 else "info", f"number {n}") for n in range(5))
    told = replace(group(member()), findings=found)
    shown = list(blocks(told, ("findings",), "instance", short=False, pick=Pick(top=2)))
    worst = Painted("!! KG103 number 3", "red")
    assert shown == ["", worst, "· KG100 number 0", "and 3 more findings"]
    assert len(list(blocks(told, ("findings",), "instance", short=False))) == 6

"""Pictures of a group: what they show is right, with a cluster and without."""

import re
import sys

import pytest

pytest.importorskip("pyspark")

from kgroup.domain import TopicPartition
from kgroup.errors import ConfigError
from kgroup.history.replay import replay
from kgroup.history.sources.logs import segment_logs
from kgroup.pipeline.ask import picture
from kgroup.pipeline.ask.plot import page
from kgroup.pipeline.ask.timeline import Ends, Span, span_seconds, timeline
from kgroup.runtime.cluster import Cluster
from tests.cli.live import Client, served

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
P0, P1, GONE = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)
SPANS = [Span(60_000, P0, 3, 10), Span(0, P0, 2, 4), Span(120_000, P1, 1, 95), Span(0, GONE, 1, 7)]


@pytest.fixture(scope="module")
def events(made):
    return replay(segment_logs([made])).events


def test_how_far_behind():
    """Summed over the partitions committed so far; a partition whose log is gone does not count."""
    shown = timeline("g", [], SPANS, 60, Ends(200_000, {P0: 12, P1: 100}))
    assert shown.rates == [(0, 3), (60_000, 3), (120_000, 1)]
    assert shown.behind == [(0, 8), (60_000, 2), (120_000, 7)]
    assert shown.bounds == (0, 200_000)
    without = timeline("g", [], SPANS, 60)
    assert without.behind == [] and "name the cluster with -b" in without.distance_text


def test_the_caption_says_that_distance_is_not_lag():
    """Tables that are a quarter of an hour old show a distance of 4,700 where the lag is 1 to 3."""
    ends = Ends(1_000_000, {P0: 4_710})
    old = timeline("g", [], SPANS, 60, ends, read_ms=100_000).distance_text
    assert old == (
        "upper bound of the lag: records from each commit to the end of its log at 1970-01-01 00:16:40 UTC; "
        "the tables know no commit of the last 15m 00s before it"
    )
    assert timeline("g", [], SPANS, 60, ends, read_ms=1_000_000).distance_text == old.partition(";")[0]


def test_spans_stay_few(events):
    assert span_seconds([]) == span_seconds(events[:1]) == 60
    longest = max(e.end_timestamp_ms for e in events) - min(e.timestamp_ms for e in events)
    assert longest / 1000 / span_seconds(events) <= 1001


def test_the_page(events):
    group = next(e.group for e in events if e.kind == "rebalance-completed")
    made = page(timeline(group, events, SPANS, 60, Ends(200_000, {P0: 12}), "complete & whole"))
    assert made.count("<rect") >= 1 and made.count("<path") == 2 and "complete &amp; whole" in made
    hostile = page(timeline("<script>", events, [], 60))
    assert "<script" not in hostile and "the ends of the logs are not" in hostile


def test_the_picture(events, tmp_path):
    pytest.importorskip("matplotlib")
    group = next(e.group for e in events if e.kind == "rebalance-completed")
    for number, ends in enumerate((None, Ends(1_760_009_000_000, {P0: 12}))):
        shown = timeline(f"{group} $x$", events, SPANS, 60, ends, "complete")
        picture.write_png(shown, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
    picture.write_png(timeline("nothing", [], [], 60), tmp_path / "empty.png")


def test_without_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match="a PNG .* needs matplotlib") as refused:
        picture.write_png(timeline("g", [], [], 60), tmp_path / "x.png")
    # By its packages, or of the checkout that kgroup runs from.
    assert re.search(r"install the extra plot: .*(matplotlib>=3\.10|\[plot\])", str(refused.value.hint))


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_the_command_samples_the_ends_of_logs(tmp_path, kgroup):
    with served(Cluster(offsets_partitions=2)) as bootstrap:
        client = Client(bootstrap)
        client.create_topic("orders", 2)
        client.commit("g", "orders", {0: 0, 1: 0})
        client.close()
        local = ["--master", "local[1]"]
        tables, out = str(tmp_path / "tables"), tmp_path / "g.html"
        assert kgroup("pipeline", "run", "--out", tables, "-b", bootstrap, *local).code == 0
        for more, said in (([], "name the cluster"), (["-b", bootstrap], "upper bound of the lag")):
            done = kgroup("pipeline", "plot", "g", tables, "--out", str(out), *more)
            assert (done.code, done.err) == (0, f"wrote {out}\n")
            assert said in out.read_text()

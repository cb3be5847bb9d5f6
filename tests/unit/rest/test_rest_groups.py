"""Groups by REST: documents as from brokers, what is not told as unknown, and failures in their place."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import jsonschema
import pytest
import respx

from kgroup.cli.env.known_settings import shown
from kgroup.cli.schemas import schema_for
from kgroup.errors import ConfigError
from kgroup.rest.api import Login, place_of
from tests.own_home import move_in
from tests.ran import Ran, ran
from tests.unit.rest.rest_world import BASE, CLUSTER, Group, RestWorld

OK, FAILED, USAGE, NOT_FOUND, REFUSED, PARTIAL, RIGHTS, LATE, BAD = range(9)
URL = "https://rest.example.net:8082"
Ask = Callable[..., Ran]


@pytest.fixture
def world() -> RestWorld:
    """live reads orders 0 and 1, one by a static member; idle has an offset and no member."""
    return RestWorld(
        {
            "live": Group(
                {"i-0": ["orders:0"], "m-1": ["orders:1"]}, {"orders:0": (7, 10), "orders:1": (4, 4)}
            ),
            "idle": Group({}, {"orders:0": (1, 10)}, "EMPTY"),
        }
    )


@pytest.fixture
def ask(
    world: RestWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Ask]:
    move_in(monkeypatch, tmp_path)
    monkeypatch.setattr("kgroup.client.retry.time.sleep", lambda seconds: None)

    def call(command: str, *argv: str, rest: str = URL) -> Ran:
        done = ran(capsys, command, *argv, "--rest", rest)
        if done.code != USAGE and "json" in argv:
            jsonschema.validate(done.document, schema_for(command))
        return done

    with respx.mock(assert_all_called=False) as router:
        world.route(router)
        yield call


def test_list_says_that_there_may_be_more(ask: Ask) -> None:
    """The proxy leaves groups out that it may not describe, and says nothing of it."""
    done = ask("list", "-o", "json")
    rows = [
        (g["group_id"], g["type"], g["state"], g["members"], g["coordinator"]) for g in done.data["groups"]
    ]
    node = {"id": 1, "host": "b1", "port": 9092}
    assert rows == [("idle", "classic", "Empty", 0, node), ("live", "classic", "Stable", 2, node)]
    assert done.code == PARTIAL and "whether these are all is unknown" in done.err
    assert done.document["cluster"] == {"id": CLUSTER, "bootstrap": None, "rest": BASE}


def test_list_by_state_keeps_groups_whose_state_is_not_told(ask: Ask, world: RestWorld) -> None:
    world.groups["odd"] = Group({}, {}, "UNKNOWN", None)
    done = ask("list", "--state", "Empty", "-o", "json")
    told = [(g["group_id"], g["state"], g["type"]) for g in done.data["groups"]]
    assert told == [("idle", "Empty", "classic"), ("odd", None, None)]
    assert [g["group_id"] for g in ask("list", "l*", "--no-members", "-o", "json").data["groups"]] == ["live"]


def test_describe_has_what_rest_tells_and_null_for_the_rest(ask: Ask) -> None:
    done = ask("describe", "live", "-o", "json")
    assert done.code == OK, done.err
    (group,) = done.data["groups"]
    assert (group["type"], group["state"], group["assignor"]) == ("classic", "Stable", "range")
    assert (group["total_lag"], group["unknown_partitions"], group["errors"]) == (3, 0, [])
    unknown = ("generation", "group_epoch", "assignment_epoch", "offsets_partition")
    assert {name: group[name] for name in unknown} == dict.fromkeys(unknown)
    first, second = group["members"]
    assert (first["member_id"], first["instance_id"], first["client_id"]) == ("i-0", "i-0", "client-i-0")
    assert (second["instance_id"], second["instance_id_known"]) == (None, True)
    for name in ("host", "member_epoch", "subscribed_topics", "target_assignment"):
        assert first[name] is None
    assert first["assignment"] == [{"topic": "orders", "partitions": [0]}]
    assert [(r["partition"], r["lag"], r["member_id"]) for r in group["offsets"]] == [
        (0, 3, "i-0"),
        (1, 0, "m-1"),
    ]


def test_tables_show_what_is_not_told_as_unknown(ask: Ask) -> None:
    header, row, *_ = ask(
        "describe", "live", "-o", "csv", "--columns", "member_id,host,subscribed"
    ).out.splitlines()
    assert (header, row) == ("member_id,host,subscribed", "i-0,?,?")


def test_an_owned_partition_without_a_lag_is_unknown_and_no_zero(ask: Ask, world: RestWorld) -> None:
    del world.groups["live"].offsets["orders:1"]
    done = ask("lag", "live", "-o", "json")
    (group,) = done.data["groups"]
    assert (group["total_lag"], group["lag_at_least"], group["unknown_partitions"]) == (None, 3, 1)
    row = group["offsets"][1]
    assert (row["committed_offset"], row["log_end_offset"], row["lag"]) == (None, None, None)
    assert "not reported" in row["reason"]
    rows = ask("lag", "live", "-o", "csv", "--columns", "partition,committed_offset,lag").out.splitlines()
    assert rows[2] == "1,?,?"


def test_a_group_that_committed_nothing_has_no_lag_of_zero(ask: Ask, world: RestWorld) -> None:
    """REST says 404 of its lags, as it does of a group that is not there."""
    world.groups["live"].offsets.clear()
    (group,) = ask("lag", "live", "-o", "json").data["groups"]
    assert (group["total_lag"], group["lag_at_least"], group["unknown_partitions"]) == (None, None, 2)


def test_the_total_of_a_group_without_members_may_lack_hidden_topics(ask: Ask) -> None:
    done = ask("lag", "idle", "-o", "json")
    (group,) = done.data["groups"]
    assert (done.code, group["total_lag"], group["lag_at_least"]) == (PARTIAL, None, 9)
    assert "does not report whether there are any" in done.err


@pytest.mark.parametrize(("limit", "code"), [("2", BAD), ("3", OK)])
def test_fail_above(ask: Ask, limit: str, code: int) -> None:
    assert ask("lag", "live", "--fail-above", limit).code == code


def test_while_it_rebalances_nobody_tells_who_owns_what(ask: Ask, world: RestWorld) -> None:
    world.groups["live"].state = "PREPARING_REBALANCE"
    (group,) = ask("describe", "live", "-o", "json").data["groups"]
    assert group["state"] == "PreparingRebalance"
    assert [member["assignment"] for member in group["members"]] == [None, None]
    assert (group["total_lag"], group["lag_at_least"]) == (None, 3)


def test_a_server_of_an_older_release_tells_no_type(ask: Ask, world: RestWorld) -> None:
    world.groups["live"].type = None
    (group,) = ask("describe", "live", "-o", "json").data["groups"]
    assert (group["type"], group["members"][0]["protocol"]) == ("unknown", "unknown")


def test_a_coordinator_whose_address_is_not_told_is_unknown(ask: Ask, world: RestWorld) -> None:
    world.brokers.clear()
    assert {g["coordinator"] for g in ask("list", "-o", "json").data["groups"]} == {None}


def test_pages_are_followed_at_the_address_that_was_given(ask: Ask, world: RestWorld) -> None:
    """A proxy knows itself by another name, and the login must not go there."""
    world.page, world.known_as = 1, "http://internal:1234/v3"
    assert len(ask("list", "--no-members", "-o", "json").data["groups"]) == 2
    assert {request.url.host for request in world.asked} == {"rest.example.net"}


def test_a_list_that_never_ends_is_not_followed_for_ever(ask: Ask, world: RestWorld) -> None:
    page = {"kind": "", "metadata": {"self": "", "next": f"{BASE}/clusters"}, "data": []}
    world.faults["clusters"] = [httpx.Response(200, json=page)] * 9
    done = ask("list")
    assert done.code == FAILED and "next page" in done.err


def test_an_answer_larger_than_any_page_is_not_read_to_its_end(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kgroup.rest.api.LARGEST_PAGE", 100)
    done = ask("describe", "live")
    assert (done.code, "longer than 100 bytes" in done.err) == (FAILED, True), done.err


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (httpx.Response(401, json={"error_code": 40101, "message": "no"}), RIGHTS, "401 (40101): no"),
        (httpx.Response(403, json={"error_code": 40301, "message": "no"}), RIGHTS, "403 (40301): no"),
        (httpx.Response(200, text="<html>"), FAILED, "did not answer with JSON"),
        (httpx.Response(200, json={"data": []}), FAILED, "not a collection of the REST API v3"),
        (httpx.Response(302, headers={"location": "https://elsewhere/"}), FAILED, "answered 302"),
        (httpx.Response(503, json={"error_code": 50301, "message": "later"}), LATE, "503 (50301): later"),
        (httpx.Response(429), LATE, "answered 429"),
        (httpx.ConnectError("refused"), LATE, "cannot be reached: refused"),
        (httpx.ReadTimeout("late"), LATE, "did not answer: late"),
    ],
)
def test_failures_have_one_sentence_and_their_code(
    ask: Ask, world: RestWorld, fault: httpx.Response | Exception, code: int, said: str
) -> None:
    world.faults["*"] = [fault] * 10_000
    done = ask("describe", "live", "--timeout", "100ms")
    assert done.code == code, done.err
    assert said in done.err and "Traceback" not in done.err


@pytest.mark.parametrize("fault", [httpx.Response(503), httpx.Response(429), httpx.ReadTimeout("late")])
def test_what_passes_is_asked_again(ask: Ask, world: RestWorld, fault: httpx.Response | Exception) -> None:
    world.faults["clusters"] = [fault, fault]
    assert ask("describe", "live").code == OK


def test_a_part_that_is_refused_is_missing_and_said(ask: Ask, world: RestWorld) -> None:
    path = f"clusters/{CLUSTER}/consumer-groups/live/consumers"
    world.faults[path] = [httpx.Response(403, json={"error_code": 40301, "message": "no"})]
    done = ask("describe", "live", "-o", "json")
    (group,) = done.data["groups"]
    assert (group["members"], group["total_lag"], done.code) == (None, None, PARTIAL)
    assert "consumers answered 403" in done.err


@pytest.mark.parametrize("value", [None, "7", 1.5, True])
def test_a_number_that_is_none_is_no_number(ask: Ask, world: RestWorld, value: object) -> None:
    page = {
        "metadata": {"self": ""},
        "data": [{"topic_name": "t", "partition_id": 0, "current_offset": value}],
    }
    world.faults[f"clusters/{CLUSTER}/consumer-groups/live/lags"] = [httpx.Response(200, json=page)]
    done = ask("lag", "live")
    assert done.code == FAILED and "current_offset is not an integer" in done.err


def test_a_group_that_is_not_there(ask: Ask) -> None:
    done = ask("describe", "none")
    assert done.code == NOT_FOUND and "GROUP_ID_NOT_FOUND" in done.err


def test_names_go_into_the_path_whole(ask: Ask, world: RestWorld) -> None:
    world.groups["a/b c"] = Group({"m-1": ["orders:0"]}, {"orders:0": (1, 2)})
    assert ask("lag", "a/b c", "-o", "json").data["groups"][0]["total_lag"] == 1
    assert any("a%2Fb%20c" in str(request.url) for request in world.asked)


class TestWhichCluster:
    def test_the_only_one(self, ask: Ask, world: RestWorld) -> None:
        world.clusters = ("one", "two")
        done = ask("describe", "live")
        assert done.code == USAGE and f"{BASE}/clusters/ID (one, two)" in done.err
        assert ask("describe", "live", rest=f"{BASE}/clusters/two").code == OK

    @pytest.mark.parametrize("other", [("-b", "b:9092"), ("--local", "x/"), ("--zookeeper", "zk:2181")])
    def test_two_places_are_usage(self, ask: Ask, other: tuple[str, str]) -> None:
        assert ask("list", *other).code == USAGE

    @pytest.mark.parametrize(
        ("url", "base", "cluster"),
        [
            ("http://r:8082", "http://r:8082/v3/", None),
            ("https://r/kafka/v3/", "https://r/kafka/v3/", None),
            ("https://[::1]:1/v3/clusters/c", "https://[::1]:1/v3/", "c"),
        ],
    )
    def test_addresses(self, url: str, base: str, cluster: str | None) -> None:
        place = place_of(url)
        assert (place.base, place.cluster_id) == (base, cluster)

    @pytest.mark.parametrize(
        "url",
        [
            "r:8082",
            "ftp://r",
            "https://",
            "https://r?x=1",
            "https://r/v3/topics/x",
            "https://u:p@r",
            "http://r:x",
        ],
    )
    def test_what_is_no_address(self, url: str) -> None:
        with pytest.raises(ConfigError) as error:
            place_of(url)
        assert "u:p" not in error.value.message + (error.value.hint or "")

    @pytest.mark.parametrize(
        "argv", [("list", "--topic", "t"), ("list", "--static-only"), ("lag", "g", "--time")]
    )
    def test_what_rest_cannot_tell_is_usage(self, ask: Ask, argv: tuple[str, ...]) -> None:
        done = ask(*argv)
        assert done.code == USAGE and "goes with no --rest" in done.err


class TestLogin:
    @pytest.fixture(autouse=True)
    def _none_of_the_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("TOKEN", "USERNAME", "PASSWORD"):
            monkeypatch.delenv(f"KGROUP_REST_{name}", raising=False)

    def test_a_token(self, ask: Ask, world: RestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KGROUP_REST_TOKEN", "t0ken")
        done = ask("describe", "live", "-o", "json")
        assert {request.headers["authorization"] for request in world.asked} == {"Bearer t0ken"}
        assert "t0ken" not in done.out + done.err

    def test_name_and_password_in_a_file(self, ask: Ask, world: RestWorld, tmp_path: Path) -> None:
        file = tmp_path / "password"
        file.write_text("pass-w0rd\n")
        file.chmod(0o600)
        argv = ("-X", "rest.username=ann", "-X", f"rest.password.file={file}")
        assert ask("describe", "live", *argv).code == OK
        sent = world.asked[0].headers["authorization"].removeprefix("Basic ")
        assert base64.b64decode(sent) == b"ann:pass-w0rd"

    @pytest.mark.parametrize("given", ["rest.token", "rest.password"])
    def test_never_from_the_command_line(self, ask: Ask, given: str) -> None:
        done = ask("list", "-X", f"{given}=s3cret")
        assert done.code == USAGE and "s3cret" not in done.err

    def test_half_a_login_and_two_are_usage(self, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KGROUP_REST_USERNAME", "ann")
        assert "needs a name and a password" in ask("list").err
        monkeypatch.setenv("KGROUP_REST_PASSWORD", "p")
        monkeypatch.setenv("KGROUP_REST_TOKEN", "t")
        assert "two logins" in ask("list").err

    def test_a_login_over_http_is_warned_of(self, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KGROUP_REST_TOKEN", "t0ken")
        assert "goes unencrypted" in ask("list", rest="http://rest.example.net:8082").err

    def test_secrets_are_not_shown(self) -> None:
        assert {shown(f"rest.{name}", "x") for name in ("token", "password", "ssl.key.password")} == {
            "********"
        }
        assert "t0ken" not in repr(Login("t0ken"))

    def test_a_secret_that_no_header_can_carry(self, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KGROUP_REST_TOKEN", "one\ntwo")
        done = ask("list")
        assert done.code == USAGE and "two" not in done.err

"""Broken files, hostile names, outputs nobody takes: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import copy
import csv
import io
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from kgroup.cli.exit_codes import ExitCode
from tests.cli.conftest import Kgroup
from tests.cli.live import Client

KGROUP = (sys.executable, "-m", "kgroup.cli.app")
UNFORESEEN = "does not know how to handle"


def spoken(ran: Any) -> bool:
    """Whether a failure was told in words of its own."""
    return ran.err.startswith("error: ") and UNFORESEEN not in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize(
    "text",
    [
        "contexts: {a: {bootstrap-servers: [[1], 2]}}",
        "contexts: {a: {bootstrap-servers: {b: 1}}}",
        "contexts: {a: {command-config: [x]}}",
        "contexts: {a: {timeout: {s: 1}}}",
        "contexts: {a: {local: [1]}}",
        "contexts: {a: {properties: [1]}}",
        "contexts: {a: {properties: {client.id: [1]}}}",
        "contexts: [a]",
        "contexts: {a: 1}",
        "current-context: [a]",
        "current-context: {a: 1}",
        "[1, 2]",
        "contexts: {a: {timeout: [2026-01-01]}}",
        "\tx: 1",
        "a: !!python/object:os.system {}",
    ],
)
def test_a_config_file_with_wrong_types(config_file: Path, kgroup: Kgroup, text: str) -> None:
    config_file.write_text(text)
    for argv in (("context", "list"), ("list", "-C", "a"), ("config", "show")):
        ran = kgroup(*argv)
        assert ran.code == ExitCode.USAGE and spoken(ran), argv


_MERGES = "a0: &a0 {x: 1, y: 2}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10)
)
_DEEP = "[" * 100_000


@pytest.mark.parametrize("text", [_DEEP, _MERGES, "a: !!timestamp 2026-99-99", "a: !!int zz", "a: [\n\n"])
@pytest.mark.parametrize(
    "argv",
    [("context", "list"), ("upgrade", "run", "written.yaml"), ("simulate", "--scenario", "written.yaml")],
)
def test_yaml_that_is_a_trap(
    config_file: Path, kgroup: Kgroup, monkeypatch: pytest.MonkeyPatch, text: str, argv: tuple[str, ...]
) -> None:
    monkeypatch.chdir(config_file.parent)
    config_file.write_text(text)
    Path("written.yaml").write_text(text)
    ran = kgroup(*argv)
    assert ran.code == ExitCode.USAGE and spoken(ran), ran.err
    assert "\\n" not in ran.err


@pytest.mark.parametrize(
    ("written", "shown"),
    [("2026-99-99", "2026-99-99"), ("1" * 5_000, "1" * 5_000), ("0755", "0755"), ("12:30", "12:30")],
)
def test_a_value_in_the_config_file_is_the_text_that_was_written(
    config_file: Path, kgroup: Kgroup, written: str, shown: str
) -> None:
    """YAML reads 0755 as 493, 12:30 as 750, and fails for a date that cannot be."""
    config_file.write_text(
        f"contexts: {{a: {{bootstrap-servers: 'b:1', properties: {{client.id: {written}}}}}}}"
    )
    ran = kgroup("config", "show", "-C", "a", "-o", "json")
    assert ran.code == ExitCode.OK, ran.err
    assert f'"value": "{shown}"' in ran.out


@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_a_config_file_that_never_ends(config_file: Path, kgroup: Kgroup, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(config_file)
    elif kind == "device":
        config_file.symlink_to("/dev/zero")
    else:
        config_file.write_text("#" * ((1 << 20) + 1))
    ran = kgroup("context", "list")
    assert ran.code == ExitCode.USAGE and spoken(ran)
    assert ("more than 1 MiB" if kind == "large" else "not a regular file") in ran.err


def test_a_properties_file_that_never_ends(kgroup: Kgroup) -> None:
    ran = kgroup("list", "-b", "b:1", "--command-config", "/dev/zero")
    assert ran.code == ExitCode.USAGE and "more than 1 MiB" in ran.err


def test_a_name_that_the_protocol_has_no_room_for(kgroup: Kgroup, tmp_path: Path) -> None:
    local = f"--local={tmp_path / 'cluster'}"
    assert kgroup("cluster", "create-topic", "orders", local).code == ExitCode.OK
    for argv in (("describe",), ("config", "get"), ("list", "--topic")):
        ran = kgroup(*argv, "g" * 40_000, local)
        assert ran.code == ExitCode.USAGE and spoken(ran) and "at most 32767 bytes" in ran.err, argv


def test_a_name_that_is_not_utf_8(kgroup: Kgroup) -> None:
    ran = kgroup("describe", os.fsdecode(b"g\xff"), "-b", "b:1")
    assert (ran.code, ran.err) == (
        ExitCode.USAGE,
        "error: 'g\\xff' is not UTF-8\nhint: names in Kafka are UTF-8\n",
    )


def test_the_hint_for_an_unknown_setting_is_short(kgroup: Kgroup) -> None:
    for name in ("fooo.bar", "sasl.mechanims", "x" * 5_000):
        ran = kgroup("list", "-b", "b:1", "-X", f"{name}=1")
        assert ran.code == ExitCode.USAGE and len(ran.err.partition("hint: ")[2]) < 200


def test_a_config_file_that_is_no_text(config_file: Path, kgroup: Kgroup) -> None:
    config_file.write_bytes(b"\xff\xfe\x00")
    ran = kgroup("context", "list")
    assert ran.code == ExitCode.USAGE and "it is not UTF-8" in ran.err


BEGIN = {
    "id": "j-0001",
    "phase": "begin",
    "time_ms": 1,
    "command": "reset-offsets",
    "cluster_id": None,
    "plan": {"groups": ["g"], "items": []},
    "before": {"offsets": {"g": []}},
}
END = {"id": "j-0001", "phase": "end", "time_ms": 2, "results": [{"result": "done"}]}


def _broken() -> list[tuple[str, list[Any]]]:
    found: list[tuple[str, list[Any]]] = [("a number", [1, BEGIN]), ("a list", [[], BEGIN])]
    for name in BEGIN:
        for wrong in (None, 1, "x", [1], {"a": 1}):
            changed = copy.deepcopy(BEGIN)
            changed[name] = wrong
            found.append((f"begin {name}={wrong!r}", [changed, END, BEGIN]))
    wrong_results = (None, 1, "x", [1], {"a": 1})
    found += [(f"results={wrong!r}", [BEGIN, {**END, "results": wrong}, BEGIN]) for wrong in wrong_results]
    plans = ({"groups": 1}, {"groups": [[1]]}, {"items": 1}, {"items": [{}]}, {"undoes": [1]})
    found += [(f"plan={plan!r}", [{**BEGIN, "plan": plan}, END]) for plan in plans]
    for before in ({"offsets": 1}, {"offsets": {"g": 1}}, {"offsets": {"g": [[1]]}}):
        deletion = {**BEGIN, "command": "delete", "before": before}
        found.append((f"before={before!r}", [deletion, {**END, "results": [{"group_id": "g"}]}]))
    return found


@pytest.mark.parametrize(("what", "lines"), _broken(), ids=[what for what, _ in _broken()])
def test_a_journal_of_json_with_wrong_fields(
    tmp_path: Path, on_cluster: Kgroup, kgroup: Kgroup, what: str, lines: list[Any]
) -> None:
    path = tmp_path / "state" / "kgroup" / "journal.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for ran in (
        kgroup("journal", "list"),
        kgroup("journal", "list", "g"),
        kgroup("journal", "show", "LAST"),
        on_cluster("reset-offsets", "--undo", "LAST"),
        on_cluster("reset-offsets", "--undo", "j-0001"),
    ):
        assert ran.code == 0 or spoken(ran), what


def test_a_csv_with_an_endless_field(tmp_path: Path, on_cluster: Kgroup) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text("x" * 140_000 + ",0,1\n")
    ran = on_cluster("offsets", "import", str(file), "--to", "g")
    assert ran.code == ExitCode.USAGE and spoken(ran) and "line" in ran.err


def test_a_byte_order_mark_belongs_to_no_name(tmp_path: Path, on_cluster: Kgroup) -> None:
    file = tmp_path / "offsets.csv"
    file.write_bytes(b"\xef\xbb\xbforders,0,0\n")
    ran = on_cluster("offsets", "import", str(file), "--to", "bom", "--create", "-o", "json")
    assert ran.code == 0, ran.err
    assert [row["topic"] for row in ran.document["data"]["items"]] == ["orders"]


STRANGE = "odd\nname\x1b[2Jend"


def test_a_name_with_a_line_feed_is_one_name(cluster: Client, on_cluster: Kgroup) -> None:
    cluster.commit(STRANGE, "orders", {0: 0})
    named = on_cluster("list", "odd*", "-o", "name")
    assert named.out.splitlines() == [r"odd\nname\x1b[2Jend"]
    table = on_cluster("describe", STRANGE)
    assert table.code == 0
    assert "\x1b" not in table.out


def test_a_csv_export_of_a_strange_name_comes_back_as_that_group(
    cluster: Client, on_cluster: Kgroup, tmp_path: Path
) -> None:
    name = " lead\n\u202ebidi "
    cluster.commit(name, "orders", {0: 3})
    cluster.commit("plain-one", "orders", {0: 4})
    exported = on_cluster("offsets", "export", name, "plain-one", "-o", "csv")
    rows = list(csv.DictReader(io.StringIO(exported.out)))
    assert {row["group_id"] for row in rows} == {name, "plain-one"}
    file = tmp_path / "both.csv"
    file.write_text(exported.out, newline="")
    back = on_cluster("offsets", "import", str(file), "-o", "json")
    assert {group["group_id"] for group in back.document["data"]["groups"]} == {name, "plain-one"}


def test_json_shows_no_invisible_character(cluster: Client, on_cluster: Kgroup) -> None:
    name = "c1\x85\x9b\u202egroup"
    cluster.commit(name, "orders", {0: 0})
    for format_ in ("json", "ndjson", "yaml"):
        ran = on_cluster("list", "c1*", "-o", format_)
        assert ran.out.replace("\n", "").isprintable(), format_
    (group,) = on_cluster("list", "c1*", "-o", "json").document["data"]["groups"]
    assert group["group_id"] == name


def test_exports_and_plans_are_for_their_owners_eyes(
    cluster: Client, on_cluster: Kgroup, tmp_path: Path
) -> None:
    cluster.commit("to-go", "orders", {0: 0})
    export, plan = tmp_path / "export.json", tmp_path / "plan.json"
    assert (
        on_cluster("reset-offsets", "to-go", "--all-topics", "--to-earliest", "--plan-out", str(plan)).code
        == 0
    )
    assert on_cluster("delete", "to-go", "--export", str(export), "--execute", "--yes").code == 0
    assert {path.stat().st_mode & 0o777 for path in (export, plan)} == {0o600}


@pytest.mark.parametrize("address", ["..a", "a..b:9092", "a" * 70, "x." * 200 + "y:1"])
def test_host_names_no_resolver_can_be_asked_for(kgroup: Kgroup, address: str) -> None:
    ran = kgroup("list", "-b", address, "--timeout", "2s")
    assert ran.code == ExitCode.UNREACHABLE and spoken(ran)


@pytest.mark.parametrize("versions", [(5, 2), (-3, -1), (-1, 4), (0, -1)])
def test_a_broker_that_serves_versions_that_cannot_be(kgroup: Kgroup, versions: tuple[int, int]) -> None:
    """Every request is announced with an inverted or a negative range."""
    body = b"".join(struct.pack(">hhh", key, *versions) for key in range(70))

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                asked = peer.recv(4096)
                if len(asked) >= 12:
                    # Any newer version of the question is answered in version 0, with the code that says so.
                    (version,) = struct.unpack_from(">h", asked, 6)
                    code = 35 if version else 0
                    said = asked[8:12] + struct.pack(">hi", code, 70) + body
                    peer.sendall(struct.pack(">i", len(said)) + said)
                    peer.recv(4096)

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(listener,), daemon=True)
    thread.start()
    try:
        ran = kgroup("list", "-b", f"127.0.0.1:{listener.getsockname()[1]}", "--timeout", "2s")
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(300)
    assert ran.code not in (0, ExitCode.USAGE) and spoken(ran)


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["explain"], ["explain", "-o", "json"]])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_told(argv: list[str]) -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run([*KGROUP, *argv], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert ran.returncode == ExitCode.FAILED
    assert ran.stderr.splitlines()[0] == "error: the output cannot be written: No space left on device"
    assert "Traceback" not in ran.stderr


def test_a_closed_output_is_told_and_a_closed_error_output_is_no_matter() -> None:
    shell = f"{sys.executable} -m kgroup.cli.app explain Empty"
    closed = subprocess.run(["sh", "-c", f"{shell} >&-"], capture_output=True, text=True, timeout=300)
    assert (closed.returncode, "standard output is closed" in closed.stderr) == (ExitCode.FAILED, True)
    mute = subprocess.run(["sh", "-c", f"{shell} --nope 2>&-"], capture_output=True, text=True, timeout=300)
    assert (mute.returncode, mute.stdout) == (ExitCode.USAGE, "")


def test_unknown_properties_are_never_shown(tmp_path: Path, kgroup: Kgroup) -> None:
    """A file for other clients holds settings kgroup does not know; any may be a secret."""
    file = tmp_path / "client.properties"
    secrets = [
        "sasl.oauthbearer.client.secret",
        "ssl.keystore.password",
        "ssl.truststore.password",
        "sasl.password",
        "sasl.oauthbearer.config",
        "aws.secret",
        "basic.auth.user.info",
        "some.token",
        "ssl.key.pem",
    ]
    file.write_text("".join(f"{name}=hunter2\n" for name in secrets) + "client.id=me\n")
    for format_ in ("table", "wide", "json", "yaml", "csv", "ndjson"):
        ran = kgroup("config", "show", "-b", "h:1", "--command-config", str(file), "-o", format_)
        assert "hunter2" not in ran.out + ran.err
        assert "me" in ran.out


def test_a_jaas_line_without_a_module_is_not_echoed(tmp_path: Path, kgroup: Kgroup) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        'security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=password="hunter2";\n'
    )
    ran = kgroup("list", "-b", "h:1", "--command-config", str(file))
    assert ran.code == ExitCode.USAGE and "hunter2" not in ran.out + ran.err


def test_serve_in_memory_is_not_disturbed_by_a_cluster_named_for_other_commands(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "KGROUP_BOOTSTRAP_SERVER": "elsewhere:9092",
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    process = subprocess.Popen(
        [*KGROUP, "serve", "--memory", "--port", "0"], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert "serving" in process.stdout.readline()
    finally:
        process.terminate()
        process.wait(300)
        process.stdout.close()
    folder = subprocess.run([*KGROUP, "serve"], env=environment, capture_output=True, text=True, timeout=300)
    assert folder.returncode == ExitCode.USAGE
    assert "KGROUP_BOOTSTRAP_SERVER names a remote one" in folder.stderr


@pytest.mark.parametrize("argv", [["list"], ["explain", "Empty"]])
def test_what_nobody_planned_for_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, kgroup: Kgroup, argv: list[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("planted")

    monkeypatch.setattr("kgroup.cli.env.invocation.Env.of", fail)
    ran = kgroup(*argv)
    assert ran.code == ExitCode.FAILED
    assert ran.err.startswith(f"error: kgroup met something it {UNFORESEEN} (RuntimeError: planted)")
    assert "hint: the same command with --debug" in ran.err


def test_a_traceback_shows_no_control_character_of_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    from kgroup.cli.frame.running import _print_traceback
    from kgroup.errors import KgroupError

    try:
        try:
            raise KgroupError("said: \x1b[2J\u202e\nerror: forged")
        except KgroupError as error:
            raise ValueError("\x9b31m") from error
    except ValueError as error:
        _print_traceback(error)
    shown = capsys.readouterr().err
    assert shown.replace("\n", "").isprintable() and "\nerror: forged" not in shown
    assert r"said: \x1b[2J\u202e\nerror: forged" in shown and "The above exception" in shown

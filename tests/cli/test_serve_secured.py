"""`kgroup serve` with Kafka's settings of listeners, and `kgroup cluster user`, as an operator meets them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgroup.admin.diagnose import histories
from tests.ran import ran
from tests.unit.broker.authentication.listeners import PLAIN_USERS, Stores

KGROUP = Path(sys.executable).with_name("kgroup")


def kgroup(*arguments: str, said: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [KGROUP, *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environ},
    )


@contextmanager
def served(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A running `serve`, and the addresses it says it serves on."""
    process = subprocess.Popen(
        [KGROUP, "serve", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("kgroup: serving on "), process.stderr.read()
        yield line.removeprefix("kgroup: serving on ").strip(), process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(300)
        process.stdout.close()
        process.stderr.close()


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    """A server.properties with TLS and users, as somebody has it, settings of no meaning here included."""
    stores = Stores(tmp_path)
    path = tmp_path / "server.properties"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "SASL_SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:9999",
        "controller.listener.names": "CONTROLLER",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_USERS.replace("\\", "\\\\"),
        "num.partitions": "3",
        **stores.settings,
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    path.chmod(0o600)
    return path


def client_file(folder: Path, user: str, password: str, mechanism: str = "SCRAM-SHA-512") -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    path = folder / f"{user}.properties"
    path.write_text(
        f"security.protocol=SASL_SSL\nsasl.mechanism={mechanism}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={folder / 'ca.pem'}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{module} required"
        f' username="{user}" password="{password}";\n'
    )
    path.chmod(0o600)
    return str(path)


def test_a_cluster_with_locks_from_the_first_user_on(properties: Path, tmp_path: Path) -> None:
    """A user is added before anybody can come in; then it is served, and the user gets in by TLS."""
    local = ("--local", str(tmp_path / "data"))
    added = kgroup("cluster", "user", "add", "carol", "--password-env", "SECRET", *local, SECRET="carol-pw")
    assert added.returncode == 0, added.stderr
    with served(*local, "--config", str(properties)) as (where, process):
        scheme, _, address = where.partition("://")
        assert scheme == "SASL_SSL"
        for user, password, mechanism in (
            ("carol", "carol-pw", "SCRAM-SHA-512"),
            ("alice", "secret", "PLAIN"),
        ):
            how = ("--command-config", client_file(tmp_path, user, password, mechanism))
            told = kgroup("cluster", "status", "-b", address, *how, "-o", "json")
            assert told.returncode == 0, told.stderr
            [broker] = json.loads(told.stdout)["data"]["brokers"]
            assert f"{broker['host']}:{broker['port']}" == address
        wrong = kgroup(
            "list",
            "-b",
            address,
            "--command-config",
            client_file(tmp_path, "carol", "other"),
            "--timeout",
            "10s",
        )
        assert wrong.returncode != 0 and "Traceback" not in wrong.stderr
        behind = kgroup("list", *local)
        assert behind.returncode == 2
        assert "is served behind a lock, at SASL_SSL://" in behind.stderr
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
        assert process.stderr is not None
        said = process.stderr.read()
        assert "process.roles means nothing here" in said
        assert "secret" not in said


def test_the_process_that_reads_the_history_comes_in_by_the_same_lock(
    properties: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """TLS and SCRAM once more, in another process (`kgroup doctor` on very many groups)."""
    monkeypatch.setattr(histories, "MANY", 2)
    local = ("--local", str(tmp_path / "data"))
    added = kgroup("cluster", "user", "add", "carol", "--password-file", "-", *local, said="pw\n")
    assert added.returncode == 0, added.stderr
    with served(*local, "--config", str(properties)) as (where, _):
        address = ("-b", where.rpartition("/")[2], "--command-config", client_file(tmp_path, "carol", "pw"))
        assert kgroup("cluster", "create-topic", "t", *address).returncode == 0
        offsets = "group,topic,partition,offset\n" + "".join(f"g{number},t,0,0\n" for number in range(4))
        plan = tmp_path / "offsets.csv"
        plan.write_text(offsets)
        done = kgroup("offsets", "import", str(plan), *address, "--execute", "--yes")
        assert done.returncode == 0, done.stderr
        told = ran(capsys, "doctor", "--all-groups", *address, "-o", "json")
    assert told.code == 0, told.err
    groups = told.document["data"]["groups"]
    assert [(group["group_id"], group["verdict"], group["skipped"]) for group in groups] == [
        (f"g{number}", "healthy", []) for number in range(4)
    ]


def test_a_lock_and_a_plain_door_for_this_machine(properties: Path, tmp_path: Path) -> None:
    """With a PLAINTEXT listener on loopback, commands with --local go on working while it is served."""
    local = ("--local", str(tmp_path / "data"))
    listeners = "listeners=SASL_SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"
    with served(*local, "--config", str(properties), "--set", listeners) as (where, _):
        assert where.startswith("SASL_SSL://127.0.0.1:") and ",127.0.0.1:" in where
        told = kgroup("cluster", "user", "add", "dave", "--password-file", "-", *local, said="pw\n")
        assert told.returncode == 0, told.stderr
        listed = kgroup("cluster", "user", "list", *local, "-o", "json")
        assert json.loads(listed.stdout)["data"] == {
            "users": [{"user": "dave", "mechanisms": [{"mechanism": "SCRAM-SHA-512", "iterations": 8192}]}]
        }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "listeners=PLAINTEXT://0.0.0.0:9092"), "cannot be sent there"),
        (
            (
                "--set",
                "listeners=PLAINTEXT://0.0.0.0:9092",
                "--set",
                "advertised.listeners=PLAINTEXT://broker:9092",
            ),
            "is open to others on 0.0.0.0 and PLAINTEXT does not keep them out",
        ),
        (("--set", "listeners=SSL://127.0.0.1:0"), "speaks TLS and has no certificate"),
        (("--set", "listeners=PLAINTEXT://127.0.0.1:0", "--port", "1"), "both say where to listen"),
        (("--set", "listeners=SASL_PLAINTEXT://127.0.0.1:0"), "sasl.enabled.mechanisms is not set"),
        (("--config", "no-such.properties"), "cannot read no-such.properties: No such file"),
    ],
)
def test_what_makes_no_lock_is_said_in_a_sentence(arguments: tuple[str, ...], said: str) -> None:
    told = kgroup("serve", "--memory", *arguments)
    assert told.returncode == 2
    assert said in told.stderr
    assert "Traceback" not in told.stderr


def test_secrets_that_others_may_read_are_warned_of(properties: Path) -> None:
    properties.chmod(0o644)
    with served("--memory", "--config", str(properties)) as (_, process):
        process.send_signal(signal.SIGTERM)
        process.wait(300)
        assert process.stderr is not None
        assert "holds secrets and others may read it: chmod 600" in process.stderr.read()


def test_users_come_and_go(tmp_path: Path) -> None:
    local = ("--local", str(tmp_path / "data"))
    secret = tmp_path / "alice.txt"
    secret.write_text("alice-pw\n")
    secret.chmod(0o600)
    added = kgroup("cluster", "user", "add", "alice", "--password-file", str(secret), *local)
    said, journal, undo = added.stdout.splitlines()
    assert (said, journal.split()[0]) == ("user alice: added for SCRAM-SHA-512", "journal")
    assert undo == f"undo: kgroup cluster user remove alice --mechanism SCRAM-SHA-512 --local={local[1]}"
    both = ("--mechanism", "scram-sha-256", "--mechanism", "SCRAM-SHA-512", "--iterations", "4096")
    changed = kgroup("cluster", "user", "add", "alice", "--password-file", str(secret), *both, *local)
    assert changed.stdout.splitlines()[:2] == [
        "user alice: added for SCRAM-SHA-256",
        "user alice: new password for SCRAM-SHA-512",
    ]
    listed = kgroup("cluster", "user", "list", *local, "-o", "csv")
    assert listed.stdout.splitlines()[1:] == ["alice,SCRAM-SHA-256,4096", "alice,SCRAM-SHA-512,4096"]
    removed = kgroup("cluster", "user", "remove", "alice", "--mechanism", "SCRAM-SHA-256", *local)
    first = removed.stdout.splitlines()[0]
    assert first.startswith("user alice removed for SCRAM-SHA-256   journal j-")
    assert kgroup("cluster", "user", "remove", "alice", *local).returncode == 0
    gone = kgroup("cluster", "user", "remove", "alice", *local)
    assert gone.returncode == 3
    assert "there is no such user" in gone.stderr
    missing = kgroup("cluster", "user", "list", "alice", *local)
    assert missing.returncode == 5 and "RESOURCE_NOT_FOUND" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "there is no terminal to ask for the password"),
        (("--password-env", "NO_SUCH_VARIABLE"), "the environment has no NO_SUCH_VARIABLE"),
        (("--password-file", "-"), "the password of alice is empty"),
        (("--password-file", "/nowhere"), "cannot read the password in /nowhere"),
        (("--password-file", "-", "--password-env", "HOME"), "both name a password"),
        (("--password-env", "HOME", "--mechanism", "PLAIN"), "PLAIN is not a SCRAM mechanism"),
        (("--password-env", "HOME", "--iterations", "17000"), "between 4096 and 16384"),
        (("--password-file", "{open}"), "holds a password and others may read it"),
    ],
)
def test_a_password_comes_from_somewhere_safe(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open.txt"
    open_to_all.write_text("pw")
    open_to_all.chmod(0o644)
    given = [argument.format(open=open_to_all) for argument in arguments]
    told = kgroup("cluster", "user", "add", "alice", *given, "--local", str(tmp_path / "data"))
    assert told.returncode == 2, told.stderr
    assert said in told.stderr

"""A secret planted in every property and context key is in no output of any command, whatever fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
import yaml

from kgroup.cli.env.invocation import FORMATS
from kgroup.cli.env.known_settings import SECRETS
from kgroup.cli.exit_codes import ExitCode
from kgroup.client.properties.catalogue import SECRET
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kgroup.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from tests.cli.conftest import Kgroup
from tests.token_server import TokenServer
from tests.unit.client.scripted_broker import ScriptedBroker

COMMANDS = (
    ("list",),
    ("describe", "orders"),
    ("lag", "orders"),
    ("coordinator", "orders"),
    ("doctor",),
    ("offsets-topic",),
    ("upgrade", "plan", "orders"),
    ("remove-members", "orders", "--all"),
    ("reset-offsets", "orders", "--to-earliest"),
    ("offsets", "export", "orders"),
    ("delete", "orders"),
    ("config", "get", "orders"),
    ("blame", "orders"),
    ("cluster", "status"),
    ("wait", "orders", "--for", "empty", "--stop-after", "0s"),
    ("context", "list"),
    ("journal", "list"),
    ("config", "show", "--origin"),
)
_MARK = "planted"


def planted(name: str) -> str:
    return f"{_MARK}-{name.replace('.', '-')}"


def echo(request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """A refusal that repeats what was sent, as it came and without its frame."""
    sent = request.auth_bytes.decode(errors="replace")
    words = " ".join(sent.replace("\0", " ").replace("\x01", " ").split())
    said = f"Authentication failed: {sent!r} {sent} {words}"
    return SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=said)


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    """One that takes nobody's word."""
    with ScriptedBroker() as running:
        running.served |= {17: range(2), 36: range(3)}
        running.answers[SaslHandshakeRequest] = SaslHandshakeResponse(mechanisms=("PLAIN",))
        running.answers[SaslAuthenticateRequest] = echo
        yield running


def everywhere(**more: str) -> dict[str, str]:
    """Something secret in every property that may hold it, and what makes them be used."""
    return {name: planted(name) for name in SECRET} | more


def failures(folder: Path, broker: ScriptedBroker, issuer: TokenServer) -> dict[str, dict[str, str]]:
    """Settings with which nothing works, each in another way."""
    there = f"127.0.0.1:{broker.address[1]}"
    store = folder / "store.jks"
    store.write_bytes(Path(__file__).parents[1].joinpath("data/stores/client.jks").read_bytes())
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password='
    plain = {"bootstrap.servers": there, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    bearer = {**plain, "sasl.mechanism": "OAUTHBEARER"}
    tls = {"bootstrap.servers": there, "security.protocol": "SSL"}
    client = {"sasl.oauthbearer.client.id": "kgroup", "sasl.login.retry.backoff.max.ms": "1"}
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    return {
        "a broker that refuses": {**plain, "sasl.jaas.config": f'{login}"{_MARK}-jaas";'},
        "nobody there": {
            **plain,
            "bootstrap.servers": "127.0.0.1:1",
            "sasl.username": "u",
            "sasl.password": f"{_MARK}-p",
        },
        "a login module that cannot be read": {**plain, "sasl.jaas.config": f"{login}{_MARK}-jaas {_MARK}-2"},
        "a token that is refused": {**bearer, "sasl.oauthbearer.token": f"{_MARK}-token"},
        "a token that is none": {**bearer, "sasl.oauthbearer.token": f"{_MARK} token"},
        "an issuer that refuses": {
            **bearer,
            **client,
            "sasl.oauthbearer.token.endpoint.url": issuer.url.replace("//", f"//u:{_MARK}-userinfo@")
            + f"?k={_MARK}-q",
            "sasl.oauthbearer.client.secret": f"{_MARK}-client",
        },
        "an issuer that is not there": {
            **bearer,
            **client,
            "sasl.jaas.config": f'{module} clientSecret="{_MARK}-jaas" extension_pool="{_MARK}-x";',
            "sasl.oauthbearer.token.endpoint.url": f"http://u:{_MARK}-u@127.0.0.1:1/t?key={_MARK}-q",
        },
        "an issuer that is no address": {
            **bearer,
            "sasl.oauthbearer.token.endpoint.url": f"http://h:{_MARK}/",
        },
        "a store that does not open": {
            **tls,
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": f"{_MARK}-store",
            "ssl.key.password": f"{_MARK}-key",
        },
        "PEM that is none": {
            **tls,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----\n{_MARK}\n-----END PRIVATE KEY-----",
            "ssl.keystore.certificate.chain": f"{_MARK}-chain",
            "ssl.key.password": f"{_MARK}-key",
        },
        "authorities that are none": {**tls, "ssl.ca.pem": f"{_MARK}-ca"},
        "every property at once": {**everywhere(), **bearer},
        "every property at once, with TLS": {**everywhere(), **tls},
    }


def silent(said: str) -> bool:
    return _MARK not in said


@pytest.fixture
def issuer() -> Iterator[TokenServer]:
    with TokenServer() as running:
        # It says back what it was sent, as a bad one may.
        body = json.dumps(
            {"error": "invalid_client", "error_description": f"bad secret {_MARK}-client"}
        ).encode()
        running.answers = [(401, body)] * 1000
        yield running


def test_no_command_in_no_format_with_no_failure_shows_a_secret(
    tmp_path: Path, kgroup: Kgroup, broker: ScriptedBroker, issuer: TokenServer
) -> None:
    leaks, codes = [], {}
    for number, (failure, given) in enumerate(failures(tmp_path, broker, issuer).items()):
        file = tmp_path / "client.properties"
        escaped = {name: value.replace("\n", "\\n") for name, value in given.items()}
        file.write_text("".join(f"{name}={value}\n" for name, value in escaped.items()))
        file.chmod(0o644)
        for at, command in enumerate(COMMANDS):
            # Every format with every failure, though not with every command.
            formats = FORMATS if at in (0, len(COMMANDS) - 1) else (FORMATS[(at + number) % len(FORMATS)],)
            for format_ in formats:
                options = ("--command-config", str(file), "-o", format_, "--debug", "-v", "--timeout", "2s")
                ran = kgroup(*command, *options)
                codes[failure, command] = ran.code
                if not silent(ran.out + ran.err):
                    leaks.append((failure, command, format_))
    assert leaks == []
    asked = {failure: code for (failure, command), code in codes.items() if command == ("list",)}
    assert asked["a broker that refuses"] == ExitCode.NOT_AUTHORISED
    assert asked["an issuer that refuses"] == ExitCode.NOT_AUTHORISED
    assert asked["nobody there"] == asked["an issuer that is not there"] == ExitCode.UNREACHABLE
    assert asked["a store that does not open"] == asked["PEM that is none"] == ExitCode.USAGE
    assert ExitCode.OK not in asked.values()
    journal = tmp_path / "data"
    assert all(silent(path.read_text(errors="replace")) for path in journal.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", sorted(SECRETS))
def test_a_context_with_a_secret_is_shown_without_it(name: str, config_file: Path, kgroup: Kgroup) -> None:
    context = {"bootstrap-servers": "h:1", "properties": {name: planted(name)}}
    config_file.write_text(yaml.safe_dump({"current-context": "x", "contexts": {"x": context}}))
    config_file.chmod(0o600)
    for argv in (
        ("context", "show"),
        ("context", "list"),
        ("config", "show", "--origin"),
        ("context", "use", "x"),
    ):
        for format_ in FORMATS:
            ran = kgroup(*argv, "-o", format_, "--debug")
            assert silent(ran.out + ran.err)
            # `context use` has no table.
            assert ran.code == 0 or "no table to print as CSV" in ran.err


def test_a_misspelt_key_is_named_and_its_value_is_not(config_file: Path, kgroup: Kgroup) -> None:
    config_file.write_text(json.dumps({"contexts": {"x": {"properties": {"no.such": f"{_MARK}-value"}}}}))
    assert silent(kgroup("context", "list").err)
    ran = kgroup("list", "-b", "h:1", "-X", f"sasl.pasword={_MARK}-value")
    assert ran.code == ExitCode.USAGE and silent(ran.err) and "did you mean sasl.password?" in ran.err
    assert silent(kgroup("list", "-b", "h:1", "-X", f"{_MARK}-value").err)


class TestSecretsKeptElsewhere:
    def reach(self, kgroup: Kgroup, config_file: Path, broker: ScriptedBroker, **properties: object) -> str:
        """What the broker was shown, by a context whose password is kept elsewhere."""
        context = {
            "bootstrap-servers": f"127.0.0.1:{broker.address[1]}",
            "properties": {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "u",
                **{k: v for k, v in properties.items() if "." in k},
            },
            **{k: v for k, v in properties.items() if "." not in k},
        }
        config_file.write_text(yaml.safe_dump({"current-context": "x", "contexts": {"x": context}}))
        config_file.chmod(0o644)
        ran = kgroup("list", "--timeout", "5s")
        assert silent(ran.out + ran.err)
        shown = [r for r in broker.requests if isinstance(r, SaslAuthenticateRequest)]
        return shown[-1].auth_bytes.decode().split("\0")[-1] if shown else f"{ran.code}: {ran.err}"

    def test_a_command_prints_it(self, kgroup: Kgroup, config_file: Path, broker: ScriptedBroker) -> None:
        printing = [sys.executable, "-c", f"print('{_MARK}' + ' secret')"]
        for given in (
            {"sasl.password-command": printing},
            {"password-command": printing},
            {"password-command": f"'{sys.executable}' -c 'print(\"{_MARK} secret\")'"},
        ):
            assert self.reach(kgroup, config_file, broker, **given) == f"{_MARK} secret"

    def test_a_variable_holds_it(
        self, kgroup: Kgroup, config_file: Path, broker: ScriptedBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("KAFKA_PASSWORD", f"{_MARK} secret")
        for given in ({"sasl.password-env": "KAFKA_PASSWORD"}, {"password-env": "KAFKA_PASSWORD"}):
            assert self.reach(kgroup, config_file, broker, **given) == f"{_MARK} secret"
        monkeypatch.delenv("KAFKA_PASSWORD")
        broker.requests.clear()
        said = self.reach(kgroup, config_file, broker, **{"password-env": "KAFKA_PASSWORD"})
        assert said.startswith("2: ") and "the variable KAFKA_PASSWORD is not set" in said

    @pytest.mark.parametrize(
        ("command", "words"),
        [
            ([sys.executable, "-c", "exit(3)"], "its command ended with 3"),
            ([sys.executable, "-c", "pass"], "its command printed nothing"),
            (["/no/such/program"], "its command cannot be run: no such file"),
            ("pass 'open", "has a quote that is not closed"),
        ],
    )
    def test_a_command_that_fails(
        self, kgroup: Kgroup, config_file: Path, broker: ScriptedBroker, command: object, words: str
    ) -> None:
        said = self.reach(kgroup, config_file, broker, **{"password-command": command})
        assert said.startswith("2: ") and words in said
        assert "sasl.password-command (context x)" in said

    def test_it_is_asked_once_and_only_by_what_needs_it(
        self, kgroup: Kgroup, config_file: Path, broker: ScriptedBroker, tmp_path: Path
    ) -> None:
        count = tmp_path / "count"
        code = f"open({str(count)!r}, 'a').write('x'); print('p')"
        self.reach(kgroup, config_file, broker, **{"password-command": [sys.executable, "-c", code]})
        assert count.read_text() == "x"
        for argv in (("config", "show"), ("context", "show"), ("context", "list")):
            assert kgroup(*argv).code == 0
        assert count.read_text() == "x"

    def test_the_stronger_layer_wins_however_it_says_it(
        self, kgroup: Kgroup, config_file: Path, broker: ScriptedBroker
    ) -> None:
        self.reach(kgroup, config_file, broker, **{"password-command": ["/no/such/program"]})
        kgroup("list", "-X", "sasl.password=own", "--timeout", "5s")
        shown = [r for r in broker.requests if isinstance(r, SaslAuthenticateRequest)]
        assert shown[-1].auth_bytes == b"\0u\0own"


class TestFilesThatOthersMayRead:
    def warned(self, kgroup: Kgroup, tmp_path: Path, text: str, mode: int) -> str:
        file = tmp_path / "client.properties"
        file.write_text("bootstrap.servers=127.0.0.1:1\n" + text)
        file.chmod(mode)
        return kgroup("list", "--command-config", str(file), "--timeout", "2s").err

    def test_a_properties_file_with_a_password(self, kgroup: Kgroup, tmp_path: Path) -> None:
        text = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=u\nsasl.password=p\n"
        said = self.warned(kgroup, tmp_path, text, 0o644)
        assert (
            f"warning: {tmp_path}/client.properties holds secrets and others may read it (mode 0644)" in said
        )
        assert "warning" not in self.warned(kgroup, tmp_path, text, 0o600)

    def test_a_key_that_wants_no_password(self, kgroup: Kgroup, tmp_path: Path) -> None:
        key = tmp_path / "client.pem"
        trustme.CA().issue_cert("c").private_key_and_cert_chain_pem.write_to_path(str(key))
        key.chmod(0o640)
        text = f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location={key}\n"
        assert f"warning: {key} holds secrets" in self.warned(kgroup, tmp_path, text, 0o644)
        key.chmod(0o600)
        assert "warning" not in self.warned(kgroup, tmp_path, text, 0o644)

    def test_a_store_with_a_password_may_lie_about(self, kgroup: Kgroup, tmp_path: Path) -> None:
        store = Path(__file__).parents[1] / "data" / "stores" / "client.p12"
        copy = tmp_path / "copy.p12"
        copy.write_bytes(store.read_bytes())
        copy.chmod(0o644)
        text = f"security.protocol=SSL\nssl.keystore.location={copy}\nssl.keystore.password=store-secret\n"
        assert "copy.p12" not in self.warned(kgroup, tmp_path, text, 0o600)

    def test_a_token_file(self, kgroup: Kgroup, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("abc")
        token.chmod(0o644)
        text = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        text += f"sasl.oauthbearer.token.endpoint.url={token.as_uri()}\n"
        assert f"warning: {token} holds secrets" in self.warned(kgroup, tmp_path, text, 0o600)

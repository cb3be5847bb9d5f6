"""client.properties as Kubernetes brings them: config providers, encodings, misspelt keys."""

import pytest

from kgroup.cli.env.known_settings import misspelt
from kgroup.cli.env.properties import read_command_config
from kgroup.cli.exit_codes import ExitCode
from kgroup.client.properties.given import Given
from kgroup.client.properties.security import security_of
from kgroup.errors import ConfigError

PACKAGE = "org.apache.kafka.common.config.provider."


def written(tmp_path, *lines, encoding="utf-8"):
    file = tmp_path / "client.properties"
    file.write_bytes("\n".join(lines).encode(encoding))
    return file


def declared(name, kind, **parameters):
    given = (f"config.providers.{name}.param.{key}={value}" for key, value in parameters.items())
    return [f"config.providers={name}", f"config.providers.{name}.class={PACKAGE}{kind}", *given]


class TestProviders:
    @pytest.fixture(autouse=True)
    def secrets(self, tmp_path, monkeypatch):
        monkeypatch.setenv("KAFKA_PASSWORD", "s3cret")
        (tmp_path / "user.properties").write_text("password=s3cret\n")
        (tmp_path / "user.password").write_text("s3cret")

    def test_their_names_are_shown_and_what_they_hold_is_not(self, kgroup, tmp_path):
        lines = (*declared("env", "EnvVarConfigProvider"), "ssl.key.password=${env:KAFKA_PASSWORD}")
        file = written(tmp_path, *lines)
        out = kgroup("config", "show", "--command-config", str(file), "-b", "b:1").out
        assert "EnvVarConfigProvider" in out and "ssl.key.password" in out and "s3cret" not in out

    @pytest.mark.parametrize(
        ("name", "kind", "reference"),
        [
            ("env", "EnvVarConfigProvider", "${env:KAFKA_PASSWORD}"),
            ("file", "FileConfigProvider", "${file:DIR/user.properties:password}"),
            ("directory", "DirectoryConfigProvider", "${directory:DIR:user.password}"),
            ("any-name", "EnvVarConfigProvider", "${any-name:KAFKA_PASSWORD}"),
        ],
    )
    def test_kafkas_own_are_resolved_anywhere_in_a_value(self, name, kind, reference, tmp_path):
        reference = reference.replace("DIR", str(tmp_path))
        jaas = f'org.x.PlainLoginModule required username="u" password="{reference}";'
        values = read_command_config(
            written(
                tmp_path,
                *declared(name, kind),
                f"ssl.key.password={reference}",
                f"sasl.jaas.config={jaas}",
                "value.deserializer=${env:NOT_SET_FOR_US}",
            )
        )
        assert values["ssl.key.password"] == "s3cret"
        assert values["sasl.jaas.config"] == jaas.replace(reference, "s3cret")
        assert values["value.deserializer"] == "${env:NOT_SET_FOR_US}"

    @pytest.mark.parametrize(
        ("lines", "said"),
        [
            ([*declared("env", "EnvVarConfigProvider"), "sasl.password=${env:NOT_SET}"], "names nothing"),
            (
                [*declared("e", "EnvVarConfigProvider", **{"allowlist.pattern": "PUBLIC_.*"})]
                + ["sasl.password=${e:KAFKA_PASSWORD}"],
                "names nothing",
            ),
            (
                [*declared("f", "FileConfigProvider"), "sasl.password=${f:/no/such/file:password}"],
                "cannot be read: No such file",
            ),
            (
                [*declared("d", "DirectoryConfigProvider", **{"allowed.paths": "/elsewhere"})]
                + ["sasl.password=${d:DIR:user.password}"],
                "cannot be read: not below allowed.paths",
            ),
            (
                ["config.providers=vault", "config.providers.vault.class=com.x.VaultConfigProvider"]
                + ["sasl.password=${vault:a:b}"],
                "com.x.VaultConfigProvider, which kgroup cannot run",
            ),
        ],
    )
    def test_what_cannot_be_resolved_is_an_error_not_a_password(self, lines, said, tmp_path):
        file = written(tmp_path, *(line.replace("DIR", str(tmp_path)) for line in lines))
        with pytest.raises(ConfigError, match=said) as raised:
            read_command_config(file)
        assert "s3cret" not in str(raised.value)

    def test_a_reference_without_its_provider_stays_text_as_in_kafka(self, tmp_path):
        file = written(tmp_path, "sasl.password=${env:KAFKA_PASSWORD}")
        assert read_command_config(file)["sasl.password"] == "${env:KAFKA_PASSWORD}"


@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-8", "utf-8-sig"])
def test_a_file_of_any_encoding_that_java_users_have(encoding, tmp_path):
    assert read_command_config(written(tmp_path, "client.id=müller", encoding=encoding)) == {
        "client.id": "müller"
    }


def test_a_misspelt_key_is_named(on_cluster, tmp_path):
    file = written(tmp_path, "security.protocl=SSL", "group.id=orders", "fetch.max.wait.ms=1")
    ran = on_cluster("list", "--command-config", str(file))
    assert ran.code == ExitCode.OK
    assert [line for line in ran.err.splitlines() if line.startswith("warning: ")] == [
        f"warning: {file}: no setting is called security.protocl; did you mean security.protocol?"
    ]


def test_properties_of_other_clients_are_not_taken_for_mistakes():
    known = [
        "auto.offset.reset",
        "client.dns.lookup",
        "client.rack",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "enable.auto.commit",
        "fetch.max.wait.ms",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "heartbeat.interval.ms",
        "interceptor.classes",
        "key.deserializer",
        "max.poll.interval.ms",
        "metadata.max.age.ms",
        "metric.reporters",
        "partition.assignment.strategy",
        "retry.backoff.ms",
        "session.timeout.ms",
        "send.buffer.bytes",
        "acks",
        "linger.ms",
        "socket.connection.setup.timeout.ms",
        "delivery.timeout.ms",
        "transactional.id",
        "value.serializer",
        "retries",
        "sasl.server.callback.handler.class",
        "ssl.client.auth",
        "schema.registry.url",
        "basic.auth.user.info",
        "socket.timeout.ms",
        "metadata.broker.list",
        "debug",
        "statistics.interval.ms",
        "compression.codec",
        "bootstrap.controllers",
        "config.providers",
        "config.providers.env.class",
        "plugin.library.paths",
    ]
    assert list(misspelt(known)) == []


def test_a_jaas_line_without_its_semicolon_is_refused_as_kafka_does():
    values = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'org.x.PlainLoginModule required username="u" password="p"',
    }
    with pytest.raises(ConfigError, match="it does not end with a semicolon"):
        security_of(Given(values))
    closed = {**values, "sasl.jaas.config": values["sasl.jaas.config"] + ";"}
    assert security_of(Given(closed)).credentials is not None

"""sasl.jaas.config of every login module, and what is around it: read as Java does, refused in words."""

from __future__ import annotations

import pytest

from kgroup.client.auth.credentials import AwsLogin, AwsToken, Bearer, Kerberos, Password
from kgroup.client.properties import catalogue
from kgroup.client.properties.given import Given
from kgroup.client.properties.security import credentials_of, security_of
from kgroup.errors import ConfigError
from kgroup.security.jaas import parse_jaas

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
IAM = "software.amazon.msk.auth.iam.IAMLoginModule"
REMARKS = f'{SCRAM} required\n  username="ops" // a remark\n  /* and\n more */ password="p";'
KRB5 = "com.sun.security.auth.module.Krb5LoginModule"


def credentials(mechanism: str, jaas: str | None = None, **properties: str) -> object:
    given = {"sasl.mechanism": mechanism, **{n.replace("_", "."): v for n, v in properties.items()}}
    return credentials_of(Given(given | ({"sasl.jaas.config": jaas} if jaas is not None else {})))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{SCRAM} required;", {}),
        (
            f'{SCRAM} required username="ops" password="a;b\\"c=d" ;',
            {"username": "ops", "password": 'a;b"c=d'},
        ),
        (f"{SCRAM} REQUIRED username='o\"ps' password=plain;", {"username": 'o"ps', "password": "plain"}),
        (REMARKS, {"username": "ops", "password": "p"}),
        (f'{SCRAM} required password="tab\\there \\101\\\\";', {"password": "tab\there A\\"}),
        (
            f'{SCRAM} required extension_a-b="x" url="https://x/y?z";',
            {"extension_a-b": "x", "url": "https://x/y?z"},
        ),
    ],
)
def test_options_quotes_escapes_and_remarks(text: str, options: dict[str, str]) -> None:
    found = parse_jaas(text)
    assert (found.name, dict(found.options)) == ("ScramLoginModule", options)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hunter2 required;", "begins with no login module"),
        ("hunter2;", "no `required` behind"),
        (f"{SCRAM};", "no `required` behind"),
        (f"{SCRAM} hunter2=x;", "no `required` behind"),
        (f'{SCRAM} required username="hunter2;', "a quote that is not closed"),
        (f"{SCRAM} required hunter2;", "option 1 of the login module is not name"),
        (f'{SCRAM} required username="a" hunter2 = ;', "option 2 of the login module is not name"),
        (f"{SCRAM} required; {IAM} required hunter2=x;", "more behind its login module"),
    ],
)
def test_what_is_no_jaas_is_refused_without_its_secrets(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        credentials("SCRAM-SHA-256", text)
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "scram-sha-512"])
def test_passwords(mechanism: str) -> None:
    module = SCRAM if "SCRAM" in mechanism.upper() else SCRAM.replace("scram.Scram", "plain.Plain")
    login = Password(mechanism.upper(), "ops", "p")
    assert credentials(mechanism, f'{module} required username="ops" password="p";') == login
    assert credentials(mechanism, sasl_username="ops", sasl_password="p") == login
    # What is said outright outweighs what the login module says, as when -X corrects a file.
    assert (
        credentials(mechanism, f'{module} required username="ops" password="x";', sasl_password="p") == login
    )


def test_a_delegation_token() -> None:
    jaas = f'{SCRAM} required username="id" password="hmac" tokenauth="true";'
    assert credentials("SCRAM-SHA-256", jaas) == Password("SCRAM-SHA-256", "id", "hmac", is_token=True)


def test_aws() -> None:
    assert credentials("AWS_MSK_IAM", f"{IAM} required;") == AwsLogin()
    role = 'awsRoleArn="arn:x" awsRoleSessionName="s" awsStsRegion="eu-west-1"'
    jaas = f'{IAM} required awsProfileName="ops" {role};'
    assert credentials("AWS_MSK_IAM", jaas) == AwsLogin("ops", "arn:x", "s", None, "eu-west-1")


def test_msks_handler_for_oauthbearer() -> None:
    handler = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
    found = credentials("OAUTHBEARER", **{"sasl.login.callback.handler.class": handler})
    assert isinstance(found, Bearer) and found.source == AwsToken(AwsLogin())


def test_kerberos() -> None:
    keytab = f'{KRB5} required useKeyTab=true storeKey=true keyTab="/k.keytab" principal="a@R";'
    assert credentials("GSSAPI", keytab, **{"sasl.kerberos.service.name": "kafka"}) == Kerberos(
        "kafka", "a@R", "/k.keytab"
    )
    cache = f'{KRB5} required useTicketCache=true ticketCache="/tmp/cc" serviceName="kafka";'
    assert credentials("GSSAPI", cache) == Kerberos("kafka", cache="/tmp/cc")
    assert credentials("", **{"sasl.kerberos.service.name": "kafka"}) == Kerberos("kafka"), "Java's default"


@pytest.mark.parametrize(
    ("mechanism", "jaas", "more", "words"),
    [
        ("FOO", None, {}, "cannot authenticate with sasl.mechanism FOO"),
        ("PLAIN", None, {"sasl.username": "u"}, "there is no password"),
        ("PLAIN", None, {"sasl.password": "hunter2"}, "there is no user name"),
        ("PLAIN", f'{SCRAM} required username="u" password="hunter2";', {}, "wants PlainLoginModule"),
        ("GSSAPI", None, {}, "needs the brokers' service name"),
        ("GSSAPI", f'{KRB5} required serviceName="a";', {"sasl.kerberos.service.name": "b"}, "differ"),
        (
            "GSSAPI",
            f'{KRB5} required useKeyTab=true keyTab="/k" serviceName="a";',
            {},
            "a keytab holds keys of several principals",
        ),
    ],
)
def test_what_is_missing_or_does_not_fit(
    mechanism: str, jaas: str | None, more: dict[str, str], words: str
) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        credentials(mechanism, jaas, **more)
    assert caught.value.hint and "hunter2" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("name", sorted(catalogue.REFUSED))
def test_what_would_change_who_is_trusted_is_refused_with_a_way_out(name: str) -> None:
    protocol = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
    with pytest.raises(ConfigError, match=f"{name} .*cannot be used here") as caught:
        security_of(Given({**protocol, name: "com.example.Own"}, {name: "client.properties"}))
    assert caught.value.hint == catalogue.REFUSED[name]
    for harmless in catalogue.AS_DEFAULT.get(name, ()):
        assert security_of(Given({"security.protocol": "SSL", name: harmless})).tls is not None


@pytest.mark.parametrize(
    "name",
    ["sasl.login.callback.handler.class", "sasl.client.callback.handler.class", "sasl.login.class"],
)
def test_java_classes_of_ones_own_are_refused(name: str) -> None:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", name: "com.example.OwnHandler"}
    with pytest.raises(ConfigError, match=f"{name} names a Java class that kgroup cannot run"):
        security_of(Given(given))


def test_what_a_config_provider_would_fill_in_is_not_sent_as_it_is() -> None:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
    given["sasl.password"] = "${env:KAFKA_PASSWORD}"
    assert security_of(Given(given)).credentials == Password("PLAIN", "u", "${env:KAFKA_PASSWORD}")
    with pytest.raises(ConfigError, match=r"sasl.password is filled in by config.providers") as caught:
        security_of(Given({**given, "config.providers": "env"}))
    assert "sasl.password-env=VARIABLE" in (caught.value.hint or "")


def test_nothing_is_read_for_plaintext() -> None:
    given = {"security.protocol": "PLAINTEXT", "ssl.engine.factory.class": "x", "sasl.mechanism": "FOO"}
    assert security_of(Given(given)).protocol == "PLAINTEXT"


def test_every_property_of_kafkas_security_is_known_by_one_kind() -> None:
    kinds = (catalogue.USED, catalogue.SECRET, catalogue.WITHOUT_EFFECT.keys(), catalogue.REFUSED.keys())
    for at, kind in enumerate(kinds):
        for other in kinds[at + 1 :]:
            assert not kind & other
    assert set(KAFKA) - catalogue.KNOWN == set()


# SslConfigs, SaslConfigs and SecurityConfig of kafka-clients 4.3.1; the interop suite asks the jar itself.
KAFKA = [
    "ssl.protocol",
    "ssl.provider",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.keystore.type",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.key.password",
    "ssl.truststore.type",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.keymanager.algorithm",
    "ssl.trustmanager.algorithm",
    "ssl.endpoint.identification.algorithm",
    "ssl.secure.random.implementation",
    "ssl.engine.factory.class",
    "sasl.mechanism",
    "sasl.jaas.config",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.kerberos.service.name",
    "sasl.kerberos.kinit.cmd",
    "sasl.kerberos.ticket.renew.window.factor",
    "sasl.kerberos.ticket.renew.jitter",
    "sasl.kerberos.min.time.before.relogin",
    "sasl.login.refresh.window.factor",
    "sasl.login.refresh.window.jitter",
    "sasl.login.refresh.min.period.seconds",
    "sasl.login.refresh.buffer.seconds",
    "sasl.login.connect.timeout.ms",
    "sasl.login.read.timeout.ms",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.jwt.validator.class",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.scope.claim.name",
    "sasl.oauthbearer.sub.claim.name",
    "sasl.oauthbearer.token.endpoint.url",
    "sasl.oauthbearer.jwks.endpoint.url",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
    "sasl.oauthbearer.clock.skew.seconds",
    "sasl.oauthbearer.expected.audience",
    "sasl.oauthbearer.expected.issuer",
    "sasl.oauthbearer.header.urlencode",
    "security.providers",
    "security.protocol",
]

"""AWS_MSK_IAM: the object a broker is shown, its signature made again by the rules AWS publishes."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from botocore.credentials import ReadOnlyCredentials

from kgroup.client.auth import msk_iam
from kgroup.client.auth.credentials import AwsLogin, AwsToken
from kgroup.client.auth.tokens import fetch
from kgroup.errors import BrokerRefused, ConfigError

HOST = "b-1.demo.abcde.c2.kafka.eu-west-1.amazonaws.com"
KEY, SECRET, SESSION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token=="


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Credentials of the environment and of nothing else."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", SESSION)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/no/such/config")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/no/such/credentials")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield monkeypatch


def signature_of(query: dict[str, str], host: str, region: str) -> str:
    """Signature Version 4 of a presigned GET, as AWS's general reference writes it down."""
    rest = {name: value for name, value in query.items() if name not in ("X-Amz-Signature", "User-Agent")}
    canonical = "&".join(f"{quote(n, safe='-_.~')}={quote(v, safe='-_.~')}" for n, v in sorted(rest.items()))
    nothing = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{canonical}\nhost:{host}\n\nhost\n{nothing}"
    day = query["X-Amz-Date"][:8]
    scope = f"{day}/{region}/kafka-cluster/aws4_request"
    hashed = hashlib.sha256(request.encode()).hexdigest()
    to_sign = f"AWS4-HMAC-SHA256\n{query['X-Amz-Date']}\n{scope}\n{hashed}"
    key = f"AWS4{SECRET}".encode()
    for part in (day, region, "kafka-cluster", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()


def as_query(fields: dict[str, str]) -> dict[str, str]:
    """The query a broker makes of the object to check it."""
    names = ("Algorithm", "Credential", "Date", "Expires", "Security-Token", "SignedHeaders", "Signature")
    spelt = {f"x-amz-{name.lower()}": f"X-Amz-{name}" for name in names}
    return {spelt[n]: v for n, v in fields.items() if n in spelt} | {"Action": fields["action"]}


def test_the_object_is_aws_msk_iam_auths_and_its_signature_holds() -> None:
    said = msk_iam.exchange(AwsLogin(), HOST, 10)
    fields = json.loads(next(said))
    assert set(fields) == {
        "version",
        "host",
        "user-agent",
        "action",
        "x-amz-algorithm",
        "x-amz-credential",
        "x-amz-date",
        "x-amz-expires",
        "x-amz-security-token",
        "x-amz-signedheaders",
        "x-amz-signature",
    }
    assert (fields["version"], fields["host"], fields["action"]) == (
        "2020_10_22",
        HOST,
        "kafka-cluster:Connect",
    )
    assert (fields["x-amz-expires"], fields["x-amz-signedheaders"]) == ("900", "host")
    assert fields["x-amz-security-token"] == SESSION
    assert (
        fields["x-amz-credential"].startswith(f"{KEY}/")
        and "/eu-west-1/kafka-cluster/" in fields["x-amz-credential"]
    )
    assert fields["x-amz-signature"] == signature_of(as_query(fields), HOST, "eu-west-1")
    assert SECRET not in json.dumps(fields)
    with pytest.raises(StopIteration):
        said.send(b'{"version":"2020_10_22","request-id":"r"}')


def test_a_signature_of_a_known_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    monkeypatch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: moment)
    found = msk_iam.Signer(ReadOnlyCredentials(KEY, SECRET, None), "us-east-1")
    fields = json.loads(msk_iam.payload(found, "broker"))
    assert fields["x-amz-date"] == "20260102T030405Z"
    assert fields["x-amz-signature"] == signature_of(as_query(fields), "broker", "us-east-1")
    assert "x-amz-security-token" not in fields


@pytest.mark.parametrize("answer", [b"", b"no json", b"[]", b'{"version":"1999"}'])
def test_a_broker_that_is_not_amazons(answer: bytes) -> None:
    said = msk_iam.exchange(AwsLogin(), HOST, 10)
    next(said)
    with pytest.raises(BrokerRefused, match="the broker's side of the exchange does not hold"):
        said.send(answer)


@pytest.mark.parametrize(
    ("host", "region"),
    [
        (HOST, "eu-west-1"),
        ("boot-x.c1.kafka-serverless.us-east-1.amazonaws.com", "us-east-1"),
        ("b-1.x.kafka.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        ("kafka.internal", "ap-south-1"),
    ],
)
def test_the_region_is_the_brokers_else_the_environments(
    host: str, region: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    assert msk_iam.signer(AwsLogin(), host).region == region


def test_a_bearer_token_for_msks_other_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    token = fetch(AwsToken(AwsLogin()), 10)
    url = base64.urlsafe_b64decode(token.text + "=" * (-len(token.text) % 4)).decode()
    query = dict(parse_qsl(urlsplit(url).query))
    assert url.startswith("https://kafka.eu-west-1.amazonaws.com/?") and query["User-Agent"].startswith(
        "kgroup/"
    )
    signed = {name: value for name, value in query.items() if name != "User-Agent"}
    assert query["X-Amz-Signature"] == signature_of(signed, "kafka.eu-west-1.amazonaws.com", "eu-west-1")
    assert token.begins is not None and token.ends is not None and token.ends - token.begins == 900


def test_nobody_is_logged_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    with pytest.raises(BrokerRefused, match="no AWS credentials are found here") as caught:
        msk_iam.exchange(AwsLogin(), HOST, 10)
    assert caught.value.name == "SASL_AUTHENTICATION_FAILED"


def test_a_profile_that_is_not_there() -> None:
    with pytest.raises(BrokerRefused, match=r"AWS gives no credentials: .*nosuch"):
        msk_iam.exchange(AwsLogin(profile="nosuch"), HOST, 10)


def test_no_region() -> None:
    with pytest.raises(ConfigError, match="broker: the AWS region is not known") as caught:
        msk_iam.exchange(AwsLogin(), "broker", 10)
    assert caught.value.hint == "set AWS_REGION"

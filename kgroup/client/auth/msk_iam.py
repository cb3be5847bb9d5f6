"""AWS_MSK_IAM: a request signed with the AWS login (Signature Version 4) proves our identity.

The exchange is that of aws-msk-iam-auth, version 2020_10_22: one JSON object each way. Needs botocore, which
finds credentials where every AWS tool does.
"""

from __future__ import annotations

import base64
import json
import os
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from kgroup.client.auth.bounded import within
from kgroup.client.auth.credentials import MSK_IAM, AwsLogin
from kgroup.client.auth.exchanges import Exchange, broker_is_wrong, not_authenticated
from kgroup.errors import ConfigError
from kgroup.extras import require_extra
from kgroup.version import __version__

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials
    from botocore.session import Session

_VERSION = "2020_10_22"
_ACTION = "kafka-cluster:Connect"
_LIVES_S = 900
_REGION_IN_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\.?$")
_AGENT = f"kgroup/{__version__}"


class Signer(NamedTuple):
    """Credentials that can sign now, and the region they sign for."""

    credentials: ReadOnlyCredentials
    region: str


def exchange(login: AwsLogin, host: str, within_s: float) -> Exchange:
    """Send a signed request, valid for a quarter of an hour; the broker answers with an id of its own."""
    aws = within(
        within_s,
        lambda: signer(login, host),
        "AWS (where its credentials come from)",
        "AWS_PROFILE names a login; AWS_EC2_METADATA_DISABLED=true asks no instance for one",
    )
    return _exchange(payload(aws, host))


def _exchange(message: bytes) -> Exchange:
    answer = yield message
    try:
        version = json.loads(answer)["version"]
    except (ValueError, TypeError, KeyError):
        raise broker_is_wrong(MSK_IAM, "its answer is not AWS's") from None
    if version != _VERSION:
        raise broker_is_wrong(MSK_IAM, f"it answers in version {version}")


def payload(signer: Signer, host: str) -> bytes:
    """Return what broker `host` receives: a presigned request's query, keys in small letters."""
    query = dict(parse_qsl(urlsplit(_presigned(signer, host)).query))
    action = query.pop("Action")
    fields = {"version": _VERSION, "host": host, "user-agent": _AGENT, "action": action}
    return json.dumps(fields | {name.lower(): value for name, value in query.items()}).encode()


def bearer_token(login: AwsLogin) -> tuple[str, float]:
    """Return a bearer token for MSK's OAUTHBEARER listeners, and the seconds it lives: the request itself."""
    aws = signer(login, "")
    url = f"{_presigned(aws, f'kafka.{aws.region}.amazonaws.com')}&User-Agent={_AGENT.replace('/', '%2F')}"
    return base64.urlsafe_b64encode(url.encode()).rstrip(b"=").decode(), _LIVES_S


def _presigned(signer: Signer, host: str) -> str:
    from botocore.auth import SigV4QueryAuth
    from botocore.awsrequest import AWSRequest

    request = AWSRequest(method="GET", url=f"https://{host}/", params={"Action": _ACTION})
    SigV4QueryAuth(signer.credentials, "kafka-cluster", signer.region, expires=_LIVES_S).add_auth(request)
    return str(request.url)


def signer(login: AwsLogin, host: str) -> Signer:
    """Return the login's credentials, its role assumed, and the region of the broker or environment.

    ConfigError when botocore is missing or no region is known, BrokerRefused when AWS gives no credentials.
    """
    require_extra("aws", "AWS_MSK_IAM", "botocore")
    from botocore.exceptions import BotoCoreError, ClientError
    from botocore.session import Session

    try:
        session = Session(profile=login.profile)
        region = _region(session, host)
        credentials: ReadOnlyCredentials | None
        if login.role_arn:
            credentials = _role(session, login, region)
        else:
            own = session.get_credentials()
            credentials = own.get_frozen_credentials() if own else None
    except (BotoCoreError, ClientError) as error:
        # What AWS said, in one line; its errors name roles and profiles, never keys.
        raise not_authenticated(
            f"AWS gives no credentials: {' '.join(str(error).split())[:300]}",
            "`aws sts get-caller-identity` shows who you are there",
        ) from None
    if credentials is None:
        raise not_authenticated(
            "no AWS credentials are found here", "set AWS_PROFILE, or awsProfileName in sasl.jaas.config"
        )
    return Signer(credentials, region)


def _region(session: Session, host: str) -> str:
    """Return the broker's region, which its name holds; else the one that AWS's tools would use."""
    named = _REGION_IN_HOST.search(host)
    region = named[1] if named else os.environ.get("AWS_REGION") or session.get_config_variable("region")
    if not region:
        raise ConfigError(f"{host or 'OAUTHBEARER'}: the AWS region is not known", "set AWS_REGION")
    return str(region)


def _role(session: Session, login: AwsLogin, region: str) -> ReadOnlyCredentials:
    from botocore.credentials import ReadOnlyCredentials

    asked = {"RoleArn": login.role_arn, "RoleSessionName": login.role_session or "kgroup"}
    if login.external_id:
        asked["ExternalId"] = login.external_id
    sts = session.create_client("sts", region_name=login.sts_region or region)
    credentials = sts.assume_role(**asked)["Credentials"]
    return ReadOnlyCredentials(
        credentials["AccessKeyId"], credentials["SecretAccessKey"], credentials["SessionToken"]
    )

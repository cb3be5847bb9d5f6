"""Credentials: one frozen value for each way to authenticate, secrets never in `repr`.

Values only, so that settings can be made, compared and pickled without the libraries that use them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kgroup.client.tls.values import Tls

SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER, MSK_IAM, GSSAPI = "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI"
MECHANISMS = ("PLAIN", *SCRAM, OAUTHBEARER, MSK_IAM, GSSAPI)


@dataclass(frozen=True, slots=True)
class Password:
    """A user and a password for PLAIN or SCRAM; `is_token` for a delegation token's id and HMAC (KIP-48)."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    is_token: bool = False

    @property
    def who(self) -> str:
        return self.username


@dataclass(frozen=True, slots=True)
class GivenToken:
    """A bearer token as it was given: it cannot be renewed."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file that holds a bearer token; it is renewed by others, so it is read for each login."""

    location: str


@dataclass(frozen=True, slots=True)
class TokenCommand:
    """A command that prints a bearer token, run again for each one; `setting` is what errors call it."""

    arguments: tuple[str, ...] = field(repr=False)
    setting: str


@dataclass(frozen=True, slots=True)
class UnsecuredToken:
    """An unsigned token (RFC 7515 A.5), for brokers in tests; `options` as the login module's."""

    options: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SignedAssertion:
    """A JWT we make of `claims` and a template, and sign with the private key in `key_location` (KIP-1258).

    `algorithm` is RS256 or ES256; lifetimes are seconds.
    """

    key_location: str
    algorithm: str = "RS256"
    passphrase: str | None = field(default=None, repr=False)
    claims: Mapping[str, str] = field(default_factory=dict)
    template_location: str | None = None
    lives_s: int = 300
    not_before_s: int = 60
    with_id: bool = False


@dataclass(frozen=True, slots=True)
class TokenEndpoint:
    """A token endpoint, the authorities it is checked with (`tls`, None: the system's), and its retries.

    Times are seconds: between tries `backoff_s`, doubled each time, all tries within `longest_s`.
    """

    url: str
    tls: Tls | None = None
    backoff_s: float = 0.1
    longest_s: float = 10.0
    connect_timeout_s: float | None = None
    read_timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """OAuth 2's client credentials: an id with a secret, or with an assertion in its place (RFC 6749, 7523).

    With `bearer` the assertion itself is the grant (RFC 7523, 2.1). It is a file's path or made here.
    """

    endpoint: TokenEndpoint
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    scope: str | None = None
    url_encode: bool = False
    assertion: str | SignedAssertion | None = None
    bearer: bool = False


@dataclass(frozen=True, slots=True)
class AwsLogin:
    """Our AWS identity; all None is boto's own search: environment, profile, container, instance."""

    profile: str | None = None
    role_arn: str | None = None
    role_session: str | None = None
    external_id: str | None = None
    sts_region: str | None = None

    @property
    def mechanism(self) -> str:
        return MSK_IAM

    @property
    def who(self) -> str:
        return self.role_arn or (
            f"AWS profile {self.profile}" if self.profile else "the AWS login found here"
        )


@dataclass(frozen=True, slots=True)
class AwsToken:
    """A bearer token that the AWS login signs, for MSK's OAUTHBEARER listeners."""

    login: AwsLogin


TokenSource = GivenToken | TokenFile | TokenCommand | UnsecuredToken | ClientCredentials | AwsToken


@dataclass(frozen=True, slots=True)
class Renewal:
    """When a token is renewed, as Kafka's `sasl.login.refresh.*`: a part of its life, and seconds."""

    window: float = 0.8
    jitter: float = 0.05
    at_least_s: float = 60.0
    buffer_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Bearer:
    """OAUTHBEARER (RFC 7628): where its token comes from, and the extensions sent with it (KIP-342)."""

    source: TokenSource
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    renewal: Renewal = Renewal()

    @property
    def mechanism(self) -> str:
        return OAUTHBEARER

    @property
    def who(self) -> str:
        client = self.source.client_id if isinstance(self.source, ClientCredentials) else None
        return f"client {client}" if client else "the bearer of the token"


@dataclass(frozen=True, slots=True)
class Kerberos:
    """GSSAPI: the service's name, and our ticket: of a keytab, of a cache, else of the default cache."""

    service: str
    principal: str | None = None
    keytab: str | None = None
    cache: str | None = None

    @property
    def mechanism(self) -> str:
        return GSSAPI

    @property
    def who(self) -> str:
        return self.principal or "the Kerberos ticket found here"


Credentials = Password | Bearer | AwsLogin | Kerberos

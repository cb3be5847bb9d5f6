"""The credentials of a running command: an exchange for each connection, tokens kept and renewed."""

import time
from collections.abc import Callable

from kgroup.client.auth import kerberos, msk_iam, oauthbearer, passwords
from kgroup.client.auth.credentials import AwsLogin, Bearer, Credentials, Password
from kgroup.client.auth.exchanges import Exchange
from kgroup.client.auth.tokens import Tokens

_CLOCK = "is this machine's clock right (date -u)?"


class Login:
    """The credentials of one command; all its connections share the tokens got with them."""

    def __init__(self, credentials: Credentials, wall: Callable[[], float] = time.time) -> None:
        self.credentials = credentials
        self._wall = wall
        self._tokens: Tokens | None = None

    @property
    def mechanism(self) -> str:
        return self.credentials.mechanism

    @property
    def who(self) -> str:
        """The identity, as errors name it; never a secret."""
        return self.credentials.who

    def exchange(self, host: str, within_s: float) -> Exchange:
        """Return the tokens to exchange with the broker `host`; what is fetched first is fetched in time.

        Unreachable if there is no answer in time, BrokerRefused if another service rejects the credentials,
        ConfigError if they cannot be used.
        """
        credentials = self.credentials
        if isinstance(credentials, Password):
            return passwords.exchange(credentials)
        if isinstance(credentials, Bearer):
            if self._tokens is None:
                self._tokens = Tokens(credentials, self._wall)
            return oauthbearer.exchange(self._tokens.current(within_s), credentials.extensions)
        if isinstance(credentials, AwsLogin):
            return msk_iam.exchange(credentials, host, within_s)

        return kerberos.exchange(credentials, host, within_s)

    def hint(self) -> str:
        """Return what to check when a broker rejects the credentials."""
        credentials = self.credentials
        if isinstance(credentials, Password):
            return "check user name, password and mechanism"
        if isinstance(credentials, Bearer):
            return f"does the broker trust the token's issuer, audience and scope? {_CLOCK}"
        if isinstance(credentials, AwsLogin):
            return f"may this AWS identity do kafka-cluster:Connect here? {_CLOCK}"
        return f"is sasl.kerberos.service.name the brokers'? klist shows the tickets; {_CLOCK}"

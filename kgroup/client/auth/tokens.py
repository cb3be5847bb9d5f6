"""Bearer tokens: where one comes from, how long it lives, and when the next is fetched."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from kgroup.client.auth.bounded import within
from kgroup.client.auth.credentials import (
    AwsToken,
    Bearer,
    ClientCredentials,
    GivenToken,
    Renewal,
    TokenCommand,
    TokenFile,
    TokenSource,
    UnsecuredToken,
)
from kgroup.client.auth.exchanges import not_authenticated
from kgroup.client.auth.msk_iam import bearer_token
from kgroup.client.auth.oidc import fetch_token, shown_url
from kgroup.client.auth.printed import printed_by
from kgroup.client.auth.token import Token, read_token
from kgroup.client.auth.unsecured import unsecured_token
from kgroup.errors import ConfigError, KgroupError


class Tokens:
    """The current token of a source, renewed before it ends as Kafka's refreshing login does."""

    def __init__(
        self,
        bearer: Bearer,
        wall: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._source, self._renewal = bearer.source, bearer.renewal
        self._wall, self._chance = wall, chance
        self._token: Token | None = None
        self._renew_at = float("inf")

    def current(self, within_s: float) -> str:
        """A token that has not ended; one that should be renewed and cannot be is used while it lives."""
        now = self._wall()
        if self._token is None or now >= self._renew_at:
            try:
                token = self._fetched(within_s)
            except KgroupError:
                if self._token is None or self._token.ends is None or now >= self._token.ends:
                    raise
            else:
                self._token, self._renew_at = token, renewal_time(token, now, self._renewal, self._chance())
        assert self._token is not None
        return self._token.text

    def _fetched(self, within_s: float) -> Token:
        token = within(
            within_s,
            lambda: fetch(self._source, within_s, self._wall),
            f"the source of the bearer token ({_name(self._source)})",
            "is it up and reachable from here? a longer --timeout may help",
        )
        now = self._wall()
        if token.ends is not None and token.ends <= now:
            raise not_authenticated(
                f"the bearer token ended {now - token.ends:.0f} s ago",
                "get a fresh one; if it is fresh, this machine's clock is wrong (date -u)",
            )
        return token


def renewal_time(token: Token, now: float, renewal: Renewal, chance: float) -> float:
    """When to fetch the next one (as Kafka's refreshing login): at once if its end is unknown."""
    if token.ends is None:
        return now
    part = renewal.window + renewal.jitter * chance
    if now + renewal.at_least_s + renewal.buffer_s > token.ends:
        return now + (token.ends - now) * part
    begins = token.begins if token.begins is not None else now
    proposed = min(begins + (token.ends - begins) * part, token.ends - renewal.buffer_s)
    return max(proposed, now + renewal.at_least_s)


def fetch(source: TokenSource, within_s: float, wall: Callable[[], float] = time.time) -> Token:
    """A token from its source; a KgroupError says in one sentence why there is none."""
    if isinstance(source, GivenToken):
        return read_token(source.token)
    if isinstance(source, TokenFile):
        return read_token(_read(source))
    if isinstance(source, TokenCommand):
        return read_token(printed_by(source.arguments, source.setting, within_s))
    if isinstance(source, UnsecuredToken):
        return read_token(unsecured_token(source.options, wall()))
    if isinstance(source, AwsToken):
        return read_token(*bearer_token(source.login), now=wall())

    return fetch_token(source, within_s, wall)


def _read(source: TokenFile) -> str:
    try:
        text = Path(source.location).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"the bearer token's file {source.location} cannot be read: {said}") from None
    if not text:
        raise ConfigError(f"the bearer token's file {source.location} is empty")
    return text


def _name(source: TokenSource) -> str:
    if isinstance(source, ClientCredentials):
        return shown_url(source.endpoint.url)
    if isinstance(source, TokenFile):
        return source.location
    return source.setting if isinstance(source, TokenCommand) else "AWS"

"""`--rest`: the groups of a cluster reached by REST, for the commands that support it."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from kgroup.cli.declaring import option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.setting_names import REST_PASSWORD, REST_TOKEN, Resolved
from kgroup.cli.env.zookeeper import Opened as InZooKeeper
from kgroup.cli.env.zookeeper import open_groups as in_zookeeper
from kgroup.domain import Document, value
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.rest.api import Api, Login
    from kgroup.rest.groups import Groups

Rest = Annotated[
    str | None,
    option("--rest URL", "A cluster behind Confluent's REST API v3.", rich_help_panel="Cluster"),
]


@value
class Opened:
    """An open API, and its address."""

    groups: "Groups"
    api: "Api"

    def identity(self) -> Document:
        """Return the envelope's `cluster`: reached by its REST API, not by an address of a broker."""
        return {"id": self.groups.cluster_id(), "bootstrap": None, "rest": self.api.where}


@contextmanager
def open_groups(env: Env, url: str, *, longer_s: float = 0.0) -> Iterator[Opened]:
    """Open the groups of the cluster that the API at `url` serves; raise KgroupError if it is unusable.

    Each request, retries included, ends within --timeout (and `longer_s`), answered or not.
    """
    from kgroup.client.retry import Retry
    from kgroup.rest.api import Api, client, place_of
    from kgroup.rest.groups import Groups

    for flag, name in (("bootstrap_server", "-b"), ("local", "--local")):
        if flag in env.flags:
            raise ConfigError(f"--rest and {name} both name a cluster", "give one of them")
    endpoint = place_of(url)
    settings = replace(env, flags={**env.flags, "rest": url}).settings()
    login = _login(settings)
    plain = endpoint.base.startswith("http:")
    if plain and login.headers():
        env.note(f"warning: the login for {endpoint.base} goes unencrypted; https keeps it from being read")
    trust = None
    if not plain:
        from kgroup.cli.env.secrets import secret
        from kgroup.client.properties.given import Given
        from kgroup.client.properties.tls import tls_of
        from kgroup.client.tls.context import client_context

        files = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location")
        named = {name: settings.get(f"rest.{name}") for name in files}
        named["ssl.key.password"] = secret(settings, "rest.ssl.key.password")
        given = Given({name: value for name, value in named.items() if value is not None})
        trust = client_context(tls_of(given))
    with client(login, trust) as opened:
        api = Api(endpoint, opened, Retry(timeout_s=settings.timeout_s() + longer_s))
        yield Opened(Groups(api), api)


def elsewhere(
    env: Env, zookeeper: str | None, rest: str | None, *, longer_s: float = 0.0
) -> "AbstractContextManager[Opened | InZooKeeper] | None":
    """Return the groups where one of the two options names them; None without. Raise ConfigError for both."""
    one_source(zookeeper, rest)
    if zookeeper is not None:
        return in_zookeeper(env, zookeeper, longer_s=longer_s)
    return None if rest is None else open_groups(env, rest, longer_s=longer_s)


def one_source(zookeeper: str | None, rest: str | None) -> None:
    """Raise ConfigError where two options name a cluster."""
    if zookeeper is not None and rest is not None:
        raise ConfigError("--rest and --zookeeper both name a cluster", "give one of them")


def refuse(url: str | None, **given: tuple[object, str]) -> None:
    """Raise ConfigError for a given option that does not apply to groups by REST, with the reason."""
    for name, (said, why) in given.items():
        if url is not None and said:
            raise ConfigError(f"--{name.replace('_', '-')} goes with no --rest", why)


def _login(settings: "Resolved") -> "Login":
    from kgroup.cli.env.secrets import secret_or_file
    from kgroup.rest.api import Login

    token = secret_or_file(settings, REST_TOKEN)
    password = secret_or_file(settings, REST_PASSWORD)
    username = settings.get("rest.username")
    if token is not None and (username is not None or password is not None):
        raise ConfigError("rest.token and rest.username are two logins", "keep one of them")
    if (username is None) != (password is None):
        raise ConfigError(
            "a login by REST needs a name and a password", "set rest.username and rest.password"
        )
    for name, given in ((REST_TOKEN, token), ("rest.username", username), (REST_PASSWORD, password)):
        if given is not None and not (given.isprintable() and given.isascii()):
            raise ConfigError(f"{name} holds characters that no header can carry", "is it one line of ASCII?")
    return Login(token, username, password)

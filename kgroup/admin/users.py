"""The users that brokers authenticate by SCRAM: list, set and remove them (KIP-554)."""

import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import ItemError
from kgroup.admin.read.visibility import DESCRIBE_BIT, NOT_ASKED, cluster_operations
from kgroup.admin.refusals import check, item_error, refused
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode
from kgroup.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kgroup.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kgroup.security.rights import ALTER, DESCRIBE, on_cluster
from kgroup.security.scram import MAX_ITERATIONS, MIN_ITERATIONS, SALT_BYTES, ScramMechanism, salted


@dataclass(frozen=True, slots=True)
class ScramEntry:
    """A mechanism that a user has a password for."""

    mechanism: str
    iterations: int


@dataclass(frozen=True, slots=True)
class ScramUser:
    """A user with the mechanisms of SCRAM, by name."""

    user: str
    mechanisms: tuple[ScramEntry, ...]


class Users:
    """The SCRAM users of a cluster."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster

    def list(self, names: Iterable[str] = ()) -> tuple[tuple[ScramUser, ...], tuple[ItemError, ...]]:
        """Return the users named, or all, by name, and errors for those named; raise BrokerRefused."""
        asked = tuple(UserName(name=name) for name in dict.fromkeys(names)) or None
        request = DescribeUserScramCredentialsRequest(users=asked)

        if asked is None:
            # Kafka 4.3.1 leaves the request unanswered where users may not be described.
            try:
                operations = cluster_operations(self._cluster)
            except BrokerRefused:
                operations = NOT_ASKED  # unknown whether it may: then the request itself will show it
            if operations != NOT_ASKED and not operations & DESCRIBE_BIT:
                code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                raise refused(code, "describing SCRAM users", needs=[on_cluster(DESCRIBE)])
        answer = self._cluster.ask_controller(request, DescribeUserScramCredentialsResponse)
        check(answer.error_code, "describing SCRAM users", answer.error_message, [on_cluster(DESCRIBE)])
        users, errors = [], []
        for result in sorted(answer.results, key=lambda result: result.user):
            if result.error_code:
                error = refused(
                    result.error_code, f"user {result.user}", result.error_message, [on_cluster(DESCRIBE)]
                )
                errors.append(item_error(result.user, error))
                continue
            entries = (
                ScramEntry(_spelling(info.mechanism), info.iterations) for info in result.credential_infos
            )
            users.append(ScramUser(result.user, tuple(sorted(entries, key=lambda entry: entry.mechanism))))
        return tuple(users), tuple(errors)

    def set(self, user: str, password: str, mechanisms: Collection[str], iterations: int) -> None:
        """Set a user's password for these mechanisms, one by one; its other credentials stay.

        The password is salted here: the broker does not learn it. Raise ConfigError if it is empty,
        BrokerRefused.
        """
        if not password:
            raise ConfigError("the password is empty")
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise ConfigError(f"iterations must be between {MIN_ITERATIONS} and {MAX_ITERATIONS}")
        for mechanism in map(_mechanism, mechanisms):
            salt = secrets.token_bytes(SALT_BYTES)
            change = ScramCredentialUpsertion(
                name=user,
                mechanism=mechanism,
                iterations=iterations,
                salt=salt,
                salted_password=salted(mechanism, password, salt, iterations),
            )
            _alter(
                self._cluster, AlterUserScramCredentialsRequest(upsertions=(change,)), f"setting user {user}"
            )

    def remove(self, user: str, mechanisms: Collection[str] = ()) -> tuple[str, ...]:
        """Remove a user's credentials for these mechanisms, or for all it has; return which those were.

        Raise BrokerRefused with RESOURCE_NOT_FOUND for a user who has none.
        """
        chosen = tuple(map(_mechanism, mechanisms))
        if not chosen:
            known, errors = self.list([user])
            if errors:
                code = ErrorCode.__members__.get(errors[0].code, ErrorCode.UNKNOWN_SERVER_ERROR)
                missing = code is ErrorCode.RESOURCE_NOT_FOUND
                detail = "there is no such user" if missing else errors[0].message
                raise refused(code, f"removing user {user}", detail, [on_cluster(ALTER)])
            chosen = tuple(_mechanism(entry.mechanism) for user in known for entry in user.mechanisms)
        for mechanism in chosen:
            change = ScramCredentialDeletion(name=user, mechanism=mechanism)
            _alter(
                self._cluster, AlterUserScramCredentialsRequest(deletions=(change,)), f"removing user {user}"
            )
        return tuple(mechanism.spelling for mechanism in chosen)


def _alter(cluster: ClusterView, request: AlterUserScramCredentialsRequest, what: str) -> None:
    # Setting a password twice is safe; a repeated removal reports "not found", so do not retry it.
    again = bool(request.upsertions)
    answer = cluster.ask_controller(request, AlterUserScramCredentialsResponse, idempotent=again)
    for result in answer.results:
        check(result.error_code, what, result.error_message, [on_cluster(ALTER)])


def _mechanism(spelling: str) -> ScramMechanism:
    try:
        return ScramMechanism.named(spelling.upper())
    except ValueError:
        known = ", ".join(mechanism.spelling for mechanism in ScramMechanism)
        raise ConfigError(f"{spelling} is not a SCRAM mechanism", f"there are {known}") from None


def _spelling(number: int) -> str:
    try:
        return ScramMechanism(number).spelling
    except ValueError:
        return f"UNKNOWN({number})"

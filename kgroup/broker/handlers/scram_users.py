"""DescribeUserScramCredentials and AlterUserScramCredentials: the users of SCRAM (KIP-554).

The rules and their order are those of Kafka's ScramControlManager and ScramImage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import TypeAlias

from kgroup.broker.call import Call
from kgroup.broker.dispatch import Api, Dispatcher
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kgroup.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from kgroup.runtime.credentials import Key
from kgroup.security.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramCredential, ScramMechanism

Change: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion


def describe(
    broker: Dispatcher, call: Call[DescribeUserScramCredentialsRequest]
) -> DescribeUserScramCredentialsResponse:
    """Return the mechanisms and iterations of each user; RESOURCE_NOT_FOUND for one without any."""
    known = broker.cluster.credentials.known
    asked = Counter(user.name for user in call.body.users or ()) or Counter({user for user, _ in known})
    of_user: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), credential in sorted(known.items()):
        info = CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
        of_user.setdefault(user, []).append(info)
    results = []
    for user, times in asked.items():
        credentials = tuple(of_user.get(user, ()))
        code, message = ErrorCode.NONE, None
        if times > 1:
            code, credentials = ErrorCode.DUPLICATE_RESOURCE, ()
            message = "Cannot describe SCRAM credentials for the same user twice in a single request: " + user
        elif not credentials:
            code = ErrorCode.RESOURCE_NOT_FOUND
            message = "Attempt to describe a user credential that does not exist: " + user
        results.append(
            DescribeUserScramCredentialsResult(
                user=user, error_code=code, error_message=message, credential_infos=credentials
            )
        )
    return DescribeUserScramCredentialsResponse(results=tuple(results))


def alter(
    broker: Dispatcher, call: Call[AlterUserScramCredentialsRequest]
) -> AlterUserScramCredentialsResponse:
    """Change every user by itself, all valid ones together; one named twice is not changed at all."""
    request, credentials = call.body, broker.cluster.credentials
    changes: dict[str, tuple[Key, ScramCredential | None]] = {}
    refused: dict[str, Refused] = {}
    for change in _changes(request):
        if change.name in refused:
            continue
        try:
            if changes.pop(change.name, None) is not None:
                raise Refused(
                    ErrorCode.DUPLICATE_RESOURCE,
                    "A user credential cannot be altered twice in the same request",
                )
            changes[change.name] = _checked(change, credentials.known)
        except Refused as error:
            refused[change.name] = error
    credentials.change(dict(changes.values()))
    results = [AlterUserScramCredentialsResult(user=user) for user in changes]
    results += [
        AlterUserScramCredentialsResult(user=user, error_code=error.code, error_message=error.message)
        for user, error in refused.items()
    ]
    return AlterUserScramCredentialsResponse(results=tuple(results))


def _changes(request: AlterUserScramCredentialsRequest) -> list[Change]:
    return [*request.deletions, *request.upsertions]


def _checked(change: Change, known: Collection[Key]) -> tuple[Key, ScramCredential | None]:
    if not change.name:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    try:
        mechanism = ScramMechanism(change.mechanism)
    except ValueError:
        raise Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism") from None
    key = change.name, mechanism
    if isinstance(change, ScramCredentialDeletion):
        if key not in known:
            raise Refused(
                ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
            )
        return key, None
    if change.iterations < MIN_ITERATIONS:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > MAX_ITERATIONS:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return key, ScramCredential.of(mechanism, change.salted_password, change.salt, change.iterations)


APIS = (
    Api(DescribeUserScramCredentialsRequest, describe),
    Api(AlterUserScramCredentialsRequest, alter),
)

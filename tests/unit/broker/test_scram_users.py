"""The requests about SCRAM users, with the codes of Kafka's ScramControlManager and ScramImage."""

from __future__ import annotations

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kgroup.protocol.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from kgroup.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from kgroup.security.scram import ScramCredential, ScramMechanism

SHA_256, SHA_512 = 1, 2


def up(name: str, mechanism: int = SHA_256, iterations: int = 4096) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"p" * 32
    )


def down(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(
    transport: EmbeddedTransport, *changes: ScramCredentialUpsertion | ScramCredentialDeletion
) -> dict[str, ErrorCode]:
    request = AlterUserScramCredentialsRequest(
        deletions=tuple(c for c in changes if isinstance(c, ScramCredentialDeletion)),
        upsertions=tuple(c for c in changes if isinstance(c, ScramCredentialUpsertion)),
    )
    answer = transport.request(None, request)
    assert isinstance(answer, AlterUserScramCredentialsResponse)
    assert len({result.user for result in answer.results}) == len(answer.results)
    return {result.user: ErrorCode(result.error_code) for result in answer.results}


def described(transport: EmbeddedTransport, *names: str) -> dict[str, object]:
    users = tuple(UserName(name=name) for name in names) or None
    answer = transport.request(None, DescribeUserScramCredentialsRequest(users=users))
    assert isinstance(answer, DescribeUserScramCredentialsResponse)
    return {
        result.user: ErrorCode(result.error_code).name
        if result.error_code
        else [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in answer.results
    }


def test_users_come_are_described_and_go(transport: EmbeddedTransport) -> None:
    assert described(transport) == {}
    assert alter(transport, up("alice"), up("bob", SHA_512, 16384)) == {"alice": 0, "bob": 0}
    assert alter(transport, up("alice", SHA_512, 5000)) == {"alice": 0}
    assert described(transport) == {"alice": [(1, 4096), (2, 5000)], "bob": [(2, 16384)]}
    assert described(transport, "bob") == {"bob": [(2, 16384)]}
    assert alter(transport, down("alice"), up("alice2")) == {"alice": 0, "alice2": 0}
    assert described(transport, "alice") == {"alice": [(2, 5000)]}


def test_what_is_kept_is_made_of_the_salted_password(transport: EmbeddedTransport) -> None:
    alter(transport, up("alice"))
    kept = transport.cluster.credentials.find("alice", ScramMechanism.SCRAM_SHA_256)
    assert kept == ScramCredential.of(ScramMechanism.SCRAM_SHA_256, b"p" * 32, b"salt", 4096)
    assert kept is not None and b"p" * 32 not in (kept.stored_key, kept.server_key)


def test_each_user_is_refused_for_a_reason_of_its_own(transport: EmbeddedTransport) -> None:
    answers = alter(
        transport,
        up(""),
        up("few", iterations=4095),
        up("many", iterations=16385),
        up("unknown", mechanism=3),
        down("strange", mechanism=0),
        down("nobody"),
        up("good"),
    )
    assert answers == {
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "unknown": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "strange": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "good": ErrorCode.NONE,
    }
    assert set(described(transport)) == {"good"}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ((), ErrorCode.NONE),
        ((ComponentData(entity_type="user", match_type=0, match="alice"),), ErrorCode.NONE),
        ((ComponentData(entity_type="user", match_type=2),), ErrorCode.NONE),
        ((ComponentData(entity_type="user", match_type=0),), ErrorCode.INVALID_REQUEST),
        ((ComponentData(entity_type="user", match_type=1, match="x"),), ErrorCode.INVALID_REQUEST),
        ((ComponentData(entity_type="user", match_type=9),), ErrorCode.INVALID_REQUEST),
        ((ComponentData(entity_type="", match_type=1),), ErrorCode.INVALID_REQUEST),
        ((ComponentData(entity_type="rack", match_type=1),), ErrorCode.UNSUPPORTED_VERSION),
        ((ComponentData(entity_type="user", match_type=1),) * 2, ErrorCode.INVALID_REQUEST),
        (
            tuple(ComponentData(entity_type=kind, match_type=1) for kind in ("ip", "user")),
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_nobody_has_quotas(
    transport: EmbeddedTransport, components: tuple[ComponentData, ...], code: ErrorCode
) -> None:
    """kafka-configs asks for them before it shows a user."""
    answer = transport.request(None, DescribeClientQuotasRequest(components=components))
    assert isinstance(answer, DescribeClientQuotasResponse)
    assert (answer.error_code, answer.entries) == (code, None if code else ())


def test_who_is_named_twice_is_not_changed(transport: EmbeddedTransport) -> None:
    alter(transport, up("alice"))
    for twice in ([up("alice", SHA_512)] * 2, [down("alice"), up("alice", SHA_512)], [down("alice")] * 3):
        assert alter(transport, *twice) == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert described(transport) == {"alice": [(1, 4096)]}
    assert described(transport, "alice", "alice") == {"alice": "DUPLICATE_RESOURCE"}
    assert described(transport, "alice", "bob") == {"alice": [(1, 4096)], "bob": "RESOURCE_NOT_FOUND"}

"""Exit codes: an interface scripts rely on, and the one place that maps failures to them."""

from collections.abc import Collection
from enum import IntEnum

from kgroup.errors import (
    BrokerRefused,
    ConfigError,
    ErrorCode,
    KgroupError,
    SafetyRefused,
    StorageDenied,
    StorageMissing,
    StorageUnreachable,
    Unreachable,
)


class ExitCode(IntEnum):
    """The exit codes of the process; documented in docs/exit-codes.md."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    PARTIAL = 5
    NOT_AUTHORISED = 6
    UNREACHABLE = 7
    BAD_VERDICT = 8
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "Done.",
    ExitCode.FAILED: "Failed for a reason that has no code of its own.",
    ExitCode.USAGE: "Wrong usage: an option, environment variable, file or setting makes no sense.",
    ExitCode.NOT_FOUND: "The group, member, topic or name asked for does not exist.",
    ExitCode.REFUSED: "Refused by a safety check or by the coordinator: group active, plan stale, blocked.",
    ExitCode.PARTIAL: "Some items of a batch failed or could not be seen; the others are done.",
    ExitCode.NOT_AUTHORISED: "The cluster did not authenticate us, or does not allow this.",
    ExitCode.UNREACHABLE: "No broker could be reached, or none answered in time.",
    ExitCode.BAD_VERDICT: "The check ran and its verdict is bad (--fail-above, doctor, replay-log --verify).",
    ExitCode.INTERRUPTED: "Interrupted by Ctrl-C.",
    ExitCode.TERMINATED: "Ended by SIGTERM.",
}


class Failure(KgroupError):
    """A failure found by the command line itself, with the exit code it ends with.

    `code` is the stable name used in the JSON envelope's `errors`; `item` its subject.
    """

    def __init__(
        self, exit_code: ExitCode, code: str, message: str, hint: str | None = None, item: str | None = None
    ) -> None:
        super().__init__(message, hint)
        self.exit_code = exit_code
        self.code = code
        self.item = item


_NOT_FOUND = frozenset(
    {
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.RESOURCE_NOT_FOUND,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
)
_REFUSED = frozenset(
    {
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.POLICY_VIOLATION,
    }
)
_NOT_AUTHORISED = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ErrorCode.ILLEGAL_SASL_STATE,
    }
)
_UNREACHABLE = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


def of_kafka_code(code: int) -> ExitCode:
    """Return the exit code for a Kafka error code; codes without one of their own are FAILED."""
    if code == ErrorCode.NONE:
        return ExitCode.OK
    for codes, result in (
        (_NOT_FOUND, ExitCode.NOT_FOUND),
        (_REFUSED, ExitCode.REFUSED),
        (_NOT_AUTHORISED, ExitCode.NOT_AUTHORISED),
        (_UNREACHABLE, ExitCode.UNREACHABLE),
    ):
        if code in codes:
            return result
    return ExitCode.FAILED


_KINDS: tuple[tuple[tuple[type[KgroupError], ...], ExitCode, str], ...] = (
    ((Unreachable, StorageUnreachable), ExitCode.UNREACHABLE, "UNREACHABLE"),
    ((StorageDenied,), ExitCode.NOT_AUTHORISED, "NOT_AUTHORISED"),
    ((StorageMissing,), ExitCode.NOT_FOUND, "NOT_FOUND"),
    ((SafetyRefused,), ExitCode.REFUSED, "SAFETY_REFUSED"),
    ((ConfigError,), ExitCode.USAGE, "CONFIG_ERROR"),
    ((KgroupError,), ExitCode.FAILED, "FAILED"),
)


def of_error(error: KgroupError) -> ExitCode:
    """Return the exit code of a command that `error` ended."""
    if isinstance(error, Failure):
        return error.exit_code
    if isinstance(error, BrokerRefused):
        return of_kafka_code(error.code)
    return next(code for kinds, code, _ in _KINDS if isinstance(error, kinds))


def name_of(error: KgroupError) -> str:
    """Return the stable name for `errors[].code`: a Kafka error name or kgroup's own."""
    if isinstance(error, Failure):
        return error.code
    if isinstance(error, BrokerRefused):
        return error.name
    return next(name for kinds, _, name in _KINDS if isinstance(error, kinds))


def of_batch(failed: Collection[ExitCode], any_succeeded: bool) -> ExitCode:
    """Return the exit code of a batch: PARTIAL when some items failed, the common reason when all did."""
    if not failed:
        return ExitCode.OK
    if any_succeeded:
        return ExitCode.PARTIAL
    return next(iter(failed)) if len(set(failed)) == 1 else ExitCode.FAILED

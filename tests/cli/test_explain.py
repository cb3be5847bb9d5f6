"""`kgroup explain`: codes and states of both protocols."""

import jsonschema
import pytest

from kgroup.admin.codes import CODES
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.explanations import entries, lookup, near
from kgroup.cli.schemas import schema_for
from kgroup.errors import ErrorCode

OPERATORS_MEET = [
    "FENCED_INSTANCE_ID",
    "UNRELEASED_INSTANCE_ID",
    "STALE_MEMBER_EPOCH",
    "FENCED_MEMBER_EPOCH",
    "UNKNOWN_MEMBER_ID",
    "ILLEGAL_GENERATION",
    "REBALANCE_IN_PROGRESS",
    "NOT_COORDINATOR",
    "GROUP_ID_NOT_FOUND",
    "NON_EMPTY_GROUP",
    "GROUP_SUBSCRIBED_TO_TOPIC",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "MEMBER_ID_REQUIRED",
    "INCONSISTENT_GROUP_PROTOCOL",
    "GROUP_MAX_SIZE_REACHED",
    "INVALID_REGULAR_EXPRESSION",
    "UNSUPPORTED_ASSIGNOR",
    "UNKNOWN_SUBSCRIPTION_ID",
    "TRANSACTIONAL_ID_NOT_FOUND",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "COORDINATOR_NOT_AVAILABLE",
    "Stable",
    "Empty",
    "Dead",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "revoking",
    "waiting",
    "left",
]


@pytest.mark.parametrize("name", OPERATORS_MEET)
def test_has_a_cause_or_both_protocols(name):
    entry = lookup(name)
    assert entry is not None
    assert entry.meaning.endswith((".", ";"))
    assert entry.cause or (entry.classic and entry.consumer)


@pytest.mark.parametrize(
    ("printed", "name"),
    [
        ("org.apache.kafka.common.errors.FencedInstanceIdException", "FENCED_INSTANCE_ID"),
        (
            "org.apache.kafka.common.errors.RebalanceInProgressException: The group is",
            "REBALANCE_IN_PROGRESS",
        ),
        ("Caused by: org.apache.kafka.common.errors.GroupNotEmptyException: no", "NON_EMPTY_GROUP"),
        ("org.apache.kafka.common.errors.TimeoutException", "REQUEST_TIMED_OUT"),
        ("TopicAuthorizationException: Not authorized", "TOPIC_AUTHORIZATION_FAILED"),
        ("UnknownServerException", "UNKNOWN_SERVER_ERROR"),
        ("InvalidTopicException", "INVALID_TOPIC_EXCEPTION"),
        ("org.apache.kafka.common.errors.ProducerFencedException", "PRODUCER_FENCED"),
        (
            "org.apache.kafka.clients.consumer.CommitFailedException: Offset commit cannot be",
            "CommitFailedException",
        ),
        ("o.a.k.c.errors.RecordDeserializationException: Error", "RecordDeserializationException"),
        (
            "NoOffsetForPartitionException: Undefined offset with no reset policy",
            "NoOffsetForPartitionException",
        ),
    ],
)
def test_an_exception_as_a_log_prints_it(kgroup, printed, name):
    for argv in ((printed,), printed.split()):
        ran = kgroup("explain", *argv, "-o", "name")
        assert (ran.code, ran.out) == (0, f"{name}\n")


def test_every_error_code_is_found_by_its_exceptions_name():
    """FENCED_INSTANCE_ID is thrown as FencedInstanceIdException, with or without a package."""
    for code in ErrorCode:
        words = [word for word in code.name.split("_") if word not in ("EXCEPTION",)]
        thrown = "".join(word.capitalize() for word in words) + "Exception"
        for text in (thrown, f"org.apache.kafka.common.errors.{thrown}"):
            assert code == ErrorCode.NONE or lookup(text).name == code.name, text


def test_every_finding_says_what_to_do(kgroup):
    for code in CODES:
        out = kgroup("explain", code).out
        assert "\n  do        " in out and "\n  next      kgroup " in out, code


def test_several_terms_at_once(kgroup):
    ran = kgroup("explain", "KG301", "org.apache.kafka.common.errors.FencedInstanceIdException", "-o", "name")
    assert ran.out == "KG301\nFENCED_INSTANCE_ID\n"


def test_every_error_code_is_explained_with_its_number():
    known = {e.code for e in entries().values() if e.code is not None}
    assert known == {int(c) for c in ErrorCode if c != ErrorCode.NONE}


@pytest.mark.parametrize(
    ("term", "name"),
    [
        ("82", "FENCED_INSTANCE_ID"),
        ("fenced_instance_id", "FENCED_INSTANCE_ID"),
        ("fenced-instance-id", "FENCED_INSTANCE_ID"),
        ("FencedInstanceIdException", "FENCED_INSTANCE_ID"),
        ("UnknownMemberIdError", "UNKNOWN_MEMBER_ID"),
        ("-1", "UNKNOWN_SERVER_ERROR"),
        ("-2", "left"),
        ("RECONCILING", "Reconciling"),
        ("preparing-rebalance", "PreparingRebalance"),
        ("UnrevokedPartitions", "revoking"),
        ("group epoch", "member epoch"),
    ],
)
def test_found_by_number_spelling_and_class_name(term, name):
    entry = lookup(term)
    assert entry is not None and entry.name == name


@pytest.mark.parametrize(
    ("number", "name"),
    [
        ("134", "GROUP_DELETION_FAILED"),
        ("135", "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED"),
        ("136", "CONTROLLER_ID_NOT_REGISTERED"),
    ],
)
def test_what_4_4_added_is_explained_in_words_of_its_own(kgroup, number, name):
    by_number, by_name = (kgroup("explain", term, "-o", "json") for term in (number, name))
    assert (by_number.code, by_number.data) == (0, by_name.data)
    (entry,) = by_number.data["entries"]
    assert (entry["name"], entry["code"]) == (name, int(number))
    assert entry["cause"] and entry["next"] and "Kafka 4.4" in entry["meaning"]


def test_names_are_unique():
    listed = [e.name.lower() for e in entries().values()]
    assert len(listed) == len(set(listed))


def test_text_tells_both_protocols_cause_and_next_command(kgroup):
    ran = kgroup("explain", "UNRELEASED_INSTANCE_ID")
    assert ran.code == 0
    assert ran.out.startswith("UNRELEASED_INSTANCE_ID (111, not retriable)\n")
    for word in ("consumer  ", "cause  ", "next  ", "kgroup remove-members GROUP"):
        assert word in ran.out


def test_what_static_membership_is_good_for_is_told(kgroup):
    """SM-08: kept state before a fast reaction, a long session timeout, and how to remove a member."""
    ran = kgroup("explain", "group.instance.id")
    assert ran.out.startswith("static member (")
    for word in ("keeping state over reacting fast", "longer than a restart", "kgroup remove-members"):
        assert word in " ".join(ran.out.split())


def test_a_fenced_instance_points_at_its_double(kgroup):
    """SM-49: the words for FENCED_INSTANCE_ID."""
    assert "Two processes share one group.instance.id" in " ".join(kgroup("explain", "82").out.split())


def test_several_terms_and_json(kgroup):
    ran = kgroup("explain", "82", "Stable", "-o", "json")
    jsonschema.validate(ran.document, schema_for("explain"))
    assert [e["name"] for e in ran.document["data"]["entries"]] == ["FENCED_INSTANCE_ID", "Stable"]


def test_a_phrase_is_one_term(kgroup):
    assert kgroup("explain", "member", "epoch", "-o", "name").out == "member epoch\n"


def test_unknown_term_ends_with_3_and_near_misses(kgroup):
    ran = kgroup("explain", "FENCED_INSTANCE")
    assert ran.code == ExitCode.NOT_FOUND
    assert "did you mean FENCED_INSTANCE_ID" in ran.err
    assert near("qqqq") == []
    assert near("Reconcilin") == ["Reconciling"]


def test_without_a_term_lists_them(kgroup):
    names = kgroup("explain", "-o", "name").out.splitlines()
    assert set(OPERATORS_MEET) <= set(names)


@pytest.mark.parametrize("number", range(5, 11))
def test_codes_of_the_zookeeper_era_are_their_own(number):
    """LC-46: the same numbers mean other errors in Kafka, which a number alone stays."""
    entry = lookup(f"legacy {number}")
    assert entry is not None and entry.code is None
    assert f"Code {number} of the coordinator" in entry.meaning
    assert lookup(str(number)).name == ErrorCode.name_of(number)


def test_the_failure_of_the_old_rebalance_is_known_by_its_class():
    """LC-72"""
    entry = lookup("kafka.common.ConsumerRebalanceFailedException".rpartition(".")[2])
    assert entry.name == "ConsumerRebalanceFailedException" and "gives up" in entry.meaning


def test_the_errors_that_librdkafka_raises_itself_are_known():
    """An engineer has them in a client's log; confluent_kafka prints them with and without ERR_."""
    from confluent_kafka import KafkaError

    raised = [KafkaError(code) for code in range(-199, -136)]
    names = {error.name(): error.code() for error in raised if error.name().startswith("_")}
    assert len(names) > 60
    for name, code in names.items():
        for text in (name, f"ERR_{name}", str(code)):
            entry = lookup(text)
            assert entry is not None and entry.name == name and f"({code})" in entry.meaning, text


@pytest.mark.parametrize(
    ("term", "name"),
    [
        ("-187", "_ALL_BROKERS_DOWN"),
        ("RD_KAFKA_RESP_ERR__TRANSPORT", "_TRANSPORT"),
        ("RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID", "UNKNOWN_MEMBER_ID"),
        ("kerr.RebalanceInProgress", "REBALANCE_IN_PROGRESS"),
        ("ErrNotCoordinatorForConsumer", "NOT_COORDINATOR"),
        ("GroupCoordinatorNotAvailableException", "COORDINATOR_NOT_AVAILABLE"),
        ("GroupLoadInProgress", "COORDINATOR_LOAD_IN_PROGRESS"),
        ("NotLeaderForPartitionException", "NOT_LEADER_OR_FOLLOWER"),
        ("UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("CommitFailedError", "CommitFailedException"),
        ("NoBrokersAvailable", "broker unreachable"),
        ("TaskMigratedException", "task migrated"),
    ],
)
def test_names_as_clients_of_every_language_and_age_give_them(kgroup, term, name):
    ran = kgroup("explain", term, "-o", "name", "-q")
    assert (ran.code, ran.out) == (0, f"{name}\n")

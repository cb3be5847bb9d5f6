"""Failures keep what they say on their way from one process to another."""

import pickle

import pytest

from kgroup.client.retry import OutcomeUnknown
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError, StorageDenied

FAILURES = (
    KgroupError("what", "what next"),
    StorageDenied("where"),
    BrokerRefused(ErrorCode.NOT_COORDINATOR, "what", detail="the broker's words", hint="what next"),
    OutcomeUnknown("what", futile=True),
)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: type(failure).__name__)
def test_pickled_and_back(failure: KgroupError) -> None:
    again = pickle.loads(pickle.dumps(failure))
    assert type(again) is type(failure)
    assert (str(again), again.args, vars(again)) == (str(failure), failure.args, vars(failure))

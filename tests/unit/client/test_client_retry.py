"""What is tried again, how often, and what never is."""

from __future__ import annotations

from itertools import islice

import pytest

from kgroup.client.retry import Backoff, OutcomeUnknown, Retry, may_repeat
from kgroup.errors import BrokerRefused, ErrorCode, Unreachable


def test_delays_double_up_to_the_longest_and_stray_a_little() -> None:
    backoff = Backoff(first_s=0.1, longest_s=0.5, jitter=0.2)
    assert list(islice(backoff.delays(lambda: 0.5), 5)) == pytest.approx([0.1, 0.2, 0.4, 0.5, 0.5])
    assert list(islice(backoff.delays(lambda: 0.0), 2)) == pytest.approx([0.08, 0.16])


@pytest.mark.parametrize(
    ("error", "read", "change"),
    [
        (BrokerRefused(ErrorCode.NOT_COORDINATOR, ""), True, True),
        (BrokerRefused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ""), True, True),
        (BrokerRefused(ErrorCode.REQUEST_TIMED_OUT, ""), True, False),
        (BrokerRefused(ErrorCode.UNKNOWN_MEMBER_ID, ""), False, False),
        (BrokerRefused(9999, ""), False, False),
        (OutcomeUnknown(""), True, False),
        (OutcomeUnknown("", futile=True), False, False),
        (Unreachable(""), False, False),
    ],
)
def test_only_what_is_safe_is_repeated(error: Unreachable | BrokerRefused, read: bool, change: bool) -> None:
    assert may_repeat(error, idempotent=True) is read
    assert may_repeat(error, idempotent=False) is change


class Attempts:
    """Fails so many times, on a clock that only sleeping moves."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.now = 0.0
        self.left: list[float] = []

    def __call__(self, left_s: float) -> str:
        self.left.append(left_s)
        if len(self.left) <= self.failures:
            raise OutcomeUnknown("broke off")
        return "done"

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def run(self, timeout_s: float, idempotent: bool = True) -> str:
        retry = Retry(timeout_s, clock=lambda: self.now, sleep=self.sleep, chance=lambda: 0.5)
        return retry.call(self, idempotent=idempotent)


def test_a_read_is_repeated_until_it_works_each_time_with_less_time() -> None:
    attempts = Attempts(failures=2)
    assert attempts.run(timeout_s=10.0) == "done"
    assert attempts.left == pytest.approx([10.0, 9.9, 9.7])


def test_the_last_error_comes_out_before_the_deadline() -> None:
    attempts = Attempts(failures=99)
    with pytest.raises(OutcomeUnknown):
        attempts.run(timeout_s=2.0)
    assert attempts.now < 2.0
    assert len(attempts.left) == 5


def test_a_change_that_may_have_happened_is_not_repeated() -> None:
    attempts = Attempts(failures=1)
    with pytest.raises(OutcomeUnknown):
        attempts.run(timeout_s=10.0, idempotent=False)
    assert len(attempts.left) == 1

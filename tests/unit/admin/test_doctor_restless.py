"""KG111: groups that rebalance again and again, and when that is a storm and no deployment; KG110."""

from __future__ import annotations

from collections.abc import Iterable

from kgroup.admin.diagnose.checks import Diagnosis
from tests.unit.admin.doctor_logs import Held, Record, described, generation, remembering
from tests.unit.admin.test_doctor_checks import READ, examine

A = Held("a", "orders:0,1", dynamic=True)


def found(
    code: str, *lots: tuple[int, Iterable[Record]], now_s: int = 60, members: Iterable[Held] = (A,)
) -> list[Diagnosis]:
    fake = remembering(described(*members), READ, *lots)
    checkup = examine(fake.cluster(), "g", now_ms=now_s * 1000)
    return [each for each in checkup.findings if each.code == code]


def churn(every_s: int, count: int) -> list[tuple[int, list[Record]]]:
    """A member that joins and is gone again, each time with a new member id."""
    return [
        (every_s * n, [generation(n + 1, (A,) if n % 2 == 0 else (A, Held(f"b{n}", "", dynamic=True)))])
        for n in range(count)
    ]


def test_a_storm_of_a_classic_group_is_counted_by_its_generations() -> None:
    """18 generations in 50 s: healthy, as only `rebalance-started` counted, which classic groups lack."""
    (told,) = found("KG111", *churn(3, 18))
    assert told.severity == "warn"
    assert told.message == "18 rebalances within 51 s, and members come and go"
    assert any(fact.startswith("8 members gone within 60 s of joining: b1-id") for fact in told.evidence)
    assert told.evidence[-1].endswith("its session of 2m 00s had not passed since it joined")
    assert told.hint is not None and "--since 1969-12-31T23:01:00Z" in told.hint


def test_one_that_nothing_explains_is_a_storm_too() -> None:
    (told,) = found("KG111", *((3 * n, [generation(n + 1, (A,))]) for n in range(9)))
    assert told.severity == "warn"
    assert "8 while the same members were there" in told.evidence


def rolled(times: int) -> tuple[list[tuple[int, list[Record]]], list[Held]]:
    """The generations of ten members that come again one after the other, and the last ones."""
    members = [Held(f"m{n % 10}", "", dynamic=True, process=f"-{n // 10}") for n in range(10 * (times + 1))]
    steps = range(10 * times + 1)
    return [(60 * n, [generation(n + 1, members[n : n + 10])]) for n in steps], members[-10:]


def test_a_rolling_deployment_is_calm() -> None:
    """Members come one after the other and stay: each of them costs a rebalance or two."""
    generations, members = rolled(1)
    assert found("KG111", *generations, members=members, now_s=700) == []


def test_the_third_one_within_the_hour_is_not() -> None:
    generations, members = rolled(3)
    (told,) = found("KG111", *generations, members=members, now_s=1900)
    assert told.severity == "warn"
    assert any("client-m1 on 10.0.0.1 (4 times)" in fact for fact in told.evidence), told.evidence


def test_one_of_many_that_comes_again_and_again_is_named() -> None:
    """Each time it hung between two polls, minutes after it had joined: it was short-lived by no measure."""
    others = [Held(f"m{n}", "", dynamic=True) for n in range(20)]
    lots = []
    for n in range(4):
        back = [*others, Held("slow", "", dynamic=True, process=f"-{n}")]
        lots += [(600 * n, [generation(2 * n + 1, back)]), (600 * n + 400, [generation(2 * n + 2, others)])]
    (told,) = found("KG111", *lots, members=others, now_s=2300)
    assert any("client-slow on 10.0.0.1 (4 times)" in fact for fact in told.evidence), told.evidence


def test_one_that_is_over_is_no_error() -> None:
    (told,) = found("KG111", *churn(3, 18), now_s=600)
    assert told.severity == "warn"


def test_how_often_is_said_of_each_cause() -> None:
    (told,) = found("KG111", *((3 * n, [generation(n + 1, (A,))]) for n in range(9)))
    assert any(
        fact.startswith("8 times: members, subscriptions and metadata are as before")
        for fact in told.evidence
    )


def test_who_held_an_instance_id_in_turn_is_told() -> None:
    """Two processes with one id: their client ids and hosts are the proof."""
    clients = [Held("s", "orders:0,1", host=f"/10.0.0.{1 + n % 2}", process=f"{n}") for n in range(5)]
    (told,) = found("KG110", *((3 * n, [generation(1, [each])]) for n, each in enumerate(clients)))
    assert "client client-s on 10.0.0.2 took it over from client client-s on 10.0.0.1" in told.evidence[
        -1
    ] or ("client client-s on 10.0.0.1 took it over from client client-s on 10.0.0.2" in told.evidence[-1])


def test_who_had_an_instance_id_later_cannot_be_told() -> None:
    """Brokers keep the first process's client and host: it said that the second was the same "as before"."""
    clients = [Held("s", "orders:0,1", process=f"{n}") for n in range(5)]
    (told,) = found("KG110", *((3 * n, [generation(1, [each])]) for n, each in enumerate(clients)))
    assert (
        "the first process that had it was client client-s on 10.0.0.1, and brokers do not record which one "
        "has it now" in told.evidence[-1]
    )


def test_a_short_storm_of_two_is_one() -> None:
    """Ten rebalances within ten seconds, of two members, one of which keeps expiring."""
    other = Held("b", "orders:1", dynamic=True)
    (told,) = found("KG111", *churn(1, 10), members=(A, other))
    assert told.severity == "warn"
    assert told.evidence[-1].endswith("its session of 2m 00s had not passed since it joined")

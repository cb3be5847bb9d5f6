"""What is wrong in the commands' answers about one state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kgroup.domain import TopicPartition

from .asking import SKEW_MS, Asked, Ran
from .machine import DOWN, NOW_MS
from .playing import Entry, Group, Part
from .truth import NEAR, PROMPT_MS, Said, Truth, truth_over

JUDGES = ("doctor", "statuses", "commands", "times", "plans", "knock-out", "crash")
UNKNOWN = "unknown"
OUTSIDE_MS = 1_000_000
"""Who has committed nothing for so long, and did much more often before, reads no more."""
SLOW_MS = 5_000
"""All commands are asked within this time."""
NOT_KNOWN: Mapping[str, set[str]] = {
    "settings": {"KG117"},
    "read": {"KG312"},
    "rolled": {"KG320"},
    "history": {"KG312"},
}
"""Findings that say that a limit, or whether a record can be read, is not known. In the last minute alone a
reader may do worse than before, and by another clock other records count as old: of many groups few are read.
"""
CODES_OF_LOGS = {"KG301", "KG306", "KG308", "KG310", "KG311", "KG312", "KG320", "KG321"}
FALLS = ("falling-behind", "warn")
BLIND = ("history", "scratched", "unasked")
"""Who knows nothing of the history."""
PARTLY = ("history", "scratched", "cleaned", "rolled")
"""Who sees no history that counts, or what compaction left of it."""
CRASHES = ("Traceback", "does not know how to handle", "internal error")


CODES = {
    ("not-begun", "info"): "KG306",
    ("recreated", "error"): "KG319",
    ("beyond-end", "error"): "KG301",
    ("purged", "error"): "KG308",
    ("purged", "warn"): "KG308",
    ("held-back", "error"): "KG311",
    ("unsubscribed", "info"): "KG305",
    ("unsubscribed", "warn"): "KG305",
    ("unread", "error"): "KG104",
    ("unread", "warn"): "KG119",
    ("absent", "warn"): "KG103",
    ("not-begun", "error"): "KG306",
    ("stalled", "error"): "KG310",
    ("stalled", "warn"): "KG310",
    ("falling-behind", "warn"): "KG320",
    ("damaged", "error"): "KG321",
}
"""The finding that names a status."""
UNOWNED = (("unread", "warn"), ("moving", "info"))
"""What a partition is that nobody has now."""
HALF_WAY = frozenset({"KG201"})
"""What is true of a group that is being upgraded, and no more than that."""
OF_SHARES = {
    ("stalled", "error"): "KG314",
    ("stalled", "warn"): "KG314",
    ("falling-behind", "warn"): "KG315",
}
"""The same where it is another one of share groups."""
UNSTORED = "KG123"
WEIGHTS = ("info", "warn", "error")
STOPPED = ("KG310", "error")
"""Of readers that were silent for PROMPT_MS at least, or end again and again."""
SECONDS = re.compile(r"(?P<s>[\d.]+) s\b|\d+ ms")


@dataclass(frozen=True)
class Fault:
    """One answer that is not right: which judge says so, and why."""

    judge: str
    why: str


@dataclass(frozen=True)
class Answers:
    """What the commands say of one group to one viewer: rows by partition, and verdicts."""

    doctor: Any
    said: dict[TopicPartition, Said]
    described: dict[TopicPartition, Said]
    lagged: dict[TopicPartition, Said]
    unseen: dict[TopicPartition, str]
    over: str
    held: bool | None

    @classmethod
    def of(cls, name: str, asked: Asked) -> Answers:
        doctor = asked.doctor.by_group.get(name)
        said = {
            _place(text): (alike["status"], alike["weight"])
            for alike in (doctor or {}).get("statuses", ())
            for text in alike["partitions"]
        }
        described, unseen = _rows(asked.describe, name)
        lagged, more = _rows(asked.lag, name)
        verdict = (asked.above.document.get("data") or {}).get("verdict") or {}
        over = "over" if name in verdict.get("over", ()) else "ok"
        if any(each["group_id"] == name for each in verdict.get("unknown", ())):
            over = UNKNOWN
        if name not in asked.above.by_group:
            over = "absent"
        waited = asked.wait.by_group.get(name)
        held = None if waited is None else waited["held"]
        if waited is not None and waited["total_lag"] is None and asked.moments != (NOW_MS,):
            held = None  # a real broker may not answer within the second that was left for it
        return cls(doctor, said, described, lagged, unseen | more, over, held)


def _place(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def _rows(ran: Ran, name: str) -> tuple[dict[TopicPartition, Said], dict[TopicPartition, str]]:
    rows: dict[TopicPartition, Said] = {}
    unseen: dict[TopicPartition, str] = {}
    for row in ran.by_group.get(name, {}).get("offsets", ()):
        place = TopicPartition(row["topic"], row["partition"])
        status = row["status"]
        rows[place] = (status["name"], status["weight"]) if status else ("none", "none")
        if status and status["unseen"]:
            unseen[place] = status["unseen"]["look"]
    return rows, unseen


def faults(group: Group, asked: Asked, full: Answers | None) -> Iterator[Fault]:
    """Yield what is wrong; `full` is what one with all rights and a right clock was answered."""
    for ran in (
        asked.doctor,
        asked.describe,
        asked.lag,
        asked.above,
        asked.wait,
        asked.reset,
        asked.delete,
    ):
        for words in CRASHES:
            if words in ran.err or words in ran.out:
                at = (ran.err + ran.out).index(words)
                yield Fault("crash", f"{ran.argv[0]}: {(ran.err + ran.out)[at : at + 200]!r}")
    found = Answers.of(group.name, asked)
    later = asked.moments != (NOW_MS,)
    truth = truth_over(group, asked.moments)
    if full is None or (asked.visibility, asked.clock) == ("all", "apart"):
        # What brokers stamp that have none of the groups hides nothing of them.
        yield from _doctor(group, found, truth_over(group, asked.doctor.moments))
        yield from _statuses(group, found, asked)
    elif asked.visibility == "replicas":
        yield from _unstored(found, full)
    else:
        yield from _knocked_out(found, full, asked, truth if later else None)
        if asked.visibility == "broker":
            yield from _leaderless(group, found)
        if asked.visibility == "lagging" and found.doctor is not None:
            named = {each.partition(":")[0] for each in found.doctor["skipped"]}
            if found.doctor["verdict"] == "healthy" or "min.insync.replicas" not in named:
                yield Fault("doctor", f"replicas lag, and {found.doctor['verdict']}: {sorted(named)}")
    yield from _commands(group, found, truth, asked, later=later)
    if not later:
        yield from _cautions(group, asked)
        yield from _times(group, asked)


def _cautions(group: Group, asked: Asked) -> Iterator[Fault]:
    """Whether plans that change offsets say that somebody commits without being a member."""
    reset = asked.reset.by_group.get(group.name)
    if group.share or group.members or reset is None or reset["error_code"]:
        return
    late = [ms for ms in group.outside_ms if ms > NOW_MS - 300_000]
    busy = len(late) > 1 and late[-1] - late[0] > 10_000
    calm = not [ms for ms in group.outside_ms if ms > NOW_MS - 1_200_000]
    said = {"reset-offsets": reset["caution"]}
    for each in (asked.delete.document.get("data") or {}).get("items", ()):
        if each["group_id"] == group.name and each["result"] == "planned":
            said["delete"] = each["effect"]
    for command, text in said.items():
        warned, unknown = "committed by no member" in (text or ""), "is not known" in (text or "")
        if busy and not warned and not unknown:
            yield Fault("commands", f"{command} says nothing of commits from outside: {text}")
        if busy and unknown and asked.visibility == "all":
            yield Fault("commands", f"{command} does not know of commits from outside: {text}")
        if calm and warned:
            yield Fault("commands", f"{command} warns of commits from outside: {text}")


def _doctor(group: Group, found: Answers, truth: Truth) -> Iterator[Fault]:
    if found.doctor is None:
        if truth.statuses:
            yield Fault("doctor", "no answer about the group")
        return
    verdict = found.doctor["verdict"]
    codes = {each["code"] for each in found.doctor["findings"]}
    grave = {(each["code"], each["severity"]) for each in found.doctor["findings"]}
    errors = sorted(each["code"] for each in found.doctor["findings"] if each["severity"] == "error")
    if truth.sick is True and verdict != "sick":
        why = _errors(truth) if not truth.error else f"{truth.broken} is broken"
        yield Fault("doctor", f"{verdict}, although {why}")
    if truth.sick is False and verdict == "sick":
        yield Fault("doctor", f"sick by {errors}, and nothing is an error: {_shown(truth)}")
    if truth.error is None and not truth.blind and verdict == "healthy":
        yield Fault("doctor", "healthy, although wrong times may hide that members commit nothing")
    unsure = truth.error is None or any(
        name == UNKNOWN for said in truth.statuses.values() for name, _ in said
    )
    if verdict == UNKNOWN and not group.moving and not unsure:
        yield Fault("doctor", f"unknown, and nothing is hidden: {found.doctor['skipped']}")
    dead = any(not part.exists and part.commits for part in group.parts.values())
    for code, weight in _named(group, truth):
        if code in codes and not grave & {(code, w) for w in WEIGHTS[WEIGHTS.index(weight) :]}:
            yield Fault("doctor", f"{code} is among the findings, and none of them is of weight {weight}")
    named = [frozenset({code}) for code, _ in _named(group, truth)]
    if group.outside_ms and not group.members and group.outside_ms[-1] > NOW_MS - OUTSIDE_MS:
        # That somebody else commits says why records wait without members.
        named = [each | {"KG120"} if "KG119" in each else each for each in named]
    for expected in (*truth.broken, *named, *([frozenset({"KG302"})] if dead else [])):
        if not expected & codes:
            yield Fault("doctor", f"none of {sorted(expected)} among {sorted(codes)}")
    yield from _names(group, found, truth)
    yield from _short(found)
    for code in sorted(truth.holding & codes):
        messages = [each["message"] for each in found.doctor["findings"] if each["code"] == code]
        yield Fault("doctor", f"{code} is found, and holds: {messages[0][:120]}")
    there = all(part.exists for part in group.parts.values())
    quiet = there and not group.ends
    broken = [codes for codes in truth.broken if codes != HALF_WAY]
    if not broken and truth.sick is False and _calm(truth) and quiet:
        noise = sorted(
            f"{each['code']} {each['message'][:80]}"
            for each in found.doctor["findings"]
            if each["severity"] != "info" and (each["code"] != "KG111" or not group.mixed)
        )
        if noise and group.state.membership == "stable" and group.members:
            yield Fault("doctor", f"alarm in a sound state: {noise}")


def _names(group: Group, found: Answers, truth: Truth) -> Iterator[Fault]:
    """Yield the findings that name other members than those that they are about."""
    everyone = {member.instance or member.member_id for member in group.members}
    for each in found.doctor["findings"]:
        if each["code"] in truth.named:
            said = {name for name in everyone if name in each["message"]}
            if said != (meant := {*truth.named[each["code"]]}):
                why = f"{each['code']} names {sorted(said)} of the members, not {sorted(meant)}"
                yield Fault("doctor", f"{why}: {each['message'][:80]}")


def _short(found: Answers) -> Iterator[Fault]:
    """Yield errors that give a silence as their reason that is none: another one made them errors."""
    for each in found.doctor["findings"]:
        short = SECONDS.search(each["message"]) if (each["code"], each["severity"]) == STOPPED else None
        if short and 1_000 * float(short["s"] or 0) < PROMPT_MS:
            yield Fault("doctor", f"an error after {short[0]}: {each['message'][:80]}")


def needs_time(group: Group) -> bool:
    """Return whether only a second look shows that a group is stuck, or shows it without the history."""
    if group.share:
        waits = [part.readable(part.committed or part.start) for part in group.parts.values()]
        return bool(group.members) and any(e[0].ms < NOW_MS - PROMPT_MS - NEAR for e in waits if e)
    return group.moving and group.classic and group.state.membership == "stuck"


def stuck(group: Group, ran: Ran) -> Iterator[Fault]:
    """Yield what is wrong about a group in which nothing went on during all of a longer look."""
    doctor = ran.by_group.get(group.name)
    codes = {each["code"] for each in doctor["findings"]} if doctor else set()
    if group.share:
        if doctor is None or (doctor["verdict"] == "healthy" and group.state.stamps == "right"):
            verdict = doctor["verdict"] if doctor else "no answer"
            yield Fault("doctor", f"share group that finishes nothing: {verdict} {sorted(codes)}")
    elif doctor is None or doctor["verdict"] != "sick" or "KG112" not in codes:
        yield Fault("doctor", f"a rebalance that waits for members all the while: {sorted(codes)}")


def _named(group: Group, truth: Truth) -> Iterator[tuple[str, str]]:
    """Yield the code of the finding that names each status that is not good, and its least weight."""
    names = CODES | (OF_SHARES if group.share else {})
    for said in set(truth.statuses.values()):
        codes = {names.get(each) for each in said}
        if len(codes) == 1 and (found := codes.pop()):
            yield found, min((weight for _, weight in said), key=WEIGHTS.index)


def _calm(truth: Truth) -> bool:
    return all(w == "ok" for said in truth.statuses.values() for _, w in said)


def _errors(truth: Truth) -> str:
    bad = {str(p): sorted(s) for p, s in truth.statuses.items() if all(w == "error" for _, w in s)}
    return f"{bad}"


def _shown(truth: Truth) -> str:
    return "; ".join(
        f"{p}: {'|'.join('/'.join(s) for s in sorted(said))}" for p, said in truth.statuses.items()
    )


def _statuses(group: Group, found: Answers, asked: Asked) -> Iterator[Fault]:
    for command, rows, ran in (
        ("doctor", found.said, asked.doctor),
        ("describe", found.described, asked.describe),
        ("lag", found.lagged, asked.lag),
    ):
        truth = truth_over(group, ran.moments)
        for place, expected in truth.statuses.items():
            said = rows.get(place)
            if command == "doctor" and found.doctor is None:
                continue
            if said is None and place in truth.open:
                continue
            if said is None:
                yield Fault("statuses", f"{command}: no row of {_kind(place)}: {_words(expected)}")
            elif said not in expected:
                waits = found.unseen.get(place) == "history" and place in truth.waits
                if command != "doctor" and waits:
                    continue
                if command != "doctor" and _decided_by_history(said, expected):
                    continue
                unseen = f" ({found.unseen[place]} unseen)" if place in found.unseen else ""
                yield Fault(
                    "statuses",
                    f"{command}: {_kind(place)} is {'/'.join(said)}{unseen}, not {_words(expected)}",
                )
    for place, said in found.said.items():
        # While it rebalances, what its members subscribe to may be shown or not.
        if place not in truth.statuses and not (group.moving and place in group.parts):
            yield Fault("statuses", f"doctor: {_kind(place)} is {'/'.join(said)}, and is none of the group's")


def _decided_by_history(said: Said, expected: frozenset[Said]) -> bool:
    """Whether only the history shows the graver weight or status, which doctor alone reads."""
    name, weight = said
    names = {n for n, _ in expected}
    if name in names and name in ("not-begun", "unsubscribed"):
        return weight == "info"
    if (name, weight) == ("not-begun", "info") and UNKNOWN in names:
        return True  # whether its owner restores state is asked where it is late
    if said in UNOWNED and "stalled" in names:
        return True  # members came and went
    # An offset of a former topic looks as any other one without the history.
    return "recreated" in names


def _times(group: Group, asked: Asked) -> Iterator[Fault]:
    """Yield ages of the oldest unread records that are not theirs; bounds must have them between them."""
    timed = "--time" in asked.lag.argv
    rows = asked.lag.by_group.get(group.name, {}).get("offsets", ()) if timed else ()
    parts = [group.parts[TopicPartition(row["topic"], row["partition"])] for row in rows]
    own_ms = NOW_MS + SKEW_MS[asked.clock]
    left = [(part, e) for part in parts for e in part.entries if e.offset >= part.start]
    newest_ms = max((_stamp(group, part, e) for part, e in left), default=0)
    # Where coordinators' records are hidden, and no other is later, nothing shows that the clock is off.
    now_ms = own_ms if asked.visibility == "history" and newest_ms <= own_ms else NOW_MS
    for row, part in zip(rows, parts, strict=True):
        least, most = row["time_lag_at_least_ms"], row["time_lag_at_most_ms"]
        if row["time_lag_ms"] is not None:
            least = most = row["time_lag_ms"]
        first = max(part.committed or 0, part.start)
        waiting = [e for e in part.entries if e.offset >= first and e.kind in ("data", "open")]
        ages = [max(now_ms - _stamp(group, part, e), 0) for e in waiting]
        if least is None or not ages or not row["lag"]:
            continue
        # A share group may have finished any of them.
        young, old = (min(ages), max(ages)) if group.share else (ages[0], ages[0])
        if least > old + SLOW_MS or (most is not None and most < young):
            said = f"{least} to {most} ms, not {ages[0]}"
            yield Fault("times", f"clock {asked.clock}: {_kind(part.place)} waits {said}")


def _stamp(group: Group, part: Part, entry: Entry) -> int:
    return entry.ms + (0 if entry.kind == "marker" else group.stamps_ms(part.place.topic, entry.offset))


def _leaderless(group: Group, found: Answers) -> Iterator[Fault]:
    """Yield partitions that the broker leads that is down, and that are not called so."""
    for command, rows in (("doctor", found.said), ("describe", found.described), ("lag", found.lagged)):
        for place, said in rows.items():
            led = group.machine.leader_of(place) == DOWN and group.parts[place].exists
            # The coordinator of a share group reports what is not done by itself.
            led = led and not (group.share and said == ("idle", "ok"))
            if led and said[0] != "unleadered":
                yield Fault("statuses", f"{command} without its leader: {_kind(place)} is {'/'.join(said)}")


def _words(expected: frozenset[Said]) -> str:
    return "|".join("/".join(each) for each in sorted(expected))


def _kind(place: TopicPartition) -> str:
    return f"{place.topic.rpartition('-')[2]}-{place.partition}"


def _commands(group: Group, found: Answers, truth: Truth, asked: Asked, *, later: bool) -> Iterator[Fault]:
    """Two commands that look at the same state may say unknown, and never something else than the other.

    Where one looks `later` than the other, a status may have followed on the other one meanwhile.
    """
    pairs = (
        ("describe", found.described, "lag", found.lagged),
        ("doctor", found.said, "describe", found.described),
        ("doctor", found.said, "lag", found.lagged),
    )
    for one, left, other, right in pairs:
        if one == "doctor" and found.doctor is None:
            continue
        if set(left) != set(right):
            missing = sorted(map(_kind, set(left) ^ set(right)))
            yield Fault("commands", f"{one} and {other} have not the same rows: {missing}")
        for place in left.keys() & right.keys():
            a, b = left[place], right[place]
            # Only who reads the history knows that a record's time may be wrong, or that it could not look.
            wrong = group.state.stamps != "right" or asked.visibility == "broker" or group.keeps_state
            known = truth.statuses.get(place, frozenset())
            wrong = wrong or a in known
            told = wrong and a[0] == UNKNOWN and b in (("not-begun", "info"), *UNOWNED)
            history = one == "doctor" and (told or b[0] == UNKNOWN or _decided_by_history(b, frozenset({a})))
            # One that looked for the history in vain knows less than one that says nothing of it.
            history = history or (one == "doctor" and a[0] == UNKNOWN and asked.visibility in PARTLY)
            passed = later and all(each in known or each[0] == UNKNOWN for each in (a, b))
            if a != b and not history and not passed:
                yield Fault("commands", f"{_kind(place)}: {one} says {'/'.join(a)}, {other} {'/'.join(b)}")
    if asked.visibility != "all":
        if found.over == "ok" and truth.work:
            yield Fault("commands", "lag --fail-above 0 passes although records wait")
        if found.held and truth.work:
            yield Fault("commands", "wait --for lag=0 holds although records wait")
        return
    beyond = any("beyond-end" in {n for n, _ in said} for said in truth.statuses.values())
    bare = any(
        part.exists and part.committed is None and part.end > part.start
        for place, part in group.parts.items()
        if place in truth.statuses
    )
    if group.moving or beyond or not truth.statuses or found.over == "absent":
        return
    if all(n == "gone" for said in truth.statuses.values() for n, _ in said):
        return
    wanted = "over" if truth.work else "ok"
    if found.over != wanted and not bare:
        yield Fault("commands", f"lag --fail-above 0 is {found.over}, not {wanted}: {_works(truth)}")
    if found.held is not None and found.held != (not truth.work) and not bare:
        yield Fault("commands", f"wait --for lag=0 held: {found.held}; {_works(truth)}")
    for lag, wait in (asked.alone[group.name],) if group.name in asked.alone else ():
        if (lag.code == 0) != (wait.code == 0) or (not bare and (lag.code == 0) == bool(truth.work)):
            yield Fault(
                "commands", f"lag --fail-above 0 ends with {lag.code}, wait with {wait.code}: {_works(truth)}"
            )


def _works(truth: Truth) -> str:
    return f"records wait in {sorted(map(_kind, truth.work)) or 'none'}"


def _unstored(found: Answers, full: Answers) -> Iterator[Fault]:
    """Where nothing can be stored that is the cause of all: no other finding says what to do to a member."""
    if found.doctor is None or full.doctor is None:
        return
    codes = {each["code"]: each["hint"] or "" for each in found.doctor["findings"]}
    if UNSTORED not in codes or found.doctor["verdict"] != "sick":
        yield Fault("doctor", f"nothing can be stored: {found.doctor['verdict']} by {sorted(codes)}")
    if hints := [hint for code, hint in codes.items() if code != UNSTORED and "it is gone" in hint]:
        yield Fault("doctor", f"nothing can be stored, and a member is to be removed: {hints[0]}")
    if codes.keys() - {UNSTORED} != {each["code"] for each in full.doctor["findings"]}:
        yield Fault("doctor", f"that nothing can be stored has changed the findings to {sorted(codes)}")
    for command, rows, before in (
        ("doctor", found.said, full.said),
        ("describe", found.described, full.described),
        ("lag", found.lagged, full.lagged),
    ):
        if rows != before:
            yield Fault("statuses", f"that nothing can be stored has changed those of {command}")


def _found_by_less(found: Answers, full: Answers, visibility: str) -> Iterator[Fault]:
    """Yield the findings that one has who sees less, but those that say so."""
    if found.doctor is None or full.doctor is None:
        return
    known = {each["code"] for each in full.doctor["findings"]}
    if "KG120" in known:
        # That nobody reads is said where it does not show who does without a membership.
        known.add("KG119")
    known |= NOT_KNOWN.get(visibility, set())
    if "KG319" in known and visibility in BLIND:
        # Nothing else shows that a topic was made again, and its log is judged as that of the former one.
        known |= CODES_OF_LOGS
    for each in found.doctor["findings"]:
        if each["code"] not in known:
            said = f"{each['code']} {each['message'][:80]}"
            yield Fault("knock-out", f"without {visibility}: finds {said}")


def _knocked_out(found: Answers, full: Answers, asked: Asked, now: Truth | None) -> Iterator[Fault]:
    """Seeing less leaves a status, or makes it unknown; never a verdict more certain.

    Where time passed since the full look, what is true `now` may be said as well.
    """
    if now is None:
        yield from _found_by_less(found, full, asked.visibility)
    unasked = asked.visibility == "unasked"
    label = asked.visibility if asked.visibility != "all" else f"clock {asked.clock}"
    if found.doctor is not None and full.doctor is not None:
        less, more = found.doctor["verdict"], full.doctor["verdict"]
        passed = now is not None and now.sick in (None, less == "sick")
        # What was left out is not missed; what was given up before brokers deleted the log leaves no trace.
        errors = {each["code"] for each in full.doctor["findings"] if each["severity"] == "error"}
        gone = asked.visibility in PARTLY and errors == {"KG316"}
        if less not in (more, UNKNOWN, *(("healthy",) if unasked or gone else ())) and not passed:
            worst = sorted(e["code"] for e in found.doctor["findings"] if e["severity"] == "error")
            yield Fault("knock-out", f"without {label}: {less} {worst}, with it {more}")
        if less == UNKNOWN and not found.doctor["skipped"]:
            yield Fault("doctor", f"without {label}: unknown, and nothing is named")
    for command, rows, before in (
        # Who reads no history says what describe does.
        ("doctor", found.said, full.described if unasked else full.said),
        ("describe", found.described, full.described),
        ("lag", found.lagged, full.lagged),
    ):
        for place, said in rows.items():
            was = before.get(place)
            if was is None and said[1] != UNKNOWN:
                yield Fault(
                    "knock-out", f"{command} without {label}: {_kind(place)} appears as {'/'.join(said)}"
                )
            ended = was in (("stalled", "error"), (UNKNOWN, UNKNOWN)) and said in UNOWNED
            rebuilt = was is not None and "recreated" in (was[0], full.said.get(place, was)[0])
            if was is not None and (rebuilt or ended) and asked.visibility in BLIND:
                # The verdict is unknown, and nothing else shows that a topic was made again, or who ended.
                continue
            passed = now is not None and said in now.statuses.get(place, ())
            passed = passed or (unasked and said == full.said.get(place))
            # Of the last minute alone that is another question.
            passed = passed or (asked.visibility == "rolled" and {was, said} == {FALLS, ("reading", "ok")})
            if was is not None and said != was and said[1] != UNKNOWN and not passed:
                yield Fault(
                    "knock-out",
                    f"{command} without {label}: {_kind(place)} is {'/'.join(said)}, with it {'/'.join(was)}",
                )


__all__ = ["JUDGES", "NOW_MS", "Answers", "Fault", "faults"]

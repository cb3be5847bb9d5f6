"""What happens to a group in a plan: named scenarios, and those of a YAML file."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from kgroup.errors import ConfigError
from kgroup.text_files import load_yaml, read_text

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_UNITS = {"ms": 1, None: 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
VERBS = ("restart", "start", "roll-out", "stop", "kill", "upgrade", "failover")


MOST_MEMBERS, MOST_PARTITIONS = 10_000, 100_000
"""More than any group has; a simulation of more would not end."""


@dataclass(frozen=True, slots=True)
class ScenarioStep:
    """One step; times in ms, `share` of the members it affects (0 to 1).

    `restart` and `upgrade` take `batch` members at a time, down for `down_ms`, with `pause_ms` between the
    batches. `kill` takes all at once, and they restart after `down_ms` if that is not 0: the last ones, or
    with `spread` every nth, as in a zone. `start` adds as many members as `share` says, or `count`;
    `roll-out` does so in batches, `stop` ends them for good. `failover` kills the broker of the group's
    coordinator for `down_ms`. `wait_ms` passes after any step.
    """

    verb: str
    share: float = 1.0
    batch: int = 1
    down_ms: int = 5_000
    pause_ms: int = 2_000
    wait_ms: int = 0
    count: int | None = None
    spread: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """Named steps, and the sizes its file asks for (None: the command's).

    `standbys` is the share of members that join in addition to a group's size, before the steps; with
    `from_nothing` there are none before them.
    """

    name: str
    steps: tuple[ScenarioStep, ...]
    summary: str = ""
    members: int | None = None
    partitions: int | None = None
    session_timeout_ms: int | None = None
    standbys: float = 0.0
    from_nothing: bool = False


NAMED: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario("rolling-bounce", (ScenarioStep("restart"),), "every member restarts, one at a time"),
        Scenario("scale-out", (ScenarioStep("start", share=0.5),), "half as many members again"),
        Scenario("scale-in", (ScenarioStep("stop", share=0.5),), "half of the members go for good"),
        Scenario(
            "az-loss",
            (ScenarioStep("kill", share=1 / 3, down_ms=120_000),),
            "a third of the members vanish at once, and are back after two minutes",
        ),
        Scenario(
            "deploy-canary",
            (ScenarioStep("restart", share=0.1, wait_ms=300_000), ScenarioStep("restart", batch=4)),
            "a tenth restarts and is watched for five minutes, then all, four at a time",
        ),
        Scenario(
            "failover",
            (ScenarioStep("failover", down_ms=60_000),),
            "the broker of the group's coordinator dies, and is back after a minute",
        ),
        Scenario(
            "upgrade",
            (ScenarioStep("upgrade"),),
            "classic members restart with the consumer protocol, one by one",
        ),
        Scenario(
            "scale-out-10",
            (ScenarioStep("roll-out", count=10, pause_ms=5_000),),
            "ten more members come, one every five seconds",
        ),
        Scenario(
            "zone-loss",
            (
                ScenarioStep("wait", wait_ms=60_000),
                ScenarioStep("kill", share=1 / 3, down_ms=120_000, spread=True),
            ),
            "half as many again stand by; every third member vanishes at once, and is back after two minutes",
            standbys=0.5,
        ),
        Scenario(
            "rolling-start",
            (ScenarioStep("roll-out", batch=5, pause_ms=10_000),),
            "a group starts, five members every ten seconds",
            members=100,
            from_nothing=True,
        ),
    )
}


def find(name: str) -> Scenario:
    """Return a scenario by name or by file; ConfigError for neither."""
    if name in NAMED:
        return NAMED[name]
    path = Path(name)
    if not path.exists():
        raise ConfigError(f"there is no scenario {name!r}", f"one of {', '.join(NAMED)}, or a YAML file")
    return read(path)


def read(path: Path) -> Scenario:
    """Return the scenario in a YAML file (docs/simulation.md); ConfigError says what is wrong."""
    document = load_yaml(read_text(path, f"scenario {path}"), f"scenario {path}")
    if isinstance(document, dict) and "group" in document:
        raise ConfigError(
            f"scenario {path} is what happened in group {document['group']}, not a plan",
            "kgroup.testing plays it: kgroup docs testing",
        )
    if not isinstance(document, dict) or not isinstance(document.get("steps"), list):
        raise ConfigError(f"scenario {path} has no list of steps")
    known = {
        "name",
        "summary",
        "members",
        "partitions",
        "session_timeout",
        "steps",
        "standbys",
        "from_nothing",
    }
    for key in document.keys() - known:
        raise ConfigError(
            f"scenario {path}: the key {key!r} is unknown", "one of " + ", ".join(sorted(known))
        )
    timeout = document.get("session_timeout")
    return Scenario(
        name=str(document.get("name", path.stem)),
        steps=tuple(_step(path, entry) for entry in document["steps"]),
        summary=str(document.get("summary", "")),
        members=_count(path, document.get("members")),
        partitions=_count(path, document.get("partitions")),
        session_timeout_ms=None if timeout is None else milliseconds(timeout),
        standbys=_share(path, document["standbys"]) if "standbys" in document else 0.0,
        from_nothing=_flag(path, document.get("from_nothing", False)),
    )


def milliseconds(value: object) -> int:
    """Return a duration such as 500, 30s, 5m or 1h; a bare number is ms."""
    match = _DURATION.fullmatch(str(value).strip())
    if match is None:
        raise ConfigError(f"{value!r} is not a duration", "such as 500ms, 30s, 5m or 1h")
    return round(float(match[1]) * _UNITS[match[2]])


def _count(path: Path, value: object) -> int | None:
    if value is None or (isinstance(value, int) and 0 < value <= MOST_PARTITIONS):
        return value
    raise ConfigError(f"scenario {path}: {value!r} is not a number from 1 to {MOST_PARTITIONS}")


def _step(path: Path, entry: Any) -> ScenarioStep:
    if not isinstance(entry, dict) or not entry:
        raise ConfigError(f"scenario {path}: {entry!r} is not a step", "a step is a verb with its options")
    verb, given = next(iter(entry.items()))
    if verb == "wait":
        return ScenarioStep("wait", wait_ms=milliseconds(given))
    if verb not in VERBS:
        raise ConfigError(
            f"scenario {path}: the step {verb!r} is unknown", "one of " + ", ".join((*VERBS, "wait"))
        )
    options = {f.name.removesuffix("_ms"): f.name for f in fields(ScenarioStep) if f.name != "verb"}
    values: dict[str, Any] = {}
    for key, value in (given or {}).items():
        if key not in options:
            raise ConfigError(f"scenario {path}: {verb} has no {key!r}", "one of " + ", ".join(options))
        if key in ("batch", "count"):
            values[options[key]] = _count(path, value)
        elif key == "spread":
            values[options[key]] = _flag(path, value)
        else:
            values[options[key]] = _share(path, value) if key == "share" else milliseconds(value)
    return ScenarioStep(verb, **values)


def _flag(path: Path, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise ConfigError(f"scenario {path}: {value!r} is neither true nor false")


def _share(path: Path, value: object) -> float:
    text = str(value)
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 10:
        raise ConfigError(f"scenario {path}: {value!r} is not a share", "such as 10% or 0.5")
    return share

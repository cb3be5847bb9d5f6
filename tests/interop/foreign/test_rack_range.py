"""Our rack-aware range against the consumer's own, on generated groups."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.rack_groups import assigned, case
from tests.sampled import sampled

from ..conftest import require
from ..jvm import java
from . import builds

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
GROUPS = 10_000


@pytest.mark.parametrize("version", sampled([builds.APPS, "3.9.2"], {builds.APPS}, "an older assignor"))
def test_every_group_is_given_the_same(version: str) -> None:
    require("java", "javac", "mvn")
    groups = [case(seed) for seed in range(GROUPS)]
    command = java("kgroup.foreign.Ranges", classpath=builds.apps(version))
    asked = "".join(f"{json.dumps(group)}\n" for group in groups)
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=120, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == GROUPS
    for group, theirs in zip(groups, answers, strict=True):
        ours = {m: {t: list(p) for t, p in given.items()} for m, given in assigned(group).items()}
        assert ours == theirs, group

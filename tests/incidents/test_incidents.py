"""Each incident, each command, each broker: what is said is right, or says why it cannot be told.

`make incidents` plays all of them and prints the table; `make interop` plays a sample.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.interop.conftest import ASKED
from tests.sampled import FULL

from . import everything  # noqa: F401
from .known import reason
from .playing import INCIDENTS, Played
from .results import row
from .truth import CELLS, MISSING, WRONG

pytestmark = [pytest.mark.interop, pytest.mark.timeout(3 * 3600)]


def _cells() -> list[object]:
    rows: list[object] = []
    for kind in ASKED:
        for name, each in INCIDENTS.items():
            if kind not in (each.kinds if FULL else each.sample):
                continue
            for cell in CELLS:
                why = reason(name, cell, kind)
                known = [pytest.mark.xfail(strict=True, reason=why)] if why else []
                marks = [pytest.mark.xdist_group(f"incidents-{kind}"), *known]
                rows.append(pytest.param(kind, name, cell, marks=marks, id=f"{kind}-{name}-{cell}"))
    return rows


@pytest.mark.parametrize(("kind", "incident", "cell"), _cells())
def test_cell(
    played: Callable[[str, str], Played],
    record_property: Callable[[str, object], None],
    kind: str,
    incident: str,
    cell: str,
) -> None:
    seen = played(kind, incident)
    mark = seen.marks[cell]
    record_property("cell", row(INCIDENTS[incident], kind, cell, seen))
    said = seen.answers.get(cell, seen.answers["doctor"])
    assert mark.verdict not in (WRONG, MISSING), f"{mark.why}\n{_shown(said.out)}\n{said.err[:1000]}"


def _shown(out: str) -> str:
    try:
        return json.dumps(json.loads(out)["data"], indent=1, ensure_ascii=False)[:8000]
    except ValueError:
        return out[:8000]

"""What kgroup tells people to paste: bash takes every name for one word and runs nothing of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kgroup.admin import shell
from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.describe import describe
from kgroup.protocol.messages.describe_groups import DescribedGroup
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member, consumer_group, consumer_member

NASTY = [
    "$HOME;`touch pwned`",
    'it\'s $(touch pwned) "quoted"',
    "two\nlines; touch pwned",
    "a\\b*?[x]{1,2}~!#&|<>",
    "\x1b[2Jünï",
    "--all",
    "",
    "plain-1.2_3",
]


def arguments(line: str, folder: Path) -> list[str]:
    """What bash makes of a command's words."""
    script = f"kgroup() {{ printf '%s\\0' \"$@\"; }}\n{line}\n"
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, check=True)
    assert list(folder.iterdir()) == []
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("name", NASTY)
def test_a_name_stays_one_word(name: str, tmp_path: Path) -> None:
    line = shell.command("describe", name, options=f"--topic {shell.word(name)}")
    assert "\n" not in line
    words = [word for word in arguments(line, tmp_path) if word != "--"]
    assert words.count(name) == 2
    assert line.endswith(f"-- {shell.word(name)}") == name.startswith("-")


@pytest.mark.parametrize("name", [*NASTY[:-2], "rack,1", "a,b,c", "x\\y", "plain"])
def test_a_value_of_a_comma_list_is_read_back(name: str, tmp_path: Path) -> None:
    (told,) = arguments(f"kgroup {shell.list_item(name)}", tmp_path)
    assert shell.items(told) == [name.strip()]


def _groups(group_id: str) -> list[DescribedGroup]:
    """Groups that lead to every finding with a hint."""
    left = consumer_member("m", "orders:0,1", instance=group_id, epoch=-2)
    return [
        classic_group(group_id, classic_member("m"), state="PreparingRebalance"),
        consumer_group(group_id, left, consumer_member("c", "orders:2", member_type=0)),  # type: ignore[list-item]
        classic_group(group_id, classic_member("m", "orders:0", user_data=b"1", topics=(group_id, "orders"))),
        classic_group(group_id, state="Empty"),
    ]


@pytest.mark.parametrize("name", [name for name in NASTY if name])
def test_hints_of_findings(name: str, tmp_path: Path) -> None:
    seen = set()
    for group in _groups(name):
        fake = FakeCluster(topics={"orders": 4, "__consumer_offsets": 50})
        groups = Groups(fake).add(group)
        groups.committed[name] = {"orders:0": 9, "gone:0": 1}
        groups.ends = {"orders:0": 3}
        (told,) = describe(ClusterView(fake, retry=fake.retry()), [name]).groups
        for finding in told.findings:
            _, found, pasted = (finding.hint or "").partition("kgroup ")
            if found:
                seen.add(finding.code)
                assert name in arguments(found + pasted, tmp_path), finding
    assert seen >= {"KG102", "KG103", "KG201", "KG211", "KG301", "KG302", "KG304"}

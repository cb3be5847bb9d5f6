"""`python -m tests.mutants kgroup/log --tests tests/unit/log --count 20`: changes that no test sees.

Cosmic Ray makes the mutants; a sample of them, the same for the same seed, is tried one by one in a copy of
the checkout. Ends with 1 if the tests fail without a mutant.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path

from cosmic_ray.commands.init import init
from cosmic_ray.modules import find_modules
from cosmic_ray.mutating import mutate_and_test, mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome

ROOT = Path(__file__).parents[2]
EQUAL = "core/ReplaceBinaryOperator_BitOr"
"""In annotations: `int | None` is no arithmetic, and is not even computed."""


def main() -> int:
    """Try the mutants and print, by package, how many were killed, and each that was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path)
    parser.add_argument("--tests", required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(_copy(Path(folder)))
        os.environ["PYTHONPATH"] = folder
        command = f"{sys.executable} -m pytest -q -x -p no:cacheprovider -m 'not interop' {asked.tests}"
        began = time.monotonic()
        if subprocess.run(shlex.split(command), stdout=subprocess.DEVNULL).returncode:
            print(f"{asked.tests} fail without a mutant", file=sys.stderr)
            return 1
        # A mutant that never ends is killed, too; on a busy machine the tests take longer with each of them.
        limit_s = 30 + 4 * (time.monotonic() - began)
        counts: Counter[tuple[str, bool]] = Counter()
        for mutant in _sample(asked.package, asked.count, asked.seed):
            result = mutate_and_test([mutant], command, limit_s)
            killed = result.test_outcome is not TestOutcome.SURVIVED
            counts[str(mutant.module_path.parent), killed] += 1
            if not killed:
                print(
                    f"survived {mutant.module_path}:{mutant.start_pos[0]}", *_changed(result.diff), sep="\n  "
                )
        for package in sorted({package for package, _ in counts}):
            print(f"{package}: {counts[package, True]} killed, {counts[package, False]} survived")
    return 0


def _copy(folder: Path) -> Path:
    """What is under version control, as it is now; nothing that was compiled, which would hide a mutant."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in names.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
    return folder


def _sample(package: Path, count: int, seed: int) -> list[MutationSpec]:
    """Some of all mutants of the package, in the order of its files."""
    with use_db(":memory:", WorkDB.Mode.create) as found:
        init(sorted(find_modules([package])), found, {})
        mutants = [item.mutations[0] for item in found.work_items]
    mutants = [each for each in mutants if not each.operator_name.startswith(EQUAL)]
    order = random.Random(seed).sample(range(len(mutants)), len(mutants))
    chosen = islice((number for number in order if _is_python(mutants[number])), count)
    return [mutants[number] for number in sorted(chosen)]


def _is_python(mutant: MutationSpec) -> bool:
    """Whether it can be run: the asterisk of a signature is no multiplication, but is taken for one."""
    operator = get_operator(mutant.operator_name)(**mutant.operator_args)
    try:
        ast.parse(mutate_code(mutant.module_path.read_text("utf-8"), operator, mutant.occurrence) or "?")
    except SyntaxError:
        return False
    return True


def _changed(diff: str | None) -> list[str]:
    lines = (diff or "").splitlines()
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


if __name__ == "__main__":
    sys.exit(main())

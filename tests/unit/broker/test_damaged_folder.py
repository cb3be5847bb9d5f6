"""Every file of a data folder damaged in every way: all is there, or what is not is refused and said.

Here a sample; `make damage` tries all, at many places of each file (KGROUP_DAMAGE tells how many).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from zlib import crc32

import pytest

from tests.sampled import FULL
from tests.unit.broker.damaged_folder import Image, damages, image, judged

PLACES = int(os.environ.get("KGROUP_DAMAGE", "0"))
ONE_OF = 5 if FULL else 10
"""So many of the damages are tried where not all are."""
PARTS = 6
"""So many tests share the files, so that each is short on a busy machine, too."""


@pytest.fixture(scope="module", params=["after a clean stop", "after a kill"])
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Image:
    clean = request.param == "after a clean stop"
    return image(tmp_path_factory.mktemp("folder"), clean=clean)


@pytest.mark.timeout(7200 if PLACES else 600)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_is_never_less_in_silence(left: Image, part: int, tmp_path: Path) -> None:
    wrong: list[str] = []
    tried = 0
    copy = tmp_path / "copy"
    files = [path.relative_to(left.folder) for path in sorted(left.folder.rglob("*")) if path.is_file()]
    assert {"segments", "catalog", "meta.properties", "cleaner-offset"} <= {path.name for path in files}
    for index, file in list(enumerate(files))[part::PARTS]:
        others = [each for each in files[index + 1 :] if each.suffix == file.suffix]
        others = others if PLACES else others[:1]
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(left.folder, copy)
        for name, damage in damages(copy / file, [copy / other for other in others], PLACES or 2):
            if not PLACES and crc32(f"{file} {name}".encode()) % ONE_OF:
                continue
            if copy.exists():
                shutil.rmtree(copy)
            shutil.copytree(left.folder, copy)
            damage()
            tried += 1
            found = judged(left, copy, file, swapped=name.startswith("swapped"))
            wrong += [f"{file} {name}: {what}" for what in found]
    assert not wrong, f"{len(wrong)} of {tried}:\n" + "\n".join(wrong[:20])

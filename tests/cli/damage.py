"""Damaged copies of recorded segments, the same for a seed; some of the damage is under a sound checksum.

python -m tests.cli.damage [SECONDS] [SEED]        # from the root: damage and read until the time is up
"""

from __future__ import annotations

import contextlib
import gzip
import io
import random
import shutil
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

from google_crc32c import value as crc32c

from kgroup.cli.frame.tree import run
from kgroup.errors import ConfigError
from kgroup.scenario.recorded import read_scenario
from tests.unit.history.incidents import story_of

INCIDENTS = Path(__file__).resolve().parents[1] / "data" / "incidents"
RECORDED = {
    folder.name: next(folder.rglob("*.log")).read_bytes()
    for folder in sorted(INCIDENTS.iterdir())
    if folder.is_dir()
}
SLOWEST_S = 10.0
"""Of the processor, for a folder of some kilobytes: anything longer counts as a hang."""
EDGES = (0, 1, 0x7F, 0x80, 0xFF)
INT32 = (-1, 0, 2**31 - 1, -(2**31), 1_000_000_007)
INT64 = (-1, 0, 2**63 - 1, -(2**63), 2**62 + 12345)
HEADER = ((0, ">q"), (21, ">h"), (23, ">i"), (27, ">q"), (35, ">q"), (43, ">q"), (57, ">i"))
"""Base offset, attributes, last offset delta, both times, producer id, number of records."""
TOPICS_FILES = (b"", b"[]", b"{", b'{"t": 1}', b'{"t": "AAAA"}', b"\xff\xfe")
NAME = f"{0:020d}.log"


def batches_of(data: bytes) -> list[bytes]:
    """A segment's batches; of a damaged one, whatever the lengths in it make of it."""
    found, at = [], 0
    while at + 12 <= len(data):
        end = at + 12 + max(0, struct.unpack_from(">i", data, at + 8)[0])
        found.append(data[at:end])
        at = end
    return found


def sealed(batch: bytes) -> bytes:
    """The batch with the checksum that its bytes have now."""
    return batch[:17] + struct.pack(">I", crc32c(batch[21:])) + batch[21:]


def scribbled(rng: random.Random, data: bytes, start: int = 0) -> bytes:
    """Some bits, bytes or integers changed, or bytes put in or taken out, from `start` on."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        if len(changed) <= start:
            break
        at = rng.randrange(start, len(changed))
        how = rng.randrange(6)
        if how == 0:
            changed[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            changed[at] = rng.choice(EDGES)
        elif how == 2:
            changed[at : at + 4] = struct.pack(">i", rng.choice(INT32))
        elif how == 3:
            changed[at : at + 8] = struct.pack(">q", rng.choice(INT64))
        elif how == 4:
            del changed[at : at + rng.randrange(1, 9)]
        else:
            changed[at:at] = rng.randbytes(rng.randrange(1, 9))
    return bytes(changed)


def flipped(rng: random.Random, data: bytes) -> bytes:
    return scribbled(rng, data)


def truncated(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def beheaded(rng: random.Random, data: bytes) -> bytes:
    return data[rng.randrange(len(data) + 1) :]


def shuffled(rng: random.Random, data: bytes) -> bytes:
    found = batches_of(data)
    rng.shuffle(found)
    return b"".join(found[: rng.randrange(1, len(found) + 1)])


def repeated(rng: random.Random, data: bytes) -> bytes:
    found = batches_of(data)
    return b"".join(rng.choices(found, k=rng.randrange(1, 2 * len(found))))


def wrong_inside(rng: random.Random, data: bytes) -> bytes:
    """Batches whose records make no sense although their checksums are right."""
    found = batches_of(data)
    for n in rng.sample(range(len(found)), min(len(found), rng.choice((1, 2, 5)))):
        if len(found[n]) <= 61:
            continue
        made = scribbled(rng, found[n], rng.choice((21, 61, 61)))
        if len(made) >= 61 and rng.random() < 0.9:
            made = made[:8] + struct.pack(">i", len(made) - 12) + made[12:]
        found[n] = sealed(made) if len(made) > 21 else made
    return b"".join(found)


def header_changed(rng: random.Random, data: bytes) -> bytes:
    """A batch with another offset, codec, time, producer or record count, and the right checksum."""
    found = batches_of(data)
    for _ in range(rng.choice((1, 2, 3))):
        n = rng.randrange(len(found))
        if len(found[n]) < 61:
            continue
        place, form = rng.choice(HEADER)
        bits = 8 * struct.calcsize(form)
        ends = (2 ** (bits - 1) - 1, -(2 ** (bits - 1)))
        value = rng.choice((-1, 0, 1, 2, 3, 4, 8, 0x20, rng.getrandbits(15), *ends))
        batch = bytearray(found[n])
        struct.pack_into(form, batch, place, value)
        found[n] = sealed(bytes(batch))
    return b"".join(found)


def filled(rng: random.Random, data: bytes) -> bytes:
    """Zeros, noise or another segment's bytes inside or behind."""
    at = rng.choice((len(data), rng.randrange(len(data) + 1)))
    more = rng.choice((bytes(5000), rng.randbytes(3000), rng.choice(list(RECORDED.values()))))
    return data[:at] + more + data[at:]


def foreign(rng: random.Random, data: bytes) -> bytes:
    """Nothing of Kafka's, or something that merely looks like it."""
    text = b"line of a log that is not Kafka's\n" * 50
    packed = (gzip.compress(data), zlib.compress(data))
    return rng.choice((b"", bytes(4096), text, *packed, data[::-1], rng.randbytes(999)))


DAMAGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    flipped,
    truncated,
    beheaded,
    shuffled,
    repeated,
    wrong_inside,
    wrong_inside,
    header_changed,
    filled,
    foreign,
)


def damaged_folder(rng: random.Random, folder: Path) -> list[str]:
    """One to three partitions with one to three segments each, of damaged and of sound recordings; which."""
    chosen = []
    for number in rng.sample(range(50), rng.choice((1, 1, 2, 3))):
        name = rng.choice(list(RECORDED))
        chosen.append(name)
        data = RECORDED[name]
        for _ in range(rng.choice((0, 1, 1, 1, 2))):
            data = rng.choice(DAMAGES)(rng, data) if len(batches_of(data)) else data
        place = folder / f"__consumer_offsets-{number}"
        place.mkdir(parents=True)
        cuts = sorted(rng.sample(range(len(data) + 1), min(len(data), rng.choice((0, 0, 1, 2)))))
        bases = rng.sample(range(9999), len(cuts)) if rng.random() < 0.5 else range(1, len(cuts) + 1)
        for base, start, end in zip((0, *bases), (0, *cuts), (*cuts, len(data)), strict=True):
            (place / f"{base:020d}.log").write_bytes(data[start:end])
    if rng.random() < 0.2:
        (folder / "topics.json").write_bytes(rng.choice(TOPICS_FILES))
    if rng.random() < 0.1:
        (place / f"{99999:020d}.log").mkdir()
    return chosen


def scenarios(folder: Path, names: list[str]) -> list[str]:
    """What goes wrong where scenarios of all groups of these recordings are written and read again."""
    found = []
    for number, group in enumerate(sorted({e.group for name in names for e in story_of(name).events})):
        path = folder.with_name(f"{number}.yaml")
        more = ("--replace-names",) if number % 2 else ()
        argv = ("replay-log", group, "--files", str(folder), "--scenario", str(path), *more)
        found.append(attempt(argv, (0, 1, 2, 3, 5)))
        if path.exists():
            try:
                read_scenario(path)
            except ConfigError as error:
                found.append(f"{group}: {error.message}")
    return found


def commands(rng: random.Random, folder: Path) -> list[tuple[str, ...]]:
    """Every view of the history commands over a folder."""
    files = ("--files", str(folder))
    group = next(iter(rng.sample(list(RECORDED), 1)))
    at = str(rng.choice((0, 7, 19, 2**40, "2026-11-21", "1ms")))
    return [
        ("replay-log", *files),
        ("replay-log", *files, "-o", "json"),
        ("replay-log", *files, "--all-commits", "-o", rng.choice(("csv", "ndjson", "yaml", "wide", "name"))),
        ("replay-log", *files, "--at", at, "-o", rng.choice(("table", "json", "wide", "csv"))),
        ("replay-log", *files, "--raw"),
        ("replay-log", *files, "--raw", "-o", "ndjson"),
        ("replay-log", *files, "--html", str(folder / "page.html")),
        ("blame", "*", *files),
        ("blame", f"{group}*", *files, "-o", "json"),
        ("offsets-topic", "stats", *files, "-o", rng.choice(("table", "json"))),
        ("offsets-topic", "top", *files),
    ]


def decoded(rng: random.Random) -> tuple[str, ...]:
    """`offsets-topic decode` of bytes from a recording, damaged, or of noise."""
    data = RECORDED[rng.choice(list(RECORDED))]

    def piece() -> bytes:
        at = rng.randrange(len(data))
        head = struct.pack(">h", rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 16, 23, 24, -1)))
        return head + rng.choice((data[at : at + rng.randrange(80)], rng.randbytes(rng.randrange(40))))

    value = ("--value", piece().hex()) if rng.random() < 0.7 else ()
    return ("offsets-topic", "decode", piece().hex(), *value, "-o", rng.choice(("table", "json")))


def attempt(argv: tuple[str, ...], allowed: tuple[int, ...]) -> str:
    """Run a command in this process; what is wrong with how it ended, "" if nothing is."""
    out, err = io.StringIO(), io.StringIO()
    began = time.process_time()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(argv)
    except Exception as error:  # a traceback is what this looks for
        import traceback

        return f"{' '.join(argv)}: {error!r}\n{''.join(traceback.format_exception(error)[-4:])}"
    took = time.process_time() - began
    if took > SLOWEST_S:
        return f"{' '.join(argv)}: took {took:.1f} s"
    if code not in allowed:
        return f"{' '.join(argv)}: exit code {code}: {err.getvalue()[:500]}"
    if code and "error: " not in err.getvalue():
        return f"{' '.join(argv)}: exit code {code} without a word"
    return ""


def faults(seed: int, folder: Path) -> list[str]:
    """What goes wrong with one damaged folder and one damaged record."""
    rng = random.Random(seed)
    names = damaged_folder(rng, folder)
    found = [attempt(argv, (0, 1, 5)) for argv in commands(rng, folder)]
    found += scenarios(folder, names)
    found += [attempt(decoded(rng), (0, 2)) for _ in range(5)]
    return [f"seed {seed}: {fault}" for fault in found if fault]


def main(seconds: float, seed: int) -> None:
    """Until the time is up or something is wrong ten times."""
    until, wrong, first = time.process_time() + seconds, 0, seed
    while time.process_time() < until and wrong < 10:
        folder = Path(tempfile.mkdtemp(prefix="damaged-"))
        for fault in faults(seed, folder / "logs"):
            print(fault, flush=True)
            wrong += 1
        shutil.rmtree(folder)
        seed += 1
    print(f"seeds {first} to {seed - 1}: {wrong} faults")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60, int(sys.argv[2]) if len(sys.argv) > 2 else 0)

"""Digests of what the decoder tells; run as a script, of its plain source, whatever was compiled of it."""

import hashlib
import importlib.machinery
import importlib.util
import random
import sys
from pathlib import Path

INCIDENTS = Path(__file__).resolve().parents[2] / "data" / "incidents"
COPIES = 20


class PlainSource:
    """Finds the modules that are compiled as their source."""

    @staticmethod
    def find_spec(
        name: str, path: list[str] | None, _: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith("kgroup.history.decode.") or path is None:
            return None
        source = Path(path[0]) / f"{name.rpartition('.')[2]}.py"
        return importlib.util.spec_from_file_location(name, source)


def digests() -> list[str]:
    """A line for each recorded segment, and for copies of it with a few bytes changed."""
    lines = []
    for number, path in enumerate(sorted(INCIDENTS.rglob("*.log"))):
        data, chance = path.read_bytes(), random.Random(number)
        for copy in range(1 + COPIES // (1 + len(data) // 20_000)):
            changed = bytearray(data)
            for _ in range(3 if copy else 0):
                changed[chance.randrange(len(data))] = chance.choice((0, 1, 2, 127, 128, 255))
            told = (ask(bytes(changed), check_crc) for ask in (items, counts) for check_crc in (True, False))
            digest = hashlib.sha256("".join(told).encode())
            lines.append(f"{path.relative_to(INCIDENTS)} {copy} {digest.hexdigest()}")
    return lines


def items(data: bytes, check_crc: bool) -> str:
    """All items of a segment, what was counted, and where commits and other records lie, as text."""
    from kgroup.history.decode.decoder import Decoder
    from kgroup.history.decode.places import Places
    from kgroup.history.decode.scan import Scanner

    scanner, places = Scanner("segment", check_crc=check_crc), Places()
    decoder = Decoder(places=places)
    found = [*decoder.feed(data, scanner.headers(data, True)), *decoder.flush()]
    lie = (places.commits.getvalue(), places.keys.getvalue(), list(places.groups), list(places.topics))
    counted = (scanner.bad, decoder.missing, decoder.complete_from, decoder.records)
    return repr((found, counted, lie, places.bodies, places.others))


def counts(data: bytes, check_crc: bool) -> str:
    """What is counted of a segment by key, as text."""
    from kgroup.history.decode.counting import Counter
    from kgroup.history.decode.scan import Scanner

    counter = Counter()
    counter.feed(data, Scanner("segment", check_crc=check_crc).headers(data, True))
    batches = (counter.batches, counter.compressed, counter.markers, counter.unreadable, counter.size)
    keys = [
        (key, each.records, each.tombstones, each.size, each.newest, each.first_ms, each.last_ms)
        for key, each in counter.keys.items()
    ]
    return repr((batches, keys, counter.open))


def main() -> None:
    """Print where the decoder comes from, then the digests."""
    sys.meta_path.insert(0, PlainSource)  # type: ignore[arg-type]
    from kgroup.history.decode import decoder

    print(Path(decoder.__file__).name, *digests(), sep="\n")


if __name__ == "__main__":
    main()

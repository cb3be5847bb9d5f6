"""Generates the reader and the writer of one message in one version."""

import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kgroup.errors import DecodeError
from kgroup.protocol import primitives
from kgroup.protocol.primitives import MAX_STRING
from kgroup.protocol.shapes import Shape, Slot, slots_of
from kgroup.protocol.structs import Reader, Struct, Writer


def compile_writer(cls: type[Struct], version: int, flexible: bool) -> Writer:
    """Return the writer of `cls` in `version`; `flexible` decides lengths and tag sections (KIP-482)."""
    return WriterSource(version, flexible).compile(cls)


def compile_reader(cls: type[Struct], version: int, flexible: bool) -> Reader:
    """Return the reader of `cls` in `version`, of lengths and tag sections as `flexible` says (KIP-482)."""
    return ReaderSource(version, flexible).compile(cls)


def bounded_reader(cls: type[Struct], version: int, flexible: bool, most: int) -> Reader:
    """Return a reader that raises DecodeError for over `most` items in all arrays and tag sections."""
    return ReaderSource(version, flexible, most).compile(cls)


class _Source:
    """Lines of a function under construction, with the constants it closes over."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0
        self.env: dict[str, Any] = {
            "uvarint_out": primitives.append_uvarint,
            "uvarint_in": primitives.read_uvarint,
            "short": primitives.short,
            "long": primitives.long,
            "many": primitives.many,
            "new": object.__new__,
            "pack": struct.pack,
            "unpack_from": struct.unpack_from,
            "DecodeError": DecodeError,
        }
        self.pending: list[tuple[str, str]] = []

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self, stem: str) -> str:
        self.names += 1
        return f"{stem}{self.names}"

    def constant(self, stem: str, value: Any) -> str:
        name = self.name(stem)
        self.env[name] = value
        return name

    def function(self, head: str) -> Callable[..., Any]:
        source = head + "\n" + "\n".join(self.lines or ["    pass"]) + "\n"
        exec(compile(source, f"<codec {head}>", "exec"), self.env)
        made: Callable[..., Any] = self.env["compiled"]
        return made

    def alive(self, cls: type[Struct]) -> tuple[list[Slot], list[Slot], list[Slot]]:
        """Return the fields of this version: plain, tagged, and those it does not have."""
        plain: list[Slot] = []
        tagged: list[Slot] = []
        absent: list[Slot] = []
        for slot in slots_of(cls):
            if not slot.since <= self.version <= slot.until:
                absent.append(slot)
            elif slot.tag is not None:
                (tagged if self.flexible else absent).append(slot)
            else:
                plain.append(slot)
        return plain, sorted(tagged, key=lambda s: s.tag or 0), absent


class WriterSource(_Source):
    """Generates `compiled(m, out)`."""

    def compile(self, cls: type[Struct]) -> Writer:
        self.struct("m", cls)
        self.flush()
        return self.function("def compiled(m, out):")

    def flush(self) -> None:
        if self.pending:
            packer = self.constant("P", struct.Struct(">" + "".join(c for c, _ in self.pending)).pack)
            self.emit(f"out += {packer}({', '.join(e for _, e in self.pending)})")
            self.pending = []

    def struct(self, value: str, cls: type[Struct]) -> None:
        plain, tagged, _ = self.alive(cls)
        for slot in plain:
            strict = slot.shape.nullable and self.version < slot.nullable_since
            self.value(f"{value}.{slot.name}", slot.shape, strict)
        if self.flexible:
            self.tags(value, tagged)

    def value(self, expr: str, shape: Shape, strict: bool = False) -> None:
        if shape.kind == "fixed":
            self.pending.append((shape.code, expr))
        elif shape.kind == "uuid":
            self.pending.append(("16s", expr))
        elif shape.kind == "struct":
            self.nested(expr, shape)
        elif shape.kind == "array":
            self.array(expr, shape, strict)
        else:
            self.bytes(expr, shape, strict)

    def nested(self, expr: str, shape: Shape) -> None:
        assert shape.struct is not None
        local = self.name("s")
        if not shape.nullable:
            self.emit(f"{local} = {expr}")
            self.struct(local, shape.struct)
            return
        self.flush()
        self.emit(f"{local} = {expr}")
        self.emit(f"if {local} is None: out.append(255)")
        self.emit("else:")
        self.depth += 1
        self.emit("out.append(1)")
        self.struct(local, shape.struct)
        self.flush()
        self.depth -= 1

    def length(self, size: str, code: str) -> None:
        """Queue or write a length; `size` is a variable that is -1 for null."""
        if not self.flexible:
            self.pending.append((code, size))
            self.flush()
            return
        self.flush()
        self.emit(f"if {size} < 127: out.append({size} + 1)")
        if code == "h":
            self.emit(f"elif {size} > {MAX_STRING}: raise ValueError('string too long')")
        self.emit(f"else: uvarint_out(out, {size} + 1)")

    def bytes(self, expr: str, shape: Shape, strict: bool) -> None:
        data, size = self.name("b"), self.name("n")
        encode = ".encode()" if shape.kind == "string" else ""
        self.emit(f"{data} = {expr}")
        if shape.nullable:
            null = 0 if strict else -1
            self.emit(f"if {data} is None: {data} = b''; {size} = {null}")
            self.emit(f"else: {data} = {data}{encode}; {size} = len({data})")
        else:
            if encode:
                self.emit(f"{data} = {data}.encode()")
            self.emit(f"{size} = len({data})")
        self.length(size, "h" if shape.kind == "string" else "i")
        self.emit(f"out += {data}")

    def array(self, expr: str, shape: Shape, strict: bool) -> None:
        item = shape.item
        assert item is not None
        items, size, one = self.name("a"), self.name("n"), self.name("i")
        self.emit(f"{items} = {expr}")
        if shape.nullable:
            null = 0 if strict else -1
            self.emit(f"if {items} is None: {items} = (); {size} = {null}")
            self.emit(f"else: {size} = len({items})")
        else:
            self.emit(f"{size} = len({items})")
        self.length(size, "i")
        if item.kind == "fixed":
            self.emit(f"if {items}: out += pack('>%d{item.code}' % {size}, *{items})")
            return
        self.emit(f"for {one} in {items}:")
        self.depth += 1
        at = len(self.lines)
        self.value(one, item)
        self.flush()
        if len(self.lines) == at:
            self.emit("pass")
        self.depth -= 1

    def tags(self, value: str, tagged: list[Slot]) -> None:
        if not tagged:
            self.pending.append(("B", "0"))
            return
        self.flush()
        written, saved = self.name("t"), self.name("o")
        self.emit(f"{written} = []; {saved} = out")
        for slot in tagged:
            default = self.constant("D", slot.default)
            self.emit(f"if {value}.{slot.name} != {default}:")
            self.depth += 1
            self.emit("out = bytearray()")
            self.tagged_value(f"{value}.{slot.name}", slot.shape)
            self.flush()
            self.emit(f"{written}.append(({slot.tag}, out))")
            self.depth -= 1
        self.emit(f"out = {saved}")
        self.emit(f"uvarint_out(out, len({written}))")
        self.emit(
            f"for tag, part in {written}: uvarint_out(out, tag); uvarint_out(out, len(part)); out += part"
        )

    def tagged_value(self, expr: str, shape: Shape) -> None:
        """Write a tagged nullable struct behind 0 or 1, not behind -1 or 1 as elsewhere."""
        if shape.kind != "struct" or not shape.nullable:
            self.value(expr, shape)
            return
        assert shape.struct is not None
        self.emit(f"if {expr} is None: out.append(0)")
        self.emit("else:")
        self.depth += 1
        self.emit("out.append(1)")
        local = self.name("s")
        self.emit(f"{local} = {expr}")
        self.struct(local, shape.struct)
        self.flush()
        self.depth -= 1


class ReaderSource(_Source):
    """Generates `compiled(buf, pos, end) -> (message, pos)`."""

    def __init__(self, version: int, flexible: bool, most: int | None = None) -> None:
        super().__init__(version, flexible)
        self.most = most

    def compile(self, cls: type[Struct]) -> Reader:
        if self.most is not None:
            self.emit("items = 0")
        result = self.struct(cls)
        self.emit(f"return {result}, pos")
        return self.function("def compiled(buf, pos, end):")

    def flush(self) -> None:
        if self.pending:
            made = struct.Struct(">" + "".join(c for c, _ in self.pending))
            unpacker = self.constant("U", made.unpack_from)
            self.emit(f"{', '.join(v for _, v in self.pending)}, = {unpacker}(buf, pos); pos += {made.size}")
            self.pending = []

    def struct(self, cls: type[Struct]) -> str:
        plain, tagged, absent = self.alive(cls)
        values = {slot.name: self.value(self.shape_of(slot)) for slot in plain}
        for slot in absent + tagged:
            values[slot.name] = self.constant("D", slot.default)
        self.flush()
        if self.flexible:
            self.tags(tagged, values)
        return self.made(cls, values)

    def made(self, cls: type[Struct], values: dict[str, str]) -> str:
        """Emit the making of a struct of these values, and return its variable."""
        made = self.name("m")
        self.emit(f"{made} = new({self.constant('C', cls)})")
        for name, value in values.items():
            self.emit(f"{made}.{name} = {value}")
        return made

    def shape_of(self, slot: Slot) -> Shape:
        """Return the slot's shape in this version, not nullable where the field could not be null yet."""
        if slot.shape.nullable and self.version < slot.nullable_since:
            return replace(slot.shape, nullable=False)
        return slot.shape

    def value(self, shape: Shape) -> str:
        """Emit the reading of one value and return the variable that holds it."""
        local = self.name("v")
        if shape.kind == "fixed":
            self.pending.append((shape.code, local))
        elif shape.kind == "uuid":
            self.pending.append(("16s", local))
        elif shape.kind == "struct":
            return self.nested(shape)
        elif shape.kind == "array":
            self.array(local, shape)
        else:
            self.bytes(local, shape)
        return local

    def nested(self, shape: Shape, tagged: bool = False) -> str:
        """Return the code for a struct; a signed byte leads a nullable one, negative (tagged: 0) for null."""
        assert shape.struct is not None
        if not shape.nullable:
            return self.struct(shape.struct)
        self.flush()
        local = self.name("v")
        test = "buf[pos - 1] != 0" if tagged else "buf[pos - 1] < 128"
        self.emit(f"pos += 1; {local} = None")
        self.emit(f"if {test}:")
        self.depth += 1
        self.emit(f"{local} = {self.struct(shape.struct)}")
        self.depth -= 1
        return local

    def length(self, code: str) -> str:
        """Emit the reading of a length and return its variable: -1 for null."""
        size = self.name("n")
        if not self.flexible:
            self.pending.append((code, size))
            self.flush()
            return size
        self.flush()
        self.emit(f"{size} = buf[pos] - 1; pos += 1")
        self.emit(f"if {size} > 126:")
        self.emit(f"    {size}, pos = uvarint_in(buf, pos - 1); {size} -= 1")
        if code == "h":
            self.emit(f"    if {size} > {MAX_STRING}: raise long(pos, {size})")
        return size

    def guarded(self, size: str, local: str, shape: Shape) -> None:
        """Open the block that runs for a non-null value whose length lies inside the data."""
        if shape.nullable:
            self.emit(f"if {size} == -1: {local} = None")
            self.emit(f"elif {size} < 0 or {size} > end - pos: raise short(pos, {size}, end)")
        else:
            self.emit(f"if {size} < 0 or {size} > end - pos: raise short(pos, {size}, end)")
        self.emit("else:")
        self.depth += 1

    def counted(self, size: str) -> None:
        """Emit the counting of items, where they are."""
        if self.most is not None:
            self.emit(f"items += {size}")
            self.emit(f"if items > {self.most}: raise many(pos, {self.most})")

    def bytes(self, local: str, shape: Shape) -> None:
        size = self.length("h" if shape.kind == "string" else "i")
        decode = ".decode()" if shape.kind == "string" else ""
        self.guarded(size, local, shape)
        self.emit(f"{local} = buf[pos:pos + {size}]{decode}; pos += {size}")
        self.depth -= 1

    def array(self, local: str, shape: Shape) -> None:
        item = shape.item
        assert item is not None
        size = self.length("i")
        self.guarded(size, local, shape)
        self.counted(size)
        if item.kind == "fixed":
            width = struct.calcsize(">" + item.code)
            self.emit(f"{local} = unpack_from('>%d{item.code}' % {size}, buf, pos); pos += {size} * {width}")
        else:
            items = self.name("l")
            self.emit(f"{items} = []")
            self.alike(items, size, item)
            self.emit(f"for _ in range({size}):")
            self.depth += 1
            one = self.value(item)
            self.flush()
            self.emit(f"{items}.append({one})")
            self.depth -= 1
            self.emit(f"{local} = tuple({items})")
        self.depth -= 1

    def alike(self, items: str, size: str, item: Shape) -> None:
        """Emit how structs whose strings are all empty are read at once: they are equally long."""
        plain, tagged, absent = self.alive(item.struct) if item.struct is not None else ([], [], [])
        kinds = [slot.shape.kind for slot in plain]
        # What begins with a string has it as its name.
        irregular = tagged or item.nullable or kinds[:1] != ["fixed"] or not {*kinds} <= {"fixed", "string"}
        if irregular or item.struct is None or not self.flexible:
            return
        values = {slot.name: self.name("v") if slot.shape.kind == "fixed" else "''" for slot in plain}
        layout = "".join(slot.shape.code or "x" for slot in plain) + "x"
        made = struct.Struct(f">{layout}")
        # The lengths, and the count of tags behind them, stand at the same places of each item.
        places = [struct.calcsize(f">{layout[:at]}") for at, code in enumerate(layout) if code == "x"]
        stop = f"pos + {size} * {made.size}"
        checks = [
            f"buf[pos + {at}:{stop}:{made.size}] == {bytes([at + 1 < made.size])!r} * {size}" for at in places
        ]
        # Three take no longer one by one.
        self.emit(f"if {size} > 3 and {stop} <= end and {' and '.join(checks)}:")
        self.depth += 1
        numbers, targets = self.name("a"), ", ".join(value for value in values.values() if value != "''")
        self.emit(f"{numbers} = {self.constant('U', made.iter_unpack)}(buf[pos:{stop}])")
        self.emit(f"pos = {stop}; {size} = 0")
        self.emit(f"for {targets}, in {numbers}:")
        self.depth += 1
        values |= {slot.name: self.constant("D", slot.default) for slot in absent}
        self.emit(f"{items}.append({self.made(item.struct, values)})")
        self.depth -= 2

    def tags(self, tagged: list[Slot], values: dict[str, str]) -> None:
        for slot in tagged:
            local = self.name("v")
            self.emit(f"{local} = {values[slot.name]}")
            values[slot.name] = local
        self.emit("if buf[pos] == 0: pos += 1")
        self.emit("else:")
        self.depth += 1
        count, tag, size, stop = self.name("n"), self.name("t"), self.name("n"), self.name("e")
        self.emit(f"{count}, pos = uvarint_in(buf, pos)")
        self.counted(count)
        self.emit(f"for _ in range({count}):")
        self.depth += 1
        self.emit(f"{tag}, pos = uvarint_in(buf, pos); {size}, pos = uvarint_in(buf, pos)")
        self.emit(f"{stop} = pos + {size}")
        self.emit(f"if {stop} > end: raise short(pos, {size}, end)")
        for slot in tagged:
            self.emit(f"if {tag} == {slot.tag}:")
            self.depth += 1
            is_struct = slot.shape.kind == "struct"
            value = self.nested(slot.shape, tagged=True) if is_struct else self.value(slot.shape)
            self.flush()
            self.emit(f"{values[slot.name]} = {value}")
            self.emit(f"if pos != {stop}: raise DecodeError('a tagged field has the wrong size')")
            self.depth -= 1
        self.emit(f"pos = {stop}")
        self.depth -= 2

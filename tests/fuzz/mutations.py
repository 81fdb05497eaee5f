"""Values and bytes made wrong in ways that find faults: hypothesis strategies over good ones."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

# What a value of JSON is replaced by: other kinds, other sizes, and texts that break out.
WEIRD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 2**31, 2**62, 2**63, 2**64, 10**40, -(10**40), 1.5, "nan", "inf",
    "", "x", "../../etc/passwd", "/etc/passwd", '"); system("id"); ("', "a\nb", "*/", "\0",
    "\ud800", "%n%s", "\x1b[2J", [], {}, [[]], [{}], "float32", "vec<4096,float64>",
    "mat<64,64,float32>",
    "array<float32,4>", "struct<0>", "structs<0,1>", "indexed<float32,1>", "add", "tid", "cast",
    "construct", "extract", "within", "0x1.8p+0", "true", "For", "If", "While", "Return", "Call",
    "Store", "Atomic", "Let", "9" * 5000,
)  # fmt: skip


def _places(x: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()
    for k, v in items:
        yield (*path, k)
        yield from _places(v, (*path, k))


def _at(x: Any, path: tuple[Any, ...]) -> Any:
    for k in path:
        x = x[k]
    return x


def spoiled(good: str, random: random.Random) -> str:
    """A JSON text with one to four values replaced, moved, dropped or taken from elsewhere."""
    data = json.loads(good)
    places = list(_places(data))
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        place = random.choice(places)
        try:
            parent, key = _at(data, place[:-1]), place[-1]
            old = parent[key]
            _spoil(data, parent, key, old, places, random)
        except (LookupError, TypeError):
            continue  # it went with another one
    return json.dumps(data)


def _spoil(data: Any, parent: Any, key: Any, old: Any, places: Any, random: random.Random) -> None:
    kind = random.random()
    if kind < 0.35:
        parent[key] = random.choice(WEIRD)
    elif kind < 0.6 and type(old) in (int, float):
        parent[key] = old + random.choice((-1, 1, 2, -2, 10))
    elif kind < 0.75:
        parent[key] = json.loads(json.dumps(_at(data, random.choice(places))))
    elif isinstance(parent, list):
        if kind < 0.85:
            del parent[key]
        elif kind < 0.93:
            parent.insert(key, json.loads(json.dumps(old)))
        else:
            other = random.randrange(len(parent))
            parent[other], parent[key] = parent[key], parent[other]
    else:  # a value of the same name, of another object
        same = [p for p in places if p[-1] == key]
        parent[key] = json.loads(json.dumps(_at(data, random.choice(same))))


@st.composite
def changed_json(draw: st.DrawFn, good: str) -> str:
    """Texts that are JSON, and nearly the good one."""
    return spoiled(good, draw(st.randoms(use_true_random=False)))


@st.composite
def changed_bytes(draw: st.DrawFn, good: bytes) -> bytes:
    """Bytes that are nearly the good ones: some changed, cut off, put in or repeated."""
    data = bytearray(good)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        how = draw(st.sampled_from(("byte", "word", "cut", "insert", "repeat")))
        if how == "byte":
            data[at : at + 1] = bytes([draw(st.integers(0, 255))])
        elif how == "word":
            word = draw(st.sampled_from((0, 1, 0xFFFF, 0xFFFFFFFF, 1 << 31)))
            data[at : at + 4] = word.to_bytes(4, "little")
        elif how == "cut":
            del data[at:]
        elif how == "insert":
            data[at:at] = draw(st.binary(max_size=9))
        else:
            data += data[at : at + 2000]
    return bytes(data)


_KINDS = (
    "'<f4'", "'<f8'", "'|b1'", "'<i8'", "'>f4'", "'<f3'", "'<f16'", "'<c8'", "'|O'", "'|V4'",
    "'<U1'", "'<U99999999999'", "'<f0'", "'<f-4'", "'x'", "''", "None", "4", "'<M8[s]'", "'\\d'",
    "[('a', '<f4')]", f"[{', '.join(f'({str(i)!r}, {chr(39)}<f4{chr(39)})' for i in range(3000))}]",
    "('<f4', (2, 2))", "'<f4,<f4'", "'\x1b[2J\\n::error::x'",
)  # fmt: skip
_LENGTHS = (
    "0", "1", "2", "3", "4", "-1", "True", "1.0", "1L", "0x4", "0o4", "4_0", str(1 << 31),
    str(1 << 62), str(1 << 63), "9" * 19, "9" * 5000, "''", "(1,)", "None", "1e3",
)  # fmt: skip
_HEADS = (
    "{{'descr': {0}, 'fortran_order': {1}, 'shape': {2}, }}", "{{'descr': {0}, 'shape': {2}}}",
    "{{'shape': {2}, 'fortran_order': {1}, 'descr': {0}, }}", "[{0}, {1}, {2}]", "{0}",
    "{{'descr': {0}, 'fortran_order': {1}, 'shape': {2}, 'x': 1, }}", "",
    "{{'descr': {0}, 'descr': {0}, 'fortran_order': {1}, 'shape': {2}, }}",
)  # fmt: skip


@st.composite
def odd_arrays(draw: st.DrawFn, good: bytes) -> bytes:
    """`.npy` files that are nearly the good one, or whose header says what no array is."""
    start = 10 + int.from_bytes(good[8:10], "little")
    head, body = good[10:start].decode(), good[start:]
    shape = head[head.index("(") : head.index(")") + 1]
    kind = head.split("'")[3]
    rare = draw(st.integers(0, 4))  # most say one odd thing alone, which is then looked at
    form = draw(st.sampled_from(_HEADS)) if rare == 0 else _HEADS[0]
    if rare not in (1, 4):
        shape = draw(st.one_of(
            st.lists(st.sampled_from(_LENGTHS), max_size=6).map(
                lambda x: f"({', '.join(x)}{',' * (len(x) == 1)})"),
            # The right elements in more dimensions than arrays have.
            st.integers(0, 200).map(lambda n: "(" + "1, " * n + shape[1:]),
            st.integers(0, 5000).map(lambda n: "(" * n + ")" * n),
            st.sampled_from(("None", "4", "[4]", "(4)", "(0, 4611686018427387904, 4)")),
        ))  # fmt: skip
    descr = draw(st.sampled_from(_KINDS)) if rare <= 1 else f"'{kind}'"
    order = draw(st.sampled_from(("False", "False", "False", "True", "0", "None", "1")))
    pad = draw(st.sampled_from((0, 0, 0, 1, 60_000)))
    text = (form.format(descr, order, shape) + " " * pad + "\n").encode("utf-8", "surrogatepass")
    length = len(text) if draw(st.integers(0, 7)) else draw(st.sampled_from((0, 1, 0xFFFF)))
    version = draw(st.sampled_from((b"\1\0",) * 6 + (b"\2\0", b"\3\0", b"\0\0", b"\xff\xff")))
    size = 2 if version == b"\1\0" else 4
    body = draw(st.sampled_from((body, body, body, b"", body[:-1], body + b"\0", body * 2)))
    return (
        b"\x93NUMPY" + version + (length % (1 << 8 * size)).to_bytes(size, "little") + text + body
    )

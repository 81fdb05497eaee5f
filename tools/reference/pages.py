"""The pages: one a family, and an index."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import MappingProxyType

import numpy as np

from engine.builtins.families import FAMILIES, Family, family_of
from engine.builtins.generic_constructors import GENERIC_CONSTRUCTORS, IDENTITIES
from engine.builtins.queries import QUERIES, Query
from engine.builtins.resolve import OPERATORS
from engine.builtins.special import SPECIAL
from engine.builtins.stubs import BUILTINS, KERNEL_ONLY
from engine.ir.ops import OPS, Domain, NoDerivative, Op
from engine.lang.types import FLOAT64, ArrayType, is_float
from tools.reference.rules import derivative
from tools.reference.signatures import Overload, overloads, shapes, signatures
from tools.reference.statements import statements

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = "examples"
NOTE = "<!-- Made by tools/make_reference.py from the registry of builtins. Do not edit. -->"
KEY = (
    "In signatures, `T` is any number type, `F` a float type (float16, float32, float64) and `I` "
    "an integer type. A letter is the same type everywhere in a line. `N`, `M` and `K` are any "
    "lengths. `g` is the cotangent of the result."
)
_STORED = "the cotangent of the element after it goes to "
# Derivatives of what is neither an operation nor a composite.
TOLD = MappingProxyType(
    {
        "tid": "none, the index of a thread is an integer",
        "len": "none, a length is an integer",
        "block_dim": "none, a number of threads is an integer",
        **dict.fromkeys(
            ("tile", "untile", "tile_reduce", "tile_sum", "tile_min", "tile_max"),
            "exact; a tile's cotangent is that of its values",
        ),
        "cast": "none, the result is not a smooth function of the bytes",
        "identity": "none, a constant",
        "quat_identity": "none, a constant",
        "transform_identity": "none, a constant",
        "print": "none, it gives no value",
        "printf": "none, it gives no value",
        "expect_eq": "none, it gives no value",
        "expect_neq": "none, it gives no value",
        "expect_near": "none, it gives no value",
        "atomic_and": "none, integers carry no derivative",
        "atomic_or": "none, integers carry no derivative",
        "atomic_xor": "none, integers carry no derivative",
        "atomic_add": f"exact; {_STORED}the element before it and to the value",
        "atomic_sub": f"exact; {_STORED}the element before it, and with its sign changed to the "
        "value",
        "atomic_min": f"exact; {_STORED}the smaller one of the element before it and the value",
        "atomic_max": f"exact; {_STORED}the larger one of the element before it and the value",
        "atomic_exch": f"exact; {_STORED}the value, that of the result to the element before it",
        "atomic_cas": f"exact where the types are floats; {_STORED}what was kept",
        "matrix_from_rows": "exact; each component has its cotangent",
        "matrix_from_cols": "exact; each component has its cotangent",
        "vector": "exact; each component has its cotangent",
        "matrix": "exact; each component has its cotangent",
        "quaternion": "exact; each component has its cotangent",
        "transformation": "exact; each component has its cotangent",
    }
)
# Choices take values of any type: one line says it.
SIGNATURES = MappingProxyType(
    {
        "where": ["where(cond: bool | I, a: X, b: X) -> X"],
        "select": ["select(cond: bool | I, a: X, b: X) -> X"],
    }
)


def members(family: Family) -> list[str]:
    """The builtins of a family, in the order of its patterns. KeyError: one is in no family."""
    mine = [n for n in BUILTINS if family_of(n) is family]
    order = {p: k for k, p in enumerate(family.members)}
    return sorted(mine, key=lambda n: (order.get(n, len(order)), n))


def page(family: Family, output: str) -> str:
    """The page of a family. output: what its example prints."""
    path = f"{EXAMPLES}/{family.name}.py"
    code = (ROOT / "docs/language" / path).read_text(encoding="utf-8")
    parts = [
        NOTE, f"# {family.title}", family.intro, KEY, "## Example", f"[{path}]({path})",
        f"```python\n{code.strip()}\n```", "prints", f"```text\n{output.strip()}\n```",
    ]  # fmt: skip
    if family.name == "operators":
        parts += ["## Operators", _operators()]
    parts.append("## Builtins")
    for name in members(family):
        parts += entry(name)
    return "\n\n".join(parts) + "\n"


def entry(name: str) -> list[str]:
    """The paragraphs about a builtin."""
    parts = [f"### {name}"]
    told = {
        **KERNEL_ONLY,
        **GENERIC_CONSTRUCTORS,
        **IDENTITIES,
        **{n: s.doc for n, s in SPECIAL.items()},
    }.get(name)
    if told is not None:
        form, doc = split(told)
        return [*parts, f"```text\n{form}\n```", doc, f"Derivative: {TOLD[name]}."]
    if name in QUERIES:
        return [*parts, *_query(name)]
    seen: set[str] = set()
    for o in overloads(name):
        lines = SIGNATURES.get(name) or signatures(name, o)
        block = "\n".join(lines)
        if block in seen:
            continue
        seen.add(block)
        parts.append(f"```text\n{block}\n```")
        doc = split(o.doc)[1]
        if name == "mul" and o.order:
            doc = "The same, with the number first."
        parts.append(doc if doc not in parts else "The same.")
        parts += facts(o)
    return parts


def _query(name: str) -> list[str]:
    """The paragraphs about a query of geometry."""
    by_doc: dict[str, list[Query]] = {}
    for q in QUERIES[name]:
        by_doc.setdefault(q.doc, []).append(q)
    out: list[str] = []
    for doc, those in by_doc.items():
        forms = "\n".join(q.shown for q in those)
        out += [f"```text\n{forms}\n```", split(doc)[1], f"Derivative: {those[0].gradient}."]
    return out


def split(doc: str) -> tuple[str, str]:
    """The form of a call, and what it does."""
    depth = 0
    for k, c in enumerate(doc):
        depth += (c == "(") - (c == ")")
        if c == ":" and not depth:
            return doc[:k], _sentence(doc[k + 1 :].strip(), doc[:k])
    raise ValueError(f"a doc without a colon: {doc!r}")


def _sentence(text: str, form: str) -> str:
    """The text with a capital letter, unless it begins with an argument or a call."""
    found = re.match(r"(\w+)(\(| ?\W? ?)(\w*)", text)
    if found is None:
        return text
    first, sign, second = found.groups()
    argument = first in re.findall(r"\w+", form.partition("(")[2])
    article = first == "a" and sign == " " and second != "where"
    if sign == "(" or (argument and not article):
        return text
    return text[:1].upper() + text[1:]


def facts(o: Overload) -> list[str]:
    """Derivative, domain and special values of an overload."""
    if isinstance(o.meaning, Op):
        order = o.order or range(len(o.names))
        out = derivative(o.meaning, [o.names[k] for k in order])
        exact = not isinstance(o.meaning.derivative, NoDerivative)
    else:
        moves, why = _moves(o)
        place = inspect.getsourcefile(o.meaning.func)
        assert place is not None
        where = Path(place).relative_to(ROOT).as_posix()
        text = f"exact in both modes; see its definition in [{where}](../../{where})"
        out, exact = [f"Derivative: {text if moves else why}."], moves
    if exact:
        out += _domain(o.meaning.domain)
    if isinstance(o.meaning, Op):
        out += _special(o.meaning)
    return out


def _moves(o: Overload) -> tuple[bool, str]:
    """Whether a composite has a derivative, else why not."""
    shape = next(iter(shapes(o)))
    results = o.result(shape.types) or shape.types  # those that set variables give these
    if not any(is_float(t) and not isinstance(t, ArrayType) for t in shape.types):
        return False, "none, its arguments are integers"
    if not any(map(is_float, results)):
        return False, "none, its results are integers"
    return True, ""


def _domain(domain: Domain) -> list[str]:
    out = []
    if domain.kinks:
        out.append(f"The one-sided slopes differ at {_points(domain.kinks)}.")
    if domain.singular:
        out.append(f"The derivative is not finite at {_points(domain.singular)}.")
    return out


def _points(values: tuple[float, ...]) -> str:
    return ", ".join(f"{v:g}" for v in values)


def _special(op: Op) -> list[str]:
    """The values of a function of one float number where it is not finite, and at 0."""
    if op.infer([FLOAT64]) != FLOAT64 or op.explicit or op.name == "copy":
        return []
    rows = []
    with np.errstate(all="ignore"):
        for x in (0.0, -0.0, np.inf, -np.inf, np.nan):
            value = float(op.numpy(np.float64(x)))
            rows.append(f"`{op.user}({_value(x)}) = {_value(value)}`")
    return [f"Special values: {', '.join(rows)}."]


def _value(x: float) -> str:
    return "NaN" if np.isnan(x) else f"{x:.6g}"


def _operators() -> str:
    rows = ["| operator | means |", "|---|---|"]
    for sign, found in OPERATORS.items():
        names = dict.fromkeys(OPS[c.op].user or c.op for c in found)
        shown = sign.replace("|", "\\|")
        rows.append(f"| `{shown}` | {', '.join(f'`{n}`' for n in names)} |")
    return "\n".join(rows)


def index() -> str:
    """The first page: every family with its builtins, and what the language has beside them."""
    parts = [
        NOTE,
        "# The kernel language",
        "This reference lists every builtin that kernels and functions can call, by family: its "
        "argument types, its result, and its derivative or the reason why it has none. You can "
        "also call most builtins from Python on numbers, vectors and matrices, with the same "
        "values. The section *Statements and literals* at the end explains the language itself.",
        KEY,
    ]
    for family in FAMILIES:
        links = " ".join(f"[{n}]({family.name}.md#{n})" for n in members(family))
        parts += [f"## [{family.title}]({family.name}.md)", family.intro, links]
    parts += statements()
    return "\n\n".join(parts) + "\n"

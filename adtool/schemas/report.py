"""The schema of the JSON report, made from its dataclasses."""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from adtool.report import SCHEMA, Report
from adtool.schemas import DIALECT

# Strict JSON has no names for these.
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
_PLAIN = {int: "integer", str: "string", bool: "boolean", NoneType: "null"}


def schema() -> dict[str, Any]:
    """Of a report of one script, or of several."""
    kinds: dict[str, Any] = {}
    one = _of(Report, kinds)
    kinds["Report"]["properties"]["schema"] = {"const": SCHEMA}
    several = {
        "description": "Several scripts, or a selection of them: `runs` has one report for each.",
        "type": "object",
        "required": ["schema", "tool", "ok", "exit_code", "runs"],
        "properties": {
            "schema": {"const": SCHEMA},
            "tool": {"type": "string"},
            "ok": {"type": "boolean"},
            "exit_code": {"enum": [0, 1, 2]},
            "runs": {"type": "array", "items": one},
            "notes": {"type": "array", "items": {"type": "string"}},
        },
    }
    return {
        "$schema": DIALECT,
        "title": "The report of adtool check --format json",
        "description": "The same `schema` may get new fields; existing fields keep their meaning.",
        "if": {"required": ["runs"]},
        "then": several,
        "else": one,
        "$defs": dict(sorted(kinds.items())),
    }


def _of(kind: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    if is_dataclass(kind) and isinstance(kind, type):
        if kind.__name__ not in kinds:
            kinds[kind.__name__] = {}  # it may name itself
            kinds[kind.__name__] = _object(kind, kinds)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, UnionType):
        return {"anyOf": [_of(k, kinds) for k in args]}
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return {"type": "array", "items": _of(args[0], kinds)}
    if origin is tuple:
        items = [_of(k, kinds) for k in args]
        return {"type": "array", "prefixItems": items, "minItems": len(items),
                "maxItems": len(items)}  # fmt: skip
    return dict(_NUMBER) if kind is float else {"type": _PLAIN[kind]}


def _object(kind: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    names = [f.name for f in fields(kind)]
    return {
        "description": " ".join(inspect.cleandoc(kind.__doc__ or "").split()),
        "type": "object",
        "required": names,  # all are written
        "properties": {n: _of(hints[n], kinds) for n in names},
    }

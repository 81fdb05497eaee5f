"""Names of builtins' arguments, for calls such as `clamp(x, low=0.0, high=1.0)`.

The first line of a builtin's doc has them. Where programs written for Warp know an
argument by another name, that stands here and counts as well.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from inspect import signature

from engine.builtins.composite import COMPOSITES
from engine.builtins.resolve import describe

_POINTS = ("x", "xy", "xyz", "xyzt")
# Signatures of functions whose docs say them in other words, or leave them to a list.
_OTHERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(["argmax", "argmin", "length", "length_sq", "normalize"], ("a",)),
    **dict.fromkeys(["isfinite", "isinf", "isnan", "len"], ("a",)),
    **dict.fromkeys(["expect_eq", "expect_neq"], ("a b",)),
    "expect_near": ("a b tolerance",),
    **dict.fromkeys(["max", "min"], ("a b", "a")),
    **dict.fromkeys(["diag", "skew"], ("vec",)),
    **dict.fromkeys(["get_diag", "quat_from_matrix", "transform_from_matrix"], ("mat",)),
    **dict.fromkeys(["quat_inverse", "quat_to_matrix"], ("quat",)),
    "quat_to_axis_angle": ("quat axis angle",),
    **dict.fromkeys(["quat_rotate", "quat_rotate_inv"], ("quat vec",)),
    **dict.fromkeys(["svd2", "svd3"], ("A U sigma V",)),
    "eig3": ("A Q d",),
    "qr3": ("A Q R",),
    **dict.fromkeys(["randf", "randi", "randu"], ("state low high",)),
    "noise": tuple(f"state {p}" for p in _POINTS),
    "pnoise": tuple(f"state {p} px py pz pt" for p in _POINTS),
    "curlnoise": tuple(f"state {p} octaves lacunarity gain" for p in _POINTS[1:]),
    **dict.fromkeys(["spatial_top", "spatial_bottom"], ("svec",)),
    **dict.fromkeys(
        ["transform_get_rotation", "transform_get_translation", "transform_inverse",
         "transform_to_matrix"], ("xform",)),
    "transform_set_rotation": ("xform q",),
    "transform_set_translation": ("xform p",),
    "transform_compose": ("position rotation scale",),
    "transform_point": ("xform point", "mat point"),
    "transform_vector": ("xform vec", "mat vec"),
    "velocity_at_point": ("qd r",),
    "lower_bound": ("arr value", "arr arr_begin arr_end value"),
    **dict.fromkeys(["where", "select"], ("cond a b", "arr a b")),
}  # fmt: skip
_OTHERS["where"] += ("cond value_if_true value_if_false", "arr value_if_true value_if_false")
_OTHERS["select"] += ("cond value_if_false value_if_true", "arr value_if_false value_if_true")
_SHOWN = re.compile(r"\w+\(([^)]*)\)")


@functools.cache
def argument_names(user: str) -> tuple[tuple[str, ...], ...]:
    """The arguments of a builtin by name: one list for each way to call it."""
    out = [tuple(text.split()) for text in _OTHERS.get(user, ())]
    if user.startswith("atomic_"):
        values = "compare value" if user == "atomic_cas" else "value"
        out += [("arr", *"ijkl"[:n], *values.split()) for n in range(1, 5)]
    for doc in describe(user):
        found = _SHOWN.match(doc)
        names = [n.split("=")[0].strip() for n in found[1].split(",")] if found else []
        if names and all(n.isidentifier() for n in names):
            out.append(tuple(names))
    return tuple(dict.fromkeys(out))


def placed(user: str, given: int, words: Sequence[str]) -> list[str | float] | None:
    """What follows `given` arguments by position: names among `words`, and defaults between.

    None where no way to call the builtin has arguments of these names, in these places.
    """
    ways = [w for names in argument_names(user) if (w := _tail(user, names, given, words))]
    return min(ways, key=len, default=None)


def _tail(
    user: str, names: Sequence[str], given: int, words: Sequence[str]
) -> list[str | float] | None:
    rest = names[given:]
    if not words or not set(words) <= set(rest):
        return None
    out: list[str | float] = []
    for k, name in enumerate(rest[: 1 + max(rest.index(w) for w in words)], given):
        default = None if name in words else next(_defaults(user, k), None)
        if name not in words and default is None:
            return None
        out.append(name if default is None else default)
    return out


def _defaults(user: str, k: int) -> Iterator[float]:
    """Defaults of the argument at a place, of each overload that has one."""
    for c in COMPOSITES.get(user, ()):
        found = list(signature(c.func).parameters.values())[k : k + 1]
        if found and isinstance(found[0].default, (int, float)):
            yield found[0].default

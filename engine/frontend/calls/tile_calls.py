"""Tiles of a block of one thread: on the CPU, as in Warp, each thread is a block of its own.

A tile of one value is a tuple with it; a reduction over the block's threads gives it back.
"""

from __future__ import annotations

import ast

from engine.frontend.context.context import Context
from engine.frontend.operands.operand import BAD, Bad, Known, Operand, Several, literal
from engine.lang.types import ScalarType

_LANES = "a tile that `tile(value)` made"


def lower_tile(cx: Context, node: ast.Call) -> Operand:
    """`tile(value, preserve_type=False)`: the values that the threads of a block have."""
    words = {w.arg: w.value for w in node.keywords}
    if len(node.args) != 1 or not set(words) <= {"preserve_type"}:
        return _arguments(cx, node, "tile", "a value, and preserve_type=True for a vector")
    got = cx.one(node.args[0], cx.expr(node.args[0]), "the value of a tile")
    if isinstance(got, Bad):
        return BAD
    kept = words.get("preserve_type")
    if not isinstance(got.type, ScalarType) and not (
        isinstance(kept, ast.Constant) and kept.value is True
    ):
        return cx.error(
            "E112",
            node,
            f"`{cx.api}.tile` of a {got.type} by components: tiles are not supported",
            "write `tile(value, preserve_type=True)`, a tile of whole values",
        )
    return Several((got,))


def lower_untile(cx: Context, node: ast.Call) -> Operand:
    """`untile(t)`: the thread's own value."""
    tile = _tile(cx, node, 0, 1, "untile")
    return BAD if tile is None else tile.items[0]


def lower_reduction(cx: Context, node: ast.Call, name: str) -> Operand:
    """`tile_sum(t)` and the like: a tile of one value, that of all threads together."""
    tile = _tile(cx, node, 0, 1, name)
    return BAD if tile is None else tile


def lower_tile_reduce(cx: Context, node: ast.Call) -> Operand:
    """`tile_reduce(op, t)`: the same by a function of two values."""
    if len(node.args) != 2 or node.keywords:
        return _arguments(cx, node, "tile_reduce", "a function of two values, and a tile")
    op = cx.expr(node.args[0])
    if isinstance(op, Bad):
        return BAD
    if not isinstance(op, Known) or not callable(op.obj):
        return cx.error("E104", node.args[0], "`tile_reduce` takes a function of two values first",
                        f"as in `{cx.api}.tile_reduce({cx.api}.min, t)`")  # fmt: skip
    tile = _tile(cx, node, 1, 2, "tile_reduce")
    return BAD if tile is None else tile


def lower_block_dim(cx: Context, node: ast.Call) -> Operand:
    """`block_dim()`: the threads of a block."""
    if node.args or node.keywords:
        return _arguments(cx, node, "block_dim", "no arguments")
    return literal(1)


def _tile(cx: Context, node: ast.Call, at: int, count: int, name: str) -> Several | None:
    if len(node.args) != count or node.keywords:
        _arguments(cx, node, name, _LANES)
        return None
    got = cx.expr(node.args[at])
    if isinstance(got, Several) and len(got.items) == 1:
        return got
    if not isinstance(got, Bad):
        cx.error("E104", node.args[at], f"`{name}` takes {_LANES}", "tiles hold one value a thread")
    return None


def _arguments(cx: Context, node: ast.Call, name: str, wanted: str) -> Bad:
    return cx.error("E109", node, f"`{name}` takes {wanted}", f"see `{cx.api}.{name}`")

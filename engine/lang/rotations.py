"""Quaternions and transforms as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine import hooks
from engine.lang import types as t
from engine.lang.numbers import number_kind, numbers
from engine.lang.operator_errors import told
from engine.lang.vectors import Components, Vector, vector_class, wrong


class _Tagged(Vector):
    """What quaternions and transforms share: their product is no product of components."""

    __slots__ = ()

    def __mul__(self, other: object) -> Any:
        if not isinstance(other, Components):
            found = self._scaled(np.multiply, other)
        elif other.__ir_type__ != self.__ir_type__ or hooks.product is None:
            found = NotImplemented
        else:
            found = hooks.product(self, other)
        return told("*", self, other, found)

    def _product(self, other: object) -> Any:
        return NotImplemented


class Quaternion(_Tagged):
    """A rotation, or any number x i + y j + z k + w: components x, y, z, w in this order.

    Made from its components, from (vector part, w), from one number to fill, or from a
    sequence of four; zero without arguments. `quat_identity()` is the rotation by 0.
    Products are those of quaternions.
    """

    __slots__ = ()

    def __init__(self, *args: Any) -> None:
        if len(args) == 2:
            xyz = numbers(args[0])
            if xyz.shape != (3,) or np.ndim(args[1]):
                raise wrong(
                    "E109", f"{type(self).__name__} takes 4 components, or 3 of them and w",
                    f"got {args[0]!r} and {args[1]!r}",
                )  # fmt: skip
            args = (*xyz.tolist(), args[1])
        super().__init__(*args)


class Transform(_Tagged):
    """A rigid motion: a translation `p` after a rotation `q`.

    Made from p and q (the identity where left out), from 7 numbers (p, then q), from one
    number to fill, or from a sequence of 7. Products apply the right one first. `p` and `q`
    are copies; assign to them to change the transform.
    """

    __slots__ = ()

    def __init__(self, *args: Any, p: Any = None, q: Any = None) -> None:
        if len(args) == 7 or (len(args) == 1 and numbers(args[0]).size in (1, 7)):
            if p is not None or q is not None:
                raise wrong("E109", f"{type(self).__name__} takes p and q, or 7 components")
            super().__init__(*args)
            return
        given = dict(zip("pq", args, strict=False))
        if len(args) > 2 or ("p" in given and p is not None) or ("q" in given and q is not None):
            raise wrong(
                "E109", f"{type(self).__name__} takes p and q, or 7 components, got {len(args)}"
            )
        super().__init__()
        self._put(slice(0, 3), given.get("p", p), "p", (0.0, 0.0, 0.0))
        self._put(slice(3, 7), given.get("q", q), "q", (0.0, 0.0, 0.0, 1.0))

    def _put(self, part: slice, value: Any, name: str, default: tuple[float, ...]) -> None:
        found = numbers(default if value is None else value)
        if found.shape != (part.stop - part.start,) or number_kind(found.dtype) not in "biuf":
            raise wrong(
                "E109", f"{name} of {type(self).__name__} has {part.stop - part.start} components",
                f"got {value!r}",
            )  # fmt: skip
        with np.errstate(over="ignore"):
            self._data[part] = found

    @property
    def p(self) -> Any:
        """The translation."""
        return vector_class(t.VectorType(self.__ir_type__.scalar, 3))._of(self._data[:3])

    @p.setter
    def p(self, value: Any) -> None:
        self._put(slice(0, 3), value, "p", ())

    @property
    def q(self) -> Any:
        """The rotation."""
        return vector_class(t.quat_type(self.__ir_type__.scalar))._of(self._data[3:])

    @q.setter
    def q(self, value: Any) -> None:
        self._put(slice(3, 7), value, "q", ())

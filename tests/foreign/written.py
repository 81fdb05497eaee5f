"""An operation that is a NumPy function with a gradient by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.diagnostics import Span
from engine.foreign import Operation, Value


class Written(Operation):
    framework = "NumPy"
    span = Span("written.py", 1, 1, 1, 2)
    site = None

    def __init__(self, f: Callable, gradient: Callable, *xs: Any, dtype: str = "float64") -> None:
        self.name, self.gradient = "Written", "Written.backward"
        self.f, self.g, self.dtype = f, gradient, np.dtype(dtype)
        given = [np.asarray(x, self.dtype) for x in xs]
        self.inputs = [Value("xyz"[k], x.astype(float), dtype) for k, x in enumerate(given)]
        with np.errstate(all="ignore"):
            found = f(*given)
        self.outputs = [Value(f"out{k}", np.asarray(y, float), dtype) for k, y in enumerate(found)]

    def primal(self, inputs, lifted):
        with np.errstate(all="ignore"):
            return [np.asarray(y, float) for y in self.f(*self.typed(inputs, lifted))]

    def vjp(self, inputs, cotangents, lifted):
        ws = [np.zeros(o.value.shape) if w is None else w
              for w, o in zip(cotangents, self.outputs, strict=True)]  # fmt: skip
        with np.errstate(all="ignore"):
            found = self.g(self.typed(inputs, lifted), self.typed(ws, lifted))
        return [None if g is None else np.asarray(g, float) for g in found]

    def typed(self, xs, lifted):
        return [np.asarray(x, float if lifted else self.dtype) for x in xs]

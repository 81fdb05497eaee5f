"""Tensors of the program that a function may read outside of its arguments.

A function that is given a module computes with the module's own parameters, whatever copies it gets
beside it. So the numbers of a run are put into these tensors while it lasts, and taken out again.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from types import FunctionType, MethodType
from typing import Any

from engine.classes import dataclass
from engine.foreign.torch_state import State, captured
from engine.foreign.torch_tensors import again

DEEP = 4  # functions inside of functions


@dataclass
class Live:
    """The program's own tensors of a call.

    leaves: those among its arguments that are leaves of the graph, by number. held: others that
    modules among its arguments hold, with copies. state: attributes that it can reach.
    """

    leaves: dict[int, weakref.ref[Any]] = field(default_factory=dict)
    held: list[tuple[weakref.ref[Any], Any]] = field(default_factory=list)
    state: State = field(default_factory=State)

    @staticmethod
    def of(args: Sequence[Any], wanted: Sequence[int], codes: Sequence[Any] = ()) -> Live:
        """Those of arguments. wanted: the numbers of those that ask for a gradient.

        codes: functions that may refer to modules, beside the arguments.
        """
        out = Live({k: weakref.ref(args[k]) for k in wanted if args[k].is_leaf})
        known = {id(args[k]) for k in wanted}
        for module in _modules((*args, *codes)):
            for t in (*module.parameters(), *module.buffers()):
                if id(t) not in known:
                    known.add(id(t))
                    out.held.append((weakref.ref(t), t.detach().clone()))
        out.state = State.of(args, codes)
        return out

    def own(self, k: int) -> Any:
        """The program's tensor that is an argument, None where there is none any more."""
        return self.leaves[k]() if k in self.leaves else None

    @contextlib.contextmanager
    def placed(self, values: Mapping[int, Any], lifted: bool) -> Iterator[None]:
        """Has the program's tensors hold these, by the numbers of arguments, and what they held."""
        import torch

        pairs = [(self.own(k), t) for k, t in values.items()]
        pairs += [(ref(), again(t, lifted)) for ref, t in self.held]
        before = []
        try:
            for t, value in pairs:
                if t is None:
                    continue
                before.append((t, t.data, t.grad, t.requires_grad, t._backward_hooks))
                t.grad, t._backward_hooks = None, None
                t.data = value.detach().clone()
            with self.state.placed(lifted):
                yield
        finally:
            with torch.no_grad():
                for t, data, grad, asks, hooks in reversed(before):
                    t.grad = None
                    t.data = data
                    t.requires_grad_(asks)
                    t.grad, t._backward_hooks = grad, hooks


def size_of(args: Sequence[Any]) -> int:
    """What copies of what modules among arguments hold take, in bytes."""
    every = [t for m in _modules(args) for t in (*m.parameters(), *m.buffers())]
    return sum(t.numel() * t.element_size() for t in {id(t): t for t in every}.values())


def _modules(args: Sequence[Any], deep: int = DEEP) -> Iterator[Any]:
    """Modules among arguments, whose methods are there, or which functions there refer to."""
    import torch

    for a in args:
        if isinstance(a, torch.nn.Module):
            yield a
        elif deep and type(a) in (list, tuple):
            yield from _modules(a, deep - 1)
        elif isinstance(a, MethodType):
            yield from _modules((a.__self__,), 0)
        elif deep and isinstance(a, FunctionType):
            yield from _modules([a.__globals__.get(name) for name in a.__code__.co_names], 0)
            yield from _modules(captured(a), deep - 1)
        elif deep and isinstance(a, functools.partial):
            yield from _modules((a.func, *a.args, *a.keywords.values()), deep - 1)

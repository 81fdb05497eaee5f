"""State that a call may read or change beside its arguments: attributes of reachable objects.

A function that is given a module may count its calls there, or keep a running maximum. So these are
put back to what they were when the call began while it runs again, and to what they are now after.
"""

from __future__ import annotations

import contextlib
import random
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any

import numpy as np

from engine.classes import dataclass
from engine.foreign.places import cells
from engine.foreign.torch_tensors import again
from engine.itself import is_of_engine

MOST = 1 << 12  # elements of a tensor that is kept
LENGTH = 16  # of a list
DEEP = 2  # objects that objects hold
PLAIN = (bool, int, float, str, type(None))
OTHERS = ("torch", "numpy", "warp", *sys.stdlib_module_names)


@dataclass
class Owner:
    """An object with attributes. of: its dictionary, or a class; None where it is gone.

    values: those attributes that are simple, as they were. names: of all attributes; None where
    others are not looked at. buffers: tensors of a module by name, whose data are put back by
    others as long as they are the module's.
    """

    of: Callable[[], Any]
    values: dict[Any, Any]
    names: frozenset[Any] | None = None
    buffers: dict[Any, weakref.ref[Any]] = field(default_factory=dict)

    def place(self, lifted: bool) -> Callable[[], None]:
        """Has the object as it was. Returns what has it as it is now."""
        found = self.of()
        if found is None:
            return lambda: None
        now = dict(_items(found))
        if self.names is not None:
            for name in now.keys() - self.names:
                if _simple(now[name]):
                    del found[name]
        for name, value in self.values.items():
            if name in self.buffers and self.buffers[name]() is now.get(name):
                continue
            _put(found, name, again(value, lifted))

        def back() -> None:
            if self.names is not None:
                for name in found.keys() - now.keys():
                    del found[name]
            here = _items(found)
            for name, value in now.items():
                if name not in here or here[name] is not value:
                    _put(found, name, value)

        return back


@dataclass
class Generator:
    """A generator of random numbers, with its state as it was."""

    get: Callable[[], Any]
    put: Callable[[Any], Any]
    then: Any

    def place(self) -> Callable[[], None]:
        """Has it as it was. Returns what has it as it is now."""
        now = self.get()
        self.put(self.then)
        return lambda: self.put(now)


def _generator(a: Any) -> Generator | None:
    """A generator of PyTorch, NumPy or Python, None for anything else."""
    import torch

    if isinstance(a, torch.Generator):
        get, put = a.get_state, a.set_state
    elif isinstance(a, np.random.Generator):
        bits: Any = a.bit_generator
        get, put = (lambda: bits.state), partial(setattr, bits, "state")
    elif isinstance(a, np.random.RandomState):
        get, put = a.get_state, a.set_state
    elif isinstance(a, random.Random):
        get, put = a.getstate, a.setstate
    else:
        return None
    return Generator(get, put, get())


@dataclass
class State:
    """The attributes and the generators of random numbers that a call can reach."""

    owners: list[Owner] = field(default_factory=list)
    generators: list[Generator] = field(default_factory=list)

    @staticmethod
    def of(args: Sequence[Any], codes: Sequence[Any] = ()) -> State:
        """As they are. codes: functions, which refer to globals by their names."""
        out, known = State(), set[int]()
        for a in args:
            out._add(a, known)
        for code in codes:
            f = getattr(code, "__func__", code)
            if isinstance(f, FunctionType):
                used = {n: f.__globals__[n] for n in f.__code__.co_names if n in f.__globals__}
                out._keep(partial(getattr, f, "__globals__"), used)
                for a in (*used.values(), *captured(f)):
                    out._add(a, known)
        return out

    @contextlib.contextmanager
    def placed(self, lifted: bool) -> Iterator[None]:
        """Has the objects as they were."""
        undo: list[Callable[[], None]] = []
        try:
            for generator in self.generators:
                undo.append(generator.place())
            for owner in self.owners:
                undo.append(owner.place(lifted))
            yield
        finally:
            for back in reversed(undo):
                back()

    def _add(self, a: Any, known: set[int], deep: int = DEEP) -> None:
        """An object, once."""
        import torch

        if isinstance(a, (MethodType, BuiltinMethodType)):
            a = a.__self__
        if id(a) in known or isinstance(a, (torch.Tensor, *PLAIN)):
            return
        known.add(id(a))
        if (generator := _generator(a)) is not None:
            self.generators.append(generator)
        elif isinstance(a, torch.nn.Module):
            for m in a.modules():
                known.add(id(m))
                for x in list(vars(m).values()) if deep else ():
                    self._add(x, known, 0)
                self._keep(_attributes(m), vars(m), whole=True)
                held = {n: t for n, t in m._buffers.items() if t is not None}
                refs = {n: weakref.ref(t) for n, t in held.items()}
                self._keep(_attributes(m, "_buffers"), held, buffers=refs)
        elif isinstance(a, FunctionType):
            for x in captured(a) if deep else ():
                self._add(x, known, deep - 1)
        elif isinstance(a, type):
            if not _foreign(a):
                own = {n: v for n, v in vars(a).items() if not n.startswith("__")}
                self._keep(_reference(a), own)
        elif type(a) is dict or (not _foreign(type(a)) and hasattr(a, "__dict__")):
            inside = a if type(a) is dict else vars(a)
            self._keep((lambda: a) if inside is a else _attributes(a), inside, whole=True)
            for x in list(inside.values()) if deep else ():
                self._add(x, known, deep - 1)

    def _keep(
        self, of: Callable[[], Any], values: Mapping[Any, Any], whole: bool = False,
        buffers: dict[Any, weakref.ref[Any]] | None = None,
    ) -> None:  # fmt: skip
        kept = {n: again(v) for n, v in values.items() if _simple(v)}
        if kept or whole:
            names = frozenset(values) if whole else None
            self.owners.append(Owner(of, kept, names, buffers or {}))


def captured(f: FunctionType) -> list[Any]:
    """What a function has captured."""
    return [held for _, held in cells(f)]


def _reference(a: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(a)
    except TypeError:
        return lambda: a


def _attributes(a: Any, name: str = "") -> Callable[[], Any]:
    """Gives an object's dictionary, or one that it has there, while the object is alive."""
    ref = _reference(a)

    def of() -> Any:
        found = ref()
        if found is None:
            return None
        return vars(found)[name] if name else vars(found)

    return of


def _items(found: Any) -> Mapping[Any, Any]:
    return vars(found) if isinstance(found, type) else found


def _put(found: Any, name: Any, value: Any) -> None:
    if isinstance(found, type):
        setattr(found, name, value)
    else:
        found[name] = value


def _foreign(cls: type) -> bool:
    """Whether a class is of a package that keeps its own state."""
    package = (cls.__module__ or "").partition(".")[0]
    return is_of_engine(cls) or (package in OTHERS and cls.__module__ != "__main__")


def _simple(a: Any) -> bool:
    """Whether it is a number, a name, a small tensor without history, or a short list of these."""
    import torch

    if type(a) in (list, tuple):
        return len(a) <= LENGTH and all(type(x) not in (list, tuple) and _simple(x) for x in a)
    if type(a) is torch.Tensor:
        plain = a.layout == torch.strided and a.device.type == "cpu" and not a.is_quantized
        return plain and not a.requires_grad and a.numel() <= MOST
    return type(a) in PLAIN

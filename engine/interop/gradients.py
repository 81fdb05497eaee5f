"""One gradient shared by an array and a tensor, also after either has moved it.

Frameworks forget gradients (`optimizer.zero_grad()` sets them to None) and put others in their
place. So an array that shares its gradient keeps none: it asks for it each time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any
from weakref import ref

from engine.classes import Protocol
from engine.diagnostics import LaunchError
from engine.lang.foreign import Memory
from engine.lang.structs import ElementType
from engine.lang.types import ScalarType
from engine.locks import Lock
from engine.runtime import views
from engine.runtime.array import array
from engine.runtime.guards import in_one_place
from engine.runtime.launch_errors import fail
from engine.runtime.mismatch import Mismatch

_lock = Lock()


class Gradients(Protocol):
    """What an adapter knows of the gradients of its framework's tensors."""

    def has_place(self, tensor: Any) -> bool:
        """Whether a tensor has a gradient of its own now, or can be given one."""

    def gradient_of(self, tensor: Any) -> Any:
        """The gradient, a tensor too; None where there is none."""

    def set_gradient(self, tensor: Any, gradient: Any) -> None:
        """Gives it one: a tensor, or an array, whose memory it takes."""

    def new_gradient(self, tensor: Any) -> Any:
        """Zeros that fit as its gradient, as a tensor."""

    def address(self, tensor: Any) -> int:
        """The address of the first element."""

    def memory(self, value: Any) -> Memory | None:
        """Where its elements lie."""

    def share(self, value: Any, dtype: Any = None, what: str = "") -> array:
        """A tensor as an array."""


Steps = list[tuple[Callable[[Any], Any], ElementType]]


def _viewed(a: array) -> tuple[array, Steps]:
    """The array that `a` is a view of, and how it was made of that."""
    steps: Steps = []
    while a._origin is not None:
        steps.insert(0, (a._origin[1], a._ir.element))
        a = a._origin[0]
    return a, steps


class Part:
    """The gradient of a tensor that was made of a view: a part of that of the viewed array.

    root: the viewed array; steps: how the view was made of it. given: the address that the tensor's
    gradient had last.
    """

    __slots__ = ("given", "root", "steps", "tensor")

    def __init__(self, a: array, tensor: Any) -> None:
        self.tensor = ref(tensor)
        root, self.steps = _viewed(a)
        self.root = ref(root)
        self.given = 0

    def of(self, whole: array) -> array:
        """The part of a gradient."""
        for operation, element in self.steps:
            whole = views.apply(whole, operation, element)
        return whole

    def put(self, adapter: Gradients, tensor: Any, piece: array) -> None:
        """Makes it the tensor's gradient."""
        adapter.set_gradient(tensor, piece)
        self.given = piece.ptr


class SharedGradient:
    """The gradient of a tensor, and of all arrays over the tensor's memory that ask for it.

    Where the tensor has no gradient, it is zero: a new one is made, and given to the tensor, when a
    backward pass asks for it. Where the tensor has got another one, that is the arrays', too.

    tensor: it is kept alive. own: the gradient of an array that the tensor was made of: it stays
    where it is, and is set to zero where the tensor was told to forget it; the tensor is not
    kept alive then.
    """

    __slots__ = (
        "__weakref__", "_adapter", "_faces", "_last", "_own", "_parts", "_tensors", "arrays",
    )  # fmt: skip

    def __init__(self, adapter: Gradients, tensor: Any, own: array | None = None) -> None:
        self._adapter = adapter
        self._tensors: list[Callable[[], Any]] = []
        if tensor is not None:
            self._tensors.append((lambda: tensor) if own is None else _weak(tensor))
        self._own = own
        self._parts: list[Part] = []  # tensors of views
        # The gradient seen last, and as arrays by their elements.
        self._last: Any = None
        self._faces: dict[ElementType, array] = {}
        # Arrays that were made for launches, by their elements: one for all launches.
        self.arrays: dict[ElementType, ref[array]] = {}

    def has(self, tensor: Any) -> bool:
        """Whether it is the gradient of a tensor, and not of an earlier one in its place."""
        return any(get() is tensor for get in self._tensors)

    def add(self, a: array, tensor: Any) -> None:
        """Another tensor that is made of the array `a`.

        It gets the gradient first: a tensor without one would mean that it is to be zero.
        """
        own, last = self.of(a), self._last
        known = last is not None and own is not None and self._is(own, last)
        self._adapter.set_gradient(tensor, last if known else own)
        if not known:
            self._last = self._adapter.gradient_of(tensor)
        self._tensors = [get for get in self._tensors if get() is not None]
        self._tensors.append(_weak(tensor))

    def add_part(self, a: array, tensor: Any) -> None:
        """A tensor that is made of a view `a`. It has a part of the gradient from now on."""
        part, piece = Part(a, tensor), a.grad
        if piece is not None:
            part.put(self._adapter, tensor, piece)
        with _lock:
            self._parts = [p for p in self._parts if p.tensor() is not None] + [part]

    def of(self, a: array, make: bool = True) -> array | None:
        """The gradient of an array. make: else None where the tensor has none at the moment."""
        found = self._whole(a, make)
        if self._parts and make:
            with _lock:
                for part in self._parts:
                    self._mend(part)
        return found

    def _mend(self, part: Part) -> None:
        """Has the tensor of a view show its part again: zero where it was told to forget it."""
        adapter, t, root = self._adapter, part.tensor(), part.root()
        if t is None or root is None or root._shared is not self or not adapter.has_place(t):
            return
        whole, g = self._whole(root, True, False), adapter.gradient_of(t)
        if whole is None or not whole.size:
            return
        piece = part.of(whole)
        address = 0 if g is None else adapter.address(g)
        if address == piece.ptr:
            part.given = address
            return
        if address != part.given or g is None:  # else the whole has moved
            piece.storage.before_write(piece.lo, piece.hi)
            piece._put(0 if g is None else adapter.share(g, piece.dtype)._host())
        part.put(adapter, t, piece)

    def _whole(self, a: array, make: bool, alone: bool = True) -> array | None:
        """The same without a look at tensors of views. alone: the lock is not held."""
        adapter, found, bare = self._adapter, None, False
        if self._own is None and len(self._tensors) == 1:  # as it is asked for most often
            t = self._tensors[0]()
            g = None if t is None or not adapter.has_place(t) else adapter.gradient_of(t)
            if g is not None:
                return self._face(a, g)
        tensors = [t for get in self._tensors
                   if (t := get()) is not None and adapter.has_place(t)]  # fmt: skip
        for t in tensors:
            g = adapter.gradient_of(t)
            if g is None:
                bare = True
            elif found is None or not self._known(g):
                found = g
        if not tensors:
            return self._face(a, self._last)
        if bare:
            if not make:
                return None
            with _lock if alone else nullcontext():
                found = self._renewed(tensors, a)
        return self._face(a, found)

    def put(self, a: array, gradient: array) -> None:
        """Makes an array's new gradient that of the tensors."""
        for get in self._tensors:
            t = get()
            if t is not None and self._adapter.has_place(t):
                self._adapter.set_gradient(t, gradient)
        self._own, self._last, self._faces = gradient, None, {a._ir.element: gradient}
        for part in self._parts:
            t = part.tensor()
            if t is not None and part.root() is a:
                part.put(self._adapter, t, part.of(gradient))

    def _renewed(self, tensors: list[Any], a: array) -> Any:
        """Zeros as the gradient of all of them; nothing where another thread was first.

        a: the array that asks.
        """
        adapter = self._adapter
        have = [adapter.gradient_of(t) for t in tensors]
        if all(g is not None for g in have):
            return have[0]
        if self._own is not None:
            own = self._own
            for t in tensors:
                if tuple(t.shape) != own.shape + own._info.inner:
                    raise _unlike(own, tuple(t.shape))
            own.storage.before_write(own.lo, own.hi)
            own._put(0)
            for t in tensors:
                adapter.set_gradient(t, own)
            return adapter.gradient_of(tensors[0])
        if self._is_all(a, tensors[0]):  # made as the array is, it need not be looked at
            zeros = array._allocate(a.shape, a._ir.element, True, a.device)
            for t in tensors:
                adapter.set_gradient(t, zeros)
            self._last, self._faces = adapter.gradient_of(tensors[0]), {a._ir.element: zeros}
            return self._last
        new = adapter.new_gradient(tensors[0])
        for t in tensors:
            adapter.set_gradient(t, new)
        return new

    def _is_all(self, a: array, tensor: Any) -> bool:
        """Whether an array is a tensor as it is, number by number."""
        return (
            a._ir.element.__class__ is ScalarType and a.is_contiguous and a.size > 0
            and tuple(tensor.shape) == a.shape and self._adapter.address(tensor) == a.ptr
        )  # fmt: skip

    def _known(self, g: Any) -> bool:
        last = self._last if self._last is not None else self._own
        if last is None or last is g:
            return last is g
        where = last.ptr if isinstance(last, array) else self._adapter.address(last)
        return where == self._adapter.address(g)

    def _face(self, a: array, g: Any) -> array | None:
        """A gradient as an array like `a`; the same object as long as it is the same gradient."""
        kind = a._ir.element
        own = self._own
        if own is not None and own._ir.element is kind and (g is None or self._is(own, g)):
            return own
        if g is None:
            return self._faces.get(kind)
        if self._last is not g:
            if self._last is None or not self._same(g):
                self._faces = {}
            self._last = g
        found = self._faces.get(kind)
        if found is None or not self._is(found, g):
            try:
                found = self._adapter.share(g, a.dtype)
            except LaunchError as e:
                if e.diagnostics[0].code != "E202":
                    raise
                raise self._unfit(a, g) from None
            if in_one_place(found):
                raise fail("E206", "a gradient has two elements in one place, and backward passes "
                           "write it", help="copy the gradient: t.grad = t.grad.clone()"
                           )  # fmt: skip
            self._faces[kind] = found
        if found.shape != a.shape:
            raise _unlike(a, found.shape)
        return found

    def _unfit(self, a: array, g: Any) -> LaunchError:
        """The E202 for a gradient that is no array like `a`."""
        try:
            self._adapter.memory(g)
        except Mismatch as why:
            return fail("E202", "the gradient of the tensor that the array was made of is "
                        f"{why.got} now", help=why.help)  # fmt: skip
        return fail("E202", "the tensor that the array was made of has another type now, and its "
                    f"gradient does not fit elements of {a._ir.element}",
                    help="make the array again from the present tensor")  # fmt: skip

    def _same(self, g: Any) -> bool:
        """Whether a gradient is the last one, by another object, as some frameworks give it."""
        try:
            seen, last = self._adapter.memory(g), self._adapter.memory(self._last)
        except Mismatch:  # the last one is empty by now
            return False
        return seen is not None and last is not None and seen[:4] == last[:4]

    def _is(self, a: array, g: Any) -> bool:
        return a.ptr == self._adapter.address(g) or a.size == 0


# By identity of the tensor, as long as both live. Those of arrays do not keep it alive: see `has`.
_shared: dict[int, ref[SharedGradient]] = {}


def _unlike(a: array, shape: tuple[int, ...]) -> LaunchError:
    """The E206 where a tensor has got other data, and gradients of another shape."""
    return fail("E206", f"an array of shape {a.shape} shares the gradient of a tensor, which has "
                f"shape {shape} now: the tensor has got other data since",
                help="make the array again from the present tensor")  # fmt: skip


def _known(tensor: Any) -> SharedGradient | None:
    at = _shared.get(id(tensor))
    found = None if at is None else at()
    return found if found is not None and found.has(tensor) else None


def _weak(tensor: Any) -> Callable[[], Any]:
    """A reference that does not keep it alive; nothing is known of it when it is gone."""
    number = id(tensor)
    shared = _shared  # as Python ends, the module loses its names before tensors go
    return ref(tensor, lambda _: shared.pop(number, None))


def _note(tensor: Any, gradient: SharedGradient) -> None:
    number, shared = id(tensor), _shared  # see `_weak`

    def gone(dead: ref[SharedGradient]) -> None:
        if shared.get(number) is dead:
            del shared[number]

    _shared[number] = ref(gradient, gone)


def shared_gradient(adapter: Gradients, tensor: Any) -> SharedGradient:
    """The one for a tensor."""
    found = _known(tensor)
    if found is None:
        with _lock:
            found = _known(tensor)
            if found is None:
                found = SharedGradient(adapter, tensor)
                _note(tensor, found)
    return found


def give(adapter: Gradients, a: array, tensor: Any) -> None:
    """Lets a tensor that was made of an array share the array's gradient from now on.

    A tensor of a view has a part of the gradient of the viewed array; only as it is now, where
    that is the gradient of another tensor.
    """
    shared = a._shared
    if shared is None:
        if a._origin is not None:
            root, _ = _viewed(a)
            with _lock:
                if root._shared is None:
                    root._shared, root._grad = SharedGradient(adapter, None, root.grad), None
            if root._shared._own is None:  # that of another tensor, which moves it as it likes
                adapter.set_gradient(tensor, a.grad)
                return
            root._shared.add_part(a, tensor)
            return
        with _lock:
            shared = a._shared
            if shared is None:
                own = a.grad
                adapter.set_gradient(tensor, own)
                shared = a._shared = SharedGradient(adapter, tensor, own)
                a._grad = None
                _note(tensor, shared)
                return
    shared.add(a, tensor)
    _note(tensor, shared)


def join(made: array, shared: SharedGradient) -> array:
    """Gives an array a gradient that it shares, if its elements can have one."""
    if made._info.floating:
        made._flag = True
        made._grad = made._grad_view = None
        made._shared = shared
    return made

"""Sees calls of `torch.autograd.Function` and of operators of `torch.library`.

`torch_apply` has `Function.apply` call this file. Operators with `register_autograd` come by the
same way, as functions that PyTorch makes for them.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
import weakref
from collections.abc import Mapping, Sequence
from types import FrameType, FunctionType, ModuleType
from typing import Any, Literal

from engine.autograd.facts import Change, Undifferentiated
from engine.diagnostics import Span
from engine.foreign import torch_seams
from engine.foreign.collection import Collection
from engine.foreign.places import (
    caller,
    class_line,
    definition,
    folder,
    package_of,
    parameters,
    results,
)
from engine.foreign.seams import Part
from engine.foreign.torch_apply import GENERATED, Apply, is_inner
from engine.foreign.torch_call import Backward, Called, TorchCall
from engine.foreign.torch_library import called_operator, formula_of, of_kernel
from engine.foreign.torch_live import Live, size_of
from engine.foreign.torch_running import RandomState, quiet
from engine.foreign.torch_steps import Steps
from engine.foreign.torch_tensors import copied
from engine.locks import Lock

PASSES = 2  # backward passes of the program that are compared, for each call
_COMPILED = "it ran inside code that torch.compile compiled, where its values cannot be seen"
_TRANSFORMED = "it ran inside of torch.func (vmap, grad, ...), where its values cannot be seen"
_COMPLEX = "it has complex numbers, which adtool does not check"
_TAKEN = (
    "its `apply` was stored before adtool replaced it, in a place that adtool does not change (a "
    "tuple, a class, functools.partial): call `apply` of the class"
)
_LAYOUT = "it has tensors that are not plain dense tensors"

_watchers: list[Watcher] = []
_lock = Lock()


class Watcher:
    """Looks on as long as it is installed. Several may at the same time."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self._root = ""
        self._steps = Steps()
        self._compiled: dict[str, Span | None] = {}  # operators that torch.compile has traced
        self._seen: set[str] = set()
        self._passed: set[Any] = set()  # functions of which no such calls are told
        self._named = False  # whether functions in compiled code have names

    def parts(self, module: ModuleType) -> Mapping[str, Part]:
        """What is to be watched. See `engine.foreign.seams`."""
        self._root = folder(module)
        return torch_seams.parts(module, self._begin, self._steps)

    def _begin(self, function: Any) -> None:
        with _lock:
            if not _watchers:
                try:
                    _apply.begin(function)
                except BaseException:
                    _apply.end()
                    raise
            _watchers.append(self)

    def remove(self) -> None:
        """Ends it."""
        self._steps.end()
        with _lock:
            if self in _watchers:
                _watchers.remove(self)
                if not _watchers:
                    _apply.end()
        # Some backends call operators as without torch.compile: these were seen after all.
        for name, site in self._compiled.items():
            if name not in self._seen:
                self.collection.leave_out(name, _COMPILED, site)

    def begin(self, cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Begun | None:
        """Looks at a call before it is done; None where it is not to be kept."""
        import torch

        if (cls.__module__ or "").partition(".")[0] == "torch":
            if cls.__name__ == "ApplyTemplate" and torch.is_grad_enabled():
                self._traced()
            if not cls.__name__.startswith(GENERATED):
                return None
        if not torch.is_grad_enabled():
            self._idle(cls, args, "mode")
            return None
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, torch.Tensor)]
        asked = [t for t in tensors if _differentiated(t)]
        if not asked:
            self._idle(cls, args, "inputs")
            return None
        if not any(t.requires_grad for t in asked) and not (
            _overrides(cls, "backward") or _overrides(cls, "vjp")
        ):
            return None  # tangents are all that it has
        called = _called(cls, args)
        if called is None or self.collection.leaves_alone(called.name, _package(cls, called)):
            return None
        if torch._C._are_functorch_transforms_active():
            return self._left(called.name, _TRANSFORMED)
        if any(type(t).__module__.startswith("torch._subclasses") for t in tensors):
            self._compiled.setdefault(called.name, caller(self._root, depth=3))
            return None
        self._seen.add(called.name)
        if any(t.is_complex() for t in tensors):
            return self._left(called.name, _COMPLEX)
        plain = (torch.Tensor, torch.nn.Parameter)
        if any(type(t) not in plain or t.layout != torch.strided or t.is_meta for t in tensors):
            return self._left(called.name, _LAYOUT)
        kind = (cls, tuple(map(_sort, args)), tuple((k, _sort(a)) for k, a in kwargs.items()))
        size = 2 * sum(t.numel() * t.element_size() for t in tensors)
        codes = called.codes
        size += size_of((*args, *codes))
        site = caller(self._root, depth=3)
        number = self.collection.number(called.name, kind, size, site, quick=True)
        if number < 0:
            return None
        wanted = [
            k for k, a in enumerate(args)
            if isinstance(a, torch.Tensor) and a.is_floating_point() and _differentiated(a)
        ]  # fmt: skip
        call = TorchCall(
            called, site, [_kept(a) for a in args], {k: _kept(a) for k, a in kwargs.items()},
            wanted, RandomState.now(), live=Live.of(args, wanted, codes),
            cast=torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None,
            shared={k: m for k in wanted if (m := _first(args, wanted, k)) < k}, packed=_packs(),
        )  # fmt: skip
        # PyTorch itself notices changes of what has no gradient: running means, say.
        versions = [
            (k, a, a._version) for k, a in enumerate(args)
            if isinstance(a, torch.Tensor) and a.requires_grad
        ]  # fmt: skip
        return _Begun(self.collection, number, call, versions)

    def _idle(self, cls: Any, args: tuple[Any, ...], why: Literal["inputs", "mode"]) -> None:
        """Takes note of a call that no gradient is wanted of."""
        idle = self.collection
        if idle.again(cls) or cls in self._passed:
            return
        with contextlib.suppress(Exception):  # of what is not to be checked
            called = None if is_inner(cls) else _called(cls, args)
            if called is not None and (not _package(cls, called) or idle.chosen(called.name)):
                site = caller(self._root, depth=4)
                found = Undifferentiated(idle.framework, called.name, site, 1, why)
                idle.undifferentiated[cls] = found
                return
        self._passed.add(cls)

    def _traced(self) -> None:
        """Tells of a function in code that is compiled: PyTorch calls something in its place."""
        cls = _compiled_now()
        called = None if cls is None else _called(cls, ())
        if called is None and self._named:
            return  # it runs, after it was compiled
        self._named = called is not None
        if called is None:
            self.collection.leave_out(
                "torch.autograd.Function", _COMPILED, caller(self._root, depth=4)
            )
        elif not self.collection.leaves_alone(called.name, _package(cls, called)):
            self.collection.leave_out(called.name, _COMPILED, caller(self._root, depth=4))

    def _left(self, name: str, reason: str) -> _Begun | None:
        self.collection.leave_out(name, reason, caller(self._root, depth=4))
        return None


class _Begun:
    """A call that is being done. versions: of tensors among its arguments, by number."""

    def __init__(
        self, collection: Collection, number: int, call: TorchCall,
        versions: list[tuple[int, Any, int]],
    ) -> None:  # fmt: skip
        self.collection, self.number, self.call, self.versions = collection, number, call, versions

    def done(self, out: Any) -> None:
        """Takes what came of it."""
        import torch

        call = self.call
        every = list(out) if isinstance(out, (tuple, list)) else [out]
        call.count = len(every)
        for k, a, version in self.versions:
            if a._version != version and not any(y is a for y in every):
                if not torch.equal(a.detach(), call.args[k]):
                    forward = call.called.forward
                    written = None if forward is None else definition(forward)
                    name = call.called.names[k]
                    call.found.append(Change("input", name, call.site, span=written))
        leaves = [
            (call.called.names[k], weakref.ref(a)) for k, a, _ in self.versions
            if a.requires_grad and a.is_leaf
        ]  # fmt: skip
        self.versions = []
        node = None
        for place, y in enumerate(every):
            if not isinstance(y, torch.Tensor) or not _differentiated(y):
                continue
            if y.is_complex():
                self.collection.leave_out(call.name, _COMPLEX, call.site)
                return
            if y.is_floating_point():
                call.places.append(place)
                call.returned.append(copied(y))
                node = y.grad_fn or node
        if node is not None:
            self._watch(node, every, leaves)
        self.collection.add(self.number, call)

    def _watch(self, node: Any, outputs: list[Any], leaves: list[tuple[str, Any]]) -> None:
        """Has the program's own backward passes through the call noted."""
        import torch

        call, places = self.call, self.call.places
        kept = []
        for name, t in list(getattr(node, "__dict__", {}).items()):
            if isinstance(t, torch.Tensor):
                kept.append((f"ctx.{name}", weakref.ref(t), t._version))
                if any(t is y for y in outputs):
                    self.collection.note(
                        f"`{call.name}` keeps its result as ctx.{name}: a circle, whose memory is "
                        "freed late; ctx.save_for_backward keeps it without one"
                    )
        # Gradients are those of arguments that are tensors.
        tensors = [k for k, a in enumerate(call.args) if isinstance(a, torch.Tensor)]
        asked = [tensors.index(k) for k in call.wanted]

        given: list[Any] = []  # what a pass that runs now was given, as it was

        def about(cotangents: tuple[Any, ...]) -> None:
            given.clear()
            if not looked():
                return
            try:
                given.append([None if (w := cotangents[k]) is None else copied(w) for k in places])
                given.append([(name, ref, _gradient(ref)) for name, ref in leaves])
            except Exception:
                given.clear()

        def looked() -> bool:
            return not quiet_now() and len(call.seen) < PASSES and bool(_watchers)

        def passed(gradients: tuple[Any, ...], cotangents: tuple[Any, ...]) -> None:
            if not looked() or len(given) != 2:
                return
            try:
                for name, ref, before in given[1]:
                    now = _gradient(ref)
                    moved = now is not None and bool(now.any() if before is None
                                                     else not torch.equal(now, before))  # fmt: skip
                    if moved:
                        call.found.append(Change("leaf", name, call.site))
                changed = tuple(
                    name for name, ref, version in kept
                    if (t := ref()) is not None and t._version != version
                )  # fmt: skip
                call.seen.append(Backward(
                    given[0],
                    [None if (g := gradients[k]) is None else copied(g) for k in asked],
                    changed, torch.is_grad_enabled(),
                ))  # fmt: skip
            except Exception:  # the program is to run as it would without us
                call.seen.clear()

        node.register_prehook(about)
        node.register_hook(passed)


def _compiled_now() -> Any:
    """The function that torch.compile compiles at present, where one of its frames has it."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        found = getattr(frame.f_locals.get("self"), "fn_cls", None)
        if isinstance(found, type):
            return found
        frame = frame.f_back
    return None


def _gradient(ref: Any) -> Any:
    """A copy of the gradient that a leaf has, if it is alive and has one."""
    t = ref()
    return None if t is None or t.grad is None else copied(t.grad)


def quiet_now() -> bool:
    """Whether the check itself runs in this thread."""
    return bool(getattr(quiet, "on", False))


def probing() -> list[Any] | None:
    """Where calls are noted while this thread tests whether they are noticed."""
    return getattr(quiet, "probe", None)


def applied(cls: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `Function.apply` does while a program is watched."""
    original = _apply.original
    if (probe := probing()) is not None:
        probe.append((cls, args))
        return original(cls, args, kwargs)
    if quiet_now() or not _watchers:
        return original(cls, args, kwargs)
    begun = []
    for watcher in list(_watchers):
        try:
            found = watcher.begin(cls, args, kwargs)
        except Exception as error:  # the program is to run as it would without us
            watcher.collection.leave_out(*_unseen(cls, error), caller(watcher._root, depth=2))
            continue
        if found is not None:
            begun.append(found)
    out = original(cls, args, kwargs)
    for x in begun:
        try:
            x.done(out)
        except Exception as error:
            x.collection.leave_out(*_unseen(cls, error), x.call.site)
    return out


def missed(cls: Any) -> None:
    """Tells of a call that went past `applied`."""
    if quiet_now() or probing() is not None or is_inner(cls):
        return
    name = cls.__qualname__.rpartition("<locals>.")[2].removeprefix(GENERATED)
    for watcher in list(_watchers):
        called = None if cls.__name__.startswith(GENERATED) else _called(cls, ())
        if called is None or not watcher.collection.leaves_alone(name, _package(cls, called)):
            watcher.collection.leave_out(name, _TAKEN, caller(watcher._root, depth=3))


_apply = Apply(applied, missed)


def _unseen(cls: Any, error: Exception) -> tuple[str, str]:
    name = cls.__qualname__.rpartition("<locals>.")[2]
    return name, f"a call could not be looked at: {type(error).__name__}: {error}"


def _packs() -> bool:
    """Whether the program has hooks of its own for what is saved."""
    import torch

    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


def _differentiated(t: Any) -> bool:
    """Whether a tensor has a gradient, or a tangent."""
    from torch.autograd import forward_ad

    level = forward_ad._current_level
    return bool(t.requires_grad or (level >= 0 and forward_ad.unpack_dual(t).tangent is not None))


def _sort(a: Any) -> object:
    """Equal for arguments of calls that count as equal."""
    import torch

    if isinstance(a, torch.Tensor):
        return tuple(a.shape), a.stride(), a.dtype, a.requires_grad
    return a if isinstance(a, (bool, str, type(None))) else type(a)


def _first(args: Sequence[Any], wanted: Sequence[int], k: int) -> int:
    """The number of the first argument that is the same tensor."""
    return next(m for m in wanted if args[m] is args[k])


def _kept(a: Any) -> Any:
    import torch

    if isinstance(a, torch.Tensor):
        return copied(a)
    if type(a) in (list, tuple):
        return type(a)(_kept(x) for x in a)
    return a


# ---- what is called


def _package(cls: Any, called: Called) -> str:
    """The installed package that a function was written in, empty for the user's own.

    It is the user's if any part of it is, as a class that derives from one of a package.
    """
    files = [called.span.file]
    if called.what == "function":
        parts = (getattr(cls, n, None) for n in ("forward", "backward", "setup_context", "vjp"))
        files += [f.__code__.co_filename for p in parts if (f := _plain(p)) is not None]
        files.append(getattr(sys.modules.get(cls.__module__), "__file__", None) or files[0])
    packages = [p for p in map(package_of, files) if p != "torch"]
    return next(iter(packages), "") if all(packages) and "engine" not in packages else ""


def _plain(part: Any) -> FunctionType | None:
    """The Python function inside of a method or of what is around it."""
    found = inspect.unwrap(getattr(part, "__func__", part))
    return found if isinstance(found, FunctionType) else None


def _called(cls: Any, args: Sequence[Any]) -> Called | None:
    if cls.__name__.startswith(GENERATED):
        return called_operator(cls, args)
    backward = cls.vjp if _overrides(cls, "vjp") else cls.backward
    if (formula := formula_of(backward)) is not None:  # in forward mode
        names = parameters(cls.forward, len(args))
        return of_kernel(formula, cls.apply, names, lambda n: results(cls.forward, n, names))
    own = _overrides(cls, "vjp") or _overrides(cls, "backward")
    # Of the older of two styles, the first parameter is the context.
    skip = 0 if _overrides(cls, "setup_context") else 1
    names = parameters(cls.forward, len(args), skip)
    word = "vjp" if _overrides(cls, "vjp") else "backward"
    name = cls.__qualname__.rpartition("<locals>.")[2]
    return Called(
        name, "function", f"{name}.{word}", definition(backward) if own else class_line(cls),
        cls.apply, names, lambda n: results(cls.forward, n, names), _once(backward),
        (cls.forward, backward, *((cls.setup_context,) if not skip else ())),
        (f"{name}.jvp", definition(cls.jvp)) if _overrides(cls, "jvp") else None,
        forward=cls.forward,
    )  # fmt: skip


def _once(backward: Any) -> bool:
    """Whether PyTorch's `once_differentiable` is around it."""
    import torch

    file = torch.autograd.function.once_differentiable.__code__.co_filename
    return hasattr(backward, "__wrapped__") and backward.__code__.co_filename == file


def _overrides(cls: Any, name: str) -> bool:
    import torch

    return getattr(cls, name) is not getattr(torch.autograd.Function, name)

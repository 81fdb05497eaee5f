"""A function of PyTorch as a stretch of a tape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from engine.interop.ops.functions import as_tuple, definition, name_of
from engine.interop.ops.held import copies, held_by
from engine.lang.types import BFLOAT16
from engine.tape.records.foreign import NumpyArray, Stretch, Values

T = TypeVar("T")


def _outside(method: Callable[..., T]) -> Callable[..., T]:
    """Runs a method outside of `torch.inference_mode`, in which nothing has a gradient."""

    @wraps(method)
    def run(*args: Any) -> T:
        import torch

        with torch.inference_mode(False):
            return method(*args)

    return run


class TorchStretch(Stretch):
    """It draws the random numbers that it drew when it was made."""

    framework = "torch"

    def __init__(self, function: Callable[..., Any]) -> None:
        import torch

        self.function = function
        self.name = name_of(function)
        self.span = definition(function)
        self._state = torch.get_rng_state()
        self._began = False
        self._dtypes: Sequence[Any] = ()
        self._held: list[tuple[Any, Any]] = []

    @_outside
    def run(self, values: Values) -> list[NumpyArray]:
        tensors = [_tensor(x) for x in values]
        if not self._began:  # the user's own call
            self._began = True
            self._dtypes = [t.dtype for t in tensors]
            return [_numpy(t) for t in self._call(tensors)]
        with self._again(tensors):
            return [_numpy(t) for t in self._call(tensors)]

    def remember(self) -> None:
        self._held = copies(held_by(self.function))

    @_outside
    def vjp(
        self, values: Values, cotangents: Values, wanted: Sequence[bool], own: bool
    ) -> list[NumpyArray | None]:
        import torch

        leaves = [_tensor(x) for x in values]
        for t, want in zip(leaves, wanted, strict=True):
            t.requires_grad_(want and t.is_floating_point())
        asked = [t for t in leaves if t.requires_grad]
        with self._again(leaves, own):
            # What the function changes in place is no leaf.
            made = self._call([t.clone() if t.requires_grad else t for t in leaves])
            seeds = [
                (y, _tensor(c).to(y.dtype).reshape(y.shape))
                for y, c in zip(made, cotangents, strict=True) if y.requires_grad
            ]  # fmt: skip
            if seeds and own:
                torch.autograd.backward(*(list(x) for x in zip(*seeds, strict=True)))
                found = [t.grad for t in asked]
            elif seeds and asked:
                ys, cs = zip(*seeds, strict=True)
                found = list(torch.autograd.grad(ys, asked, cs, allow_unused=True))
            else:
                found = [None] * len(asked)
        grads = dict(zip(map(id, asked), found, strict=True))
        return [None if (g := grads.get(id(t))) is None else _numpy(g) for t in leaves]

    @_outside
    def jvp(self, values: Values, tangents: Values) -> list[NumpyArray]:
        import torch

        tensors = [_tensor(x) for x in values]
        moving = [k for k, t in enumerate(tensors) if t.is_floating_point()]

        def along(*moved: Any) -> tuple[Any, ...]:
            every = list(tensors)
            for k, t in zip(moving, moved, strict=True):
                every[k] = t
            return self._call(every)

        with self._again(tensors):
            try:
                points = tuple(tensors[k] for k in moving)
                moved = tuple(_tensor(tangents[k]).to(tensors[k].dtype) for k in moving)
                return [_numpy(t) for t in torch.func.jvp(along, points, moved)[1]]
            except RuntimeError as why:
                raise TypeError(str(why).splitlines()[0]) from None

    def _call(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        import torch

        with torch.enable_grad():
            found = self.function(*tensors)
        return as_tuple(self.function, found, torch.Tensor, "a tensor")

    @contextmanager
    def _again(self, tensors: Sequence[Any], own: bool = False) -> Iterator[None]:
        """Has it do what it did, in the precision of these tensors.

        own: with the tensors that it holds themselves, and not as they were.
        """
        import torch

        floats = zip(tensors, self._dtypes, strict=True)
        lifted = any(t.dtype != d and t.dtype == torch.float64 for t, d in floats)
        with ExitStack() as stack:
            stack.enter_context(torch.random.fork_rng(devices=[]))
            torch.set_rng_state(self._state)
            held = {} if own else {id(t): was for t, was in self._held}
            if held or lifted:
                stack.enter_context(_other_tensors(held, lifted))
            yield


@contextmanager
def _other_tensors(held: dict[int, Any], lifted: bool) -> Iterator[None]:
    """Functions of PyTorch get other tensors for those in `held`, by identity.

    lifted: what they get and make is float64, too.
    """
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._pytree import tree_map

    narrow = (torch.float16, torch.bfloat16, torch.float32)
    narrowing = dict.fromkeys(("float", "half", "bfloat16"), torch.Tensor.double) if lifted else {}

    def other(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            x = held.get(id(x), x)
            return x.to(torch.float64) if lifted and x.dtype in narrow else x
        return torch.float64 if lifted and isinstance(x, torch.dtype) and x in narrow else x

    class Others(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            with torch._C.DisableTorchFunction():
                args, kwargs = tree_map(other, args), tree_map(other, kwargs or {})
            return narrowing.get(func.__name__, func)(*args, **kwargs)

    before = torch.get_default_dtype()
    if lifted:
        torch.set_default_dtype(torch.float64)
    try:
        with Others():
            yield
    finally:
        torch.set_default_dtype(before)


def _tensor(x: NumpyArray) -> Any:
    import torch

    if x.dtype == BFLOAT16.numpy:
        return torch.from_numpy(np.array(x, order="C").view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(x, order="C"))


def _numpy(t: Any) -> NumpyArray:
    import torch

    t = t.detach().resolve_neg().cpu()
    if t.dtype == torch.bfloat16:
        return np.array(t.contiguous().view(torch.int16).numpy()).view(BFLOAT16.numpy)
    return np.array(t.numpy())

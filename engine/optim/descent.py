"""`Adam` and `SGD`: arrays of parameters, changed in place along their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.lang.types import FLOAT16, FLOAT32, scalar_of, with_scalar
from engine.runtime.array import array
from engine.runtime.launch import launch
from engine.runtime.transfer import clone, copy
from engine.utils.common import UtilityError, UtilityTypeError, is_number, refused, scalars


class _Descent:
    """What both have: parameters, and arrays of moments beside each."""

    _moments: tuple[str, ...] = ()

    def __init__(self, params: Sequence[array] | None) -> None:
        self.params: list[array] | None = None
        self.t = 0
        for name in self._moments:
            setattr(self, name, [])
        self.set_params(params)

    def set_params(self, params: Sequence[array] | None) -> None:
        """Takes these parameters from now on. Moments stay where the shape and type do.

        Raises UtilityError (a LaunchError and a RuntimeError) E202 for what are no arrays of
        floats.
        """
        if params is None:
            self.params = None
            return
        for p in _several(type(self).__name__, "parameters", params):
            if not isinstance(p, array) or not p._info.floating or p._info.numpy.names is not None:
                what = p.dtype.__name__ if isinstance(p, array) else type(p).__name__
                raise refused(f"{type(self).__name__}: parameters are arrays of floats, got {what}",
                              code="E202", kind=UtilityTypeError)  # fmt: skip
        self.params = list(params)
        for name in self._moments:
            old = getattr(self, name)
            setattr(self, name, [_moment(p, old[k] if k < len(old) else None)
                                 for k, p in enumerate(self.params)])  # fmt: skip

    def reset_internal_state(self) -> None:
        """Forgets all moments, as if no step had been made."""
        for name in self._moments:
            for m in getattr(self, name):
                m.zero_()
        self.t = 0

    def step(self, grad: Sequence[array]) -> None:
        """Changes the parameters, given the gradient of each. Nothing is recorded on a tape.

        In a captured graph the number of the step (`t`) is that of the capture, as all Python
        numbers are: what is corrected for it is each time corrected as then.

        Raises UtilityError (a LaunchError and a RuntimeError) where no parameters are set or the
        gradients are not as many, with TypeError and ValueError among its bases for the wrong
        type or shape.
        """
        name = type(self).__name__
        if self.params is None:
            raise refused(f"{name} parameters must be set before calling step(), got None",
                          "call set_params(...), or pass them to the constructor")  # fmt: skip
        grads = _several(name, "gradients", grad)
        if len(grads) != len(self.params):
            raise refused(f"{name}: {len(self.params)} parameters, but {len(grads)} gradients")
        for p, g in zip(self.params, grads, strict=True):
            self._check(name, p, g)
        for k, (p, g) in enumerate(zip(self.params, grads, strict=True)):
            if p.size:
                whole = p if p.is_contiguous else clone(p)
                self._step(k, scalars(g.contiguous()), scalars(whole))
                if whole is not p:
                    copy(p, whole)
        self.t += 1

    @staticmethod
    def _check(name: str, p: array, g: Any) -> None:
        if not isinstance(g, array):
            raise refused(f"{name}: a gradient is an array, got {type(g).__name__}",
                          "does its parameter require a gradient?",
                          kind=UtilityTypeError)  # fmt: skip
        if g._ir.element != p._ir.element:
            raise refused(f"{name} gradient dtype must match parameter dtype {p.dtype.__name__}, "
                          f"got {g.dtype.__name__}", code="E202",
                          kind=UtilityTypeError)  # fmt: skip
        if g.shape != p.shape:
            raise refused(f"{name} gradient shape must match parameter shape {p.shape}, "
                          f"got {g.shape}")  # fmt: skip

    def _numbers(self, *names: str) -> list[Any]:
        """What these attributes are now. Raises UtilityError (E206) for what are no numbers."""
        found = [getattr(self, name) for name in names]
        for name, x in zip(names, found, strict=True):
            if not is_number(x):
                raise refused(f"{type(self).__name__}: {name} must be a number, got {x!r}",
                              kind=UtilityTypeError)  # fmt: skip
        return found

    def _step(self, k: int, g: array, params: array) -> None:
        raise NotImplementedError


def _several(name: str, what: str, given: Any) -> list[Any]:
    """What was given, as a list. One array alone would be taken apart into its elements."""
    if isinstance(given, array) or not hasattr(given, "__iter__"):
        found = "an array" if isinstance(given, array) else repr(given)
        raise refused(f"{name}: {what} are a list of arrays, got {found}", "write `[a]`",
                      "E202", UtilityTypeError)  # fmt: skip
    return list(given)


def _moment(p: array, old: array | None) -> array:
    """Zeros beside a parameter, at least of float32; what is there already where it fits."""
    kind = p._ir.element
    if scalar_of(kind) == FLOAT16:
        kind = with_scalar(kind, FLOAT32)
    if old is not None and old.shape == p.shape and old._ir.element == kind:
        return old.to(p.device)
    return array._allocate(p.shape, kind, True, p.device)


class Adam(_Descent):
    """Adam (Kingma and Ba, 2015): steps scaled by running means of gradients and their squares.

    Args:
        params: arrays of floats, vectors or matrices.
        lr: the length of steps.
        betas: how slowly the two means forget.
        eps: keeps the divisor from zero.

    m, v: the means, arrays beside the parameters, of float32 for float16. t: steps so far.
    """

    _moments = ("m", "v")
    m: list[array]
    v: list[array]

    def __init__(
        self,
        params: Sequence[array] | None = None,
        lr: float = 0.001,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        self.lr = lr
        try:
            self.beta1, self.beta2 = betas
        except (TypeError, ValueError):
            raise refused(f"Adam: betas are two numbers, got {betas!r}",
                          kind=UtilityTypeError) from None  # fmt: skip
        self.eps = eps
        super().__init__(params)

    def _step(self, k: int, g: array, params: array) -> None:
        from engine.optim import kernels

        m, v = scalars(self.m[k]), scalars(self.v[k])
        given = self._numbers("lr", "beta1", "beta2", "eps")
        numbers = [m.dtype(x) for x in (*given[:3], self.t, given[3])]
        launch(kernels.adam_step, g.size, inputs=[g, m, v, *numbers, params], record_tape=False)


class SGD(_Descent):
    """Gradient descent, with momentum and decay of weights where they are asked for.

    Args:
        params: arrays of floats, vectors or matrices.
        lr: the length of steps.
        momentum: how much of the last direction stays.
        dampening: how much of the gradient is left out of the new direction.
        weight_decay: how much of the parameter is added to its gradient.
        nesterov: whether to look ahead along the new direction.

    b: the directions, arrays beside the parameters, of float32 for float16. t: steps so far.
    """

    _moments = ("b",)
    b: list[array]

    def __init__(
        self,
        params: Sequence[array] | None = None,
        lr: float = 0.001,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        self.momentum = momentum
        self.dampening = dampening
        self._numbers("momentum", "dampening")
        if nesterov and (momentum <= 0.0 or dampening != 0.0):
            raise refused("SGD: nesterov needs momentum, and no dampening", kind=UtilityError)
        self.lr = lr
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        super().__init__(params)

    def _step(self, k: int, g: array, params: array) -> None:
        from engine.optim import kernels

        b = scalars(self.b[k])
        given = self._numbers("lr", "weight_decay", "momentum", "dampening")
        numbers = [*(b.dtype(x) for x in given), int(self.nesterov), self.t]
        launch(kernels.sgd_step, g.size, inputs=[g, b, *numbers, params], record_tape=False)

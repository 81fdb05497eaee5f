"""A call of a PyTorch function with a handwritten backward, and its rerun."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from engine.autograd.facts import Change
from engine.autograd.results import LaunchResult
from engine.autograd.tape.options import Options
from engine.cached import cached_property
from engine.classes import dataclass
from engine.diagnostics import EngineError, Span
from engine.foreign.operation import (
    Array,
    Cotangents,
    GradientRaised,
    Gradients,
    Operation,
    OperationFailed,
    Passed,
    Value,
    Variation,
)
from engine.foreign.torch_live import Live
from engine.foreign.torch_running import RandomState, undisturbed
from engine.foreign.torch_tensors import (
    again,
    all_numbers,
    copied,
    differ,
    equal,
    expanded,
    name_of,
    numbers,
    strided,
    tensor_of,
)

SMALL = 1 << 16  # elements
# Makes a tensor of a cotangent, given one of its shape and type.
Layout = Callable[[Any], Any]


@dataclass(frozen=True)
class Called:
    """What was called, and how it is told of.

    call: takes the same arguments. span: of what was written by hand; names: of the arguments;
    results: names the results, given how many there are. once: whether the gradient says that it
    cannot be differentiated. codes: functions that the user wrote for it. tangent: the name and the
    place of what gives its tangents, where the user wrote that. formula: the engine's own
    derivative, of an operator that `torch_kernel` made. forward: what computes the results, where
    the user wrote that beside the gradient.
    """

    name: str
    what: str
    gradient: str
    span: Span
    call: Callable[..., Any]
    names: Sequence[str]
    results: Callable[[int], list[str]]
    once: bool = False
    codes: Sequence[Any] = ()
    tangent: tuple[str, Span] | None = None
    formula: Any = None
    forward: Any = None


@dataclass
class Backward:
    """A backward pass of the program through the call: cotangents, and what came of them.

    graph: whether it was recorded, to be differentiated again.
    """

    cotangents: list[Any]
    gradients: list[Any]
    changed: tuple[str, ...] = ()
    graph: bool = False


@dataclass(eq=False)
class TorchCall(Operation):
    """A call, with copies of its tensors.

    args, kwargs: as given, with copies in place of tensors. wanted: which of `args` ask for a
    gradient. returned: copies of the results that have one; places: where they are among all
    results. seen: backward passes of the program. drawn: whether it draws random numbers. live:
    tensors that it may read by another way. cast: the type of autocast where that is on. shared:
    arguments that are the same tensor as an earlier one, with the number of that. packed: whether
    the program keeps what is saved in a way of its own (`saved_tensors_hooks`), be it rounded.
    """

    called: Called
    site: Span | None
    args: list[Any]
    kwargs: dict[str, Any]
    wanted: list[int]
    state: RandomState
    returned: list[Any] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    count: int = 1
    seen: list[Backward] = field(default_factory=list)
    found: list[Change] = field(default_factory=list)
    drawn: bool | None = None
    live: Live = field(default_factory=Live)
    cast: Any = None
    shared: dict[int, int] = field(default_factory=dict)
    packed: bool = False
    _reads: bool | None = None

    framework = "PyTorch"

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.called.name

    @property
    def what(self) -> str:  # type: ignore[override]
        return self.called.what

    @property
    def gradient(self) -> str:  # type: ignore[override]
        return self.called.gradient

    @property
    def span(self) -> Span:  # type: ignore[override]
        return self.called.span

    @property
    def tangent(self) -> tuple[str, Span] | None:  # type: ignore[override]
        return None if self.by_itself else self.called.tangent

    def own_check(self, options: Options) -> LaunchResult | None:
        """That of a launch, where the engine made the operator of a kernel."""
        if self.called.formula is None:
            return None
        from engine.foreign.torch_kernels import checked_call  # late: few programs have one

        if self.twice:
            options = replace(options, order=max(options.order, 2))
        return checked_call(self.called.formula, self.args, self.wanted, self.site, options)

    @property
    def changes(self) -> Sequence[Change]:  # type: ignore[override]
        return list(dict.fromkeys(self.found))

    @cached_property
    def small(self) -> bool:
        """Whether several threads would only wait for each other."""
        import torch

        tensors = (t for t in (*self.args, *self.returned) if isinstance(t, torch.Tensor))
        return bool(sum(t.numel() for t in tensors) < SMALL)

    @cached_property
    def inputs(self) -> list[Value]:  # type: ignore[override]
        return [
            Value(self.called.names[k], numbers(t), name_of(t.dtype))
            for k, t in ((k, self.args[k]) for k in self.wanted)
        ]

    @cached_property
    def outputs(self) -> list[Value]:  # type: ignore[override]
        names = self.called.results(self.count)
        return [
            Value(names[place], numbers(t), name_of(t.dtype))
            for place, t in zip(self.places, self.returned, strict=True)
        ]

    @property
    def random(self) -> RandomState | None:
        """The random numbers that a run begins with; None where it is known to draw none."""
        return None if self.drawn is False else self.state

    def primal(self, inputs: Sequence[Array], lifted: bool) -> Sequence[Array]:
        with self.placed(inputs, lifted), undisturbed(self.random, lifted, self.small):
            outputs, _ = self._run(inputs, lifted, self.wanted)
            if self.drawn is None:
                self.drawn = not self.state.same()
            return [numbers(y) for y in outputs]

    def vjp(self, inputs: Sequence[Array], cotangents: Cotangents, lifted: bool) -> Gradients:
        return self._vjp(inputs, cotangents, lifted)

    def jvp(
        self, inputs: Sequence[Array], moves: Mapping[int, Array], lifted: bool
    ) -> Sequence[Array | None]:
        from torch.autograd import forward_ad

        with self.placed(inputs, lifted), undisturbed(self.random, lifted, self.small):
            duals = []
            with forward_ad.dual_level(), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch's, of its own
                for i, (k, x) in enumerate(zip(self.wanted, inputs, strict=True)):
                    t = tensor_of(x, self.args[k], lifted)
                    v = moves.get(i, np.zeros(x.shape))
                    duals.append(forward_ad.make_dual(t, tensor_of(v, t, False)))
                outputs, _ = self.graph(duals, lifted, [])
                found = [forward_ad.unpack_dual(y).tangent for y in outputs]
                return all_numbers(found)

    def variations(self) -> Sequence[Variation]:
        out = [
            Variation.of_size(self.vjp),
            Variation(
                "for an expanded cotangent, such as the cotangent of a sum",
                lambda x, w, lifted: self._vjp(x, w, lifted, layout=expanded),
                lambda k, w: np.full(w.shape, w.reshape(-1)[0]),
            ),
            Variation(
                "for a cotangent that is not contiguous",
                lambda x, w, lifted: self._vjp(x, w, lifted, layout=strided),
            ),
            Variation(
                "a second time on the same graph",
                lambda x, w, lifted: self._vjp(x, w, lifted, times=2),
                change=Change("kept", "", self.site, wrong=len(self.seen) > 1),
            ),
        ]
        # What reads the program's tensors may ask for gradients by all of them.
        if not self.by_itself:
            names = [self.called.names[k] for k in self.wanted]
            out += Variation.of_each(names, [self._only(k) for k in self.wanted])
        for k in sorted(set(self.shared.values())):
            same = [
                self.called.names[m] for m in (k, *(m for m, n in self.shared.items() if n == k))
            ]
            out.append(Variation(
                f"where one tensor is given for {' and '.join(f'`{n}`' for n in same)}",
                self._together(self.wanted.index(k)),
            ))  # fmt: skip
        if len(self.returned) > 1:
            out.append(Variation.of_one_result(
                lambda x, w, lifted: self._vjp(x, w, lifted, zeros=False)
            ))  # fmt: skip
        return out

    def verify(self) -> str:
        """Compares the backward passes of the program with what the backward gives at the same
        values now. What was changed in place between is noted. Returns why one is not repeated.
        """
        x = [v.value for v in self.inputs]
        for passed in self.seen:
            w = all_numbers(passed.cotangents)
            if all(c is None for c in w):
                continue
            try:
                now = self._vjp(x, w, False, one=True, zeros=False)
            except OperationFailed:
                return ""
            then = self._summed(all_numbers(passed.gradients))
            off = [
                v.name for v, g, h in zip(self.inputs, now, then, strict=True)
                if differ(g, h, v.epsilon)
            ]  # fmt: skip
            if off and passed.changed:
                self.found += [Change("saved", n, self.site) for n in passed.changed]
            elif off and not self.packed:
                return (
                    f"its backward gave another gradient by `{off[0]}` in the program than now "
                    "for the same values: it reads something that has changed"
                )
        return ""

    def passes(self) -> Sequence[Passed]:
        if self.shared and self.by_itself:  # what it reads is one tensor in several places
            return ()
        return [Passed(all_numbers(p.cotangents), all_numbers(p.gradients)) for p in self.seen]

    def _summed(self, gradients: list[Array | None]) -> list[Array | None]:
        """Gradients with the sum of those by one tensor in each of its places."""
        out = list(gradients)
        for first in set(self.shared.values()):
            places = [self.wanted.index(k) for k in self.wanted if self.shared.get(k, k) == first]
            parts = [g for m in places if (g := gradients[m]) is not None]
            for m in places:
                out[m] = sum(parts[1:], parts[0]) if parts else None
        return out

    @property
    def twice(self) -> bool:
        return any(p.graph for p in self.seen)

    def second(self) -> Operation | None:
        from engine.foreign.torch_second import TorchGradient

        return None if self.called.once else TorchGradient.of(self)

    # ---- runs

    @property
    def by_itself(self) -> bool:
        """Whether it reads the program's own tensors, beside those that it is given."""
        if self._reads is None:
            self._reads = False  # while it is found out
            self._reads = self._found_reading()
        return self._reads

    def _found_reading(self) -> bool:
        if not any(self.live.own(k) is not None for k in self.live.leaves):
            return False
        x = [v.value for v in self.inputs]
        found = []
        for scale in (1.0, 1.25):
            values = {k: scale * self.args[k] + (scale - 1.0) for k in self.live.leaves}
            try:
                with self.live.placed(values, False), undisturbed(self.state, False, self.small):
                    outputs, _ = self._run(x, False, self.wanted)
                    found.append([numbers(y) for y in outputs])
            except OperationFailed:
                return True
        return any(not np.array_equal(a, b, equal_nan=True) for a, b in zip(*found, strict=True))

    def placed(
        self, inputs: Sequence[Array], lifted: bool
    ) -> contextlib.AbstractContextManager[None]:
        """Has the program's tensors that it reads hold the values of a run."""
        at = dict(zip(self.wanted, inputs, strict=True))
        values = {
            k: tensor_of(at[k], self.args[k], lifted) for k in self.live.leaves if self.by_itself
        }
        return self.live.placed(values, lifted)

    def _together(self, k: int) -> Callable[[Sequence[Array], Cotangents, bool], Gradients]:
        """The gradient by an input that is one tensor with others, less those by the others."""

        def vjp(x: Sequence[Array], w: Cotangents, lifted: bool) -> Gradients:
            whole = self._vjp(x, w, lifted, one=True)[k]
            out: list[Array | None] = [None] * len(x)
            if whole is not None:
                parts = self._vjp(x, w, lifted)
                places = (
                    self.wanted.index(m) for m, n in self.shared.items() if n == self.wanted[k]
                )
                others = [g for m in places if (g := parts[m]) is not None]
                out[k] = whole - sum(others, np.zeros(whole.shape))
            return out

        return vjp

    def _only(self, k: int) -> Callable[[Sequence[Array], Cotangents, bool], Gradients]:
        def vjp(x: Sequence[Array], w: Cotangents, lifted: bool) -> Gradients:
            found = self._vjp(x, w, lifted, wanted=[k])
            return [found[0] if k == j else None for j in self.wanted]

        return vjp

    def _vjp(
        self, inputs: Sequence[Array], cotangents: Cotangents, lifted: bool, *,
        wanted: list[int] | None = None, layout: Layout | None = None, times: int = 1,
        zeros: bool = True, one: bool = False,
    ) -> list[Array | None]:  # fmt: skip
        """The gradients. zeros: stand for cotangents that are None. one: see `graph`."""
        import torch

        with self.placed(inputs, lifted), undisturbed(self.random, lifted, self.small):
            wanted = self.wanted if wanted is None else wanted
            outputs, leaves = self._run(inputs, lifted, wanted, one)
            given = []
            for y, w in zip(outputs, cotangents, strict=True):
                if not y.requires_grad or (w is None and not zeros):
                    continue
                v = np.zeros(tuple(y.shape)) if w is None else w
                t = tensor_of(v, y, False)
                given.append((y, layout(t) if layout is not None else t))
            if not given:
                return [None] * len(leaves)
            before = [copied(t) for _, t in given]
            found: Sequence[Any] = ()
            for k in range(times):
                # What an earlier pass makes of its cotangents is another matter.
                ws = [t for _, t in given] if k == 0 else [copied(t) for t in before]
                try:
                    found = torch.autograd.grad(
                        [y for y, _ in given], leaves, ws, allow_unused=True,
                        retain_graph=times > 1,
                    )  # fmt: skip
                except Exception as error:
                    raise GradientRaised(_said("its backward", error)) from None
            if layout is None and any(
                not equal(t, b) for (_, t), b in zip(given, before, strict=True)
            ):
                self.found.append(Change("cotangent", "", self.site))
            return [None if g is None else numbers(g) for g in found]

    def _run(
        self, inputs: Sequence[Array], lifted: bool, wanted: list[int], one: bool = False
    ) -> tuple[list[Any], list[Any]]:
        """Results that have a derivative, and the leaves to differentiate by."""
        outputs, leaves = self.graph(
            [tensor_of(x, self.args[k], lifted) for k, x in zip(self.wanted, inputs, strict=True)],
            lifted, wanted, one,
        )  # fmt: skip
        return outputs, leaves

    def graph(
        self, tensors: Sequence[Any], lifted: bool, wanted: list[int], one: bool = False
    ) -> tuple[list[Any], list[Any]]:
        """The same for tensors, in the graph of those that are part of one.

        one: what was one tensor is one again; its gradient is then that by all its places.
        """
        import torch

        args: list[Any] = []
        leaves: list[Any] = []
        at = dict(zip(self.wanted, tensors, strict=True))
        first: dict[int, int] = {}
        for k, a in enumerate(self.args):
            own = self.live.own(k) if k in at and self.by_itself else None
            if one and k in self.shared and k in at:
                args.append(args[self.shared[k]])
                leaves.append(leaves[first[self.shared[k]]])
            elif own is not None:
                own.requires_grad_(k in wanted)
                if k in wanted:
                    first[k] = len(leaves)
                    leaves.append(own)
                args.append(own)
            elif k in at:
                leaf = at[k]
                if k in wanted:
                    first[k] = len(leaves)
                    leaf = leaf if leaf.requires_grad else leaf.requires_grad_()
                    leaves.append(leaf)
                args.append(leaf.clone())  # what changes it in place may not have a leaf
            else:
                args.append(again(a, lifted))
        kwargs = {name: again(a, lifted) for name, a in self.kwargs.items()}
        try:
            with _casting(self.cast):
                out = self.called.call(*args, **kwargs)
        except Exception as error:
            raise OperationFailed(_said("its forward", error)) from None
        every = list(out) if isinstance(out, (tuple, list)) else [out]
        if len(every) != self.count or not all(
            isinstance(every[place], torch.Tensor) for place in self.places
        ):
            raise OperationFailed("it returns other kinds of results at other inputs")
        return [every[place] for place in self.places], leaves


def _casting(dtype: Any) -> contextlib.AbstractContextManager[Any]:
    """Autocast to a type, as it was when the program called; None for none."""
    import torch

    if dtype is None:
        return contextlib.nullcontext()
    found: contextlib.AbstractContextManager[Any] = torch.autocast("cpu", dtype=dtype)
    return found


def _said(what: str, error: Exception) -> str:
    if isinstance(error, EngineError):  # without its place and source lines
        code = error.diagnostics[0].code if error.diagnostics else ""
        return f"{what} raises {type(error).__name__} {code}: {error.args[0]}"
    text = " ".join(str(error).split())
    return f"{what} raises {type(error).__name__}: {text:.200}"

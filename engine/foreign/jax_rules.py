"""A call of a function with a JAX rule, as an operation that can be checked."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.cached import cached_property
from engine.diagnostics import Span
from engine.draws import default_rng
from engine.foreign.jax_functions import (
    code_of,
    definition,
    is_own_file,
    rule_codes,
    rule_name,
)
from engine.foreign.jax_notes import Call
from engine.foreign.jax_runner import Runner
from engine.foreign.jax_second import RuleGradient
from engine.foreign.operation import (
    Array,
    Cotangents,
    Gradients,
    Operation,
    OperationFailed,
    Value,
    Variation,
    Vjp,
    scalar_name,
)

FAR = 0.1  # an input is moved by so much of itself, to see whether it matters
STILL = 1e-5  # results that move by no more of themselves stay as they are
SAME = 1e-6  # float64 of two ways to compute one thing may be so far apart
UNBOUND = "unbound axis"  # of a function that runs on several devices


class RuleOperation(Operation):
    """A call of a function with a rule, at values that its arguments had.

    differentiated: whether the program ran the rule. asked: by leaves, of which a gradient was
    asked for; None where that is not known. Raises OperationFailed where the function cannot be run
    by itself.
    """

    framework = "JAX"

    def __init__(
        self, runner: Runner, call: Call, values: Sequence[Any], asked: Sequence[bool] | None
    ) -> None:
        self.runner = runner
        self.name = rule_name(call.rule)
        self.what = "custom_vjp" if runner.is_vjp else "custom_jvp"
        self.gradient, self.span = gradient_of(call.rule)
        self.site = call.place
        self._values = list(values)
        self._asked = asked
        base = [as_floats(values[i]) for i in runner.moving]
        self._base = base
        self._zero: set[int] = set()
        if not base:
            self.inputs, self.outputs = (), ()
            return
        found = runner.primal(values, base, False)
        self.iterated = runner.left(values, base)
        names = runner.results(values)
        self.outputs = [Value(n, y, d) for (n, d), y in zip(names, found, strict=True)]
        words = leaf_names(call)
        self._all = [
            Value(words[i], x, str(np.dtype(call.leaves[i].dtype)))
            for i, x in zip(runner.moving, base, strict=True)
        ]
        self._kept = list(range(len(base)))
        self.inputs = self._all
        if not self.wrong:
            self._leave_unasked()

    def primal(self, inputs: Sequence[Array], lifted: bool) -> Sequence[Array]:
        """The outputs at other inputs."""
        if lifted and not self._lifts:
            raise OperationFailed("its rule has no form in float64")
        return self.runner.primal(self._values, self._moved(inputs), lifted)

    def vjp(self, inputs: Sequence[Array], cotangents: Cotangents, lifted: bool) -> Gradients:
        """The gradient by the rule."""
        found = self.runner.vjp(self._values, self._moved(inputs), cotangents, lifted)
        return [None if k in self._zero else found[k] for k in self._kept]

    def variations(self) -> Sequence[Variation]:
        """A cotangent of another size."""
        if not self.runner.is_vjp:
            return ()  # it is what JAX makes of a rule for tangents
        out = [Variation.of_size(self.vjp)]
        if self.runner.rule.symbolic_zeros:
            out += self._alone()
        return out

    def _alone(self) -> list[Variation]:
        """Where only some of the derivatives are asked for, of which the rule is told."""

        def alone(asked: list[int] | None) -> Vjp:
            def vjp(inputs: Sequence[Array], w: Cotangents, lifted: bool) -> Gradients:
                results = [k for k, x in enumerate(w) if x is not None]
                every = list(range(len(self._base)))
                found = self.runner.vjp_alone(
                    self._values, self._moved(inputs), w, lifted,
                    every if asked is None else asked, results,
                )  # fmt: skip
                return [None if k in self._zero else found[k] for k in self._kept]

            return vjp

        out = []
        if len(self.outputs) > 1:
            out.append(Variation.of_one_result(alone(None)))
        names = [self._all[k].name for k in self._kept]
        return out + Variation.of_each(names, [alone([k]) for k in self._kept])

    def second(self) -> Operation | None:
        """The rule's gradient as an operation."""
        return RuleGradient.of(self)

    def second_vjp(
        self, inputs: Sequence[Array], w: Sequence[Array], cotangents: Cotangents, lifted: bool
    ) -> Gradients:
        """The derivative of the rule's gradient, by inputs and by cotangents of the outputs."""
        moved = self._moved(inputs)
        every = [np.zeros(x.shape) for x in self._base]
        for k, c in zip(self._kept, cotangents, strict=True):
            every[k] = every[k] if c is None else c
        found = self.runner.second_vjp(self._values, moved, w, every, lifted)
        count = len(self._base)
        return [*(found[k] for k in self._kept), *found[count:]]

    def _moved(self, inputs: Sequence[Array]) -> list[Array]:
        out = list(self._base)
        for k, x in zip(self._kept, inputs, strict=True):
            out[k] = x
        return out

    @cached_property
    def _lifts(self) -> bool:
        """Whether function and rule run in float64, with the results that they have."""
        try:
            self._gradients(True)
            return True
        except OperationFailed:
            return False

    def _gradients(
        self, lifted: bool, seed: int = 1, at: Sequence[Array] | None = None
    ) -> Gradients:
        """The gradients by all inputs at some cotangents."""
        rng = default_rng(seed)
        w = [rng.standard_normal(y.value.shape) for y in self.outputs]
        return self.runner.vjp(self._values, at or self._base, w, lifted)

    def _leave_unasked(self) -> None:
        """Leaves out what the rule gives no gradient of and nobody asks for."""
        found = self._gradients(False)
        if self._asked is None or not any(self._asked):
            out = {k for k, g in enumerate(found) if g is None}
        else:
            unasked = [k for k, i in enumerate(self.runner.moving) if not self._asked[i]]
            out = {k for k in unasked if (g := found[k]) is None or not np.any(g)}
        self._zero = {k for k, g in enumerate(found) if g is not None and not np.any(g)} - out
        if self._zero:  # at other inputs, too, it is as good as none
            rng = default_rng(3)
            moved = [x * (1 + 0.01 * rng.uniform(0.5, 1.0, x.shape)) for x in self._base]
            again = self._gradients(False, 4, moved)
            self._zero = {k for k in self._zero if (g := again[k]) is not None and not np.any(g)}
        nothing = {k for k, g in enumerate(found) if g is None} | self._zero
        out |= {k for k in nothing - out if self._hardly_matters(k)}
        self._kept = [k for k in self._kept if k not in out]
        self.inputs = [self._all[k] for k in self._kept]
        self.zeros = [self._all[k].name for k in sorted(self._zero)]

    def _hardly_matters(self, k: int) -> bool:
        """Whether an input moves the results by next to nothing.

        So does the one at which an iteration begins, by what it stops at.
        """
        rng = default_rng(5)
        x = self._base[k]
        moved = list(self._base)
        moved[k] = x + FAR * rng.uniform(0.5, 1.0, x.shape) * np.where(x == 0.0, 1.0, np.abs(x))
        here = [v.value for v in self.outputs]
        try:
            there = self.runner.primal(self._values, moved, False)
        except OperationFailed:
            return False
        with np.errstate(all="ignore"):
            off = [
                float(np.max(np.abs(b - a), initial=0.0)) for a, b in zip(here, there, strict=True)
            ]
            still = max(STILL, self.iterated)
            size = [still * float(np.max(np.abs(a), initial=0.0)) for a in here]
        return any(off) and all(a <= b for a, b in zip(off, size, strict=True))

    @property
    def wrong(self) -> str:
        """What is wrong with the rule before any numbers are compared; empty if nothing is."""
        return self._wrong

    @cached_property
    def _wrong(self) -> str:
        if other := self._other_results():
            if self.runner.is_vjp:
                code = code_of(self.runner.rule.fwd)
                self.span = self.span if code is None else definition(code)
            return other
        try:
            self._gradients(False)
        except OperationFailed as error:
            if UNBOUND in str(error):
                raise
            if self._asked is not None and any(self._asked):
                raise  # the program itself ran it
            return f"its rule raises {error}"
        return "" if self.runner.is_vjp else self._bent()

    def _other_results(self) -> str:
        """Says where the rule gives other results than the function."""
        lifted = self._lifts
        try:
            ours = self.runner.forward(self._values, self._base, lifted)
            theirs = self.runner.primal(self._values, self._base, lifted)
        except OperationFailed:
            return ""
        eps = max(v.epsilon for v in (*self.inputs, *self.outputs))
        rtol = max(SAME if lifted else max(1e-3, 16.0 * eps), self.iterated)
        first = "the first result of `{}`"
        rule = first.format(self.gradient if not self.runner.is_vjp else self.forward)
        if len(ours) != len(theirs):
            return f"{rule} has {len(ours)} arrays of floats, and `{self.name}` gives {len(theirs)}"
        for v, a, b in zip(self.outputs, ours, theirs, strict=True):
            if a.shape != b.shape:
                return f"{rule} has shape {a.shape}, and `{self.name}` gives {b.shape}"
            with np.errstate(all="ignore"):
                finite = np.isfinite(a) & np.isfinite(b)
                off = np.where(finite, np.abs(a - b), 0.0)
                size = float(np.max(np.abs(b), where=np.isfinite(b), initial=0.0))
            if np.max(off, initial=0.0) > rtol * size:
                k = int(np.argmax(off))
                at = scalar_name(v, k)
                x, y = float(a.reshape(-1)[k]), float(b.reshape(-1)[k])
                return f"{rule} is not that of `{self.name}`: `{at}` is {x:g}, and not {y:g}"
        return ""

    def _bent(self) -> str:
        """Says where a rule is not linear in its tangents."""
        lifted = self._lifts
        rng = default_rng(2)
        some, more = ([rng.standard_normal(x.shape) for x in self._base] for _ in range(2))
        both = [2.0 * a - 3.0 * b for a, b in zip(some, more, strict=True)]
        try:
            a, b, c = (
                self.runner.jvp(self._values, self._base, t, lifted) for t in (some, more, both)
            )
        except OperationFailed:
            return ""
        eps = max(v.epsilon for v in (*self.inputs, *self.outputs))
        rtol = SAME if lifted else 64.0 * eps
        for v, x, y, z in zip(self.outputs, a, b, c, strict=True):
            with np.errstate(all="ignore"):
                off = np.abs(z - (2.0 * x - 3.0 * y))
                size = np.max(np.abs(x) + np.abs(y) + np.abs(z), initial=0.0)
            if np.all(np.isfinite(off)) and np.max(off, initial=0.0) > rtol * size:
                return (
                    f"the tangent of `{v.name}` is not linear in the tangents of the arguments: "
                    "the tangent at 2 a - 3 b is not twice the tangent at a minus three times the "
                    "tangent at b"
                )
        return ""

    @property
    def forward(self) -> str:
        """The name of the forward rule."""
        return str(getattr(self.runner.rule.fwd, "__name__", "fwd"))


def gradient_of(rule: Any) -> tuple[str, Span]:
    """The name and the place of what gives a rule's gradient."""
    last = getattr(rule, "bwd", None) or rule.jvp
    codes = [c for c in (code_of(last), *reversed(rule_codes(rule))) if c is not None]
    own = [c for c in codes if is_own_file(c.co_filename)]
    code = (own or codes)[0]
    return code.co_name, definition(code)


def leaf_names(call: Call) -> list[str]:
    """The arguments' leaves as their user calls them: `params['w'][3]`."""
    import jax

    tree = jax.tree_util
    numbered = tree.tree_unflatten(call.treedef, list(range(len(call.leaves))))
    params = parameters(call.rule.fun)
    moving = [i for i in range(len(numbered) + len(call.static)) if i not in call.static]
    out: list[str] = []
    for i, arg in zip(moving, numbered, strict=True):
        name = params[i] if i < len(params) else f"argument {i}"
        out += [name + tree.keystr(path) for path, _ in tree.tree_flatten_with_path(arg)[0]]
    return out


def parameters(f: Any) -> list[str]:
    """The names of a function's parameters; `*args` has one for each of some arguments."""
    out: list[str] = []
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):
        return out
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            return out + [f"{p.name}[{k}]" for k in range(100)]
        out.append(p.name)
    return out


def as_floats(x: Any) -> Array:
    """A value as an array of float64."""
    return np.asarray(x).astype(np.float64)

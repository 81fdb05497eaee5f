"""Reruns a JAX rule, and its function, at NumPy arguments."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from engine.foreign.jax_cells import with_cells
from engine.foreign.jax_hooks import JaxHooks
from engine.foreign.jax_leaves import (
    arrays,
    as_jax,
    first_line,
    floats,
    is_complex,
    is_float,
    nones,
)
from engine.foreign.jax_loops import left_by_loops
from engine.foreign.jax_notes import Call
from engine.foreign.operation import Array, Cotangents, Gradients, OperationFailed

SIMPLE = (bool, int, float, complex, str)
RESULT = "result"
COLUMNS = 256  # of a Jacobian that is made column by column


class Runner:
    """Runs the rule of a call. fixed: the values of its leaves that are no arrays of floats.

    moving: the numbers of the leaves by which there is a derivative.
    """

    def __init__(self, hooks: JaxHooks, call: Call, values: Sequence[Any], cells: Sequence[Any]):
        self.hooks = hooks
        self.call = call
        self.rule, self.static = with_cells(call, cells)
        self.is_vjp = hasattr(self.rule, "bwd")
        self.moving = [i for i, x in enumerate(call.leaves) if is_float(x.dtype)]
        self.plain = {i: v for i, v in enumerate(values) if isinstance(v, SIMPLE)}
        self.none: set[int] = set()
        self.complex = any(is_complex(x.dtype) for x in call.leaves)
        self._names: list[tuple[str, str]] = []
        self._left: float | None = None
        self._compiled: dict[tuple[str, bool], Any] = {}
        self._eager: set[tuple[str, bool]] = set()

    @property
    def form(self) -> object:
        """Equal for calls that the same runner serves."""
        c = self.call
        types_ = tuple((x.shape, str(x.dtype), x.weak) for x in c.leaves)
        fixed = tuple((i, id(v)) for i, v in c.static.items())
        plain = tuple((i, type(v), v) for i, v in self.plain.items() if i not in self.moving)
        return id(c.rule), c.treedef, types_, fixed, plain, c.x64, id(c) if c.cells else 0

    def left(self, values: Sequence[Any], moved: Sequence[Array]) -> float:
        """See `left_by_loops`."""
        if self._left is None:
            self._left = left_by_loops(self, values, moved)
        return self._left

    def primal(self, values: Sequence[Any], moved: Sequence[Array], lifted: bool) -> list[Array]:
        """All results of the function itself that are floats."""

        def run(*leaves: Any) -> list[Any]:
            return floats(self.function(leaves))

        return arrays(self._ran("primal", run, self._leaves(values, moved, lifted), lifted))

    def forward(self, values: Sequence[Any], moved: Sequence[Array], lifted: bool) -> list[Array]:
        """The results that the rule gives beside its gradient."""
        import jax

        def run(*leaves: Any) -> list[Any]:
            if self.is_vjp:
                out, _ = jax.vjp(self.of_moving(leaves), *(leaves[i] for i in self.moving))
            else:
                at = [leaves[i] for i in self.moving]
                zeros = [jax.numpy.zeros_like(x) for x in at]
                out, _ = jax.jvp(self.of_moving(leaves), at, zeros)
            return list(out)

        return arrays(self._ran("forward", run, self._leaves(values, moved, lifted), lifted))

    def vjp(
        self, values: Sequence[Any], moved: Sequence[Array], cotangents: Cotangents, lifted: bool
    ) -> Gradients:
        """The gradient by the rule: by all leaves that are floats, None where it gives none."""
        given = [np.asarray(w) for w in self._filled(cotangents, values, moved, lifted)]
        try:
            every = range(len(self.moving)), range(len(given))
            found = self._pulled(values, moved, given, lifted, *every)
        except OperationFailed:
            if self.is_vjp:
                raise
            return self._by_columns(values, moved, given, lifted)
        out = arrays(found)
        return [None if i in self.none else g for i, g in zip(self.moving, out, strict=True)]

    def vjp_alone(
        self, values: Sequence[Any], moved: Sequence[Array], cotangents: Cotangents, lifted: bool,
        inputs: Sequence[int], outputs: Sequence[int],
    ) -> list[Array | None]:  # fmt: skip
        """The gradient where a program asks for some only, of some results only.

        A rule with `symbolic_zeros` is told of that. None for the others.
        """
        given = [np.asarray(w) for w in self._filled(cotangents, values, moved, lifted)]
        found = arrays(self._pulled(values, moved, given, lifted, inputs, outputs))
        out: list[Array | None] = [None] * len(self.moving)
        for k, g in zip(inputs, found, strict=True):
            out[k] = g
        return out

    def _pulled(
        self, values: Sequence[Any], moved: Sequence[Array], given: Sequence[Array], lifted: bool,
        inputs: Sequence[int], outputs: Sequence[int],
    ) -> Any:  # fmt: skip
        """Gradients by some of what moves, by cotangents of some results."""
        import jax
        import jax.numpy as jnp

        def run(*flat: Any) -> list[Any]:
            leaves, given = flat[: len(self.call.leaves)], flat[len(self.call.leaves) :]
            at = [leaves[i] for i in self.moving]

            def some(*asked: Any) -> list[Any]:
                full = list(at)
                for k, x in zip(inputs, asked, strict=True):
                    full[k] = x
                out = self.of_moving(leaves, told)(*full)
                return [out[k] for k in outputs]

            out, pull = jax.vjp(some, *(at[k] for k in inputs))
            pairs = zip((given[k] for k in outputs), out, strict=True)
            return list(pull([jnp.asarray(w, jnp.asarray(y).dtype) for w, y in pairs]))

        # Of what it gives None where nobody asks for more, nothing is said.
        told = len(inputs) == len(self.moving) and len(outputs) == len(given)
        flat = (*self._leaves(values, moved, lifted), *given)
        return self._ran(f"vjp {list(inputs)} {list(outputs)}", run, flat, lifted)

    def second_vjp(
        self, values: Sequence[Any], moved: Sequence[Array], w: Sequence[Array],
        cotangents: Sequence[Array], lifted: bool,
    ) -> list[Array]:  # fmt: skip
        """The derivative of the gradient by the rule: by what moves, and by its cotangents w."""
        import jax
        import jax.numpy as jnp

        count, own = len(self.call.leaves), len(w)

        def run(*flat: Any) -> list[Any]:
            leaves, given, more = flat[:count], flat[count : count + own], flat[count + own :]
            at = [leaves[i] for i in self.moving]
            out = jax.eval_shape(self.of_moving(leaves), *at)
            cast = [jnp.asarray(b, y.dtype) for b, y in zip(given, out, strict=True)]

            def gradient(at: Any, given: Any) -> Any:
                return jax.vjp(self.of_moving(leaves), *at)[1](given)

            found, pull = jax.vjp(gradient, at, cast)
            more = tuple(jnp.asarray(c, g.dtype) for c, g in zip(more, found, strict=True))
            by_inputs, by_cotangents = pull(more)
            return [*by_inputs, *by_cotangents]

        flat = (*self._leaves(values, moved, lifted), *w, *cotangents)
        return arrays(self._ran("second", run, flat, lifted))

    def jvp(
        self, values: Sequence[Any], moved: Sequence[Array], tangents: Sequence[Array], lifted: bool
    ) -> list[Array]:
        """The derivative along tangents, by a rule for these."""
        import jax

        def run(*flat: Any) -> list[Any]:
            leaves, given = flat[: len(self.call.leaves)], flat[len(self.call.leaves) :]
            at = [leaves[i] for i in self.moving]
            along = [jax.numpy.asarray(t, jax.numpy.asarray(x).dtype)
                     for t, x in zip(given, at, strict=True)]  # fmt: skip
            return list(jax.jvp(self.of_moving(leaves), at, along)[1])

        flat = (*self._leaves(values, moved, lifted), *tangents)
        return arrays(self._ran("jvp", run, flat, lifted))

    def _by_columns(
        self, values: Sequence[Any], moved: Sequence[Array], given: Sequence[Array], lifted: bool
    ) -> Gradients:
        if sum(x.size for x in moved) > COLUMNS:
            raise OperationFailed("its rule can only run forward, and it has many inputs")
        out: list[Array] = []
        for k, x in enumerate(moved):
            grad = np.zeros(x.size)
            for n in range(x.size):
                along = [np.zeros(y.shape) for y in moved]
                along[k].reshape(-1)[n] = 1.0
                columns = self.jvp(values, moved, along, lifted)
                grad[n] = sum(float(np.vdot(w, c)) for w, c in zip(given, columns, strict=True))
            out.append(grad.reshape(x.shape))
        return out

    def function(self, leaves: Sequence[Any], rule: Any = None) -> Any:
        """What the function itself gives; or, with its rule, what is called in its place."""
        import jax

        moving = list(jax.tree_util.tree_unflatten(self.call.treedef, leaves))
        args: list[Any] = []
        for i in range(len(moving) + len(self.static)):
            args.append(self.static[i] if i in self.static else moving.pop(0))
        return (rule or self.rule.fun)(*args)

    def results(self, values: Sequence[Any]) -> list[tuple[str, str]]:
        """The names and types of the results that are floats."""
        import jax

        names: list[tuple[str, str]] = []

        def run(*leaves: Any) -> list[Any]:
            names.clear()
            for path, y in jax.tree_util.tree_flatten_with_path(self.function(leaves))[0]:
                y = jax.numpy.asarray(y) if isinstance(y, float | np.generic) else y
                if hasattr(y, "dtype") and is_complex(y.dtype):
                    self.complex = True
                if hasattr(y, "dtype") and is_float(y.dtype):
                    names.append((RESULT + jax.tree_util.keystr(path), str(y.dtype)))
            return []

        moved = [np.asarray(values[i]).astype(np.float64) for i in self.moving]
        if not self._names:
            self._ran("results", run, self._leaves(values, moved, False), False)
            self._names = names
        return self._names

    def of_moving(self, leaves: Sequence[Any], told: bool = True) -> Callable[..., list[Any]]:
        """The function with its rule, of what moves alone. told: see `_spied`."""
        rule = self._spied() if told else self.rule

        def run(*moved: Any) -> list[Any]:
            full = list(leaves)
            for i, x in zip(self.moving, moved, strict=True):
                full[i] = x
            return floats(self.function(full, rule))

        return run

    def _spied(self) -> Any:
        """The rule, that tells of which leaves it gives no gradient."""
        import jax

        rule = self.rule
        if not self.is_vjp:
            return rule
        none = self.none
        treedef = self.call.treedef

        def bwd(*args: Any) -> Any:
            out = rule.bwd(*args)
            with contextlib.suppress(Exception):  # JAX will say what is wrong with it
                none.clear()
                none.update(nones(treedef, out))
            return out

        spied = jax.custom_vjp(rule.fun, nondiff_argnums=rule.nondiff_argnums)
        spied.defvjp(
            rule.fwd, bwd, symbolic_zeros=rule.symbolic_zeros, optimize_remat=rule.optimize_remat
        )
        return spied

    def _leaves(
        self, values: Sequence[Any], moved: Sequence[Array], lifted: bool
    ) -> tuple[Any, ...]:
        full = list(values)
        for i, x in zip(self.moving, moved, strict=True):
            leaf = self.call.leaves[i]
            if leaf.weak and not leaf.shape:
                full[i] = float(x)
            else:
                full[i] = np.asarray(x, np.float64 if lifted else leaf.dtype)
        return tuple(full)

    def _filled(
        self, cotangents: Cotangents, values: Sequence[Any], moved: Sequence[Array], lifted: bool
    ) -> list[Array]:
        if all(w is not None for w in cotangents):
            return [w for w in cotangents if w is not None]
        shapes = [y.shape for y in self.primal(values, moved, lifted)]
        return [np.zeros(s) if w is None else w for w, s in zip(cotangents, shapes, strict=True)]

    def traced(self, run: Any, values: Sequence[Any], moved: Sequence[Array]) -> Any:
        """The program that JAX makes of a function of all leaves."""
        import jax

        leaves = self._leaves(values, moved, False)
        own = [i for i in range(len(leaves)) if i in self.moving or i not in self.plain]

        def some(*given: Any) -> Any:
            full = list(leaves)
            for i, x in zip(own, given, strict=True):
                full[i] = x
            return run(full)

        with self._surroundings(self.call.x64):
            return jax.make_jaxpr(some)(*(leaves[i] for i in own)).jaxpr

    def _ran(self, name: str, run: Any, leaves: Sequence[Any], lifted: bool) -> Any:
        """What a function gives, compiled where that can be done."""
        import jax

        key = name, lifted
        fixed = {i for i in self.plain if i not in self.moving}

        def compiled(*given: Any) -> Any:
            rest = iter(given)
            count = range(len(leaves))
            return run(*(leaves[i] if i in fixed else next(rest) for i in count))

        given = [x for i, x in enumerate(leaves) if i not in fixed]
        with self._surroundings(lifted or self.call.x64):
            if key not in self._eager:
                try:
                    return self._compiled.setdefault(key, jax.jit(compiled))(*given)
                except Exception:  # it may ask its arguments for their values
                    self._eager.add(key)
            try:
                return run(*(x if i in fixed else as_jax(x) for i, x in enumerate(leaves)))
            except Exception as error:
                raise OperationFailed(first_line(error)) from error

    @contextlib.contextmanager
    def _surroundings(self, x64: bool) -> Iterator[None]:
        import jax

        mute = io.StringIO()
        with (
            self.hooks.pause(), jax.enable_x64(x64), jax.debug_nans(False), jax.debug_infs(False),
            contextlib.redirect_stdout(mute), contextlib.redirect_stderr(mute),
        ):  # fmt: skip
            yield

"""Where JAX is watched: how each of these places is tested.

Programs are traced for it, which starts no backend: the program may configure that first.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import CodeType, FunctionType
from typing import Any


class Tests:
    """Tests of the seams. quiet: gives the names of what was noticed, and keeps nothing of it."""

    def __init__(self, quiet: Callable[[], AbstractContextManager[set[str]]]) -> None:
        self._quiet = quiet

    def vjp(self, everything: bool) -> bool:
        """A call of a function with `custom_vjp`."""
        return self._noticed(_with_vjp()) >= {"custom_vjp"}

    def jvp(self, everything: bool) -> bool:
        """A call of a function with `custom_jvp`."""
        return self._noticed(_with_jvp()) >= {"custom_jvp"}

    def derivatives(self, everything: bool) -> bool:
        """The derivative of functions with rules, each by itself."""
        import jax

        every = (jax.grad(_with_vjp()), jax.grad(_with_jvp()))
        return all("derivatives" in self._noticed(f) for f in every)

    def programs(self, everything: bool) -> bool:
        """A program inside of each primitive that has some."""
        import jax
        from jax import lax

        from engine.foreign.jax_hooks import primitives

        def program(x: Any) -> Any:
            x = jax.jit(lambda a: a * 2.0)(x)
            x = jax.checkpoint(lambda a: a * 3.0)(x)
            x = lax.cond(x > 0.0, lambda a: a * 2.0, lambda a: a * 4.0, x)
            x = lax.while_loop(lambda a: a < 3.0, lambda a: a + 1.0, x)
            return lax.scan(lambda a, _: (a * 2.0, None), x, None, length=2)[0]

        return self._noticed(program) >= {p.name for p in primitives()}

    def runs(self, everything: bool) -> bool:
        """Two calls of a compiled program; where JAX is not to be started, whether it goes by."""
        import jax
        import numpy as np
        from jax._src import pjit

        if not everything:
            names = ("_pjit_call_impl_python", "_get_fastpath_data")
            return all(_is_used(pjit, name) for name in names)
        program = jax.jit(lambda x: x + 1.0)
        with self._quiet() as met:
            first = program(np.float32(1.0))
            program(first)
        return met >= {"run", "again"}

    def _noticed(self, function: Callable[..., Any]) -> set[str]:
        import jax
        import numpy as np

        with self._quiet() as met:
            jax.make_jaxpr(function)(jax.ShapeDtypeStruct((), np.float32))
        return met


def _with_vjp() -> Any:
    import jax

    f = jax.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), lambda _, g: (g * 2.0,))
    return f


def _with_jvp() -> Any:
    import jax

    f = jax.custom_jvp(lambda x: x * 2.0)
    f.defjvp(lambda primals, tangents: (primals[0] * 2.0, tangents[0] * 2.0))
    return f


def _is_used(module: Any, name: str) -> bool:
    """Whether the code of some function of a module uses a name of it."""

    def uses(code: CodeType) -> bool:
        inner = (c for c in code.co_consts if isinstance(c, CodeType))
        return name in code.co_names or any(map(uses, inner))

    functions = (f for f in vars(module).values() if isinstance(f, FunctionType))
    return any(uses(f.__code__) for f in functions if f.__module__ == module.__name__)

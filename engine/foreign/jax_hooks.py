"""Watches calls of handwritten JAX rules, and the values of their arguments.

Values, errors, the state of random numbers and what JAX compiles stay as they are: a hook notes its
arguments and calls what it replaced.
"""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from engine.foreign.collection import Collection
from engine.foreign.jax_arguments import (
    caller,
    copied,
    leaf_type,
    nbytes_of,
    source,
    x64_enabled,
)
from engine.foreign.jax_functions import (
    captured,
    package_of_rule,
    rule_codes,
    rule_name,
    rule_place,
)
from engine.foreign.jax_kernels import Launched
from engine.foreign.jax_notes import KEPT, Call, Held, Leaf, Link, Notes, Source, variables
from engine.foreign.jax_seams import Tests
from engine.foreign.places import STANDARD
from engine.foreign.seams import Part
from engine.interop.ffi.kernels import JaxKernel
from engine.interop.ffi.signature import is_traced

_OWN = ("jax", "engine", STANDARD)
_DERIVING = ("JVPTrace", "LinearizeTrace")
_PROGRAMS = ("jaxpr", "cond_jaxpr", "body_jaxpr", "branches")


class JaxHooks:
    """Hooks of JAX, from `install` to `remove`. silent: nothing is noted."""

    def __init__(self, collection: Collection) -> None:
        self.collection = collection
        self.notes = Notes()
        self.silent = False
        self._inside: list[str] = []
        self._ran = Counter[int]()  # calls of compiled programs
        self._undo: list[Callable[[], None]] = []
        self._met: set[str] | None = None  # what was noticed, while that is tested

    def parts(self) -> Mapping[str, Part]:
        """What begins to watch, at each seam. To be called when JAX has been imported."""
        from jax._src import core, traceback_util

        traceback_util.register_exclusion(__file__)
        self._tracer = core.Tracer
        self._replace(JaxKernel, "__call__", self._launching)
        tests = Tests(self.quiet)
        return {
            "vjp": Part(lambda: self._watch_calls("custom_vjp"), tests.vjp),
            "jvp": Part(lambda: self._watch_calls("custom_jvp"), tests.jvp),
            "programs": Part(self._watch_programs, tests.programs),
            "runs": Part(self._watch_runs, tests.runs, self._runs_late(tests)),
            "derivatives": Part(self._watch_derivatives, tests.derivatives),
        }

    def _watch_calls(self, name: str) -> None:
        import jax

        self._replace(getattr(jax, name), "__call__", functools.partial(self._calling, name))

    def _watch_programs(self) -> None:
        for primitive in primitives():
            self._replace(primitive, "bind", functools.partial(self._binding, primitive.name))

    def _watch_runs(self) -> None:
        from jax._src import pjit

        self._replace(pjit, "_pjit_call_impl_python", self._running)
        self._replace(pjit, "_get_fastpath_data", self._shortening)

    def _watch_derivatives(self) -> None:
        from jax._src.custom_derivatives import custom_jvp_call_p, custom_vjp_call_p

        for primitive in (custom_vjp_call_p, custom_jvp_call_p):
            self._replace(primitive, "bind_with_trace", self._differentiating)

    def _runs_late(self, tests: Tests) -> Callable[[], bool]:
        # Only programs with rules are of interest; others do not pay for the test.
        return lambda: not self.notes.calls or tests.runs(True)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[set[str]]:
        """Keeps nothing of what happens meanwhile but the names of what was noticed."""
        self._met = met = set[str]()
        try:
            with self.pause():
                yield met
        finally:
            self._met = None

    def _meet(self, name: str) -> None:
        if self._met is not None:
            self._met.add(name)

    def remove(self) -> None:
        """Puts everything back."""
        while self._undo:
            self._undo.pop()()

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        """Notes nothing meanwhile."""
        before, self.silent = self.silent, True
        try:
            yield
        finally:
            self.silent = before

    def _replace(self, owner: Any, name: str, hook: Callable[[Any], Any]) -> None:
        was = getattr(owner, name)
        own = name in vars(owner)
        setattr(owner, name, hook(was))

        def undo() -> None:
            if own:
                setattr(owner, name, was)
            else:
                delattr(owner, name)

        self._undo.append(undo)

    def _calling(self, name: str, was: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(was)
        def called(rule: Any, *args: Any, **kwargs: Any) -> Any:
            self._meet(name)
            if not self.silent and self._is_looked_at(rule):
                with contextlib.suppress(Exception):  # JAX will say what is wrong with it
                    self._note(rule, args, kwargs)
            return was(rule, *args, **kwargs)

        return called

    def _is_looked_at(self, rule: Any) -> bool:
        package = package_of_rule(rule)
        return package not in _OWN and not self.collection.leaves_alone(rule_name(rule), package)

    def _note(self, rule: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        import jax
        from jax._src.api_util import resolve_kwargs

        if rule_place(rule) in self._inside:  # by its own rule: that call was noted
            return
        args = tuple(resolve_kwargs(rule.fun, args, kwargs))
        fixed = {i % len(args) for i in rule.nondiff_argnums} if args else set()
        moving = tuple(a for i, a in enumerate(args) if i not in fixed)
        leaves, treedef = jax.tree_util.tree_flatten(moving)
        sources = [source(x) for x in leaves]
        types = [leaf_type(x) for x in leaves]
        cells = tuple(self._cells(rule, [args[i] for i in fixed]))
        statics = tuple(repr(type(args[i])) for i in sorted(fixed))
        kind = (*rule_codes(rule), treedef, tuple(types), statics)
        key = tuple(s.key for s in sources), tuple(id(args[i]) for i in sorted(fixed))
        if self.notes.again(kind, key):
            return
        site = caller()
        place = None if site is None else site.span
        nbytes = nbytes_of(sources, types)
        number = self.collection.number(rule_name(rule), kind, nbytes, place)
        if number < 0:
            return
        held = [copied(s) if isinstance(s, Held) else s for s in sources]
        kept = tuple(Leaf(s, *t) for s, t in zip(held, types, strict=True))
        static = {i: args[i] for i in fixed}
        call = Call(rule, static, treedef, kept, site, x64_enabled(), cells)
        self.notes.add(number, call, kind, key)

    def _launching(self, was: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(was)
        def called(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.silent and kernel.enable_backward:
                with contextlib.suppress(Exception):  # the call will say what is wrong with it
                    self._note_kernel(kernel, args, **kwargs)
            return was(kernel, *args, **kwargs)

        return called

    def _note_kernel(
        self, called: Any, args: tuple[Any, ...], launch_dims: Any = None, output_dims: Any = None,
        vmap_method: Any = None,
    ) -> None:  # fmt: skip
        """Notes a call of a kernel."""
        kernel, site = called.kernel, caller()
        if not kernel.enable_backward or site is None or kernel.is_generic:
            return
        static = {i: a for i, a in enumerate(args) if not is_traced(a)}
        given = [a for i, a in enumerate(args) if i not in static]
        sources, types = [source(x) for x in given], [leaf_type(x) for x in given]
        kind = (kernel, tuple(types), repr(launch_dims), repr(output_dims))
        key = tuple(s.key for s in sources), tuple(map(id, static.values()))
        if self.notes.again(kind, key):
            return
        number = self.collection.number(kernel.key, kind, nbytes_of(sources, types), site.span)
        if number < 0:
            return
        dims = called.launch_dims if launch_dims is None else launch_dims
        shapes = called.output_dims if output_dims is None else output_dims
        base = called._operation(args, dims, shapes, vmap_method or called.vmap_method)[0].base
        launched = Launched(kernel, base.dim, tuple((s.name, s.shape) for s in base.outputs))
        leaves = tuple(Leaf(s, *t) for s, t in zip(sources, types, strict=True))
        call = Call(called, static, None, leaves, site, x64_enabled(), launched=launched)
        self.notes.add(number, call, kind, key)

    def _cells(self, rule: Any, static: Sequence[Any]) -> Iterator[tuple[Any, Source]]:
        """Variables of traced programs that the functions of a rule have captured."""
        for cell, x in captured(rule, static):
            if isinstance(x, self._tracer):
                yield cell, source(x)

    def _running(self, was: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(was)
        def run(*args: Any, **params: Any) -> Any:
            self._meet("run")
            if not self.silent and self.notes.wanted:
                with contextlib.suppress(Exception):
                    self._link("jit", args, params)
            return was(*args, **params)

        return run

    def _shortening(self, was: Callable[..., Any]) -> Callable[..., Any]:
        """The second call of a compiled program would go past Python, with its arguments."""

        @functools.wraps(was)
        def found(executable: Any, *args: Any, **more: Any) -> Any:
            self._meet("again")
            if not self.silent and self.notes.wanted:
                self._ran[id(executable)] += 1
                if self._ran[id(executable)] < KEPT:
                    return None
            return was(executable, *args, **more)

        return found

    def _binding(self, name: str, was: Callable[..., Any]) -> Callable[..., Any]:
        def bind(*args: Any, **params: Any) -> Any:
            self._meet(name)
            if not self.silent and self.notes.wanted:
                with contextlib.suppress(Exception):
                    self._link(name, args, params)
            return was(*args, **params)

        return bind

    def _link(self, name: str, args: Sequence[Any], params: dict[str, Any]) -> None:
        wanted = self.notes.wanted
        for part in _PROGRAMS:
            given = params.get(part)
            for n, program in enumerate(given if isinstance(given, tuple) else (given,)):
                if program is None:
                    continue
                jaxpr = getattr(program, "jaxpr", program)
                found = [v for v in variables(jaxpr) if id(v) in wanted]
                if not found:
                    continue
                donated = params.get("donated_invars") or (False,) * len(args)
                sources = tuple(
                    copied(s, lent) if isinstance(s := source(a), Held) else s
                    for a, lent in zip(args, donated, strict=True)
                )
                link = Link(
                    name, part if part != "branches" else str(n), jaxpr,
                    tuple(getattr(program, "consts", ())), params, sources, x64_enabled(),
                )  # fmt: skip
                self.notes.link(link, found)

    def _differentiating(self, was: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(was)
        def bind(trace: Any, args: Any, *rest: Any, **more: Any) -> Any:
            place = ""
            looked_at = not self.silent or self._met is not None
            if looked_at and type(trace).__name__ in _DERIVING:
                with contextlib.suppress(Exception):
                    place = self._note_asked(trace, args, rest[-1])
            if not place:
                out = was(trace, args, *rest, **more)
                if not self.silent and self.notes.wanted:
                    with contextlib.suppress(Exception):
                        self._link_inside(args, out)
                return out
            self._inside.append(place)
            try:
                return was(trace, args, *rest, **more)
            finally:
                self._inside.pop()

        return bind

    def _link_inside(self, args: Sequence[Any], out: Sequence[Any]) -> None:
        """Links what was called inside of a function with a rule, where that was traced."""
        for x in out:
            if type(x).__name__ == "DynamicJaxprTracer" and "call_jaxpr" in x.parent.params:
                inner = {"jaxpr": x.parent.params["call_jaxpr"]}
                count = len(inner["jaxpr"].jaxpr.invars)
                self._link("jit", args[len(args) - count :], inner)
                return

    def _note_asked(self, trace: Any, args: Sequence[Any], params: dict[str, Any]) -> str:
        """Notes which derivatives a program asks for. Gives the place of the rule that runs."""
        # Functions are among the arguments up to JAX 0.8.
        inner = params.get("subfuns") or [x for x in args if hasattr(x, "call_wrapped")]
        place = str(inner[-1].debug_info.func_src_info)
        values = [x for x in args if not hasattr(x, "call_wrapped")]
        pairs = [trace.to_primal_tangent_pair(x) for x in values]
        flags = [type(t).__name__ not in ("Zero", "SymbolicZero") for _, t in pairs]
        if not any(flags):
            return ""
        self._meet("derivatives")
        if not self.silent:
            self.notes.ask(place, flags)
        return place


def primitives() -> list[Any]:
    """Those of JAX that run a traced program at given values."""
    from jax._src import ad_checkpoint, pjit
    from jax._src.lax.control_flow import conditionals, loops

    return [pjit.jit_p, loops.scan_p, loops.while_p, conditionals.cond_p, ad_checkpoint.remat_p]

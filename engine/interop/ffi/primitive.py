"""Operations on kernels as a JAX primitive: how it is derived, batched and lowered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.interop.ffi.batched import fused
from engine.interop.ffi.library import TARGET, library, publish, published
from engine.interop.ffi.operation import Compiled, Operation

METHODS = (
    "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized", None,
)  # fmt: skip


class BatchingError(LaunchError, NotImplementedError):
    """A call that was made without a way to batch it, under `vmap`."""


def bind(op: Operation, operands: Sequence[Any]) -> list[Any]:
    """An operation on JAX values."""
    return primitive().bind(*operands, op=op)  # type: ignore[no-any-return]


@cache
def primitive() -> Any:
    """The primitive, made when first asked for."""
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    made = Primitive("engine_kernel")
    made.multiple_results = True
    made.def_impl(_alone)
    made.def_effectful_abstract_eval(_abstract)
    ad.primitive_jvps[made] = _jvp
    ad.primitive_transposes[made] = _transpose
    batching.primitive_batchers[made] = _batch
    mlir.register_lowering(made, mlir.lower_fun(_called, multiple_results=True), platform="cpu")
    return made


def _alone(*operands: Any, op: Operation) -> Any:
    """Runs an operation on arrays."""
    import jax

    if jax.config.jax_disable_jit:  # of the program's own functions
        with jax.disable_jit(False):
            return _jitted(op)(*operands)
    return _jitted(op)(*operands)


@lru_cache(maxsize=4096)
def _jitted(op: Operation) -> Any:
    """What runs an operation that stands alone."""
    import jax

    return jax.jit(lambda *operands: primitive().bind(*operands, op=op))


# ---- types


def _abstract(*operands: Any, op: Operation) -> tuple[list[Any], Any]:
    made = result_types(operands)
    slots = zip(op.made, op.outs, strict=True)
    return [made((*lead, *s.shape), s.dtype) for s, lead in slots], _effects(op)


def result_types(operands: Sequence[Any]) -> Any:
    """A function from a shape and a dtype to the type of a result that depends on operands.

    In `shard_map` it varies over the axes of the mesh that any of them varies over.
    """
    import jax

    varying = varying_axes(operands)
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return jax.core.ShapedArray
    more: dict[str, Any] = {"sharding": jax.sharding.NamedSharding(mesh, jax.P())}
    if varying and hasattr(jax.sharding, "ManualAxisType"):
        more["manual_axis_type"] = jax.sharding.ManualAxisType(varying=varying)
    elif varying:  # older versions
        more["vma"] = varying
    return partial(jax.core.ShapedArray, **more)


def varying_axes(types: Sequence[Any]) -> frozenset[Any]:
    """The axes of a mesh that types of values vary over, all together."""
    found: set[Any] = set()
    for t in types:
        manual = getattr(t, "manual_axis_type", None)
        found |= manual.varying if manual is not None else getattr(t, "vma", frozenset())
    return frozenset(found)


@cache
def _effect() -> Any:
    from jax.extend.core import Effect
    from jax.interpreters import mlir

    class Called(Effect):  # type: ignore[misc]
        """A call that has to happen also where its results are not used."""

    mlir.lowerable_effects.add_type(Called)
    try:  # loops and branches ask a list of their own, which has no public name
        from jax._src import effects

        effects.control_flow_allowed_effects.add_type(Called)
        effects.remat_allowed_effects.add_type(Called)
    except (ImportError, AttributeError):
        pass
    return Called()


def _effects(op: Operation) -> Any:
    plain = op.base.effect and op.kind == "value" and not op.order
    return {_effect()} if plain else set()


# ---- derivatives


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, op: Operation) -> Any:
    import jax
    from jax.interpreters import ad

    op.base.check_differentiable()
    out = bind(op, primals)
    moves = [type(t) is not ad.Zero for t in tangents]
    n = len(op.base.inputs)
    terms: list[list[Any]] = []
    moving = tuple(i for i in range(n) if moves[i] and op.base.inputs[i].floating)
    if moving:
        at = op.group(op.order).start
        further = replace(
            op,
            directions=(*op.directions, moving),
            leads=(*op.leads[:at], *(op.leads[i] for i in moving), *op.leads[at:]),
            outs=_float_outs(op),
        )
        operands = [*primals[:at], *(tangents[i] for i in moving), *primals[at:]]
        terms.append(bind(further, operands))
    for j in range(op.order + 1):
        places = op.group(j)
        moved = [k for k in places if moves[k]]
        if moved:
            slots = _group_slots(op, j)
            kept = tuple(s for s, k in zip(slots, places, strict=True) if moves[k])
            operands = [tangents[k] for k in moved]
            terms.append(bind(*_with_group(op, j, kept, moved, primals, operands)))
    results: list[Any] = [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in out]
    places_of = [k for k, s in enumerate(op.made) if s.floating]
    for term in terms:
        for k, t in zip(places_of, term, strict=True):
            results[k] = ad.add_tangents(results[k], t)
    return out, results


def _float_outs(op: Operation) -> tuple[Any, ...]:
    return tuple(lead for s, lead in zip(op.made, op.outs, strict=True) if s.floating)


def _group_slots(op: Operation, j: int) -> tuple[int, ...]:
    """The inputs that direction j moves; the outputs that have a cotangent for j = order."""
    return op.cotangents if j == op.order else op.directions[j]


def _with_group(
    op: Operation, j: int, slots: tuple[int, ...], leads_of: Sequence[int] | Sequence[Any],
    operands: Sequence[Any], values: Sequence[Any],
) -> tuple[Operation, list[Any]]:  # fmt: skip
    """The operation with other arrays as a group, and its operands.

    leads_of: for each of them the operand that it is like, or its lead.
    """
    at = op.group(j)
    leads = [op.leads[x] if isinstance(x, int) else x for x in leads_of]
    new = replace(op, leads=(*op.leads[: at.start], *leads, *op.leads[at.stop :]))
    if j == op.order:
        new = replace(new, cotangents=slots)
    else:
        new = replace(new, directions=(*op.directions[:j], slots, *op.directions[j + 1 :]))
    return new, [*operands[: at.start], *values, *operands[at.stop :]]


def _transpose(cotangents: Sequence[Any], *operands: Any, op: Operation) -> list[Any]:
    """What JAX asks of an operation that is linear in some of its operands."""
    from jax.interpreters import ad

    out: list[Any] = [None] * len(operands)
    undefined = [k for k, x in enumerate(operands) if ad.is_undefined_primal(x)]
    group = next((j for j in range(op.order + 1) if set(undefined) <= set(op.group(j))), None)
    if group is None:
        raise LaunchError(
            Diagnostic("E401", f"a derivative of kernel {op.base.name!r} was taken for linear in "
                       "what it is not linear in", call_span())
        )  # fmt: skip
    live = [k for k, c in enumerate(cotangents) if type(c) is not ad.Zero]
    if not live or not undefined:
        return [
            ad.Zero(x.aval.to_ct_aval()) if ad.is_undefined_primal(x) else None for x in operands
        ]
    given = [cotangents[k] for k in live]
    places = op.group(group)
    slots = dict(zip(places, _group_slots(op, group), strict=True))
    if op.kind == "value":
        # <c, D^k(t)> = <gradient, t>
        at = op.group(op.order)
        floats = tuple(o for o in op.made_outputs)
        new = replace(
            op,
            kind="gradient",
            directions=(*op.directions[:group], *op.directions[group + 1 :]),
            cotangents=tuple(floats[k] for k in live),
            wrt=tuple(slots[k] for k in undefined),
            leads=(*op.leads[: places.start], *op.leads[places.stop : at.start],
                   *(op.outs[k] for k in live)),
            outs=tuple(op.leads[k] for k in undefined),
        )  # fmt: skip
        rest = [*operands[: places.start], *operands[places.stop : at.start]]
        for k, x in zip(undefined, bind(new, [*rest, *given]), strict=True):
            out[k] = x
    elif group < op.order:
        # It is symmetric in its direction and the one that the result is contracted with.
        new, rest = _with_group(
            op, group, tuple(op.wrt[k] for k in live), [op.outs[k] for k in live], operands, given
        )
        new = replace(
            new, wrt=tuple(slots[k] for k in undefined), outs=tuple(op.leads[k] for k in undefined)
        )
        for k, x in zip(undefined, bind(new, rest), strict=True):
            out[k] = x
    else:
        # The gradient is linear in c: along a direction it gives the derivative.
        batch = op.batch
        new = replace(
            op,
            kind="value",
            directions=(*op.directions, tuple(op.wrt[k] for k in live)),
            cotangents=(),
            wrt=(),
            leads=(*op.leads[: places.start], *(op.outs[k] for k in live)),
        )
        new = replace(new, outs=(batch,) * len(new.made))
        made = bind(new, [*operands[: places.start], *given])
        which = dict(zip(new.made_outputs, made, strict=True))
        for k in undefined:
            out[k] = _summed(which[slots[k]], batch, op.leads[k])
    return out


def _summed(x: Any, batch: Sequence[int], lead: Sequence[int]) -> Any:
    """The sum over those batch extents that an operand has not."""
    axes = tuple(d for d, (b, n) in enumerate(zip(batch, lead, strict=True)) if b != n)
    return x.sum(axis=axes, keepdims=True) if axes else x


# ---- batches


def _batch(operands: Sequence[Any], dims: Sequence[Any], *, op: Operation) -> Any:
    import jax
    import jax.numpy as jnp

    (size,) = {x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None}
    moved = [
        jnp.asarray(x) if d is None else jnp.moveaxis(x, d, 0)  # JAX may give numbers, too
        for x, d in zip(operands, dims, strict=True)
    ]
    if op.vmap in ("sequential", "sequential_unrolled"):
        lanes = [x for x, d in zip(moved, dims, strict=True) if d is not None]

        def one(lane: Sequence[Any]) -> list[Any]:
            left = iter(lane)
            return bind(
                op, [x if d is None else next(left) for x, d in zip(moved, dims, strict=True)]
            )

        unroll = op.vmap == "sequential_unrolled"
        _, made = jax.lax.scan(lambda _, lane: ((), one(lane)), (), lanes, unroll=unroll or 1)
        return made, (0,) * len(made)
    if op.vmap not in ("expand_dims", "broadcast_all"):
        raise BatchingError(
            Diagnostic(
                "E202", f"kernel {op.base.name!r}: vmap of a call with vmap_method={op.vmap!r}",
                call_span(), notes=("for 'legacy_vectorized', JAX does not change unbatched "
                                    "arguments, so it is undefined how a kernel uses them",)
                if op.vmap else (),
                help="pass vmap_method='broadcast_all', 'expand_dims' or 'sequential'",
            )
        )  # fmt: skip
    whole = fused(op, size, [d is not None for d in dims])
    if whole is not None:
        one_op, full = whole
        given = [
            jnp.broadcast_to(x, (size, *x.shape)) if f and d is None else x
            for x, d, f in zip(moved, dims, full, strict=True)
        ]
        made = bind(one_op, given)
        return made, (0,) * len(made)
    consumed = op.consumed
    batched = [d is not None or k in consumed for k, d in enumerate(dims)]
    given = []
    for k, (x, d) in enumerate(zip(moved, dims, strict=True)):
        if d is not None:
            given.append(x)
        else:
            given.append(jnp.broadcast_to(x, (size if k in consumed else 1, *x.shape)))
    made = bind(op.batched(size, batched, [True] * len(op.outs)), given)
    return made, (0,) * len(made)


# ---- lowering


def _called(*operands: Any, op: Operation) -> list[Any]:
    import jax
    import jax.numpy as jnp

    number, compiled = prepared(op)
    made = result_types([jax.typeof(x) for x in operands])
    results = [made((*lead, *s.shape), s.dtype) for s, lead in compiled.results]
    if compiled.program is None:
        return [jnp.zeros(r.shape, r.dtype) for r in results]
    call = jax.ffi.ffi_call(
        TARGET, results, has_side_effect=op.base.effect and op.kind == "value" and not op.order,
        input_output_aliases=compiled.aliases,
    )  # fmt: skip
    mask = sum(1 << k for k in compiled.zero)
    return list(call(*operands, call=np.int64(number), zero=np.int64(mask)))[: len(op.made)]


@lru_cache(maxsize=4096)
def prepared(op: Operation) -> tuple[int, Compiled]:
    """What an operation is lowered to, compiled and known to the handler by its number.

    Raises CompilerError, and LaunchError or TapeError where it has no derivative.
    """
    compiled = op.base.compiled(op)
    if compiled.program is None:
        return 0, compiled
    number = compiled.program.number()
    if published(number) is None:
        compiled.program.prepare()
        publish(number, compiled.program)
    library()
    return number, compiled


def aligned(operands: Sequence[Any]) -> Sequence[Any]:
    """Operands as one call needs them: whole, and varying over the same axes in `shard_map`."""
    import jax

    if jax.sharding.get_abstract_mesh().empty:
        return operands
    types = [jax.typeof(x) for x in operands]
    split = [any(axis is not None for axis in t.sharding.spec) for t in types]
    if any(split):  # by axes of the mesh that are explicit
        operands = [
            jax.sharding.reshard(x, jax.P()) if s else x
            for x, s in zip(operands, split, strict=True)
        ]
        types = [jax.typeof(x) for x in operands]
    axes = varying_axes(types)
    if not axes:
        return operands
    own = [axes - varying_axes([t]) for t in types]
    return [_vary(x, tuple(sorted(a))) if a else x for x, a in zip(operands, own, strict=True)]


def _vary(x: Any, axes: tuple[str, ...]) -> Any:
    import jax

    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(x, axes, to="varying")
    return jax.lax.pvary(x, axes)  # older versions

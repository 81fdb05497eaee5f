"""JAX arrays and the engine's: one memory, which stays immutable to JAX as long as it holds it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy

KINDS = [wp.bool, wp.bfloat16, wp.float16, wp.float32, wp.int8, wp.int16, wp.int32, wp.uint8,
         wp.uint16, wp.uint32]  # fmt: skip


@wp.kernel
def add(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def twice(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i] + x[i]


def address(x: Any) -> int:
    return int(x.unsafe_buffer_pointer())


def refused(code: str, text: str, use: Any) -> Any:
    with pytest.raises(wp.LaunchError, match=text) as e:
        use()
    (found,) = e.value.diagnostics
    assert found.code == code, found
    assert found.span is not None and found.span.file == __file__
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_one_memory_both_ways(kind: Any) -> None:
    a = wp.array([[0, 1, 1], [1, 0, 0]], dtype=kind)
    j = wp.to_jax(a)
    assert isinstance(j, jax.Array)
    assert (address(j), j.shape, j.dtype) == (a.ptr, (2, 3), wp.dtype_to_jax(kind))
    assert (np.asarray(j) == a.numpy()).all()
    x = jnp.asarray(a.numpy().copy())
    b = wp.from_jax(x)
    assert (b.ptr, b.shape, b.dtype) == (address(x), (2, 3), kind)
    assert (b.numpy() == a.numpy()).all()


@pytest.mark.parametrize("make", [wp.zeros, wp.ones, wp.empty])
def test_new_arrays_need_no_copy(make: Any) -> None:
    """Of any size, wherever they come from."""
    for n in (1, 3, 17, 1000, 100_000):
        a = make(n, dtype=float)
        for found in (a, wp.zeros_like(a), wp.clone(a), wp.array(np.zeros(n), dtype=float)):
            assert found.ptr % 64 == 0
            assert address(wp.to_jax(found)) == found.ptr
    a = wp.zeros(3, dtype=float, requires_grad=True)
    assert address(wp.to_jax(a.grad)) == a.grad.ptr


def test_vectors_and_views() -> None:
    a = wp.array(np.arange(24.0), dtype=wp.vec3)
    assert wp.to_jax(a).shape == (8, 3)
    assert address(wp.to_jax(a)) == a.ptr
    x = jnp.arange(12.0).reshape(3, 2, 2)
    b = wp.from_jax(x, dtype=wp.mat22)
    assert (b.shape, b.dtype, b.ptr) == ((3,), wp.mat22f, address(x))
    assert wp.from_jax(jnp.ones(3), dtype=wp.vec3).shape == (1,)
    assert wp.from_jax(jnp.float32(3.0)).numpy().tolist() == [3.0]
    assert wp.from_jax(jnp.zeros((0, 3)), dtype=wp.vec3).shape == (0,)
    assert wp.to_jax(wp.zeros((0, 3))).shape == (0, 3)
    assert wp.from_jax(jnp.array([-1], jnp.int32), dtype=wp.uint32).numpy().tolist() == [2**32 - 1]
    # What JAX takes no memory of is copied: it is immutable, so that nobody can tell.
    for view in (a[1:], a[::2], a[::-1], a.view(float).transpose()):
        assert (np.asarray(wp.to_jax(view)) == view.numpy()).all()


def test_from_jax_cannot_be_written() -> None:
    x = jnp.zeros(4)
    a = wp.from_jax(x)
    text = "memory of a JAX array, which is immutable"
    found = refused("E206", text, lambda: wp.launch(add, 4, [a]))
    assert "kernel 'add' writes argument 'x'" in found.message and "clone(a)" in found.help
    refused("E206", text, lambda: wp.launch(add, 4, [x]))
    refused("E206", text, lambda: wp.launch(square, 4, [x], [a]))
    refused("E206", text, lambda: wp.launch(add, 4, [wp.from_dlpack(x)]))
    refused("E206", text, lambda: wp.launch(add, 4, [wp.array(np.asarray(x), copy=False)]))
    refused("E206", text, lambda: wp.launch(add, 4, [np.asarray(x)]))
    refused("E206", text, a.zero_)
    refused("E206", text, lambda: a.fill_(2.0))
    refused("E206", text, lambda: wp.copy(a, wp.ones(4, dtype=float)))
    refused("E206", text, lambda: a[1:].assign([1.0, 2.0, 3.0]))
    y = wp.zeros(4, dtype=float)
    refused("E206", "gradient", lambda: setattr(y, "grad", a))
    assert not a.numpy().flags.writeable
    wp.launch(square, 4, [a], [y])
    wp.launch(add, 4, [wp.clone(a)])
    wp.launch(add, 4, [wp.array(x)])
    assert x.tolist() == [0.0] * 4


def test_to_jax_is_not_written_while_jax_holds_it() -> None:
    a = wp.zeros(8, dtype=float)
    wp.launch(add, 8, [a])
    j = wp.to_jax(a)
    found = refused("E206", "memory that a JAX array shows", lambda: wp.launch(add, 8, [a]))
    assert "delete the result of to_jax" in found.help
    refused("E206", "a JAX array shows", a.zero_)
    refused("E206", "a JAX array shows", lambda: a.assign(np.ones(8, np.float32)))
    refused("E206", "a JAX array shows", lambda: wp.launch(add, 4, [a[:4]]))
    total = float(j.sum())
    del j
    wp.launch(add, 8, [a])
    assert (total, a.numpy().tolist()) == (8.0, [2.0] * 8)
    # What is made of it, and shares its memory, counts as well; what is computed of it does not.
    j = wp.to_jax(a)
    held, computed = [j], j * 2.0
    del j
    refused("E206", "a JAX array shows", a.zero_)
    held.clear()
    a.zero_()
    assert computed.tolist() == [4.0] * 8


def test_parts_that_jax_does_not_see() -> None:
    a = wp.zeros(64, dtype=float)
    j = wp.to_jax(a[:16])
    wp.launch(add, 16, [a[32:48]])
    refused("E206", "a JAX array shows", lambda: wp.launch(add, 1, [a[15:17]]))
    assert j.tolist() == [0.0] * 16


def test_gradients_that_jax_holds() -> None:
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
    tape.backward(grads={y: jnp.ones(3)})
    g = wp.to_jax(x.grad)
    assert g.tolist() == [2.0, 4.0, 6.0]
    refused("E206", "a JAX array shows", lambda: tape.backward(grads={y: jnp.ones(3)}))
    assert g.tolist() == [2.0, 4.0, 6.0]
    adjoint = {"adj_outputs": [wp.ones_like(y)], "adjoint": True}
    refused("E206", "a JAX array shows", lambda: wp.launch(square, 3, [x], [y], **adjoint))
    given = {"adj_inputs": [wp.from_jax(jnp.zeros(3))]}
    refused("E206", "is immutable", lambda: wp.launch(square, 3, [x], [y], **adjoint, **given))
    refused("E206", "a JAX array shows", tape.zero)
    del g
    tape.zero()
    assert x.grad.numpy().tolist() == [0.0] * 3


def test_a_program_for_warp_writes_it() -> None:
    """With one warning for each memory, since Warp's programs do so."""
    x, a = jnp.zeros(3), wp.zeros(3, dtype=float)
    before, wp.config.immutable = wp.config.immutable, "warn"
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            b, j = wp.from_jax(x), wp.to_jax(a)
            for _ in range(3):
                wp.launch(add, 3, [b])
                wp.launch(add, 3, [a])
        assert [str(w.message)[:24] for w in seen] == ["memory of a JAX array, w"] * 2
        assert np.asarray(j).tolist() == b.numpy().tolist() == [3.0] * 3
    finally:
        wp.config.immutable = before
    refused("E206", "a JAX array shows", lambda: wp.launch(add, 3, [a]))


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_who_dies_first(first: str) -> None:
    x = jnp.arange(1000.0)
    gone = weakref.ref(x)
    a = wp.from_jax(x)
    if first == "theirs":
        del x
        gc.collect()
        assert gone() is not None and a.numpy()[-1] == 999.0
        del a
    else:
        del a
        gc.collect()
        assert float(x[-1]) == 999.0
        del x
    gc.collect()
    assert gone() is None
    b = wp.full(1000, 3.0, dtype=float)
    memory = weakref.ref(b.storage)
    j = wp.to_jax(b)
    if first == "ours":
        del b
        gc.collect()
        assert memory() is not None and float(j.sum()) == 3000.0
        del j
    else:
        del j
        gc.collect()
        assert memory() is not None
        del b
    gc.collect()
    assert memory() is None


def test_donated_and_deleted() -> None:
    x = jnp.arange(1000.0)
    a = wp.from_jax(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "donated buffers were not usable"
        y = jax.jit(lambda v: v + 1.0, donate_argnums=0)(x)
    assert a.numpy()[999] == 999.0 and float(y[999]) == 1000.0
    x = jnp.arange(1000.0)
    a = wp.from_jax(x)
    x.delete()
    gc.collect()
    assert a.numpy()[999] == 999.0
    refused("E206", "deleted or donated", lambda: wp.from_jax(x))
    refused("E206", "deleted or donated", lambda: wp.launch(add, 3, [x]))
    b = wp.ones(1000, dtype=float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        z = jax.jit(lambda v: v + 1.0, donate_argnums=0)(wp.to_jax(b))
    assert address(z) != b.ptr and b.numpy()[0] == 1.0


def test_results_are_waited_for() -> None:
    x = jnp.ones((300, 300))
    for _ in range(3):
        y = x
        for _ in range(20):
            y = y @ x / 300.0
        assert (wp.from_jax(y).numpy() == 1.0).all()


def test_traced_arrays() -> None:
    def converted(x: Any) -> Any:
        return wp.to_jax(wp.from_jax(x))

    def launched(x: Any) -> Any:
        wp.launch(square, 3, [x], [wp.zeros(3, dtype=float)])
        return x

    x = jnp.ones(3)
    for use in (converted, launched):
        for through in (jax.jit(use), jax.vmap(use), jax.grad(lambda v, use=use: use(v).sum())):
            found = refused("E202", "being traced", lambda t=through: t(x))
            assert "jax_kernel" in found.help


def test_types_that_there_are_no_arrays_of() -> None:
    x = jnp.ones(3)
    for dtype in (jnp.int4, jnp.uint4, jnp.float8_e4m3fn, jnp.complex64):
        found = refused("E202", "JAX array of", lambda d=dtype: wp.from_jax(x.astype(d)))
        assert "astype" in found.help
        refused("E202", "JAX array of", lambda d=dtype: wp.launch(add, 3, [x.astype(d)]))
    refused("E202", "random keys", lambda: wp.from_jax(jax.random.key(0)))
    refused("E202", "random keys", lambda: wp.launch(add, 3, [jax.random.key(0)]))
    nothing = jax.grad(lambda n: 0.0, allow_int=True)(3)
    assert nothing.dtype == jax.dtypes.float0
    for use in (wp.from_jax, wp.from_dlpack):
        with pytest.raises(wp.LaunchError):
            use(nothing)
    refused("E202", "from_jax", lambda: wp.from_jax(3))
    refused("E202", "JAX array of float32 as vec3d", lambda: wp.from_jax(x, dtype=wp.vec3d))
    refused("E206", r"shape \(3,\) as vec2f", lambda: wp.from_jax(x, dtype=wp.vec2))
    refused("E202", "to_jax takes an array", lambda: wp.to_jax([1.0]))


@wp.struct
class Pair:
    a: float


def test_structs() -> None:
    found = refused("E202", "JAX has no arrays of Pair", lambda: wp.to_jax(wp.zeros(3, dtype=Pair)))
    assert "fields" in found.help


def test_wide_numbers() -> None:
    a = wp.array([1.5, 2.5], dtype=wp.float64)
    with pytest.warns(UserWarning, match="32 bits of an array of float64"):
        assert wp.to_jax(a).dtype == jnp.float32
    with pytest.warns(UserWarning, match="32 bits of an array of int64"):
        assert wp.to_jax(wp.zeros(3, dtype=wp.int64)).dtype == jnp.int32
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        for kind in (wp.float64, wp.int64, wp.uint64):
            a = wp.ones(3, dtype=kind)
            j = wp.to_jax(a)
            assert (address(j), j.dtype) == (a.ptr, wp.dtype_to_jax(kind))
            assert wp.from_jax(jnp.ones(3, j.dtype)).dtype is kind
    finally:
        jax.config.update("jax_enable_x64", before)


def test_launches_take_jax_arrays() -> None:
    x = jnp.arange(4.0)
    y = wp.zeros(4, dtype=float)
    wp.launch(square, 4, [x], [y])
    assert y.numpy().tolist() == [0.0, 1.0, 4.0, 9.0]
    wp.launch(twice, 4, [x, y])  # generic: the type is that of the array
    assert y.numpy().tolist() == [0.0, 2.0, 4.0, 6.0]
    assert wp.array(x).numpy().tolist() == x.tolist()
    wp.copy(y, wp.from_jax(x))
    y.assign(x * 2.0)
    assert y.numpy().tolist() == [0.0, 2.0, 4.0, 6.0]
    refused("E202", "a JAX array of int32", lambda: wp.launch(square, 4, [jnp.arange(4)], [y]))
    refused("E203", r"shape \(2, 2\)", lambda: wp.launch(square, 4, [x.reshape(2, 2)], [y]))


def test_weak_types_and_places() -> None:
    (cpu, *_) = jax.devices("cpu")
    for x in (jnp.asarray(2.5) * jnp.ones(3), jax.device_put(jnp.ones(3), cpu), jnp.full(3, 1.0)):
        assert wp.from_jax(x).ptr == address(x)


def test_devices_and_types() -> None:
    cpu = jax.devices("cpu")[0]
    assert wp.device_from_jax(cpu) == wp.get_device("cpu")
    assert wp.device_to_jax("cpu") == wp.device_to_jax() == cpu
    assert wp.jax.get_jax_device() == jax.local_devices()[0]
    with jax.default_device(cpu):
        assert wp.jax.get_jax_device() is cpu

    class Elsewhere:
        platform = "tpu"

    found = refused("E208", "no device for the JAX device", lambda: wp.device_from_jax(Elsewhere()))
    assert found.help
    for kind in (*KINDS, wp.float64, wp.int64, wp.uint64):
        there = wp.dtype_to_jax(kind)
        assert there is (jnp.bool_ if kind is wp.bool else getattr(jnp, kind.__name__))
        for spelled in (there, jnp.dtype(there), np.dtype(there).name):
            assert wp.dtype_from_jax(spelled) is kind
    for wrong in (jnp.complex64, jnp.int4, jnp.float8_e5m2, None, "nothing", jax.dtypes.float0, 3):
        with pytest.raises(TypeError, match="E202"):
            wp.dtype_from_jax(wrong)
    for wrong in (wp.vec3, Pair, None, "nothing", wp.array(dtype=float)):
        with pytest.raises(TypeError, match="E202"):
            wp.dtype_to_jax(wrong)


def test_threads() -> None:
    found: list[bool] = []

    def exchange(k: int) -> None:
        for _ in range(20):
            x = jnp.full(100, float(k))
            a = wp.clone(wp.from_jax(x))
            wp.launch(add, 100, [a])
            j = wp.to_jax(a)
            found.append(bool((j == k + 1.0).all()))

    threads = [threading.Thread(target=exchange, args=[k]) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [True] * 80


def test_without_the_inner_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """JAX's own `from_dlpack` is used where what is below it is not as it was."""
    from jaxlib import _jax

    from engine.interop import jax as exchange

    monkeypatch.delattr(_jax, "dlpack_managed_tensor_to_buffer", raising=False)
    exchange._taker.cache_clear()
    try:
        take = exchange._taker()
        assert take.__name__ == "ask"
    finally:
        monkeypatch.undo()
        exchange._taker.cache_clear()
    a = wp.ones(4, dtype=float)
    from engine.runtime.guards import lend

    assert address(take(lend(a, "a JAX array").__dlpack__())) == a.ptr
    assert exchange._taker().__name__ == "take"


def test_arrays_on_several_devices() -> None:
    """In a process of its own, since the number of devices is settled by the first use."""
    program = """
    import jax, jax.numpy as jnp, numpy as np
    import engine as wp
    from jax.sharding import NamedSharding, PartitionSpec
    mesh = jax.make_mesh((4,), ("x",))
    for spec in (PartitionSpec("x"), PartitionSpec()):
        x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, spec))
        try:
            wp.from_jax(x)
        except wp.LaunchError as e:
            print(e.diagnostics[0].code, "on 4 devices" in str(e), "addressable_data" in str(e))
        part = x.addressable_data(2)
        print(wp.from_jax(part).ptr == part.unsafe_buffer_pointer())
    print(wp.device_from_jax(jax.devices()[3]))
    """
    env = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=4",
               PYTHONPATH=str(Path(wp.__file__).parents[1]))  # fmt: skip
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=env,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout.splitlines() == [
        "E204 True True", "True", "E204 True True", "True", "cpu",
    ], done.stderr  # fmt: skip


def test_layouts_that_are_not_of_rows() -> None:
    layout = pytest.importorskip("jax.experimental.layout", reason="this JAX has no layouts")
    x = jnp.arange(6.0).reshape(2, 3)
    try:
        other = layout.Format(layout.Layout(major_to_minor=(1, 0)), x.sharding)
        y = jax.device_put(x, other)
    except Exception as e:
        pytest.skip(f"this JAX makes no such layout on the CPU: {e}")
    try:
        a = wp.from_jax(y)
    except wp.LaunchError as e:
        assert e.diagnostics[0].code == "E206" and "not stored by rows" in str(e)
    else:
        assert a.ptr == address(y) and (a.numpy() == np.asarray(x)).all()

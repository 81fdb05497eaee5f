"""Kernels in JAX programs: errors, lifetime, threads, devices, processes, functions of Python."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest

import engine as wp
from engine import CompilerError, LaunchError
from engine.jax_experimental import jax_kernel as old_jax_kernel
from engine.jax_experimental.ffi import get_jax_callable_default_graph_cache_max

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy
# JAX has both for what failed while a program ran.
FAILED = (jax.errors.JaxRuntimeError, ValueError)
SAMPLES = Path(__file__).parents[2] / "samples" / "interop"


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def scale(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * s


@wp.kernel
def scale_vec(x: wp.array(dtype=wp.vec2), s: float, y: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    y[i] = x[i] * s


@wp.kernel
def multiarg(a: wp.array(dtype=float), b: wp.array(dtype=float), c: wp.array(dtype=float),
             ab: wp.array(dtype=float), bc: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    ab[i] = a[i] + b[i]
    bc[i] = b[i] + c[i]


@wp.kernel
def positive(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.expect_eq(x[i] > 0.0, True)
    y[i] = wp.sqrt(x[i])


@wp.kernel
def keeps(x: wp.array(dtype=float), y: float):
    wp.printf("%f", x[0] + y)


def ones(n=4):
    return jnp.ones(n, jnp.float32)


# ---- errors while JAX traces


def told(call, *parts, kind=LaunchError):
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    for part in parts:
        assert part in text, text
    return text


def test_wrong_arguments_are_told_at_the_call():
    f = wp.jax_kernel(scale)
    told(lambda: f(ones()), "E201", "expects 2 inputs (x, s)", "test_jax_programs.py")
    told(lambda: f(ones(), 1.0, ones()), "E201")
    told(lambda: f(jnp.ones((2, 2)), 1.0), "E203", "1 dimensions", "(2, 2)")
    told(lambda: f(jnp.arange(3), 1.0), "E202", "int32", "astype")
    told(lambda: f([1.0], 1.0), "E202", "pass a JAX array")
    told(lambda: f(ones(), "2"), "E202", "'s'")
    told(lambda: f(ones(), jnp.ones(2)), "E203", "'s'")
    told(lambda: f(ones(), 1.0, launch_dims=-1), "E205")
    told(lambda: f(ones(), 1.0, launch_dims="a"), "E205")
    told(lambda: f(ones(), 1.0, output_dims=(2, 2)), "E203", "output_dims")
    told(lambda: f(ones(), 1.0, output_dims={"z": 3}), "E201", "'z'")
    told(lambda: f(ones(), 1.0, output_dims=1.5), "E203")
    vec = wp.jax_kernel(scale_vec)
    told(lambda: vec(jnp.ones((4, 3), jnp.float32), 1.0), "E203", "(2,)")
    told(lambda: vec(jnp.ones((4, 2)), 1.0, output_dims=(4, 3)), "E203")


def test_what_is_no_function_of_jax():
    told(lambda: wp.jax_kernel(lambda x: x), "E202", "@kernel")
    told(lambda: wp.jax_kernel(scale, num_outputs=0), "E201", "at least one output")
    told(lambda: wp.jax_kernel(scale, num_outputs=4), "E201")
    told(lambda: wp.jax_kernel(scale, num_outputs=2), "E202", "must be an array")
    told(lambda: wp.jax_kernel(keeps), "E202", "must be an array")
    told(lambda: wp.jax_kernel(scale, in_out_argnames=["x", "x"]), "E201", "duplicate")
    told(lambda: wp.jax_kernel(scale, in_out_argnames=["q"]), "E201", "'q'")
    told(lambda: wp.jax_kernel(multiarg, num_outputs=2, in_out_argnames=["bc"]), "E201")
    told(lambda: wp.jax_kernel(scale, block_dim=0), "E202")


# ---- errors while a kernel runs


def test_a_failed_test_in_a_kernel_is_an_error_of_the_program():
    f = jax.jit(lambda x: wp.jax_kernel(positive)(x)[0])
    assert f(ones()).sum() == 4
    with pytest.raises(FAILED, match="E210"):
        jax.block_until_ready(f(-ones()))
    assert f(ones()).sum() == 4  # and the process goes on


def test_accesses_outside_in_checked_mode():
    old = wp.config.mode
    wp.config.mode = "debug"
    try:

        @wp.kernel
        def outside(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = x[i + 1]

        with pytest.raises(FAILED, match="E211"):
            jax.block_until_ready(wp.jax_kernel(outside)(ones()))
    finally:
        wp.config.mode = old


def test_what_a_function_raises_is_an_error_of_the_program():
    def broken(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        raise OSError("the disk is full")

    def writes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        wp.launch(double, dim=4, inputs=[y], outputs=[x])

    with pytest.raises(FAILED, match="OSError: the disk is full"):
        jax.block_until_ready(jax.jit(wp.jax_callable(broken))(ones()))
    with pytest.raises(FAILED, match=r"E206.*read-only"):
        jax.block_until_ready(wp.jax_callable(writes)(ones()))


def test_ctrl_c_in_a_function():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background

    def interrupted(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # after JAX's own error, if that is first
        with contextlib.suppress(*FAILED):
            jax.block_until_ready(wp.jax_callable(interrupted)(ones()))
        for _ in range(600):  # until it comes, however busy the machine is
            time.sleep(0.1)
    signal.signal(signal.SIGINT, before)


def test_jax_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    told(lambda: wp.jax_kernel(scale, vmap_method=None), "pip install", kind=ImportError)


def test_no_headers_of_xla(monkeypatch, tmp_path):
    from engine.interop.ffi import library

    monkeypatch.setattr(library, "_library", None)
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    told(library.library, "E302", "headers", kind=CompilerError)


# ---- lifetime, and which kernel it is


def test_kernels_of_one_name_are_told_apart():
    def make(factor):
        @wp.kernel
        def same(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = factor * x[i]

        return wp.jax_kernel(same)

    made = [make(2.0), make(5.0)]
    both = jax.jit(lambda x: [f(x)[0] for f in made])
    assert [float(y[0]) for y in both(ones())] == [2.0, 5.0]
    assert [float(f(ones())[0][0]) for f in made] == [2.0, 5.0]


def test_compiled_functions_outlive_what_they_were_made_of():
    def make():
        @wp.kernel
        def gone(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = 7.0 * x[i]

        f = wp.jax_kernel(gone)
        return jax.jit(lambda x: f(x)[0]).lower(ones()).compile(), weakref.ref(f)

    compiled, _ = make()
    gc.collect()
    assert float(compiled(ones())[0]) == 7.0


def test_a_function_that_is_redefined():
    @wp.func
    def inner(x: float):
        return x + 1.0

    @wp.kernel
    def calls(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = inner(x[i])

    f = wp.jax_kernel(calls)
    assert float(f(ones())[0][0]) == 2.0

    @wp.func
    def inner(x: float):  # noqa: F811
        return x + 2.0

    assert float(f(ones())[0][0]) == 3.0


def test_numbers_are_the_same_in_every_process(tmp_path):
    """So that what JAX keeps on disk calls the right kernel, or none."""
    program = """
import jax, jax.numpy as jnp, engine as wp
@wp.kernel
def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[wp.tid()] = x[wp.tid()] + NUMBER
print(jax.jit(wp.jax_kernel(k)).lower(jnp.ones(3)).as_text().split("call = ")[1].split()[0])
"""
    found = [_python(tmp_path, program.replace("NUMBER", n)) for n in ("1.0", "1.0", "3.0")]
    assert found[0] == found[1] != found[2]


def _python(folder: Path, program: str, **env: str) -> str:
    """What a program prints. It is a file: kernels have to be read."""
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "JAX_PLATFORMS": "cpu", **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- threads and devices


def test_python_threads_call_at_once():
    f = jax.jit(lambda x: wp.jax_kernel(scale)(x, 3.0)[0])
    g = jax.jit(lambda x: wp.jax_callable(twice)(wp.jax_kernel(double)(x)[0])[0])
    wrong = []

    def work(k):
        for n in range(20):
            x = jnp.full(2000 + k, float(n), jnp.float32)
            if not np.all(np.asarray(f(x)) == 3.0 * n) or not np.all(np.asarray(g(x)) == 4.0 * n):
                wrong.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)


def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.launch(double, dim=x.shape, inputs=[x], outputs=[y])


DEVICES = """
import numpy as np, jax, jax.numpy as jnp, engine as wp
from jax.sharding import PartitionSpec as P
assert jax.device_count() == 4

@wp.kernel
def square(x: wp.array(dtype=float), s: float, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * s

f = wp.jax_kernel(square, enable_backward=True)
mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
x = jnp.arange(8.0, dtype=jnp.float32)
for check in (True, False):
    g = jax.jit(jax.shard_map(lambda x, s: f(x, s)[0], mesh=mesh, in_specs=(P("d"), P()),
                              out_specs=P("d"), check_vma=check))
    np.testing.assert_allclose(g(x, 3.0), 3 * x * x)
    to_x, to_s = jax.grad(lambda x, s: g(x, s).sum(), (0, 1))(x, 3.0)
    np.testing.assert_allclose(to_x, 6 * x)
    np.testing.assert_allclose(to_s, (x * x).sum())
    np.testing.assert_allclose(jax.jvp(g, (x, 3.0), (x, 1.0))[1], 7 * x * x)

explicit = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,))
with jax.set_mesh(explicit):
    split = jax.device_put(x, P("d"))
    loss = jax.jit(jax.value_and_grad(lambda x: f(x, 1.0)[0].sum()))
    np.testing.assert_allclose(loss(split)[1], 2 * x)

def local(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    wp.launch(square, dim=x.shape, inputs=[x, 2.0], outputs=[y])

h = wp.jax_callable(local)
rows = jnp.arange(12.0, dtype=jnp.float32).reshape(4, 3)
np.testing.assert_allclose(jax.pmap(lambda r: h(f(r, 1.0)[0])[0])(rows), 2 * rows**4)
placed = [jax.device_put(rows[k], d) for k, d in enumerate(jax.devices())]
many = [h(f(p, 1.0)[0])[0] for _ in range(25) for p in placed]
for k, y in enumerate(many):
    np.testing.assert_allclose(y, 2 * rows[k % 4] ** 4)
print("done")
"""


def test_several_devices(tmp_path):
    flags = "--xla_force_host_platform_device_count=4"
    assert _python(tmp_path, DEVICES, XLA_FLAGS=flags).endswith("done")


def test_two_processes():
    """The sample runs as two processes that know each other by the loopback address."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    env = {**os.environ, "JAX_PLATFORMS": "cpu"}
    sample = str(SAMPLES / "jax_distributed.py")
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    running = [
        subprocess.Popen(
            [sys.executable, sample, str(k), "2", str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=env,
        )
        for k in range(2)
    ]
    try:
        said = [p.communicate(timeout=240)[0] for p in running]
    finally:
        for p in running:
            p.kill()
    assert [p.returncode for p in running] == [0, 0], said
    assert "4 devices in 2 processes" in said[0]


# ---- functions of Python


def test_callable_with_several_launches():
    def both(a: wp.array(dtype=float), b: wp.array(dtype=wp.vec2), s: float,
             c: wp.array(dtype=float), d: wp.array(dtype=wp.vec2)):  # fmt: skip
        wp.launch(scale, dim=a.shape, inputs=[a, s], outputs=[c])
        wp.launch(scale_vec, dim=b.shape, inputs=[b, s], outputs=[d])

    f = wp.jax_callable(both, num_outputs=2)
    a, b = jnp.arange(10.0, dtype=jnp.float32), jnp.arange(10.0, dtype=jnp.float32).reshape(5, 2)
    dims = {"c": a.shape, "d": b.shape}
    for s in (2.0, jnp.float32(2.0)):
        c, d = jax.jit(lambda a, b: f(a, b, s, output_dims=dims))(a, b)
        np.testing.assert_array_equal(c, 2 * a)
        np.testing.assert_array_equal(d, 2 * b)
    c, d = jax.vmap(lambda a, s: f(a, b, s, output_dims=dims))(jnp.stack([a, a]), jnp.arange(2.0))
    np.testing.assert_array_equal(c, jnp.stack([0 * a, a]))
    np.testing.assert_array_equal(d, jnp.stack([0 * b, b]))


def test_callable_that_changes_an_input():
    def add(x: wp.array(dtype=float), z: wp.array(dtype=float)):
        wp.launch(double, dim=x.shape, inputs=[z], outputs=[z])

    f = wp.jax_callable(add, in_out_argnames=["z"], graph_mode=wp.JaxCallableGraphMode.NONE)
    z = ones()
    np.testing.assert_array_equal(f(ones(), z)[0], 2 * ones())
    np.testing.assert_array_equal(z, ones())


def test_callable_on_an_active_tape_is_not_recorded():
    x = wp.ones(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, dim=3, inputs=[x], outputs=[wp.zeros(3, dtype=float, requires_grad=True)])
        jax.block_until_ready(wp.jax_callable(twice)(ones()))
        jax.block_until_ready(wp.jax_kernel(double)(ones()))
    assert len(tape.launches) == 1


def test_callable_modes_and_errors():
    f = wp.jax_callable(twice, graph_mode=2)
    assert f.graph_mode is wp.JaxCallableGraphMode.WARP
    told(lambda: f(ones()), "E213", "WARP", "CPU")
    assert wp.jax_callable(twice, graph_compatible=False).graph_mode == 0
    wp.clear_jax_callable_graph_cache(f)
    wp.clear_jax_callable_graph_cache()
    assert get_jax_callable_default_graph_cache_max() == 32

    def bare(x, y: wp.array(dtype=float)):
        pass

    told(lambda: wp.jax_callable(bare), "E202", "'x'", "annotat")
    told(lambda: jax.grad(lambda x: wp.jax_callable(twice)(x)[0].sum())(ones()), "E401",
         "custom_vjp")  # fmt: skip


def test_side_effects_happen_though_nothing_is_used():
    calls = []

    def note(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        calls.append(x.numpy().sum())

    f = wp.jax_callable(note, has_side_effect=True)
    g = wp.jax_callable(note)

    @jax.jit
    def program(x):
        f(x)
        g(x)
        _, _ = jax.lax.scan(lambda c, _: (f(c) and c, None), x, None, length=2)
        return x + 1

    jax.block_until_ready(program(ones()))
    assert calls == [4.0] * 3


def test_ffi_callback():
    def func(inputs, outputs, attrs, ctx):
        a, b = inputs
        assert attrs["name"] == "n" and attrs["list"].tolist() == [1, 2] and ctx.stream == 0
        assert not a.flags.writeable
        wp.launch(scale, dim=a.shape, inputs=[a, attrs["scale"]], outputs=[outputs[0]])
        wp.launch(scale_vec, dim=b.shape[0], inputs=[b, attrs["scale"]], outputs=[outputs[1]])
        outputs[2][...] = np.asarray(a, outputs[2].dtype)

    wp.register_ffi_callback("tests_func", func)
    a = jnp.arange(6.0, dtype=jnp.float32)
    b = a.reshape(3, 2)
    types = [jax.ShapeDtypeStruct(a.shape, a.dtype), jax.ShapeDtypeStruct(b.shape, b.dtype),
             jax.ShapeDtypeStruct(a.shape, jnp.bfloat16)]  # fmt: skip
    call = jax.ffi.ffi_call("tests_func", types)
    run = jax.jit(lambda a, b: call(a, b, scale=2.0, name="n", list=np.asarray([1, 2])))
    c, d, e = run(a, b)
    np.testing.assert_array_equal(c, 2 * a)
    np.testing.assert_array_equal(d, 2 * b)
    np.testing.assert_array_equal(e, a.astype(jnp.bfloat16))

    def fails(inputs, outputs, attrs, ctx):
        raise ValueError("not today")

    wp.register_ffi_callback("tests_fails", fails)
    with pytest.raises(FAILED, match="ValueError: not today"):
        jax.block_until_ready(jax.ffi.ffi_call("tests_fails", types[0])(a))


def test_the_older_form():
    f = old_jax_kernel(multiarg)
    a, b, c = ones(), 2 * ones(), 3 * ones()
    x, y = jax.jit(f)(a, b, c)
    np.testing.assert_array_equal(x, 3 * ones())
    np.testing.assert_array_equal(y, 5 * ones())
    (z,) = jax.jit(old_jax_kernel(double, launch_dims=2))(a)
    assert z.shape == (2,)
    np.testing.assert_array_equal(jax.grad(lambda a: old_jax_kernel(double)(a)[0].sum())(a),
                                  2 * ones())  # fmt: skip
    told(lambda: f(a, b, c, a, b), "E201")


def test_programs_as_jax_keeps_them():
    """Without jit, exported, with donated memory, and with other layouts."""
    x = jnp.arange(8.0, dtype=jnp.float32)
    f = wp.jax_kernel(scale, enable_backward=True)
    with jax.disable_jit():
        np.testing.assert_array_equal(f(x, 2.0)[0], 2 * x)
        np.testing.assert_array_equal(jax.grad(lambda x: f(x, 2.0)[0].sum())(x), 0 * x + 2)
    from jax import export

    known = export.DisabledSafetyCheck.custom_call("engine_kernel")
    kept = export.export(jax.jit(lambda x: f(x, 3.0)[0]), disabled_checks=[known])(x)
    np.testing.assert_array_equal(kept.call(x), 3 * x)
    g = wp.jax_kernel(double, in_out_argnames=["y"])
    y = 0 * x
    np.testing.assert_array_equal(jax.jit(lambda x, y: g(x, y)[0], donate_argnums=1)(x, y), 2 * x)
    assert y.is_deleted()
    v = wp.jax_kernel(scale_vec)
    x = x.reshape(2, 4)
    np.testing.assert_array_equal(jax.jit(lambda x: v(x.T, 2.0)[0])(x), 2 * x.T)

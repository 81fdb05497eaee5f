"""Wrong kinds of arguments give an error of the engine, or a TypeError."""

import warnings

import numpy as np
import pytest

import engine as wp
from engine import EngineError


@wp.kernel
def one(x: wp.array(dtype=float), n: int):
    x[0] = float(n)


@wp.kernel
def generic(x: wp.array(dtype=wp.Float)):
    x[0] = x[0]


@wp.kernel
def half(x: wp.array(dtype=float), y: wp.float64, z: wp.float16):
    x[0] = float(y) * float(z)


def twice(x: float):
    return x * 2.0


@wp.struct
class Pair:
    n: int
    x: wp.array(dtype=float)


def ready():
    return wp.zeros(3, requires_grad=True)


def eye():
    return wp.array(np.eye(3), dtype=float)


def command():
    return wp.launch(one, 1, [wp.zeros(1), 1], record_cmd=True)


JUNK = [None, 3, -7, 2.5, "x", "", b"x", object(), [], {}, (), (1, "a"), [[1], [1, 2]], np.nan,
        np.array(3.0), np.array([1j]), np.array(["a"]), lambda: 0, int, wp.vec3, 1 << 70, True,
        10**400, Pair, {1: 2}, {"x"}, slice(1, 2), ...]  # fmt: skip

CALLS = {
    "array": wp.array,
    "array of floats": lambda v: wp.array(v, dtype=float),
    "array dtype": lambda v: wp.array([1.0], dtype=v),
    "array shape": lambda v: wp.array([1.0], shape=v),
    "array ndim": lambda v: wp.array([1.0], ndim=v),
    "array device": lambda v: wp.array([1.0], device=v),
    "array grad": lambda v: wp.array([1.0], dtype=float, grad=v),
    "array strides": lambda v: wp.array(ptr=8, shape=1, dtype=float, strides=v),
    "annotation": lambda v: wp.array(dtype=v),
    "annotation ndim": lambda v: wp.array(dtype=float, ndim=v),
    "zeros": wp.zeros,
    "full": lambda v: wp.full(2, v),
    "full dtype": lambda v: wp.full(2, 1, dtype=v),
    "zeros_like": wp.zeros_like,
    "full_like": lambda v: wp.full_like(ready(), v),
    "from_numpy": wp.from_numpy,
    "clone": wp.clone,
    "copy to": lambda v: wp.copy(v, ready()),
    "copy from": lambda v: wp.copy(ready(), v),
    "assign": lambda v: ready().assign(v),
    "fill_": lambda v: ready().fill_(v),
    "index": lambda v: ready()[v],
    "set item": lambda v: ready().__setitem__(0, v),
    "set slice": lambda v: ready().__setitem__(slice(None), v),
    "reshape": lambda v: ready().reshape(v),
    "transpose": lambda v: ready().transpose(v),
    "view": lambda v: ready().view(v),
    "grad": lambda v: setattr(ready(), "grad", v),
    "indexedarray": wp.indexedarray,
    "indexedarray indices": lambda v: wp.indexedarray(ready(), v),
    "struct field": lambda v: setattr(Pair(), "n", v),
    "struct array": lambda v: setattr(Pair(), "x", v),
    "struct": lambda v: wp.struct(v),
    "kernel": lambda v: wp.kernel(v),
    "func": lambda v: wp.func(v),
    "func_grad": lambda v: wp.func_grad(v),
    "func_native": lambda v: wp.func_native(v)(one.func),
    "overload": lambda v: wp.overload(generic, v),
    "overload of": lambda v: wp.overload(v, [wp.array(dtype=float)]),
    "launch": lambda v: wp.launch(v, 1, []),
    "launch dim": lambda v: wp.launch(one, v, [ready(), 1]) if v != 1 << 70 else None,
    "launch inputs": lambda v: wp.launch(one, 1, v),
    "launch array": lambda v: wp.launch(one, 1, [v, 1]),
    "launch scalar": lambda v: wp.launch(one, 1, [ready(), v]),
    "launch float64": lambda v: wp.launch(half, 1, [ready(), v, 1.0]),
    "launch float16": lambda v: wp.launch(half, 1, [ready(), 1.0, v]),
    "launch device": lambda v: wp.launch(one, 1, [ready(), 1], device=v),
    "adjoint": lambda v: wp.launch(one, 1, [ready(), 1], adj_inputs=[v, None], adjoint=True),
    "adjoints": lambda v: wp.launch(one, 1, [ready(), 1], adj_inputs=v, adjoint=True),
    "set_dim": lambda v: command().set_dim(v),
    "set_param_at_index": lambda v: command().set_param_at_index(v, 1),
    "set_params": lambda v: command().set_params(v),
    "set_param": lambda v: command().set_param_at_index(0, v),
    "capture_launch": wp.capture_launch,
    "map": lambda v: wp.map(v, ready()),
    "map inputs": lambda v: wp.map(twice, v),
    "map out": lambda v: wp.map(twice, ready(), out=v),
    "operator": lambda v: ready() + v,
    "operator in place": lambda v: ready().__imul__(v),
    "HashGrid": lambda v: wp.HashGrid(v, 1, 1),
    "HashGrid.build": lambda v: wp.HashGrid(1, 1, 1).build(v, 1.0),
    "HashGrid radius": lambda v: wp.HashGrid(1, 1, 1).build(wp.zeros(3, dtype=wp.vec3), v),
    "Bvh": lambda v: wp.Bvh(v, v),
    "Mesh": lambda v: wp.Mesh(v, v),
    "array_sum": lambda v: wp.utils.array_sum(v),
    "array_sum axis": lambda v: wp.utils.array_sum(ready(), axis=v),
    "array_sum count": lambda v: wp.utils.array_sum(ready(), value_count=v),
    "array_sum out": lambda v: wp.utils.array_sum(ready(), out=v),
    "array_scan": lambda v: wp.utils.array_scan(ready(), v),
    "array_cast": lambda v: wp.utils.array_cast(ready(), v),
    "radix_sort_pairs": lambda v: wp.utils.radix_sort_pairs(ready(), v, 1),
    "radix_sort_pairs count": lambda v: wp.utils.radix_sort_pairs(ready(), ready(), v),
    "runlength_encode": lambda v: wp.utils.runlength_encode(v, v, v),
    "Adam": lambda v: wp.optim.Adam(v),
    "Adam lr": lambda v: wp.optim.Adam([ready()], lr=v).step([ready()]),
    "Adam betas": lambda v: wp.optim.Adam([ready()], betas=v),
    "SGD.step": lambda v: wp.optim.SGD([ready()]).step(v),
    "SGD momentum": lambda v: wp.optim.SGD([ready()], momentum=v).step([ready()]),
    "cg": lambda v: wp.optim.linear.cg(v, ready(), ready()),
    "cg tol": lambda v: wp.optim.linear.cg(eye(), ready(), ready(), tol=v),
    "cg maxiter": lambda v: wp.optim.linear.cg(eye(), ready(), ready(), maxiter=v),
    "gmres restart": lambda v: wp.optim.linear.gmres(eye(), ready(), ready(), restart=v),
    "jvp tangents": lambda v: wp.autograd.jvp(one, 1, [ready(), 1], tangents=v),
    "a tangent": lambda v: wp.autograd.jvp(one, 1, [ready(), 1], tangents={"x": v}),
    "from_dlpack": wp.from_dlpack,
    "set_param_by_name": lambda v: command().set_param_by_name(v, 1),
    "backward": lambda v: wp.Tape().backward(v),
    "backward grads": lambda v: wp.Tape().backward(grads=v),
    "a cotangent": lambda v: wp.Tape().backward(grads={ready(): v}),
    "record_func": lambda v: wp.Tape().record_func(v, []),
    "recorded arrays": lambda v: wp.Tape().record_func(print, v),
    "record_launch": lambda v: wp.Tape().record_launch(v, 1),
    "get_adjoint": lambda v: wp.Tape().get_adjoint(v),
    "get_device": wp.get_device,
    "set_module_options": lambda v: wp.set_module_options(v, "tests.of.nothing"),
    "get_module": wp.get_module,
    "static": wp.static,
    "constant": wp.constant,
    "dtype_from_numpy": wp.dtype_from_numpy,
    "dtype_to_numpy": wp.dtype_to_numpy,
    "vector": lambda v: wp.types.vector(v, float),
    "vector dtype": lambda v: wp.types.vector(3, v),
    "matrix": lambda v: wp.types.matrix(v, float),
    "vec3": wp.vec3,
    "mat22": wp.mat22,
    "quat": wp.quat,
    "transform": wp.transform,
    "sin": wp.sin,
    "dot": lambda v: wp.dot(v, v),
}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_but_errors_of_the_engine(name):
    for value in JUNK:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            raised = error(lambda value=value: CALLS[name](value))
        assert raised is None or isinstance(raised, (EngineError, TypeError)), value


def error(call):
    try:
        call()
    except Exception as e:
        return e
    return None

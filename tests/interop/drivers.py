"""A driver of each framework for the conformance suite: it makes arrays and reads them."""

from __future__ import annotations

import importlib
import importlib.util
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp

NumpyArray = np.ndarray[Any, Any]
ALL = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
       "float16", "float32", "float64")  # fmt: skip


@dataclass(frozen=True)
class Driver:
    """One framework.

    package: what has to be installed, empty for nothing. make: an array of the framework with the
    values of NumPy's, in memory of its own. read: its values. kinds: the scalars that it has.
    take: an array of the engine over it. give: the other way round, None where there is none.
    written: whether it can be written. sliced: every second element of the first axis, as a view;
    None where that is a copy. frozen: one that may not be written, None where there is none.
    """

    name: str
    package: str
    make: Callable[[NumpyArray], Any]
    read: Callable[[Any], NumpyArray]
    take: Callable[..., Any]
    give: Callable[[Any], Any] | None = None
    kinds: tuple[str, ...] = ALL
    written: bool = True
    sliced: Callable[[Any], Any] | None = lambda x: x[::2]
    frozen: Callable[[NumpyArray], Any] | None = None
    gradients: Gradients | None = None
    refused: dict[str, Callable[[], Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Gradients:
    """How gradients are asked for, read and forgotten."""

    ask: Callable[[Any], Any]
    of: Callable[[Any], Any]
    forget: Callable[[Any], None]
    computed: Callable[[Any], Any]


def lib(name: str) -> Any:
    """A framework; the test is skipped where it is not installed."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, while it is loaded
        return importlib.import_module(name)


# ---- NumPy, and what has a protocol alone


class ByDlpack:
    """Something that only has DLPack."""

    def __init__(self, data: NumpyArray) -> None:
        self.data = data

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()


class ByInterface:
    """Something that only has the array interface."""

    def __init__(self, data: NumpyArray) -> None:
        self.data = data
        self.__array_interface__ = data.__array_interface__


def _frozen(values: NumpyArray) -> NumpyArray:
    out = values.copy()
    out.flags.writeable = False
    return out


def _numpy_take(x: Any, dtype: Any = None) -> Any:
    return wp.array(x, dtype=dtype, copy=False)


# ---- PyTorch and Paddle


def _torch(values: NumpyArray) -> Any:
    return lib("torch").from_numpy(values.copy())


def _torch_gradient(x: Any) -> Any:
    return x.requires_grad_(True)


def _forget(x: Any) -> None:
    x.grad = None


def _paddle(values: NumpyArray) -> Any:
    paddle = lib("paddle")
    return paddle.utils.dlpack.from_dlpack(values.copy().__dlpack__())


def _paddle_gradient(x: Any) -> Any:
    x.stop_gradient = False
    return x


def _refused_by_torch() -> dict[str, Callable[[], Any]]:
    def functional(make: str) -> Any:
        torch, kept = lib("torch"), []
        getattr(torch.func, make)(lambda t: kept.append(t) or t.sum())(torch.ones(3, 3))
        return kept[0]

    def fake() -> Any:
        torch = lib("torch")
        from torch._subclasses import FakeTensorMode

        with FakeTensorMode():
            return torch.zeros(3)

    def quantized() -> Any:
        torch = lib("torch")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.quantize_per_tensor(torch.zeros(3), 1.0, 0, torch.quint8)

    def nested() -> Any:
        torch = lib("torch")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])

    return {
        "complex": lambda: lib("torch").zeros(3, dtype=lib("torch").complex64),
        "conjugate": lambda: lib("torch").zeros(3, dtype=lib("torch").complex64).conj(),
        "negated": lambda: lib("torch").zeros(3, dtype=lib("torch").complex64).conj().imag,
        "sparse": lambda: lib("torch").eye(3).to_sparse(),
        "meta": lambda: lib("torch").zeros(3, device="meta"),
        "zeros without memory": lambda: lib("torch")._efficientzerotensor(3),
        "float8": lambda: lib("torch").zeros(3).to(lib("torch").float8_e4m3fn),
        "fake": fake,
        "quantized": quantized,
        "nested": nested,
        "vmap": lambda: functional("vmap"),
        "grad": lambda: functional("grad"),
        "module": lambda: lib("torch").nn.Linear(2, 2),
    }


def _refused_by_paddle() -> dict[str, Callable[[], Any]]:
    return {
        "complex": lambda: lib("paddle").zeros([3], dtype="complex64"),
        "sparse": lambda: lib("paddle").sparse.sparse_coo_tensor([[0], [1]], [1.0], [2, 2]),
    }


# ---- JAX


def _jax(values: NumpyArray) -> Any:
    return lib("jax").numpy.asarray(values.copy())


def _refused_by_jax() -> dict[str, Callable[[], Any]]:
    def deleted() -> Any:
        x = lib("jax").numpy.zeros(3)
        x.delete()
        return x

    def traced() -> Any:
        kept: list[Any] = []
        lib("jax").make_jaxpr(lambda x: kept.append(x) or x)(1.0)
        return kept[0]

    return {
        "complex": lambda: lib("jax").numpy.zeros(3, "complex64"),
        "int4": lambda: lib("jax").numpy.zeros(3, "int4"),
        "float8": lambda: lib("jax").numpy.zeros(3, "float8_e5m2"),
        "keys": lambda: lib("jax").random.key(0),
        "deleted": deleted,
        "traced": traced,
    }


# ---- CuPy and Numba, whose arrays are on a GPU, or are Numba's that simulate one


def _numba(values: NumpyArray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib("numba")
        found = importlib.import_module("numba.cuda.simulator.cudadrv.devicearray")
    return found.FakeCUDAArray(values.copy())


def _on_a_gpu(module: str, name: str) -> Any:
    """An array as those frameworks have it, by all that the engine looks at."""
    seen = {"version": 3, "shape": (3,), "typestr": "<f4", "data": (4096, False), "strides": None}
    return type(name, (), {"__module__": module, "__cuda_array_interface__": seen})()


def _refused_by_numba() -> dict[str, Callable[[], Any]]:
    return {
        "complex": lambda: _numba(np.zeros(3, np.complex64)),
        "gpu": lambda: _on_a_gpu("numba.cuda.cudadrv.devicearray", "DeviceNDArray"),
    }


# There is no array of these on the host: all that they have is refused.
ELSEWHERE = [
    Driver("cupy", "", _jax, np.asarray, _numpy_take,
           refused={"gpu": lambda: _on_a_gpu("cupy", "ndarray")}),
]  # fmt: skip
DRIVERS = [
    Driver("numpy", "", np.copy, np.asarray, _numpy_take, lambda a: a.numpy(), frozen=_frozen),
    Driver("dlpack", "", lambda v: ByDlpack(v.copy()), lambda x: x.data, wp.from_dlpack,
           np.from_dlpack, sliced=lambda x: ByDlpack(x.data[::2])),
    Driver("interface", "", lambda v: ByInterface(v.copy()), lambda x: x.data, _numpy_take,
           sliced=lambda x: ByInterface(x.data[::2]),
           frozen=lambda v: ByInterface(_frozen(v))),
    Driver("torch", "torch", _torch, lambda x: x.detach().numpy(),
           lambda x, **kw: wp.from_torch(x, **kw), lambda a: wp.to_torch(a),
           gradients=Gradients(_torch_gradient, lambda x: x.grad, _forget, lambda x: x * 2.0),
           refused=_refused_by_torch()),
    Driver("paddle", "paddle", _paddle, lambda x: x.detach().numpy(),
           lambda x, **kw: wp.from_paddle(x, **kw), lambda a: wp.to_paddle(a),
           kinds=tuple(k for k in ALL if k != "uint16"),
           gradients=Gradients(_paddle_gradient, lambda x: x.grad, _forget, lambda x: x * 2.0),
           refused=_refused_by_paddle()),
    Driver("jax", "jax", _jax, np.asarray, lambda x, **kw: wp.from_jax(x, **kw),
           lambda a: wp.to_jax(a), kinds=tuple(k for k in ALL if not k.endswith("64")),
           written=False, sliced=None, frozen=_jax,
           refused=_refused_by_jax()),
    Driver("numba", "numba", _numba, lambda x: x.copy_to_host(), _numpy_take,
           refused=_refused_by_numba()),
]  # fmt: skip


def drivers(only: Any = lambda d: True) -> Any:
    """A test runs for all frameworks of which `only` is true."""
    return pytest.mark.parametrize("d", [d for d in DRIVERS if only(d)], ids=repr)


def says_what_to_do(e: wp.LaunchError) -> None:
    """A code, a place in this file, a way out, and nothing internal."""
    (found,) = e.diagnostics
    assert re.fullmatch(r"E\d{3}", found.code)
    assert found.help
    assert found.span is not None and Path(found.span.file).parent == Path(__file__).parent
    text = f"{found.message} {' '.join(found.notes)} {found.help}"
    for word in ("engine.", "/engine", "ADAPTER", "Traceback", "0x", "ScalarType", "functorch",
                 "StorageImpl", "libpaddle", "object at", "None "):  # fmt: skip
        assert word not in text, text

"""`__cuda_array_interface__`, of CuPy, Numba and others, where there is no GPU."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp

RIGHT = {
    "version": 3, "shape": (2, 3), "typestr": "<f4", "data": (4096, False), "strides": None,
    "stream": 1,
}  # fmt: skip


class Gpu:
    """An object that says it has memory of a GPU."""

    def __init__(self, **changed: Any) -> None:
        fields = {**RIGHT, **changed}
        self.__cuda_array_interface__ = {k: v for k, v in fields.items() if v is not Ellipsis}


@wp.kernel
def add(x: wp.array(dtype=float, ndim=2)):
    i, j = wp.tid()
    x[i, j] += 1.0


def diagnosed(use: Any) -> Any:
    with pytest.raises(wp.LaunchError) as e:
        use()
    (found,) = e.value.diagnostics
    assert found.span is not None and found.span.file == __file__
    assert found.help
    return found


def test_arrays_on_the_cpu_have_none() -> None:
    assert not hasattr(wp.zeros(3), "__cuda_array_interface__")
    assert hasattr(wp.zeros(3), "__array_interface__")


@pytest.mark.parametrize(
    "changed",
    [{}, {"version": 0, "stream": ...}, {"version": 2}, {"strides": (12, 4)}, {"strides": (-4, 8)},
     {"shape": (0, 3), "data": (0, True)}, {"shape": (0,), "data": (None, False)}, {"stream": None},
     {"stream": 2}, {"stream": 77}, {"mask": None}, {"typestr": "|b1"}, {"strides": ...}],
)  # fmt: skip
def test_a_right_interface_is_of_a_gpu(changed: dict[str, Any]) -> None:
    for use in (lambda x: wp.launch(add, (2, 3), [x]), wp.array):
        found = diagnosed(lambda use=use: use(Gpu(**changed)))
        assert found.code == "E204", found
        assert "memory of a GPU" in found.message and "copy it to the CPU" in found.help


@pytest.mark.parametrize(
    ("changed", "code", "field"),
    [
        ({"version": ...}, "E206", "version"),
        ({"version": "3"}, "E206", "version"),
        ({"version": -1}, "E206", "version"),
        ({"version": 4}, "E206", "version"),
        ({"shape": ...}, "E206", "shape"),
        ({"shape": [2, 3]}, "E206", "shape"),
        ({"shape": (2, -3)}, "E206", "shape"),
        ({"shape": (2.0, 3)}, "E206", "shape"),
        ({"typestr": ...}, "E206", "typestr"),
        ({"typestr": "no type"}, "E206", "typestr"),
        ({"typestr": 4}, "E206", "typestr"),
        ({"typestr": ">f4"}, "E202", "'>f4'"),
        ({"typestr": "<c8"}, "E202", "'<c8'"),
        ({"data": ...}, "E206", "data"),
        ({"data": 4096}, "E206", "data"),
        ({"data": (0, False)}, "E206", "data"),
        ({"data": (None, False)}, "E206", "data"),
        ({"data": ("4096", False)}, "E206", "data"),
        ({"data": (4096, "no")}, "E206", "data"),
        ({"strides": (4,)}, "E206", "strides"),
        ({"strides": [12, 4]}, "E206", "strides"),
        ({"mask": Gpu()}, "E206", "mask"),
        ({"stream": 0}, "E206", "stream"),
        ({"stream": "1"}, "E206", "stream"),
    ],
)
def test_faults_are_told_by_the_field(changed: dict[str, Any], code: str, field: str) -> None:
    for use in (lambda x: wp.launch(add, (2, 3), [x]), wp.array):
        found = diagnosed(lambda use=use: use(Gpu(**changed)))
        assert found.code == code, found
        assert field in found.message


def test_an_interface_that_is_no_dictionary() -> None:
    x = Gpu()
    x.__cuda_array_interface__ = [3]
    with pytest.raises(wp.LaunchError, match="not a dictionary"):
        wp.array(x)


def test_a_device_that_is_not_there() -> None:
    for use in (lambda: wp.array(Gpu(), device="cuda:0"), lambda: wp.zeros(3, device="cuda")):
        assert diagnosed(use).code == "E208"


def test_what_is_also_on_the_host() -> None:
    """Managed memory has both interfaces: it says that it is a GPU's."""

    class Both(Gpu):
        __array_interface__ = np.zeros((2, 3), np.float32).__array_interface__

    assert diagnosed(lambda: wp.launch(add, (2, 3), [Both()])).code == "E204"


def test_cupy() -> None:
    """An array that CuPy's class has, without the GPU that it would be on."""
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    fake = type("ndarray", (Gpu,), {"__module__": "cupy"})
    found = diagnosed(lambda: wp.launch(add, (2, 3), [fake()]))
    assert found.code == "E204" and "a CuPy array on device 'cuda:0'" in found.message
    found = diagnosed(lambda: wp.launch(add, (2, 3), [fake(stream=0)]))
    assert found.code == "E206" and "'stream'" in found.message
    found = diagnosed(lambda: wp.array(fake()))
    assert found.code == "E204"
    other = type("nothing", (), {"__module__": "cupy"})
    assert diagnosed(lambda: wp.launch(add, (2, 3), [other()])).code == "E202"
    assert cupy.ndarray.__module__ == "cupy"


def test_numba_on_the_cpu() -> None:
    numba = pytest.importorskip("numba", reason="numba is not installed")

    @numba.njit
    def double(x: Any) -> None:
        for i in range(x.size):
            x[i] *= 2.0

    a = wp.array([1.0, 2.0, 3.0], dtype=float)
    double(a.numpy())
    assert a.numpy().tolist() == [2.0, 4.0, 6.0]
    v = wp.ones(2, dtype=wp.vec3)
    double(v.numpy().reshape(-1))
    assert v.numpy().tolist() == [[2.0] * 3] * 2
    fake = type("DeviceNDArray", (Gpu,), {"__module__": "numba.cuda.cudadrv.devicearray"})
    found = diagnosed(lambda: wp.launch(add, (2, 3), [fake()]))
    assert found.code == "E204" and "a Numba device array on device 'cuda:0'" in found.message
    assert wp.array(numba.typed.List([1.0, 2.0]), dtype=float).numpy().tolist() == [1.0, 2.0]


def test_the_simulator_of_numba() -> None:
    """Its device arrays are on the host: they are shared."""
    pytest.importorskip("numba", reason="numba is not installed")
    program = """
    import numpy as np
    import engine as wp
    from numba import cuda

    @wp.kernel
    def add(x: wp.array(dtype=float)):
        x[wp.tid()] += 1.0

    @cuda.jit
    def double(x):
        i = cuda.grid(1)
        if i < x.size:
            x[i] *= 2.0

    d = cuda.to_device(np.arange(4, dtype=np.float32))
    double[1, 4](d)
    wp.launch(add, 4, [d])
    print(d.copy_to_host())
    wp.launch(add, 2, [d[2:]])
    print(d.copy_to_host(), wp.array(d).numpy())
    wide = cuda.to_device(np.arange(4, dtype=np.complex64))
    try:
        wp.launch(add, 4, [wide])
    except wp.LaunchError as e:
        print(e.diagnostics[0].code, "a Numba device array of complex64" in str(e))
    """
    env = dict(os.environ, NUMBA_ENABLE_CUDASIM="1",
               PYTHONPATH=str(Path(wp.__file__).parents[1]))  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        env=env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "[1. 3. 5. 7.]", "[1. 3. 6. 8.] [1. 3. 6. 8.]", "E202 True",
    ], done.stderr  # fmt: skip

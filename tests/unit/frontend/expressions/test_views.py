"""Views in kernels mean what NumPy's mean."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp

SIZE = 7


def slice_kernel(lo: int | None, hi: int | None, step: int | None, known: bool):
    """A kernel that copies `x[lo:hi:step]`, with bounds known to the compiler or not."""
    text = ":".join("" if b is None else n for b, n in ((lo, "lo"), (hi, "hi")))
    text += "" if step is None else f":{step}"
    if known:
        text = text.replace("lo", str(lo)).replace("hi", str(hi))
    return text


BOUNDS = (None, -9, -7, -3, -1, 0, 2, 6, 7, 11)
CASES = [(lo, hi, step) for lo in BOUNDS for hi in BOUNDS for step in (None, 1, 2, -1, -3)]


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory):
    """One kernel for each form of a slice, with run-time and with constant bounds."""
    lines = ["import engine as wp", ""]
    names = {}
    forms = {(lo is None, hi is None, step) for lo, hi, step in CASES}
    for k, (no_lo, no_hi, step) in enumerate(sorted(forms, key=str)):
        text = (
            f"{'' if no_lo else 'lo'}:{'' if no_hi else 'hi'}{'' if step is None else f':{step}'}"
        )
        names[no_lo, no_hi, step] = f"copy_{k}"
        lines += [
            "@wp.kernel",
            f"def copy_{k}(x: wp.array(dtype=int), lo: int, hi: int, out: wp.array(dtype=int)):",
            f"    part = x[{text}]",
            "    out[0] = len(part)",
            "    for i in range(part.shape[0]):",
            "        out[i + 1] = part[i]",
            "    if len(part) > 1:",
            "        out[10] = part[-1] * 10 + part[1:][-1]",
            "",
        ]
    path = tmp_path_factory.mktemp("slices") / "slices_module.py"
    path.write_text("\n".join(lines))
    import importlib.util

    spec = importlib.util.spec_from_file_location("slices_module", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {key: getattr(module, name) for key, name in names.items()}


def test_slices_are_those_of_python(copies) -> None:
    x = wp.array(np.arange(SIZE) + 1, dtype=int)
    out = wp.zeros(12, dtype=int)
    for lo, hi, step in CASES:
        out.zero_()
        kernel = copies[lo is None, hi is None, step]
        wp.launch(kernel, dim=1, inputs=[x, lo or 0, hi or 0, out])
        expected = x.numpy()[lo:hi:step]
        got = out.numpy()
        assert got[0] == len(expected), (lo, hi, step)
        np.testing.assert_array_equal(got[1 : 1 + got[0]], expected)
        if len(expected) > 1:
            assert got[10] == expected[-1] * 10 + expected[1:][-1]


@wp.kernel
def stepped(x: wp.array(dtype=int), lo: int, hi: int, step: int, out: wp.array2d(dtype=int)):
    whole, low, high, part = x[::step], x[lo::step], x[:hi:step], x[lo:hi:step]
    out[0, 0] = len(whole)
    out[1, 0] = len(low)
    out[2, 0] = len(high)
    out[3, 0] = len(part)
    for i in range(len(whole)):
        out[0, i + 1] = whole[i]
    for i in range(len(low)):
        out[1, i + 1] = low[i]
    for i in range(len(high)):
        out[2, i + 1] = high[i]
    for i in range(len(part)):
        out[3, i + 1] = part[-1 - i]


def test_steps_that_are_known_at_run_time() -> None:
    x = wp.array(np.arange(SIZE) + 1, dtype=int)
    out = wp.zeros((4, SIZE + 1), dtype=int)
    bounds = (-9, -3, 0, 2, 6, 11)
    for lo, hi in [(lo, hi) for lo in bounds for hi in bounds]:
        for step in (1, 2, 3, 9, -1, -2, -4, -9):
            wp.launch(stepped, dim=1, inputs=[x, lo, hi, step, out])
            v = x.numpy()
            parts = [v[::step], v[lo::step], v[:hi:step], v[lo:hi:step][::-1]]
            for row, expected in zip(out.numpy(), parts, strict=True):
                np.testing.assert_array_equal(row[1 : 1 + row[0]], expected)
                assert row[0] == len(expected)
    wp.launch(stepped, dim=1, inputs=[x, 0, 7, 0, out])
    assert not out.numpy()[:, 0].any()  # a step of 0 selects nothing


@wp.kernel
def products(x: wp.array2d(dtype=float), step: int, column: int, y: wp.array(dtype=float)):
    i = wp.tid()
    view = x[::step, column]
    if i < view.shape[0]:
        turned = y[::-step]
        turned[i] += view[i] * view[i] * float(x.shape[2] + 2)


@pytest.mark.parametrize("step", [2, -2, 3])
def test_gradients_through_such_steps(step: int) -> None:
    data = np.arange(1.0, 15.0, dtype=np.float32).reshape(7, 2)
    x = wp.array(data, dtype=float, requires_grad=True)
    y = wp.zeros(7, dtype=float, requires_grad=True)
    weights = np.arange(1.0, 8.0, dtype=np.float32)
    with wp.Tape() as tape:
        wp.launch(products, dim=7, inputs=[x, step, 1, y])
    expected = np.zeros(7, dtype=np.float32)
    expected[::-step] += 2.0 * data[::step, 1] ** 2
    np.testing.assert_allclose(y.numpy(), expected)
    tape.backward(grads={y: wp.array(weights, dtype=float)})
    slope = np.zeros_like(data)
    slope[::step, 1] = 4.0 * data[::step, 1] * weights[::-step]
    np.testing.assert_allclose(x.grad.numpy(), slope)
    assert wp.autograd.gradcheck(
        products, dim=7, inputs=[x, step, 1], outputs=[y], show_summary=False
    )


@wp.func
def total(a: wp.array(dtype=float)):
    s = float(0.0)
    for i in range(len(a)):
        s += a[i]
    return s


@wp.func
def cleared(a: wp.array2d(dtype=float), value: float):
    for i in range(a.shape[0]):
        row = a[i]
        for j in range(row.shape[0]):
            row[j] = value
        row[0] += 1.0
        wp.atomic_add(row, -1, 2.0)


@wp.kernel
def several(x: wp.array3d(dtype=float), out: wp.array(dtype=float), n: int):
    block = x[1]
    out[0] = total(block[-1])
    out[1] = total(block[:, 1])
    out[2] = total(x[:, -1, 0])
    out[3] = total(block[1][::-1][1:n])
    out[4] = float(block.ndim * 100 + block.size + x[0, 0].shape[0] * 1000)
    every = block[::2, ::-1]
    out[5] = every[1, 0] + every[0][-1]
    cleared(x[0, 1:], 5.0)
    cleared(x[2][0:1, 1:3], 7.0)
    row = x[0, 0]
    for k in range(n):
        row = x[0, k]
        row[k] = float(k)
    out[6] = row[0]


def test_views_of_views() -> None:
    data = np.arange(36, dtype=np.float32).reshape(3, 3, 4)
    x = wp.array(data, dtype=float)
    out = wp.zeros(7, dtype=float)
    wp.launch(several, dim=1, inputs=[x, out, 3])
    b = data[1]
    expected = data.copy()
    cells = [b[-1].sum(), b[:, 1].sum(), data[:, -1, 0].sum(), b[1][::-1][1:3].sum(), 4212.0]
    every = b[::2, ::-1]
    cells.append(every[1, 0] + every[0][-1])
    expected[0, 1:] = 5.0
    expected[0, 1:, 0] += 1.0
    expected[0, 1:, -1] += 2.0
    expected[2, 0:1, 1:3] = 7.0
    expected[2, 0, 1] += 1.0
    expected[2, 0, 2] += 2.0
    for k in range(3):
        expected[0, k, k] = k
    cells.append(expected[0, 2, 0])
    np.testing.assert_array_equal(out.numpy(), np.float32(cells))
    np.testing.assert_array_equal(x.numpy(), expected)


@wp.kernel
def maybe(x: wp.array2d(dtype=float), out: wp.array(dtype=float)):
    if x:
        row = x[0]
        out[0] = row[1]
        if row[3:]:
            out[1] = 1.0
        if row[2:]:
            out[2] = 1.0


def test_views_as_conditions_and_arrays_left_out() -> None:
    out = wp.zeros(3, dtype=float)
    wp.launch(maybe, dim=1, inputs=[None, out])
    assert out.list() == [0.0, 0.0, 0.0]
    wp.launch(maybe, dim=1, inputs=[wp.array([[1.0, 2.0, 3.0]], dtype=float), out])
    assert out.list() == [2.0, 0.0, 1.0]


@wp.kernel
def search(x: wp.array2d(dtype=float), out: wp.array(dtype=int)):
    out[0] = wp.lower_bound(x[1], 4.5)
    out[1] = wp.lower_bound(x[:, 0], 5.0)
    out[2] = wp.lower_bound(x[1], 1, 3, 100.0)
    own = wp.zeros(4, dtype=float)
    for i in range(4):
        own[i] = float(i * i)
    out[3] = wp.lower_bound(own, 3.0)


def test_builtins_take_views() -> None:
    x = wp.array(np.arange(12).reshape(3, 4), dtype=float)
    out = wp.zeros(4, dtype=int)
    wp.launch(search, dim=1, inputs=[x, out])
    assert out.list() == [1, 2, 2, 2]

"""Programs that read arrays on the host: some reads decide nothing, some reach the loss.

Each program is the same but for a few lines. Where the loss follows what was read, that is G004.
"""

from __future__ import annotations

from typing import Any

import pytest

BEGIN = """
import logging
import numpy as np
import engine as wp
D = wp.float64
A = wp.array(dtype=D)

@wp.kernel
def square(x: A, y: A):
    i = wp.tid()
    y[i] = x[i] * x[i]

@wp.kernel
def scaled(y: A, s: D, z: A):
    i = wp.tid()
    z[i] = y[i] * s

@wp.kernel
def product(a: A, b: A, z: A):
    i = wp.tid()
    z[i] = a[i] * b[i]

@wp.kernel
def placed(y: A, at: wp.vec3d, z: A):
    i = wp.tid()
    z[i] = y[i] * at[0] + at[1]

@wp.kernel
def total(z: A, loss: A):
    wp.atomic_add(loss, 0, z[wp.tid()])

def floats(*values):
    return wp.array(np.array(values), dtype=D, requires_grad=True)

def like(n=3):
    return wp.zeros(n, dtype=D, requires_grad=True)

def ones(n):
    return wp.array(np.ones(n), dtype=D)

x, w, v = floats(1.0, 2.0, 3.0), floats(1.5, 0.5, 2.5), floats(0.7, 1.7, 2.7)
y, z, loss = like(), like(), like(1)
"""

# What is read counts for nothing.
RIGHT = {
    "the shape of a cotangent, of what a launch made": """
wp.launch(square, 3, [w, w])
with wp.Tape() as tape:
    wp.copy(y, x)
n = w.numpy().shape[0]
tape.backward(grads={y: ones(3), w: ones(n)})
""",
    "the same twice, of data that the tape does not read": """
for a in (w, v):
    wp.launch(square, 3, [a, a])
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
tape.backward(grads={y: ones(3), w: ones(w.numpy().size), v: ones(len(v.numpy()))})
""",
    "the shape of a leaf": """
with wp.Tape() as tape:
    wp.launch(square, x.numpy().shape[0], [x, y])
    wp.launch(total, 3, [y, loss])
tape.backward(loss)
""",
    "the size of a result, as a weight": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    wp.launch(scaled, 3, [y, 1.0 / y.numpy().size, z])
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "len": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    wp.launch(scaled, 3, [y, 1.0 / len(y.numpy()), z])
    wp.launch(total, len(z.numpy()), [z, loss])
tape.backward(loss)
""",
    "a dtype": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    wp.launch(scaled, 3, [y, 2.0 if y.numpy().dtype == np.float64 else 3.0, z])
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "printed": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    print("y is", y.numpy())
    wp.launch(scaled, 3, [y, 0.5, z])
    wp.launch(total, 3, [z, loss])
    print(float(loss.numpy()[0]))
tape.backward(loss)
""",
    "a branch that does not change": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    wp.launch(scaled, 3, [y, 2.0 if y.numpy().max() < 100.0 else 0.1, z])
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "an assertion": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    assert np.isfinite(y.numpy()).all()
    wp.launch(scaled, 3, [y, 2.0, z])
    assert np.isfinite(x.numpy()).all() and not np.isnan(z.numpy()).any()
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "logged": """
history = []
with wp.Tape() as tape:
    for _ in range(3):
        wp.launch(square, 3, [x, y])
        wp.launch(total, 3, [y, loss])
        history.append(float(loss.numpy()[0]))
        logging.getLogger("loss").warning("loss %s", history[-1])
tape.backward(loss)
""",
    "printed before the tape, with a cotangent": """
wp.launch(square, 3, [v, w])
print(w.numpy())
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
tape.backward(grads={y: ones(3), w: ones(3)})
""",
    "a leaf with a cotangent of its own": """
with wp.Tape() as tape:
    print(x.numpy())
    wp.launch(square, 3, [x, y])
tape.backward(grads={y: ones(3), x: ones(3)})
""",
    "an array that the host made, with a cotangent": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
tape.backward(grads={y: ones(3), w: np.ones_like(w.numpy())})
""",
    "a copy, with a cotangent": """
c = wp.clone(w)
print(c.numpy())
with wp.Tape() as tape:
    wp.launch(product, 3, [x, w, y])
tape.backward(grads={y: ones(3), c: ones(c.numpy().shape)})
""",
    "made by a launch, used on the tape, with a cotangent": """
wp.launch(square, 3, [v, w])
print(w.numpy().sum())
with wp.Tape() as tape:
    wp.launch(product, 3, [x, w, y])
tape.backward(grads={y: ones(3), w: ones(w.numpy().shape)})
""",
    "several tapes, and a monitor": """
for _ in range(3):
    wp.launch(square, 3, [v, w])
    with wp.Tape() as tape:
        wp.launch(square, 3, [x, y])
        print(w.numpy().max())
    tape.backward(grads={y: ones(y.numpy().shape), w: ones(3)})
    x.grad.zero_()
    w.grad.zero_()
""",
    "the loss that does not fall": """
best = np.inf
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    wp.launch(total, 3, [y, loss])
    if loss.numpy()[0] > best:
        raise SystemExit
    best = min(best, loss.numpy()[0])
    wp.launch(total, 3, [x, loss])
tape.backward(loss)
""",
}

# The loss follows what was read.
BROKEN = {
    "a sum as a factor": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    s = float(y.numpy().sum())
    wp.launch(scaled, 3, [y, s, z])
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "a mean of a leaf": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    wp.launch(scaled, 3, [y, float(x.numpy().mean()), z])
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "a new array": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    h = wp.array(np.tanh(y.numpy()), dtype=D, requires_grad=True)
    wp.launch(product, 3, [x, h, z])
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "a norm": """
with wp.Tape() as tape:
    n = np.linalg.norm(x.numpy())
    wp.launch(scaled, 3, [x, 1.0 / n, y])
    wp.launch(square, 3, [y, z])
    wp.launch(product, 3, [z, x, y])
    wp.launch(total, 3, [y, loss])
tape.backward(loss)
""",
    "both the shape and a value": """
with wp.Tape() as tape:
    values = x.numpy()
    wp.launch(square, values.shape[0], [x, y])
    wp.launch(scaled, values.size, [y, float(values[0]), z])
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "a vector": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    wp.launch(placed, 3, [y, wp.vec3d(*y.numpy()), z])
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "the step of an explicit method": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    print("largest", y.numpy().max())
    dt = 0.5 / np.abs(y.numpy()).max()
    wp.launch(scaled, 3, [y, dt, z])
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "a list": """
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    wp.launch(scaled, 3, [y, y.list()[1], z])
    wp.launch(total, 3, [z, loss])
tape.backward(loss)
""",
    "of one that also has a cotangent": """
with wp.Tape() as tape:
    print(w.numpy().shape)
    wp.launch(scaled, 3, [x, float(w.numpy()[0]), y])
tape.backward(grads={y: ones(3), w: ones(3)})
""",
    "of what a launch made, which has a cotangent": """
wp.launch(square, 3, [w, w])
with wp.Tape() as tape:
    wp.launch(scaled, 3, [x, float(w.numpy()[0]), y])
tape.backward(grads={y: ones(3), w: ones(3)})
""",
    "beside one that is read for its shape": """
wp.launch(square, 3, [w, w])
with wp.Tape() as tape:
    wp.launch(square, 3, [x, y])
    wp.launch(scaled, 3, [y, float(x.numpy()[2]), z])
n = w.numpy().shape[0]
tape.backward(grads={z: ones(3), w: ones(n)})
""",
}


def found(adtool: Any, lines: str) -> list[str]:
    adtool.script(BEGIN + lines)
    report = adtool.report("--rerun", "script.py")
    assert not report.get("error"), report["error"]
    codes = {f["code"]: f["message"] for f in report["findings"] if f["severity"] == "error"}
    assert set(codes) <= {"G004"}, codes
    assert report["exit_code"] == bool(codes)
    return list(codes.values())


@pytest.mark.parametrize("name", list(RIGHT))
def test_what_counts_for_nothing_is_silent(adtool: Any, name: str) -> None:
    assert found(adtool, RIGHT[name]) == []


@pytest.mark.parametrize("name", list(BROKEN))
def test_what_the_loss_follows_is_told(adtool: Any, name: str) -> None:
    (message,) = found(adtool, BROKEN[name])
    assert "through the host" in message

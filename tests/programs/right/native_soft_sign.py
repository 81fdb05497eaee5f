"""An equaliser with a limiter in C++, whose adjoint is written by hand and right."""

# expect: exit=0
# expect: allow=G012 native code in float32 has no float64 form, so the whole is not checked
import numpy as np

import engine as wp

SAMPLES = 60

limit_code = """
    float m = 1.0f + (x < 0.0f ? -x : x) / ceiling;
    return x / m;
"""
limit_adjoint = """
    float a = x < 0.0f ? -x : x;
    float m = 1.0f + a / ceiling;
    adj_x += adj_ret / (m * m);
    adj_ceiling += adj_ret * x * a / (ceiling * ceiling * m * m);
"""


@wp.func_native(limit_code, adj_snippet=limit_adjoint)
def limit(x: float, ceiling: float) -> float: ...


@wp.kernel
def equalise(
    dry: wp.array(dtype=float),
    band: wp.array(dtype=float),
    ceiling: wp.array(dtype=float),
    wet: wp.array(dtype=float),
):
    t = wp.tid()
    low = dry[t]
    if t > 1:
        low = 0.5 * dry[t] + 0.3 * dry[t - 1] + 0.2 * dry[t - 2]
    wet[t] = limit(band[0] * low + band[1] * (dry[t] - low), ceiling[0])


@wp.kernel
def loudness(wet: wp.array(dtype=float), goal: wp.array(dtype=float), loss: wp.array(dtype=float)):
    t = wp.tid()
    wp.atomic_add(loss, 0, (wet[t] - goal[t]) * (wet[t] - goal[t]) / float(wet.shape[0]))


rng = np.random.default_rng(87)
dry = wp.array(np.cumsum(rng.normal(scale=0.3, size=SAMPLES)), dtype=float)
goal = wp.array(np.clip(dry.numpy() * 1.3, -0.8, 0.8), dtype=float)
band = wp.array([1.0, 1.0], dtype=float, requires_grad=True)
ceiling = wp.array([1.5], dtype=float, requires_grad=True)
for _ in range(6):
    wet = wp.zeros(SAMPLES, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(equalise, dim=SAMPLES, inputs=[dry, band, ceiling], outputs=[wet])
        wp.launch(loudness, dim=SAMPLES, inputs=[wet, goal], outputs=[loss])
    tape.backward(loss)
    for p in (band, ceiling):
        p.assign(p.numpy() - 0.3 * p.grad.numpy())
    tape.zero()
    print(loss.numpy()[0], band.numpy(), ceiling.numpy())

"""Fit the drive and the bias of a guitar pedal (a soft clipper in C++) to a recording."""

# expect: exit=1
# expect: allow=G012 C++ text has no float64 form, so the tape as a whole is left out
import numpy as np

import engine as wp

SAMPLES = 256

clip_code = """
    double a = x < 0.0 ? -x : x;
    return (float)(x / (1.0 + a));
"""
# The square is missing: the derivative is 1 / (1 + |x|)^2.
clip_adjoint = """
    double a = x < 0.0 ? -x : x;
    adj_x += (float)(adj_ret / (1.0 + a));
"""


@wp.func_native(clip_code, adj_snippet=clip_adjoint)  # expect: G001 a
def soft_clip(x: float) -> float:  # expect: G001 a
    ...


@wp.kernel
def pedal(dry: wp.array(dtype=float), knobs: wp.array(dtype=float), wet: wp.array(dtype=float)):
    t = wp.tid()
    wet[t] = soft_clip(knobs[0] * dry[t] + knobs[1]) * knobs[2]


@wp.kernel
def spectral_free_error(
    wet: wp.array(dtype=float), heard: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    t = wp.tid()
    e = wet[t] - heard[t]
    wp.atomic_add(loss, 0, e * e / float(wet.shape[0]))


def main():
    time = np.linspace(0.0, 0.02, SAMPLES)
    dry = wp.array(np.sin(2.0 * np.pi * 220.0 * time) * np.exp(-40.0 * time), dtype=float)
    heard = wp.zeros(SAMPLES, dtype=float)
    knobs_true = wp.array([4.0, 0.3, 0.9], dtype=float)
    wp.launch(pedal, dim=SAMPLES, inputs=[dry, knobs_true], outputs=[heard])

    knobs = wp.array([1.0, 0.1, 1.0], dtype=float, requires_grad=True)
    for _ in range(5):
        wet = wp.zeros(SAMPLES, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(pedal, dim=SAMPLES, inputs=[dry, knobs], outputs=[wet])
            wp.launch(spectral_free_error, dim=SAMPLES, inputs=[wet, heard], outputs=[loss])
        tape.backward(loss)
        knobs.assign(knobs.numpy() - 0.5 * knobs.grad.numpy())
        tape.zero()
        print(float(loss.numpy()[0]), knobs.numpy())


if __name__ == "__main__":
    main()

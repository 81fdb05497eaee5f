"""Tune the fading of a long exposure; the check is given too little memory to look back."""

# expect: exit=0
# expect: args=--memory 0.002
# expect: allow=G003 the frames are changed in place
import numpy as np

import engine as wp

SIDE = 160
FRAMES = 30


@wp.kernel
def fade(frame: wp.array2d(dtype=float), rate: wp.array(dtype=float)):  # expect: warning[G012] a
    i, j = wp.tid()
    f = frame[i, j]
    frame[i, j] = f - rate[0] * f * f


@wp.kernel
def brightness(  # expect: warning[G012] a
    frame: wp.array2d(dtype=float), wanted: float, loss: wp.array(dtype=float)
):
    i, j = wp.tid()
    d = frame[i, j] - wanted
    wp.atomic_add(loss, 0, d * d / float(frame.shape[0] * frame.shape[1]))


def main():
    rng = np.random.default_rng(52)
    frame = wp.array(rng.uniform(0.2, 1.0, (SIDE, SIDE)), dtype=float, requires_grad=True)
    rate = wp.array([0.02], dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:  # expect: warning[G012] a
        for _ in range(FRAMES):
            wp.launch(fade, dim=(SIDE, SIDE), inputs=[frame, rate])  # expect: warning[G012] a
        wp.launch(brightness, (SIDE, SIDE), [frame, 0.4], [loss])  # expect: warning[G012] a
    tape.backward(loss)
    print("loss", loss.numpy()[0], "gradient", rate.grad.numpy()[0])


if __name__ == "__main__":
    main()

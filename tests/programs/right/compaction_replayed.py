"""Compact the hits of a detector by a counter; a replay function hands out the same places."""

# expect: exit=0
import numpy as np

import engine as wp

CHANNELS = 40


@wp.func
def next_place(counter: wp.array(dtype=int), places: wp.array(dtype=int), channel: int) -> int:
    place = wp.atomic_add(counter, 0, 1)
    places[channel] = place
    return place


@wp.func_replay(next_place)
def replay_next_place(
    counter: wp.array(dtype=int), places: wp.array(dtype=int), channel: int
) -> int:
    return places[channel]


@wp.kernel
def compact(
    charge: wp.array(dtype=float),
    gain: wp.array(dtype=float),
    counter: wp.array(dtype=int),
    places: wp.array(dtype=int),
    hits: wp.array(dtype=float),
):
    c = wp.tid()
    if charge[c] > 0.4:
        place = next_place(counter, places, c)
        hits[place] = gain[0] * charge[c] + gain[1] * charge[c] * charge[c]


@wp.kernel
def line_shape(hits: wp.array(dtype=float), loss: wp.array(dtype=float)):
    k = wp.tid()
    wp.atomic_add(loss, 0, wp.exp(-hits[k]) * (hits[k] - 0.8) * (hits[k] - 0.8))


def main():
    rng = np.random.default_rng(89)
    charge = wp.array(rng.uniform(0.0, 1.0, CHANNELS), dtype=float)
    gain = wp.array([1.0, 0.2], dtype=float, requires_grad=True)
    for iteration in range(4):
        counter = wp.zeros(1, dtype=int)
        places = wp.zeros(CHANNELS, dtype=int)
        hits = wp.zeros(CHANNELS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(compact, CHANNELS, [charge, gain, counter, places], [hits])
            wp.launch(line_shape, dim=CHANNELS, inputs=[hits], outputs=[loss])
        tape.backward(loss)
        gain.assign(gain.numpy() - 0.02 * gain.grad.numpy())
        tape.zero()
        print(iteration, counter.numpy()[0], loss.numpy()[0], gain.numpy())


if __name__ == "__main__":
    main()

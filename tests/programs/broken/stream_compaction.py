"""Keep the bright pixels of a line scan, compacted by a counter, and fit a gain to them.

The counter cannot be run twice, so a replay function hands out the places again.
"""

# expect: exit=1
import numpy as np

import engine as wp

PIXELS = 48


@wp.func
def next_place(counter: wp.array(dtype=int), places: wp.array(dtype=int), pixel: int) -> int:
    place = wp.atomic_add(counter, 0, 1)
    places[pixel] = place
    return place


@wp.func_replay(next_place)
def replay_next_place(  # expect: G001 a
    counter: wp.array(dtype=int), places: wp.array(dtype=int), pixel: int
) -> int:
    # Here the pixel's own number is not its place.
    return pixel  # expect: G001 a


@wp.kernel
def compact(  # expect: G001 a
    scan: wp.array(dtype=float),
    gain: wp.array(dtype=float),
    counter: wp.array(dtype=int),
    places: wp.array(dtype=int),
    kept: wp.array(dtype=float),
):
    pixel = wp.tid()
    if scan[pixel] > 0.5:
        place = next_place(counter, places, pixel)
        kept[place] = wp.pow(scan[pixel], gain[0])  # expect: G001 a


@wp.kernel
def weighted(kept: wp.array(dtype=float), loss: wp.array(dtype=float)):
    k = wp.tid()
    wp.atomic_add(loss, 0, (kept[k] - 0.5) * (kept[k] - 0.5) * float(k + 1))


rng = np.random.default_rng(5)
scan = wp.array(rng.uniform(0.0, 1.0, PIXELS), dtype=float)
gain = wp.array([1.4], dtype=float, requires_grad=True)
counter = wp.zeros(1, dtype=int)
places = wp.zeros(PIXELS, dtype=int)
kept = wp.zeros(PIXELS, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)

tape = wp.Tape()
with tape:
    wp.launch(compact, dim=PIXELS, inputs=[scan, gain, counter, places], outputs=[kept])
    wp.launch(weighted, dim=PIXELS, inputs=[kept], outputs=[loss])
tape.backward(loss)
print("kept", counter.numpy()[0], "loss", loss.numpy()[0], "d loss / d gain", gain.grad.numpy()[0])

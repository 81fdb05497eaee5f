"""A sequence of random numbers for each thread, the same in every run."""

import engine as wp


@wp.kernel
def draw(seed: int, x: wp.array(dtype=float), kind: wp.array(dtype=int)):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    x[i] = wp.randf(state, -1.0, 1.0)
    kind[i] = wp.randi(state, 1, 7)


x, kind = wp.zeros(5, dtype=float), wp.zeros(5, dtype=int)
wp.launch(draw, dim=5, inputs=[42], outputs=[x, kind])
print("between -1 and 1:", x)
print("dice:", kind)

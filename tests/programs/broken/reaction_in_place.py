"""Logistic growth of species: growth rates are fitted to a census.

One array holds the populations of all years. The gradient is right only because the engine saves
what each launch overwrites.
"""

# expect: exit=0
import numpy as np

import engine as wp

SPECIES = 7
YEARS = 10


@wp.kernel
def grow(population: wp.array(dtype=float), rate: wp.array(dtype=float), dt: float):
    s = wp.tid()
    p = population[s]  # expect: warning[G003] a
    population[s] = p + dt * rate[s] * p * (1.0 - p)  # expect: warning[G003] a


@wp.kernel
def census_error(
    population: wp.array(dtype=float), counted: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    s = wp.tid()
    d = population[s] - counted[s]
    wp.atomic_add(loss, 0, d * d)


def main():
    rng = np.random.default_rng(13)
    counted = wp.array(rng.uniform(0.3, 0.9, SPECIES), dtype=float)
    rate = wp.array(np.full(SPECIES, 0.8), dtype=float, requires_grad=True)
    for iteration in range(4):
        population = wp.full(SPECIES, 0.1, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            for _ in range(YEARS):
                wp.launch(
                    grow, dim=SPECIES, inputs=[population, rate, 0.3]
                )  # expect: warning[G003] a
            wp.launch(census_error, dim=SPECIES, inputs=[population, counted], outputs=[loss])
        tape.backward(loss)
        rate.assign(rate.numpy() - 0.5 * rate.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0], rate.numpy().round(3))


if __name__ == "__main__":
    main()

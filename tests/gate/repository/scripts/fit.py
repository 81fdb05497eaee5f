"""Moves the ends of a chain of springs to where its energy is least."""

import sys

import numpy as np
from springs.kernels import energy

import engine as wp

COUNT = 8


def main(steps: int) -> None:
    place = wp.array(np.linspace(0.0, 3.0, COUNT + 1) ** 2, dtype=float, requires_grad=True)
    stiffness = wp.array(np.linspace(1.0, 2.0, COUNT), dtype=float, requires_grad=True)
    for _ in range(steps):
        out = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(energy, dim=COUNT, inputs=[place, stiffness, 0.5], outputs=[out])
        tape.backward(out)
        place = wp.array(place.numpy() - 0.05 * place.grad.numpy(), dtype=float, requires_grad=True)
        tape.zero()
    print(f"energy {float(out.numpy()[0]):.4f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)

"""Lotka-Volterra rates from counts; NumPy views are kept for plots and only read."""

# expect: exit=0
import numpy as np

import engine as wp

YEARS = 25


@wp.kernel
def season(series: wp.array2d(dtype=float), rate: wp.array(dtype=float), k: int):
    prey = series[k, 0]
    predator = series[k, 1]
    series[k + 1, 0] = prey + 0.1 * prey * (rate[0] - rate[1] * predator)
    series[k + 1, 1] = predator + 0.1 * predator * (rate[2] * prey - rate[3])


@wp.kernel
def count_error(
    series: wp.array2d(dtype=float), seen: wp.array2d(dtype=float), loss: wp.array(dtype=float)
):
    k, s = wp.tid()
    d = series[k, s] - seen[k, s]
    wp.atomic_add(loss, 0, d * d / float(series.shape[0]))


def main():
    rng = np.random.default_rng(80)
    time = np.arange(YEARS + 1)
    counts = np.stack([1.2 + 0.4 * np.cos(0.2 * time), 0.7 + 0.3 * np.sin(0.2 * time)], axis=1)
    seen = wp.array(counts + rng.normal(scale=0.02, size=counts.shape), dtype=float)
    rate = wp.array([1.1, 1.0, 0.6, 0.7], dtype=float, requires_grad=True)
    rates = rate.numpy()
    curves, trace = [], []
    for iteration in range(5):
        start = np.zeros((YEARS + 1, 2))
        start[0] = counts[0]
        series = wp.array(start, dtype=float, requires_grad=True)
        curves.append(series.numpy())
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for k in range(YEARS):
                wp.launch(season, dim=1, inputs=[series, rate, k])
            wp.launch(count_error, dim=(YEARS + 1, 2), inputs=[series, seen], outputs=[loss])
        trace.append(rates.copy())
        print(iteration, loss.numpy()[0], "peak", curves[-1].max(axis=0))
        tape.backward(loss)
        rate.assign(rates - 0.02 * rate.grad.numpy())
        tape.zero()
    print("drift of the rates", np.ptp(np.array(trace), axis=0))


if __name__ == "__main__":
    main()

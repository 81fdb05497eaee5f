"""Smart charging of a battery under a tariff with two brackets; one of them sets no price."""

# expect: exit=0
import numpy as np

import engine as wp

HOURS = 12


@wp.kernel
def hourly_cost(
    power: wp.array(dtype=float), base: wp.array(dtype=float), cost: wp.array(dtype=float)
):
    h = wp.tid()
    p = power[h]
    if p > 2.0:
        price = base[h] * 1.5
    elif p > 0.0:
        price = base[h]
    # Selling power back to the grid was forgotten.
    cost[h] = p * price + 0.05 * p * p  # expect: warning[G014]


@wp.kernel
def bill(
    cost: wp.array(dtype=float),
    power: wp.array(dtype=float),
    need: float,
    loss: wp.array(dtype=float),
):
    total = float(0.0)
    energy = float(0.0)
    for h in range(cost.shape[0]):
        total += cost[h]
        energy += power[h]
    loss[0] = total + 0.5 * (energy - need) * (energy - need)


def main():
    rng = np.random.default_rng(44)
    base = wp.array(rng.uniform(0.1, 0.4, HOURS), dtype=float)
    power = wp.array(rng.uniform(-1.0, 3.0, HOURS), dtype=float, requires_grad=True)
    for iteration in range(4):
        cost = wp.zeros(HOURS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(hourly_cost, dim=HOURS, inputs=[power, base], outputs=[cost])
            wp.launch(bill, dim=1, inputs=[cost, power, 10.0], outputs=[loss])
        tape.backward(loss)
        power.assign(power.numpy() - 0.05 * power.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()

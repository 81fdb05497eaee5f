"""A logistic map: each iteration of a loop overwrites the variable that the next one reads.

Issue: 174
There: the backward pass did not run the loop again, so each round had the last value.
"""

# expect: exit=0
import warp as wp


@wp.kernel
def iterate(rate: wp.array(dtype=float), rounds: int, population: wp.array(dtype=float)):
    i = wp.tid()
    x = float(0.3)
    for _ in range(rounds):
        x = rate[i] * x * (1.0 - x)
    population[i] = x


rates = [2.7, 3.1, 3.5]
rate = wp.array(rates, dtype=float, requires_grad=True)
population = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(iterate, dim=3, inputs=[rate, 7], outputs=[population])
tape.backward(grads={population: wp.ones(3, dtype=float)})
exact = []
for r in rates:
    x, dx = 0.3, 0.0
    for _ in range(7):
        x, dx = r * x * (1.0 - x), x * (1.0 - x) + r * (1.0 - 2.0 * x) * dx
    exact.append(dx)
print("gradient", *rate.grad.numpy())
print("exact", *exact)

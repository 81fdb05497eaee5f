"""Small programs whose meaning in kernels is that of Python itself, run with doubles."""

# What kernels may do and linters do not like:
# ruff: noqa: F821, F841, PIE790

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import engine as wp
from engine.frontend import UserFunc
from tests.unit.frontend import shared_functions as shared

Array = wp.array(dtype=wp.float64)


@wp.func
def sum_to(a: Array, n: int):
    total = wp.float64(0.0)
    for i in range(n):
        total += a[i]
    a[0] = total


@wp.func
def nested_loops(a: Array, n: int):
    for i in range(n):
        for j in range(i, n, 2):
            if j == 3:
                continue
            if i > 3:
                break
            a[i] = a[i] * 2.0 + a[j]


@wp.func
def backwards(a: Array, n: int):
    k = 0
    for i in range(n - 1, -1, -1):
        a[k] = a[k] - a[i] * 0.5
        k += 1


@wp.func
def loop_variable_after(a: Array, n: int):
    i = 7
    for i in range(n):
        a[i] = a[i] + 1.0
    a[0] = a[i] * 10.0
    for i in range(2):
        i = i + 3
        a[i] = 0.0


@wp.func
def carried(a: Array, n: int):
    for i in range(n):
        if i > 0:
            a[i] = a[i] + before
        before = a[i]


@wp.func
def swaps(a: Array, n: int):
    x = a[0]
    y = a[1]
    z = a[2]
    for i in range(n):
        x, y, z = y, z, x + 1.0
        a[0], a[1] = a[1], a[0]
    a[2] = x
    a[3] = y * z


@wp.func
def fibonacci(a: Array, n: int):
    p, q = 0, 1
    for i in range(n):
        p, q = q, p + q
    a[p % 4] = 1.0


@wp.func
def while_true(a: Array, n: int):
    x = a[0]
    steps = 0
    while True:
        x = x * 0.5
        steps += 1
        if x < 0.1:
            break
        elif steps > n:
            return
        else:
            continue
    a[1] = x
    a[steps % 6] = 5.0


@wp.func
def while_and(a: Array, n: int):
    i = 0
    while i < n and a[i] > 0.0:
        a[i] = -a[i]
        i += 1
    a[5] = a[i % 6]


@wp.func
def chained(a: Array, n: int):
    for i in range(n):
        if -1.0 < a[i] * 2.0 <= 3.0 < 4.0:
            a[i] = 9.0
        elif not (a[i] > 2.0 or i == 1):
            a[i] = 8.0


@wp.func
def choices(a: Array, n: int):
    for i in range(n):
        a[i] = a[i] if a[i] > 1.0 else (a[n - 1 - i] if i > 2 else 0.25)
        j = i if i < 3 else 3
        a[j] = a[j] + 1.0


@wp.func
def early_return(a: Array, n: int):
    for i in range(n):
        if a[i] < 0.0:
            a[0] = 100.0
            return
        a[i] = a[i] + 1.0
    a[1] = 50.0


@wp.func
def walrus(a: Array, n: int):
    i = 0
    while (k := i * 2) < n:
        a[k] = a[k] + 1.0
        i += 1
    a[0] = a[0] + (y := a[1]) * y


@wp.func
def rebound(a: Array, n: int):
    x = a[0]
    x = x * 2.0
    y = x
    x = x + y
    if n > 2:
        x = x + 1.0
        y = x
    a[0] = x * y


@wp.func
def aliases(a: Array, n: int):
    b = a
    x = a[0]
    for i in range(n):
        old = x
        x = x + 1.0
        b[i] = old * x


@wp.func
def parameter_changes(a: Array, n: int):
    while n > 1:
        n //= 2
        a[n] = a[n] + 1.0
        n -= 0


@wp.func
def integer_bits(a: Array, n: int):
    m = (n << 2 | 1) ^ 3
    m = m & ~2
    m >>= 1
    a[m % 6] = 3.0
    a[n**2 % 6] = 4.0
    if n & 1 == 1:
        a[5] = a[5] + 2.0


@wp.func
def built_in_names(a: Array, n: int):
    for i in range(min(n, 4, 5)):
        a[i] = max(abs(a[i] - 2.0), 0.5, a[0])
    a[len(a) - 1] = a[a.shape[0] - 2]
    a[-2] = a[-1] + 1.0


@wp.func
def multiple_targets(a: Array, n: int):
    x = y = a[1]
    x += 1.0
    a[0] = x - y
    (p, q), r = (x, y), n
    a[2] = p * q
    [a[3], a[4]] = q, p
    a[r % 6] = 1.5


@wp.func
def dead_ends(a: Array, n: int):
    """Text that does nothing."""
    ...
    "a comment"
    if n > 100:
        pass
    else:
        a[0] = 1.0
    return
    a[1] = 2.0


@wp.func
def continue_in_while(a: Array, n: int):
    i = 0
    while i < n:
        i += 1
        if i % 2 == 0:
            continue
        a[i % 6] = a[i % 6] * 3.0


@wp.func
def tuples(a: Array, n: int):
    s = a.shape
    (m,) = s
    t = (a[0], a[1] + 1.0, n)
    a[s[0] - 1] = t[1] * t[0]
    a[len(s) + t[2] % 4] = 1.0
    u = t if n > 2 else (2.0, a[0], m)
    a[0] = u[0] + u[1]


@wp.func
def branch_locals(a: Array, n: int):
    for i in range(n):
        if a[i] > 1.0:
            t = a[i] * 2.0
            a[i] = t
        else:
            t = a[i] - 1.0
            a[i] = t * t
        u = t
        t = 0.5
        a[i] = a[i] + u + t


@wp.func
def reversed_ranges(a: Array, n: int):
    c = 0
    for start in range(-3, 4):
        for step in range(-3, 4):
            if step != 0:
                for i in reversed(range(start, n - 3, step)):
                    c = (c * 3 + i + 10) % 1009
    for i in reversed(range(n)):
        a[i] = a[i] + a[n - 1] * 0.5
    for i in reversed(range(n, -2, -1)):
        c = (c * 5 + i + 10) % 1009
    for i in reversed(range(1, n, 2)):
        c = (c * 3 + i + 10) % 1009
    for i in reversed(range(1, 6, 2)):
        a[i] = a[i] * 2.0 + wp.float64(i)
    a[0] = wp.float64(c)


@wp.func
def loops_over_tuples(a: Array, n: int):
    total = wp.float64(0.0)
    for x in (a[0], 2.0, a[1] * a[2]):
        if x < 0.0:
            continue
        total = total + x
        if total > 4.0:
            break
        for k in (3, 1):
            if k > n:
                continue
            if total > 3.0:
                break
            total = total + a[k]
    for x in reversed((total, a[3])):
        total = total * 0.5 + x
    t = (total, n, a[4])
    for i in range(len(t)):
        if i == n:
            break
        a[i] = a[i] + wp.float64(t[i]) * 2.0
    a[5] = total


@wp.func
def stars(a: Array, n: int):
    first, *rest = (a[0], a[1], n, a[2])
    *front, last = (1.0, *rest, 2.5, *(a[3], a[4]))
    b, *none, c = (first, last)
    x, *(y, z) = (a[5], b, c)
    a[0] = shared.weighted(*front[:0], *(a[1], wp.float64(2.0)), *rest[3:], a[2])
    a[1] = front[1] * x + y - z + wp.float64(len(front) + len(none) + rest[1])


def programs() -> dict[str, Callable[..., Any]]:
    """Every program of this module by name."""
    return {k: v for k, v in globals().items() if isinstance(v, UserFunc)}

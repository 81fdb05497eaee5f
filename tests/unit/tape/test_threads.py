"""Tapes in several threads at once, and memory that records own."""

import gc
import threading

import numpy as np
import pytest

import engine as wp
from engine.runtime import chunks


@wp.kernel
def power(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    p = float(1.0)
    for _ in range(n):
        p = p * x[i]
    y[i] = p


@wp.kernel
def square_in_place(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * x[i]


@pytest.mark.cold("threads end in any order")
def test_each_thread_has_its_own_tape():
    errors = []

    def work(base):
        try:
            for _ in range(10):
                x = wp.full(100, base, requires_grad=True)
                y = wp.zeros(100, requires_grad=True)
                with wp.Tape() as tape:
                    wp.launch(power, 100, [x, 3], [y])
                tape.backward(grads={y: wp.ones(100)})
                np.testing.assert_allclose(x.grad.numpy(), 3 * base * base, rtol=1e-5)
                assert len(tape.records) == 1
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(1.0 + k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_copies_are_given_back():
    gc.collect()
    before = chunks.held()
    x = wp.full(1000, 2.0, requires_grad=True)
    with wp.Tape() as tape:
        for _ in range(3):
            wp.launch(square_in_place, 1000, [x])
    assert chunks.held() == before + 3 * 4000
    del tape
    gc.collect()
    assert chunks.held() == before

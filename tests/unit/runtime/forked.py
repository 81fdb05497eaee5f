"""A program that forks while its threads launch, record, compile and import for the first time.

Arguments: a seed, a number of forks, and a number that is in the code of kernels of this run alone.
Each child records a launch of its own and compares the gradient with the formula; one that has not
ended after `LIMIT` seconds says where it is, and is killed. Prints how many were wrong.
"""

import faulthandler
import linecache
import math
import os
import random
import signal
import sys
import threading
import time
import warnings

warnings.simplefilter("ignore")  # of Python, about forks of processes with threads

import engine as wp  # noqa: E402

LIMIT = 20.0
KERNEL = """
@wp.kernel(module="unique")
def k(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i] * wp.float64({n}) + wp.sin(x[i])
"""
GIVEN = (0.5, 1.5, -2.0)


def made(number):
    text = KERNEL.format(n=float(number))
    name = f"<kernel {number} of {os.getpid()}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope = {"wp": wp}
    exec(compile(text, name, "exec"), scope)
    return scope["k"]


def right(number):
    """Compiles a kernel, launches and records it, and compares the gradient."""
    kernel = made(number)
    x = wp.array(GIVEN, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    for _ in range(2):  # the second one is that of a cached plan
        with wp.Tape() as tape:
            wp.launch(kernel, 3, [x], [y])
    tape.backward(grads={y: wp.ones_like(y)})
    wanted = [2.0 * v * number + math.cos(v) for v in GIVEN]
    return all(
        math.isclose(*pair, rel_tol=1e-14) for pair in zip(x.grad.list(), wanted, strict=True)
    )


def forked(number):
    pid = os.fork()
    if pid:
        return pid
    code = 3
    try:
        faulthandler.register(signal.SIGUSR1, all_threads=True)
        code = 0 if right(number) else 4
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def buried(running):
    """Children that have ended, or had to be ended, badly."""
    bad = 0
    for pid, end in list(running.items()):
        done, status = os.waitpid(pid, os.WNOHANG)
        if not done and time.monotonic() > end:
            os.kill(pid, signal.SIGUSR1)
            time.sleep(0.5)
            os.kill(pid, signal.SIGKILL)
            done, status = os.waitpid(pid, 0)
        if done:
            del running[pid]
            bad += status != 0
    return bad


def main(seed, count, own):
    chance = random.Random(seed)
    over = threading.Event()
    wrong = []

    def beside(first):
        number = first
        while not over.is_set():
            wrong.append(number)  # unless it comes to its end
            if right(number):
                wrong.pop()
            number = first + (number + 1 - first) % 4

    threads = [threading.Thread(target=beside, args=(n,)) for n in (1, own)]
    for thread in threads:
        thread.start()
    running, bad = {}, 0
    for k in range(count):
        time.sleep(chance.uniform(0.0, 0.06))
        # Most are compiled already, by another process; the last one is not.
        running[forked(own + 9 if k == count - 1 else 1 + k % 6)] = time.monotonic() + LIMIT
        bad += buried(running)
    while running:
        bad += buried(running)
        time.sleep(0.01)
    over.set()
    for thread in threads:
        thread.join()
    print(f"{bad} children, {len(wrong)} launches of threads")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

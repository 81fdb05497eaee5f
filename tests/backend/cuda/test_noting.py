"""Watched threads note accesses at the same time: `native/cuda/note.h`, by host threads."""

from __future__ import annotations

import ctypes
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from engine.codegen import headers
from engine.codegen.layout import watch_words
from engine.compile.cpu.toolchain import find_toolchain
from tests.backend.cuda.host import FLAGS, SHIM

# The device's atomics, one at a time, with pauses between them.
GUARD = """
extern "C" int sched_yield() noexcept;
static char shim_taken;
static thread_local unsigned shim_seed = 1;
struct shim_guard {
    shim_guard() {
        for (unsigned n = (shim_seed = shim_seed * 1664525u + 1013904223u) >> 22; n; --n)
            __asm__ volatile("");
        while (__atomic_test_and_set(&shim_taken, __ATOMIC_ACQUIRE)) {}
    }
    ~shim_guard() { __atomic_clear(&shim_taken, __ATOMIC_RELEASE); }
};
"""
# Two threads note something at one place; both come back when both are done.
RUN = """
static int arrived;
static void meet(int round) {
    __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < 2 * round) sched_yield();
}
// How often what stays is not what the first thread saw first.
extern "C" int note(void* memory, int number, int rounds) {
    eng::watch_t* watch = static_cast<eng::watch_t*>(memory);
    eng::fault_t& f = watch->faults[0];
    shim_seed = number + 1;
    int wrong = 0;
    for (int r = 0; r < rounds; ++r) {
        if (number == 0) f = eng::fault_t{};
        meet(3 * r + 1);
        const int64_t thread = (number + r) % 2 + 5;
        eng::ctx_t ctx{};
        ctx.watch = watch;
        ctx.output.thread = thread;
        for (int64_t j = 0; j < 2; ++j) {
            const int64_t at[] = {10 * thread + j, -thread, r}, shape[] = {thread, 2, 3};
            eng::outside(ctx, 0, at, shape, 3);
        }
        meet(3 * r + 2);
        wrong += f.count != 4 || f.thread != 5 || f.at[0] != 50 || f.at[1] != -5 || f.at[2] != r
                 || f.shape[0] != 5 || f.shape[2] != 3 || watch->lock;
        meet(3 * r + 3);
    }
    return wrong;
}
"""
ROUNDS = 20_000


def test_of_two_threads_at_once_the_first_is_noted_whole(tmp_path: Path) -> None:
    shim = SHIM.read_text().replace("const T old = *p;", "const shim_guard held; const T old = *p;")
    text = headers.in_one(headers.CUDA, headers.ENGINE, headers.WATCH)
    source, library = tmp_path / "note.cpp", tmp_path / "note.so"
    source.write_text("\n".join([GUARD, shim, text, RUN]))
    command = [*find_toolchain().command, *FLAGS, "-o", str(library), str(source), "-lm"]
    subprocess.run(command, check=True)
    note = ctypes.CDLL(str(library)).note
    words = (ctypes.c_int64 * watch_words(1))()
    with ThreadPoolExecutor(2) as pool:
        done = [pool.submit(note, words, number, ROUNDS) for number in range(2)]
        assert [d.result() for d in done] == [0, 0]

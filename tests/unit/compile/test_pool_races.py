"""The pool's own code under ThreadSanitizer: several callers, many short jobs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from engine.codegen import headers
from engine.compile.cpu import pool
from engine.compile.cpu.toolchain import find_toolchain

DRIVER = """
#include "pool.cpp"
#include <stdio.h>

static void entry(const unsigned char* args, eng_launch* L) {
    int64_t* out = *reinterpret_cast<int64_t* const*>(args);
    for (int64_t k = L->begin; k < L->end; ++k) out[k] += k;
}

struct caller_t { void* pool; int64_t out[4096]; bool right; };

static void* calls(void* given) {
    caller_t* c = static_cast<caller_t*>(given);
    static const int rounds = 300;
    eng_launch launches[16];
    int64_t parts[16];
    for (int r = 0; r < rounds; ++r) {
        for (int p = 0; p < 16; ++p) {
            launches[p] = eng_launch{};
            launches[p].begin = p * 256;
            launches[p].end = (p + 1) * 256;
            parts[p] = p;
        }
        int64_t* out = c->out;
        const unsigned char* args = reinterpret_cast<const unsigned char*>(&out);
        void* run = reinterpret_cast<void*>(entry);
        eng_pool_run(c->pool, run, args, 0, launches, parts, 16, 2 + r % 4);
    }
    c->right = true;
    for (int64_t k = 0; k < 4096; ++k) c->right = c->right && c->out[k] == k * rounds;
    return nullptr;
}

int main() {
    void* pool = eng_pool_new();
    static caller_t callers[3];
    pthread_t ids[3];
    for (int i = 0; i < 3; ++i) {
        callers[i].pool = pool;
        pthread_create(&ids[i], nullptr, calls, &callers[i]);
    }
    bool right = true;
    for (int i = 0; i < 3; ++i) {
        pthread_join(ids[i], nullptr);
        right = right && callers[i].right;
    }
    puts(right ? "right" : "wrong");
    _exit(right ? 0 : 1);  // the pool's threads wait for ever
}
"""


def test_no_races(tmp_path: Path) -> None:
    source, program = tmp_path / "driver.cpp", tmp_path / "driver"
    source.write_text("#include <unistd.h>\n" + DRIVER)
    command = [*find_toolchain().command, "-std=c++17", "-O1", "-g", "-fsanitize=thread"]
    command += ["-pthread", "-I", str(Path(pool.__file__).parent / "native")]
    command += [word for folder in headers.CPU for word in ("-I", str(folder))]
    command += ["-o", str(program), str(source)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if made.returncode and "sanitize" in made.stderr + made.stdout or "tsan" in made.stderr:
        pytest.skip("the compiler has no ThreadSanitizer")
    assert made.returncode == 0, made.stderr
    done = subprocess.run([str(program)], capture_output=True, text=True, timeout=300)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this system")
    assert done.returncode == 0 and done.stdout == "right\n", done.stderr[-4000:]

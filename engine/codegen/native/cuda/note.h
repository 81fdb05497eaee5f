// What is noted: of each place the first thread, whichever comes first.
#pragma once
#include "watch.h"

namespace eng {

ENG_COLD bool outside(
    const ctx_t& c, int64_t place, const int64_t* at, const int64_t* shape, int n) {
    if (place < 0) return false;  // nobody wants to know
    fault_t& f = c.watch->faults[place];
    const int64_t thread = c.output.thread;
    const uint64_t mine = ~uint64_t(thread);  // the larger, the earlier; never 0
    uint64_t* first = reinterpret_cast<uint64_t*>(&f.other);
    uint64_t* lock = reinterpret_cast<uint64_t*>(&c.watch->lock);
    atomicAdd(reinterpret_cast<uint64_t*>(&f.count), uint64_t(1));
    if (atomicMax(first, mine) >= mine) return false;
    for (bool done = false; !done;) {  // as one: threads of a warp may wait for each other
        if (atomicCAS(lock, uint64_t(0), uint64_t(1))) continue;
        __threadfence();
        if (atomicMax(first, uint64_t(0)) == mine) {  // no earlier one has come since
            f.thread = thread;
            for (int d = 0; d < n; ++d) f.at[d] = at[d], f.shape[d] = shape[d];
        }
        __threadfence();
        atomicExch(lock, uint64_t(0));
        done = true;
    }
    return false;
}

}  // namespace eng

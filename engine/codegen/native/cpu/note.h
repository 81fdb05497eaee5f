// What is noted, one thread after the other.
#pragma once
#include "watch.h"

namespace eng {

ENG_INLINE void lock(watch_t* w) {
    while (__atomic_test_and_set(&w->lock, __ATOMIC_ACQUIRE)) {}
}
ENG_INLINE void unlock(watch_t* w) { __atomic_clear(&w->lock, __ATOMIC_RELEASE); }

ENG_COLD bool outside(
    const ctx_t& c, int64_t place, const int64_t* at, const int64_t* shape, int n) {
    if (place < 0) return false;  // nobody wants to know
    lock(c.watch);
    fault_t& f = c.watch->faults[place];
    if (!f.count++ || c.thread < f.thread) {
        f.thread = c.thread;
        for (int d = 0; d < n; ++d) f.at[d] = at[d], f.shape[d] = shape[d];
    }
    unlock(c.watch);
    return false;
}

}  // namespace eng

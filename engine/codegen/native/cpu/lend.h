// Launches of which some arrays are not contiguous, or of which one is read and written by two
// names: the elements of some threads at a time are copied to memory where they are, and back. What
// does so is the same for all kernels, and made once: engine/compile/cpu/native/lend.cpp.
#pragma once
#include "late.h"

namespace eng {

// Mirrored by engine/compile/cpu/lender.py. lend: null until it is made, or where it cannot be.
struct lending_t {
    bool (*lend)(const unsigned char*, eng_launch*, const extent_t*, const kernel_t*, run_t);
    void (*make)();
};

// Runs a launch whose arrays are not all contiguous, or share memory, where there may be a gain, so
// that what lends need not be made for what it refuses. plain: runs threads for any arrays. False
// where that cannot be: it has had no effect then.
ENG_ALONE bool lend(const unsigned char* args, eng_launch* L, const extent_t* arrays,
                    const kernel_t& how, run_t plain) {
    int64_t bytes = 0;
    bool rows = false, early = false;  // columns are copied in any case
    for (int64_t k = 0; k < how.count; ++k) {
        ENG_SCALAR;
        const touched_t& t = how.arrays[k];
        early = early || t.early;
        if (arrays[k].usable) continue;
        if (!t.lends) return false;
        bytes += t.writes ? 2 * t.size : t.size;
        rows = rows || t.axes > 1;
    }
    const int64_t threads = L->end - L->begin;
    if (L->ndim != how.axes) return false;
    // Only those of many threads in place are worth to have made what lends.
    if (bytes ? !(how.sums || threads >= how.few) || !(rows || bytes <= 4 * int64_t(how.words))
              : !early || threads / 16 < how.few) return false;
    lending_t* const lending = static_cast<lending_t*>(L->lend);
    auto lend = __atomic_load_n(&lending->lend, __ATOMIC_ACQUIRE);
    if (!lend) {
        lending->make();
        lend = __atomic_load_n(&lending->lend, __ATOMIC_ACQUIRE);
    }
    return lend && lend(args, L, arrays, &how, plain);
}

}  // namespace eng

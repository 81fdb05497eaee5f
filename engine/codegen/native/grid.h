// Where a thread lies in the grid of its launch.
#pragma once
#include "block.h"

namespace eng {

// Whether every index that tid() can give keeps 2^16 away from the end of int32: sums with
// small constants then need no wrapping.
ENG_INLINE bool fits_int32(const eng_launch& L, bool linear, int axes) {
    constexpr int64_t limit = int64_t(int_max<int32_t>) - 65536;
    bool ok = !linear || L.end <= limit;
    for (int d = 0; d < axes && d < L.ndim; ++d) ok = ok && L.dim[d] <= limit;
    return ok;
}

// Coordinates of thread k of the launch's row-major grid; axes that it has not are 0.
template <int A> ENG_INLINE void coordinates(const eng_launch& L, int64_t k, int64_t* c) {
    const int64_t axes = L.ndim < 4 ? L.ndim : 4;
    int64_t rest = k;
    for (int64_t d = 3; d > 0; --d) {
        if (d >= axes) {
            if (d < A) c[d] = 0;
            continue;
        }
        const int64_t extent = L.dim[d] > 0 ? L.dim[d] : rest + 1;
        if (d < A) c[d] = rest % extent;
        rest /= extent;
    }
    c[0] = axes > 0 ? rest : 0;
}

// Where threads begin that are not less than a bound (`more`: that are more), of those from `first`
// to `stop`.
template <bool more> ENG_INLINE int64_t from(int64_t first, int64_t stop, int64_t bound) {
    if (bound >= stop) return stop;
    const int64_t least = bound + more;
    return least > first ? least : first;
}
// Where those end that are less than a bound (`equal`: that are not more).
template <bool equal> ENG_INLINE int64_t up_to(int64_t first, int64_t stop, int64_t bound) {
    if (bound >= stop) return stop;
    const int64_t end = bound + equal;
    return end > first ? end : first;
}

}  // namespace eng

// Threads of a launch: runs of the grid's innermost axis, and counted loops.
#pragma once
#include "base.h"

namespace eng {

// Whether every index that tid() can give keeps 2^16 away from the end of int32: sums with
// small constants then need no wrapping. Notes the error if not.
ENG_INLINE bool fits(eng_launch* L, bool linear, int axes) {
    constexpr int64_t limit = int64_t(int_max<int32_t>) - 65536;
    bool ok = !linear || L->end <= limit;
    for (int d = 0; d < axes && d < L->ndim; ++d) ok = ok && L->dim[d] <= limit;
    if (!ok) L->error = error_index;
    return ok;
}

// Coordinates of thread k of the launch's row-major grid; axes that it has not are 0.
// Returns how many threads from k on differ only in coordinate A - 1, counting up: the
// rest of the row where the grid has A axes, one thread otherwise.
template <int A> ENG_INLINE int64_t row(const eng_launch* L, int64_t k, int64_t* c) {
    const int64_t axes = L->ndim < 4 ? L->ndim : 4;
    int64_t rest = k;
    for (int64_t d = 3; d >= 0; --d) {
        if (d >= axes) {
            if (d < A) c[d] = 0;
            continue;
        }
        const int64_t extent = d > 0 && L->dim[d] > 0 ? L->dim[d] : rest + 1;
        if (d < A) c[d] = rest % extent;
        rest /= extent;
    }
    if (axes != A) return 1;
    const int64_t left = L->dim[A - 1] - c[A - 1];
    const int64_t all = L->end - k;
    const int64_t n = left < all ? left : all;
    return n > 1 ? n : 1;  // never none: the loop over rows must end
}

// The same for a loop that goes down: coordinates of thread k, and how many threads from k
// down to `begin` differ only in coordinate A - 1.
template <int A>
ENG_INLINE int64_t row_down(const eng_launch* L, int64_t k, int64_t begin, int64_t* c) {
    const int64_t axes = L->ndim < 4 ? L->ndim : 4;
    row<A>(L, k, c);
    if (axes != A) return 1;
    const int64_t left = c[A - 1] + 1;
    const int64_t all = k - begin + 1;
    return left < all ? left : all;
}

// How many values range(start, stop, step) has; a step of 0 gives none.
template <class T> ENG_INLINE uint64_t trips(T start, T stop, T step) {
    if (step == 0) return 0;
    if (is_signed<T> && step < 0) {
        if (start <= stop) return 0;
        return (uint64_t(start) - uint64_t(stop) - 1) / (uint64_t(0) - uint64_t(step)) + 1;
    }
    if (start >= stop) return 0;
    return (uint64_t(stop) - uint64_t(start) - 1) / uint64_t(step) + 1;
}

// A counted loop that cannot overflow: `for (range_t<int32_t> r(a, b, s); r.more(); r.next())`.
template <class T> struct range_t {
    T value;
    T step;
    uint64_t left;
    ENG_MEMBER range_t(T start, T stop, T by) : value(start), step(by), left(trips(start, stop, by)) {}
    ENG_MEMBER bool more() const { return left != 0; }
    ENG_MEMBER void next() {
        value = T(unsigned_t<T>(value) + unsigned_t<T>(step));
        --left;
    }
};

}  // namespace eng

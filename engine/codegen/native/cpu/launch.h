// Threads of a launch: runs of the grid's innermost axis.
#pragma once
#include "apart.h"
#include "grid.h"
#include "sums.h"

namespace eng {

// Whether thread indices are small enough. Notes the error if not.
ENG_INLINE bool fits(eng_launch* L, bool linear, int axes) {
    const bool ok = fits_int32(*L, linear, axes);
    if (!ok) L->error = error_index;
    return ok;
}

// Coordinates of thread k. Returns how many threads from k on differ only in coordinate
// A - 1, counting up: the rest of the row where the grid has A axes, one thread otherwise.
template <int A> ENG_INLINE int64_t row(const eng_launch* L, int64_t k, int64_t* c) {
    coordinates<A>(*L, k, c);
    if (L->ndim != A) return 1;
    const int64_t left = L->dim[A - 1] - c[A - 1];
    const int64_t all = L->end - k;
    const int64_t n = left < all ? left : all;
    return n > 1 ? n : 1;  // never none: the loop over rows must end
}

template <int A> ENG_ALONE int64_t some_row(const eng_launch* L, int64_t k, int64_t* c) { return row<A>(L, k, c); }

// The same for a loop that goes up, after `had` threads of the row that c is in, 0 at first: one row
// after the other needs no divisions.
template <int A> ENG_INLINE int64_t next_row(const eng_launch* L, int64_t k, int64_t had, int64_t* c) {
    if (had == 0 || L->ndim != A) return some_row<A>(L, k, c);
    c[A - 1] += had;
    for (int d = A - 1; d > 0; --d) {
        if (c[d] < L->dim[d]) break;
        c[d] = 0;
        ++c[d - 1];
    }
    const int64_t left = L->dim[A - 1] - c[A - 1];
    const int64_t all = L->end - k;
    return left < all ? left : all;
}

// The same for a loop that goes down: coordinates of thread k, and how many threads from k
// down to `begin` differ only in coordinate A - 1.
template <int A>
ENG_INLINE int64_t row_down(const eng_launch* L, int64_t k, int64_t begin, int64_t* c) {
    row<A>(L, k, c);
    if (L->ndim != A) return 1;
    const int64_t left = c[A - 1] + 1;
    const int64_t all = k - begin + 1;
    return left < all ? left : all;
}

}  // namespace eng

// Counted loops.
#pragma once
#include "base.h"

namespace eng {

// How many values range(start, stop, step) has; a step of 0 gives none.
template <class T> ENG_INLINE uint64_t trips(T start, T stop, T step) {
    if (step == 0) return 0;
    if (is_negative(step)) {
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

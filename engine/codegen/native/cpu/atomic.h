// Atomic updates of an element; each gives the value before it. They are plain updates here: what
// several threads of the CPU update, each of them has an array of its own for.
#pragma once
#include "update.h"

namespace eng {

#define ENG_ATOMIC(kind, update)                                        \
    template <class T> ENG_INLINE T kind(T& place, const T& value) {     \
        const T before = place;                                         \
        place = update_t<T>::update(before, value);                     \
        return before;                                                  \
    }
ENG_ATOMIC(atomic_add, add)
ENG_ATOMIC(atomic_sub, sub)
ENG_ATOMIC(atomic_min, min)
ENG_ATOMIC(atomic_max, max)
ENG_ATOMIC(atomic_and, and_)
ENG_ATOMIC(atomic_or, or_)
ENG_ATOMIC(atomic_xor, xor_)
#undef ENG_ATOMIC

template <class T> ENG_INLINE T atomic_exch(T& place, const T& value) {
    const T before = place;
    place = value;
    return before;
}
// Stores the value where the place holds `compare`.
template <class T> ENG_INLINE T atomic_cas(T& place, T value, T compare) {
    const T before = place;
    if (before == compare) place = value;
    return before;
}

}  // namespace eng

// Launches whose arrays share no memory and are contiguous: most of them.
#pragma once
#include "array.h"

namespace eng {

// What a kernel does to an array. alone: what is written is of one thread each, by its index.
enum use_t : int { use_reads, use_writes, use_alone };

// The memory of an array. usable: its innermost axis is contiguous, and indices tell apart what
// must be.
struct extent_t {
    const unsigned char* low;
    const unsigned char* high;
    bool writes, usable;
};

// Whether no two elements share memory, as far as the order of the strides tells.
template <class T, int N> ENG_INLINE bool distinct(const array_t<T, N>& a) {
    int64_t reach = sizeof(T);
    for (int d = N - 1; d >= 0; --d) {
        if (a.shape[d] <= 1) continue;
        if (a.strides[d] < reach) return false;
        reach += a.strides[d] * (a.shape[d] - 1);
    }
    return true;
}

template <class T, int N> ENG_INLINE extent_t extent(const array_t<T, N>& a, use_t use) {
    const unsigned char* low = a.data;
    const unsigned char* high = a.data + sizeof(T);
    for (int d = 0; d < N; ++d) {
        if (a.shape[d] <= 0) return extent_t{a.data, a.data, false, true};
        const int64_t reach = a.strides[d] * (a.shape[d] - 1);
        if (reach < 0) low += reach;
        else high += reach;
    }
    const bool usable = is_flat(a) && (use != use_alone || distinct(a));
    return extent_t{low, high, use != use_reads, usable};
}

// Whether no array that is written shares memory with another one.
template <int N> ENG_INLINE bool apart(const extent_t (&a)[N]) {
    for (int i = 0; i < N; ++i) {
        if (!a[i].usable) return false;
        for (int j = 0; j < i; ++j)
            if ((a[i].writes || a[j].writes) && a[i].low < a[j].high && a[j].low < a[i].high)
                return false;
    }
    return true;
}

ENG_INLINE unsigned char* data(const unsigned char* args, int64_t offset) {
    return arg<unsigned char*>(args, offset);
}

// The array of an argument, by a pointer that is known to be the only one to its memory.
template <class A> ENG_INLINE A flat(const unsigned char* args, int64_t offset, unsigned char* p) {
    A a = arg<A>(args, offset);
    a.data = p;
    return a;
}

// Asks for the memory of an element that is needed later; any index will do.
template <class A> ENG_INLINE void ask(const A& a, int64_t i) {
    const int64_t step = A::flat && A::axes == 1 ? int64_t(A::size) : a.strides[0];
    const uint64_t at = uint64_t(a.data) + uint64_t(i) * uint64_t(step);
    __builtin_prefetch(reinterpret_cast<const void*>(at));
    // What lies across two lines of the cache waits for both.
    if (64 % A::size) __builtin_prefetch(reinterpret_cast<const void*>(at + A::size - 1));
}
ENG_INLINE bool inside(int64_t i, int64_t n) { return uint64_t(i) < uint64_t(n); }

}  // namespace eng

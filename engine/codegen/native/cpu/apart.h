// Launches whose arrays share no memory and are contiguous: most of them.
#pragma once
#include "array.h"

namespace eng {

// Along a dimension of an array, a thread's indices: its coordinate along `axis` (-1 for none),
// and low to high added to it; it may look at up to `more` elements before and after these.
struct along_t {
    int32_t axis, low, high, more;
};
// An array that a kernel touches. at: where the arguments name it. size: of an element. alone: what
// is written is of one thread each, by its index. lends: its threads may be given copies; each has
// an element of its own of what is written. sure: each thread writes all of it, so that no other
// launch can at the same time. early: threads only read it, before they write to any array.
struct touched_t {
    int32_t at, size;
    int8_t axes;
    bool writes, alone, lends, sure, early;
    const along_t* along;  // for each dimension, of what lends
};

// The memory of an array. usable: its innermost axis is contiguous, and indices tell apart what
// must be, as far as the order of the strides tells.
struct extent_t {
    int64_t low, high;  // addresses
    bool writes, usable;
};

// The memory of an array, which arguments name with its shape and its strides: see array.h.
ENG_INLINE void look(const unsigned char* args, const touched_t& t, extent_t& out) {
    const unsigned char* const array = args + t.at;
    const int64_t axes = t.axes, size = t.size, low = arg<int64_t>(array, 0);
    int64_t count = arg<int64_t>(array, 8 * axes), stride = arg<int64_t>(array, 16 * axes);
    // An axis of length 0 or 1 has no second element, so its stride says nothing.
    bool usable = count <= 1 || stride == size, none = count <= 0;
    int64_t step = count > 1 ? stride * (count - 1) : 0;
    int64_t down = step < 0 ? step : 0, up = size + step - down, reach = size + step;
    for (int64_t d = axes - 1; d > 0; --d) {
        ENG_SCALAR;
        count = arg<int64_t>(array, 8 * d), stride = arg<int64_t>(array, 8 * (axes + d));
        none |= count <= 0;
        if (count <= 1) continue;
        step = stride * (count - 1);
        if (t.alone) usable &= stride >= reach;
        reach += step;
        (step < 0 ? down : up) += step;
    }
    out.low = none ? low : low + down;
    out.high = none ? low : low + up;
    out.writes = t.writes && !none;
    out.usable = usable || none;
}

// Finds the memory of arrays. Whether none that is written shares memory with another one.
ENG_INLINE bool look_at(const unsigned char* args, const touched_t* touched, int64_t count,
                        extent_t* arrays) {
    bool are = true;
    for (int64_t k = 0; k < count; ++k) {
        extent_t& a = arrays[k];
        look(args, touched[k], a);
        are &= a.usable;
        for (int64_t j = 0; j < k; ++j) {
            ENG_SCALAR;
            const extent_t& b = arrays[j];
            are &= !((a.writes | b.writes) & (a.low < b.high) & (b.low < a.high));
        }
    }
    return are;
}
ENG_ALONE bool look_at_many(const unsigned char* args, const touched_t* touched, int64_t count,
                            extent_t* arrays) {
    return look_at(args, touched, count, arrays);
}

// The same: of few arrays without a call, which takes longer than what it does, in a program that
// does other things between launches; of many, a compiler would take long.
template <int N> ENG_INLINE bool apart(const unsigned char* args, const touched_t (&touched)[N],
                                       extent_t (&arrays)[N]) {
    return N <= 2 ? look_at(args, touched, N, arrays) : look_at_many(args, touched, N, arrays);
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

// Asks for the memory of an element that is needed later; any indices will do.
template <class A, class... I> ENG_INLINE void ask(const A& a, I... index) {
    const int64_t indices[] = {int64_t(index)...};
    uint64_t at = uint64_t(a.data);
    ENG_UNROLL
    for (int d = 0; d < A::axes; ++d) {
        const bool next = A::flat && d == A::axes - 1;
        at += uint64_t(indices[d]) * uint64_t(next ? int64_t(A::size) : a.strides[d]);
    }
    // What lies across lines of the cache waits for all of them.
    ENG_UNROLL
    for (int k = 0; k < A::size; k += 64) __builtin_prefetch(reinterpret_cast<const void*>(at + uint64_t(k)));
    if (64 % A::size) __builtin_prefetch(reinterpret_cast<const void*>(at + A::size - 1));
}
ENG_INLINE bool inside(int64_t i, int64_t n) { return uint64_t(i) < uint64_t(n); }

}  // namespace eng

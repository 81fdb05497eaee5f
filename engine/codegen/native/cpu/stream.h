// Writes whole lines of memory that nobody reads soon, so that the processor reads none of them.
#pragma once
#include "apart.h"
#include "lines.h"

namespace eng {

// Threads that write to memory that stays near, before that goes out.
constexpr int64_t stream_threads = 128;

// Whether arrays have so many bytes that no cache keeps them until they are read again.
template <int N> ENG_INLINE bool is_vast(const extent_t (&a)[N], int64_t vast) {
    int64_t bytes = 0;
    for (int i = 0; i < N; ++i) bytes += a[i].high - a[i].low;
    return streams && bytes >= vast;
}

// An array whose element `there` is `here`, and so on along the last axis.
template <class A, class T> ENG_INLINE A aside(A a, const T& there, T* here) {
    const uint64_t offset = reinterpret_cast<uint64_t>(&there) - reinterpret_cast<uint64_t>(a.data);
    a.data = reinterpret_cast<unsigned char*>(reinterpret_cast<uint64_t>(here) - offset);
    return a;
}

// How many threads come next, so that the others begin with a line where that can be.
ENG_ALONE int64_t stream_next(uint64_t at, uint64_t size, int64_t left) {
    int64_t some = stream_threads;
    for (int64_t k = 1; at % 64 && k < 64; ++k) {
        ENG_SCALAR;
        if ((at + uint64_t(k) * size) % 64 == 0) {
            some = k;
            break;
        }
    }
    return some < left ? some : left;
}
template <class T> ENG_INLINE int64_t stream_some(const T& there, int64_t left) {
    return stream_next(reinterpret_cast<uint64_t>(&there), sizeof(T), left);
}

template <class T> ENG_INLINE void stream(T& there, const T* here, int64_t n) {
    stream_bytes(reinterpret_cast<unsigned char*>(&there),
                 reinterpret_cast<const unsigned char*>(here), n * int64_t(sizeof(T)));
}

}  // namespace eng

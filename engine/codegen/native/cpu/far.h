// Launches of more memory than caches keep, of which blocks of threads write to memory that is
// near, which goes out whole lines at a time.
#pragma once
#include "apart.h"
#include "lines.h"

namespace eng {

// Whether arrays have so many bytes that no cache keeps them until they are read again, and a launch
// writes a good part of them. each: bytes that a thread writes.
template <int N>
ENG_INLINE bool vast(const eng_launch* L, const extent_t (&a)[N], int64_t least, int64_t each,
                     int64_t row) {
    const int64_t width = L->ndim > 1 ? L->dim[L->ndim - 1] : row;
    if (width < row && (width < 32 || width % 16)) return false;
    int64_t bytes = 0, threads = 1;
    for (int k = 0; k < N; ++k) bytes += a[k].high - a[k].low;
    for (int d = 0; d < L->ndim; ++d) threads *= L->dim[d];
    return streams && bytes >= least && threads >= least / (8 * each);
}

// The same, which compilers do not know to be: they would make two loops of one.
ENG_INLINE bool hidden(bool is) {
    int32_t x = is;
    __asm__ volatile("" : "+r"(x));
    return x;
}

// How many elements to take, `most` at most, for the next ones to begin at a line, as `most` do
// where these do.
template <class T> ENG_INLINE int64_t to_lines(T& at, int64_t most) {
    uint64_t from = reinterpret_cast<uint64_t>(&at);
    for (int64_t k = 0; k < most; ++k, from += sizeof(T)) {
        ENG_SCALAR;
        if (from % 64 == 0) return k ? k : most;
    }
    return most;
}

// Asks for the memory of n elements of a row; they may be none of an array.
template <class T> ENG_INLINE void ask_row(const T& at, int64_t n) {
    const uint64_t from = reinterpret_cast<uint64_t>(&at), end = from + uint64_t(n) * sizeof(T);
    for (uint64_t p = from; p < end; p += 64) __builtin_prefetch(reinterpret_cast<const void*>(p));
}

// Writes n elements.
template <class T> ENG_INLINE void stream_row(T& to, const T* from, int64_t n) {
    stream_bytes(reinterpret_cast<unsigned char*>(&to), reinterpret_cast<const unsigned char*>(from),
                 n * int64_t(sizeof(T)));
}

}  // namespace eng

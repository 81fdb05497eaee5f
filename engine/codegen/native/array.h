// Arrays: strided views of elements in memory.
#pragma once
#include "base.h"

namespace eng {

// Strides are in bytes. FLAT promises that the innermost stride is sizeof(T), which
// lets the compiler use vector loads. The layout is that of an argument blob.
template <class T, int N, bool FLAT = false> struct array_t {
    static constexpr bool flat = FLAT;
    static constexpr int axes = N, size = int(sizeof(T));
    unsigned char* data;
    int64_t shape[N];
    int64_t strides[N];

    ENG_MEMBER T& at(int64_t i) const {
        static_assert(N == 1, "one index an axis");
        return last(data, i);
    }
    ENG_MEMBER T& at(int64_t i, int64_t j) const {
        static_assert(N == 2, "one index an axis");
        return last(data + i * strides[0], j);
    }
    ENG_MEMBER T& at(int64_t i, int64_t j, int64_t k) const {
        static_assert(N == 3, "one index an axis");
        return last(data + i * strides[0] + j * strides[1], k);
    }
    ENG_MEMBER T& at(int64_t i, int64_t j, int64_t k, int64_t l) const {
        static_assert(N == 4, "one index an axis");
        return last(data + i * strides[0] + j * strides[1] + k * strides[2], l);
    }

  private:
    ENG_MEMBER T& last(unsigned char* row, int64_t i) const {
        if (FLAT) return reinterpret_cast<T*>(row)[i];
        return *reinterpret_cast<T*>(row + i * strides[N - 1]);
    }
};

template <class T> ENG_INLINE T arg(const unsigned char* args, int64_t offset) {
    T value;
    ENG_LIB(memcpy)(&value, args + offset, sizeof(T));
    return value;
}

}  // namespace eng

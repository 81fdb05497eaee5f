// Copies between arrays of any strides, in words of a few sizes. Strides of 0 repeat an element.
#pragma once
#include "launch.h"

struct eng_copy {
    unsigned char* to;
    const unsigned char* of;
    int64_t count;  // words
    int64_t ndim;   // axes in use, the last one innermost
    int64_t shape[8];
    int64_t to_strides[8];  // bytes
    int64_t of_strides[8];
};

struct eng_fill {
    unsigned char* to;
    int64_t count;
    uint64_t word;  // in its low bytes
};

namespace eng {

struct alignas(16) two_words_t {
    uint64_t c[2];
};

template <class W> ENG_INLINE void copy_words(const eng_copy& c) {
    const int64_t step = lanes();
    for (int64_t k = lane(); k < c.count; k += step) {
        int64_t rest = k, to = 0, of = 0;
        for (int64_t d = c.ndim - 1; d >= 0; --d) {
            const int64_t at = d > 0 ? rest % c.shape[d] : rest;
            to += at * c.to_strides[d];
            of += at * c.of_strides[d];
            rest = d > 0 ? rest / c.shape[d] : 0;
        }
        *reinterpret_cast<W*>(c.to + to) = *reinterpret_cast<const W*>(c.of + of);
    }
}

template <class W> ENG_INLINE void fill_words(const eng_fill& f) {
    const int64_t step = lanes();
    for (int64_t k = lane(); k < f.count; k += step) reinterpret_cast<W*>(f.to)[k] = W(f.word);
}

}  // namespace eng

extern "C" __global__ void eng_copy_1(const __grid_constant__ eng_copy c) {
    eng::copy_words<uint8_t>(c);
}
extern "C" __global__ void eng_copy_2(const __grid_constant__ eng_copy c) {
    eng::copy_words<uint16_t>(c);
}
extern "C" __global__ void eng_copy_4(const __grid_constant__ eng_copy c) {
    eng::copy_words<uint32_t>(c);
}
extern "C" __global__ void eng_copy_8(const __grid_constant__ eng_copy c) {
    eng::copy_words<uint64_t>(c);
}
extern "C" __global__ void eng_copy_16(const __grid_constant__ eng_copy c) {
    eng::copy_words<eng::two_words_t>(c);
}
extern "C" __global__ void eng_fill_1(const __grid_constant__ eng_fill f) {
    eng::fill_words<uint8_t>(f);
}
extern "C" __global__ void eng_fill_2(const __grid_constant__ eng_fill f) {
    eng::fill_words<uint16_t>(f);
}
extern "C" __global__ void eng_fill_4(const __grid_constant__ eng_fill f) {
    eng::fill_words<uint32_t>(f);
}
extern "C" __global__ void eng_fill_8(const __grid_constant__ eng_fill f) {
    eng::fill_words<uint64_t>(f);
}

// Threads of a launch: each CUDA thread runs those that lie a whole grid of blocks apart, so
// that a launch of any size fits any grid.
#pragma once
#include "apart.h"
#include "grid.h"
#include "winners.h"

namespace eng {

// A kernel's arguments, handed over by value.
template <int N> struct alignas(8) block_t {
    unsigned char bytes[N];
};

ENG_INLINE int64_t lane() { return int64_t(blockIdx.x) * blockDim.x + threadIdx.x; }
ENG_INLINE int64_t lanes() { return int64_t(gridDim.x) * blockDim.x; }

// Whether thread indices are small enough. Notes the error if not.
ENG_INLINE bool fits(const eng_launch& L, bool linear, int axes) {
    const bool ok = fits_int32(L, linear, axes);
    if (!ok) atomicOr(L.error, uint64_t(1) << error_index);
    return ok;
}

}  // namespace eng

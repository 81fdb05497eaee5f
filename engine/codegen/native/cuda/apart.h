// Launches whose arrays share no memory, and are contiguous along their last axis: see
// `engine.codegen.apart`.
#pragma once
#include "array.h"
#include "atomic.h"
#include "grid.h"

namespace eng {

// Version of the compiler: what it does not know is written otherwise.
#define ENG_CUDA (__CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__)

constexpr int WIDE = 4;          // threads in a row that one CUDA thread runs at once
constexpr int64_t PIECE = 16;    // bytes that one instruction moves

// The array of an argument, by a pointer that is known to be the only one to its memory.
template <class A> ENG_INLINE A flat(const unsigned char* args, int64_t offset, unsigned char* p) {
    A a = arg<A>(args, offset);
    a.data = p;
    return a;
}

// The same where all rows begin at multiples of `PIECE`, which the compiler has to be told.
template <class A> ENG_INLINE A wide(const unsigned char* args, int64_t offset, unsigned char* p) {
    A a = arg<A>(args, offset);
    a.data = static_cast<unsigned char*>(__builtin_assume_aligned(p, PIECE));
    for (int d = 0; d + 1 < A::axes; ++d) a.strides[d] &= ~(PIECE - 1);
    return a;
}

// What threads in a row have of an array, each an element of its own: numbers in registers. It is
// what the kernel takes for the array; `first` is the coordinate of the first thread.
template <class A, class T> struct row_t : A {
    T* numbers;
    int64_t first;

    template <class... I> ENG_MEMBER T& at(I... index) const {
        const int64_t place[] = {index...};
        return numbers[place[sizeof...(I) - 1] - first];
    }
};
template <class A, class T> ENG_INLINE row_t<A, T> row_of(const A& a, T* numbers, int64_t first) {
    return row_t<A, T>{a, numbers, first};
}

// Reads the numbers of a row from memory, or writes them there, by as few instructions as can be.
template <class T> struct alignas(PIECE) pieces_t {
    T c[WIDE];
};
template <class T> ENG_INLINE void read_row(T* numbers, const T& from) {
    const pieces_t<T> all = *reinterpret_cast<const pieces_t<T>*>(&from);
    ENG_UNROLL
    for (int j = 0; j < WIDE; ++j) numbers[j] = all.c[j];
}
template <class T> ENG_INLINE void write_row(T& to, const T* numbers) {
    pieces_t<T> all;
    ENG_UNROLL
    for (int j = 0; j < WIDE; ++j) all.c[j] = numbers[j];
    *reinterpret_cast<pieces_t<T>*>(&to) = all;
}

// Coordinates of thread k in a grid of A axes, of fewer than 2^31 threads.
template <int A> ENG_INLINE void place(const eng_launch& L, int64_t k, int64_t* c) {
    uint32_t rest = uint32_t(k);
    ENG_UNROLL
    for (int d = A - 1; d > 0; --d) {
        const uint32_t extent = uint32_t(L.dim[d]), whole = rest / extent;
        c[d] = rest - whole * extent;
        rest = whole;
    }
    c[0] = rest;
}

// What changes nothing when it is added, not even -0.
template <class T> struct sum_t {
    ENG_MEMBER static T blank() { return is_float<T> ? T(-0.0) : T(0); }
};
template <int N, class T> struct sum_t<vec_t<N, T>> {
    ENG_MEMBER static vec_t<N, T> blank() { return fill<vec_t<N, T>>(sum_t<T>::blank()); }
};
template <int R, int C, class T> struct sum_t<mat_t<R, C, T>> {
    ENG_MEMBER static mat_t<R, C, T> blank() { return fill<mat_t<R, C, T>>(sum_t<T>::blank()); }
};

template <class T> ENG_INLINE bool is_blank(T x) {
    using word = typename word_t<sizeof(T)>::type;
    return reinterpret<word>(x) == reinterpret<word>(sum_t<T>::blank());
}

// What threads in a row add to elements around them: SIZE numbers in registers, whose dimensions
// after the first have so many. Nothing was added to them yet, not even 0.
template <class A, class T, int... SIZES> struct near_t;
template <class T, int SIZE, int... SIZES> struct around_t {
    T numbers[SIZE];

    ENG_MEMBER around_t() {
        ENG_UNROLL
        for (int i = 0; i < SIZE; ++i) numbers[i] = sum_t<T>::blank();
    }
    // In place of an array, whose element at these coordinates is the first of them.
    template <class A, class... I> ENG_MEMBER near_t<A, T, SIZES...> of(const A& a, I... first) {
        return near_t<A, T, SIZES...>{a, numbers, {first...}};
    }
};
template <class A, class T, int... SIZES> struct near_t : A {
    T* numbers;
    int64_t first[sizeof...(SIZES) + 1];

    template <class... I> ENG_MEMBER T& at(I... index) const {
        constexpr int sizes[] = {1, SIZES...};
        const int64_t place[] = {index...};
        int64_t found = 0;
        ENG_UNROLL
        for (int d = 0; d <= int(sizeof...(SIZES)); ++d)
            found = found * sizes[d] + (place[d] - first[d]);
        return numbers[found];
    }
};

// Where a row lies: the number of its first thread, the coordinate of that along the last axis, and
// how many threads there are along it.
struct spot_t {
    uint32_t thread;
    int64_t at, extent;
};

// What rows beside this one add to elements of it, and it to theirs, goes to who has the element.
// Tells whether there is a row before it, and one after it. Rows that are not told add to memory.
template <int LOW, int HIGH> ENG_INLINE void exchange(float* own, const spot_t& s, bool& before,
                                                      bool& after) {
    before = after = false;
#ifndef ENG_ONE_BY_ONE
    constexpr unsigned all = 0xffffffffu;
    if ((LOW == 0 && HIGH == 0) || LOW < -WIDE || HIGH > WIDE || __activemask() != all) return;
    const unsigned in_warp = threadIdx.x % 32;
    // Threads of a warp may be in other turns of the loop.
    const uint32_t left = __shfl_up_sync(all, s.thread, 1);
    const uint32_t right = __shfl_down_sync(all, s.thread, 1);
    before = in_warp > 0 && left + WIDE == s.thread && s.at > 0;
    after = in_warp < 31 && s.thread + WIDE == right && s.at + WIDE < s.extent;
    ENG_UNROLL
    for (int j = 0; j < HIGH; ++j) {
        const float more = __shfl_up_sync(all, own[WIDE + j], 1);
        if (before) own[j] += more;
    }
    ENG_UNROLL
    for (int j = LOW; j < 0; ++j) {
        const float more = __shfl_down_sync(all, own[j], 1);
        if (after) own[WIDE + j] += more;
    }
#endif
}

// Adds the sums of a row to memory. `to` is the element of the first thread, `numbers` what is
// added to the elements from LOW before it to HIGH after that of the last one.
template <int LOW, int HIGH>
ENG_INLINE void add_row(float& to, float* numbers, const spot_t& spot) {
    float* const at = &to;
    float* const own = numbers - LOW;
    if constexpr (LOW > 0 || HIGH < 0) {  // not all of the row is meant
        ENG_UNROLL
        for (int j = LOW; j < WIDE + HIGH; ++j) atomic_t<float>::add(at[j], own[j]);
    } else {
        bool before, after;
        exchange<LOW, HIGH>(own, spot, before, after);
        ENG_UNROLL
        for (int j = LOW; j < 0; ++j)
            if (!before) atomic_t<float>::add(at[j], own[j]);
        ENG_UNROLL
        for (int j = WIDE; j < WIDE + HIGH; ++j)
            if (!after) atomic_t<float>::add(at[j], own[j]);
#if !defined(ENG_ONE_BY_ONE) && __CUDA_ARCH__ >= 900 && ENG_CUDA >= 1201
        asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(__cvta_generic_to_global(at)), "f"(own[0]), "f"(own[1]), "f"(own[2]),
                       "f"(own[3])
                     : "memory");
#else
        ENG_UNROLL
        for (int j = 0; j < WIDE; ++j) atomic_t<float>::add(at[j], own[j]);
#endif
    }
}

// Adds the numbers of all threads of a block, each of which comes here, to an element. What was not
// touched, is not now.
#ifdef ENG_ONE_BY_ONE
// Of threads that come one after the other, the last one of a block adds what all have left, as
// warps would. Each comes as often.
template <class T> struct left_t {
    static constexpr int CALLS = 256, THREADS = 1024;
    T numbers[CALLS][THREADS];
    unsigned came[CALLS];
    unsigned thread;
    int call, open;

    ENG_MEMBER static T warp(const T* from, unsigned first, unsigned count) {
        T now[32];
        for (unsigned i = 0; i < 32; ++i)
            now[i] = first + i < count ? from[first + i] : sum_t<T>::blank();
        for (int apart = 16; apart; apart >>= 1) {
            T next[32];
            for (int i = 0; i < 32; ++i) next[i] = update_t<T>::add(now[i], now[i ^ apart]);
            for (int i = 0; i < 32; ++i) now[i] = next[i];
        }
        return now[0];
    }
};
template <class T> ENG_INLINE void gather(T& to, T v) {
    static left_t<T> left;
    if (!left.open || left.thread != threadIdx.x) left.thread = threadIdx.x, left.call = 0;
    const int k = left.call++;
    left.open += left.came[k] == 0;
    left.numbers[k][threadIdx.x] = v;
    if (++left.came[k] < blockDim.x) return;
    left.came[k] = 0;
    --left.open;
    T parts[32];
    const unsigned warps = (blockDim.x + 31) / 32;
    for (unsigned w = 0; w < warps; ++w)
        parts[w] = left_t<T>::warp(left.numbers[k], 32 * w, blockDim.x);
    v = left_t<T>::warp(parts, 0, warps);
    if (!is_blank(v)) atomic_t<T>::add(to, v);
}
#else
template <class T> ENG_INLINE void gather(T& to, T v) {
    __shared__ T parts[32];
    const unsigned warp = threadIdx.x / 32, in_warp = threadIdx.x % 32;
    v = gather_warp(v);
    if (in_warp == 0) parts[warp] = v;
    __syncthreads();
    if (warp == 0) {
        v = gather_warp(in_warp < blockDim.x / 32 ? parts[in_warp] : sum_t<T>::blank());
        if (in_warp == 0 && !is_blank(v)) atomic_t<T>::add(to, v);
    }
    __syncthreads();
}
#endif
template <int N, class T> ENG_INLINE void gather(vec_t<N, T>& to, const vec_t<N, T>& v) {
    for (int i = 0; i < N; ++i) gather(to.c[i], v.c[i]);
}
template <int R, int C, class T>
ENG_INLINE void gather(mat_t<R, C, T>& to, const mat_t<R, C, T>& v) {
    for (int i = 0; i < R * C; ++i) gather(to.c[i], v.c[i]);
}

}  // namespace eng

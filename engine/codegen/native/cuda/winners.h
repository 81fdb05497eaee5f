// Minima and maxima whose winner the adjoint asks for. In no order of the threads it is the one of
// the CPU, which runs one after the other: the first thread, and the first update of it, whose
// value beats all others and what was there.
//
// Each update keeps its value in its slot of the journal. Slots lie in the order of the threads, so
// that the address of a slot says how early an update is. A claim holds that of the best update of
// a scalar so far, and whether one of this value replaced anything. Who is beaten is told so in
// its slot: by a value that nothing beats. `crowns.h` tells the winners afterwards.
#pragma once
#include "atomic.h"
#include "saved.h"

namespace eng {

// No address has these bits: whether somebody with this value replaced something, and that it is
// the greatest one that wins.
constexpr uint64_t REPLACED = uint64_t(1) << 63, GREATEST = uint64_t(1) << 62;
constexpr uint64_t SLOT = GREATEST - 1;

// Numbers that other threads read or write meanwhile.
template <class T> ENG_INLINE T seen_at(uint64_t address) {
    using word = typename word_t<sizeof(T)>::type;
    const word now = *reinterpret_cast<volatile const word*>(address);
    return reinterpret<T>(now);
}
template <class T> ENG_INLINE void show_at(uint64_t address, T v) {
    using word = typename word_t<sizeof(T)>::type;
    *reinterpret_cast<volatile word*>(address) = reinterpret<word>(v);
}

// What no number is greater than, or less than. Only floats have gradients.
template <bool MAX, class T> ENG_INLINE T unbeaten() {
    return MAX ? infinity<T>() : T(-infinity<T>());
}

template <bool MAX, class T> ENG_INLINE bool beats(T a, T b) { return MAX ? a > b : a < b; }

// An update with v that found `before`. mine: the address of its slot, which holds no claim yet.
template <bool MAX, class T>
ENG_INLINE void compete(const eng_claims& to, T& place, T before, T v, uint64_t mine) {
    const bool replaced = beats<MAX>(v, before) || (before != before && v == v);
    if (!replaced && !(v == before)) {
        show_at(mine, unbeaten<MAX, T>());
        return;
    }
    show_at(mine, v);
    __threadfence();
    unsigned long long* const at =
        to.words + (reinterpret_cast<uint64_t>(&place) - to.base) / sizeof(T);
    const uint64_t mark = (replaced ? REPLACED : 0) | (MAX ? GREATEST : 0);
    uint64_t claim = *reinterpret_cast<volatile unsigned long long*>(at);
    for (;;) {
        const uint64_t theirs = claim & SLOT;
        uint64_t next = mine | mark;
        if (theirs) {
            __threadfence();
            const T other = seen_at<T>(theirs);  // it may be beaten by now, and the claim another
            __threadfence();
            if (v == other) next = (theirs < mine ? theirs : mine) | (claim & REPLACED) | mark;
            else if (!beats<MAX>(v, other)) next = claim;
        }
        const uint64_t now = next == claim ? *reinterpret_cast<volatile unsigned long long*>(at)
                                           : atomicCAS(at, claim, next);
        if (now == claim) {
            __threadfence();
            if ((next & SLOT) != mine) show_at(mine, unbeaten<MAX, T>());
            else if (theirs) show_at(theirs, unbeaten<MAX, T>());
            return;
        }
        claim = now;
    }
}
template <bool MAX, int N, class T>
ENG_INLINE void compete(const eng_claims& to, vec_t<N, T>& place, const vec_t<N, T>& before,
                        const vec_t<N, T>& v, uint64_t mine) {
    for (int i = 0; i < N; ++i)
        compete<MAX>(to, place.c[i], before.c[i], v.c[i], mine + i * sizeof(T));
}
template <bool MAX, int R, int C, class T>
ENG_INLINE void compete(const eng_claims& to, mat_t<R, C, T>& place, const mat_t<R, C, T>& before,
                        const mat_t<R, C, T>& v, uint64_t mine) {
    for (int i = 0; i < R * C; ++i)
        compete<MAX>(to, place.c[i], before.c[i], v.c[i], mine + i * sizeof(T));
}

#if defined(ENG_ONE_BY_ONE) || __CUDA_ARCH__ < 800
template <bool MAX, class T> ENG_INLINE bool is_beaten_near(T&, T, uint64_t) { return false; }
#else
// Whether another thread of the warp updates the same place with more, or with as much and is
// earlier, as slots tell. Numbers are compared as integers, of which a warp finds the greatest at once.
template <bool MAX, class T> ENG_INLINE bool is_beaten_near(T& place, T v, uint64_t mine) {
    if constexpr (sizeof(T) == 4) {
        const unsigned active = __activemask();
        int same = 0;
        __match_all_sync(active, reinterpret_cast<unsigned long long>(&place), &same);
        if (!same) return false;
        const int bits = reinterpret<int>(v), key = bits ^ int(unsigned(bits >> 31) >> 1);
        const int best = MAX ? __reduce_max_sync(active, key) : __reduce_min_sync(active, key);
        const int one = __ffs(int(__ballot_sync(active, key == best))) - 1;
        const uint64_t theirs = __shfl_sync(active, static_cast<unsigned long long>(mine), one);
        const T other = reinterpret<T>(best ^ int(unsigned(best >> 31) >> 1));
        return key == best ? theirs < mine : beats<MAX>(other, v);
    }
    return false;
}
#endif

// Whether an update surely does not win: where others only replace a number by what beats it, one
// that was there once is enough to know. Memory that is far is not asked again for each thread.
template <bool MAX, class T> ENG_INLINE bool is_beaten(T& place, const T& v, uint64_t mine) {
    if constexpr (is_float<T> && sizeof(T) >= 4) {
        if (v != v || beats<MAX>(T(place), v)) return true;
        return is_beaten_near<MAX>(place, v, mine);
    }
    return false;
}

// An atomic update, with what the adjoint needs of it: what was there before, or where there are
// claims to the array, what only a winner beats.
template <bool MAX, class T> ENG_INLINE bool update_won(ctx_t& c, int array, T& place, const T& v) {
    const uint64_t mine = reinterpret_cast<uint64_t>(c.journal.data) + c.journal.size;
    if constexpr (is_float<T>)
        if (c.claims[array].words && is_beaten<MAX>(place, v, mine))
            return journal_write(c, unbeaten<MAX, T>());
    const T before = MAX ? atomic_t<T>::max(place, v) : atomic_t<T>::min(place, v);
    if (!journal_write(c, before)) return false;
    if (c.claims[array].words) compete<MAX>(c.claims[array], place, before, v, mine);
    return true;
}
template <class T> ENG_INLINE bool min_won(ctx_t& c, int array, T& place, const T& v) {
    return update_won<false>(c, array, place, v);
}
template <class T> ENG_INLINE bool max_won(ctx_t& c, int array, T& place, const T& v) {
    return update_won<true>(c, array, place, v);
}

}  // namespace eng

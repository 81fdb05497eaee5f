// Watched kernels: accesses outside of something. Mirrored by engine/runtime/watch.py, which makes
// and reads all of it.
#pragma once
#include "array.h"
#include "context.h"

namespace eng {

// What was seen at one place of the code, of the first thread that was seen there. Words that
// are not told are 0.
struct fault_t {
    int64_t count;   // how often
    int64_t thread;  // its linear index
    int64_t at[4];   // the index; of a race the address, and the kinds of both touches
    int64_t shape[4];  // of what is accessed
    int64_t other;   // of a race, the thread that it meets, and its place; else the device's own
    int64_t place;
    int64_t same;    // of a race, how often it changed nothing
    int64_t mixed;   // of a race, how often one side was atomic and the other only read
};

struct region_t;  // see races.h

struct watch_t {
    int64_t lock;
    int64_t regions;
    int64_t shift;  // a cell is of 1 << shift bytes
    region_t* region;
    fault_t faults[1];
};

}  // namespace eng

// Has `outside`, which notes an access and gives false.
#include "note.h"

namespace eng {

// By value, so that what is looked at need not live in memory.
template <class T, int N, bool FLAT, class... I>
ENG_COLD bool astray(const ctx_t& c, int64_t place, array_t<T, N, FLAT> a, I... i) {
    const int64_t at[] = {int64_t(i)...};
    return outside(c, place, at, a.shape, N);
}

// Whether an index is inside of an array; notes it if not.
template <class T, int N, bool FLAT, class... I>
ENG_INLINE bool inside(const ctx_t& c, int64_t place, const array_t<T, N, FLAT>& a, I... i) {
    const int64_t at[] = {int64_t(i)...};
    bool ok = true;
    for (int d = 0; d < N; ++d) ok &= uint64_t(at[d]) < uint64_t(a.shape[d]);
    return ENG_LIKELY(ok) ? true : astray(c, place, a, i...);
}

// The same for an index of something of a known length, or two of them.
ENG_COLD bool astray(const ctx_t& c, int64_t place, int64_t n, int64_t i) {
    return outside(c, place, &i, &n, 1);
}
ENG_INLINE bool among(const ctx_t& c, int64_t place, int64_t n, int64_t i) {
    return ENG_LIKELY(uint64_t(i) < uint64_t(n)) ? true : astray(c, place, n, i);
}
ENG_INLINE bool among(const ctx_t& c, int64_t place, int64_t n, int64_t m, int64_t i, int64_t j) {
    const int64_t at[] = {i, j}, shape[] = {n, m};
    const bool ok = uint64_t(i) < uint64_t(n) && uint64_t(j) < uint64_t(m);
    return ENG_LIKELY(ok) ? true : outside(c, place, at, shape, 2);
}
// An index along a dimension of a view. For one outside of it, an index that no array has: what it
// accesses is outside of the array too.
template <class I> ENG_INLINE I within(const ctx_t& c, int64_t place, I i, int64_t n) {
    if (ENG_LIKELY(uint64_t(int64_t(i)) < uint64_t(n))) return i;
    astray(c, place, n, int64_t(i));
    return I(-(int64_t(1) << 28));
}

}  // namespace eng

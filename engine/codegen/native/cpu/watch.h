// Watched kernels: accesses outside of something, and threads that meet in one element. Mirrored
// by engine/runtime/watch.py, which makes and reads all of it.
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
    int64_t other;   // of a race, the thread that it meets, and its place
    int64_t place;
    int64_t same;    // of a race, how often it changed nothing
    int64_t mixed;   // of a race, how often one side was atomic and the other only read
};

// What happened to a few bytes: for writers, readers and atomics the last thread, counted from 1,
// and another one. Of a writer the place has the bit CHANGED if it changed what was there.
struct cell_t {
    int32_t thread[6];
    int32_t place[6];
};
struct region_t {
    int64_t begin, end;  // addresses
    cell_t* cells;
};
struct watch_t {
    int64_t lock;
    int64_t regions;
    int64_t shift;  // a cell is of 1 << shift bytes
    region_t* region;
    fault_t faults[1];
};

ENG_INLINE void lock(watch_t* w) {
    while (__atomic_test_and_set(&w->lock, __ATOMIC_ACQUIRE)) {}
}
ENG_INLINE void unlock(watch_t* w) { __atomic_clear(&w->lock, __ATOMIC_RELEASE); }

static __attribute__((noinline, cold, unused)) bool outside(
    const ctx_t& c, int64_t place, const int64_t* at, const int64_t* shape, int n) {
    if (place < 0) return false;  // nobody wants to know
    lock(c.watch);
    fault_t& f = c.watch->faults[place];
    if (!f.count++ || c.thread < f.thread) {
        f.thread = c.thread;
        for (int d = 0; d < n; ++d) f.at[d] = at[d], f.shape[d] = shape[d];
    }
    unlock(c.watch);
    return false;
}

// By value, so that what is looked at need not live in memory.
template <class T, int N, bool FLAT, class... I>
static __attribute__((noinline, cold)) bool astray(
    const ctx_t& c, int64_t place, array_t<T, N, FLAT> a, I... i) {
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
static __attribute__((noinline, cold, unused)) bool astray(
    const ctx_t& c, int64_t place, int64_t n, int64_t i) {
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

enum touch_t : int { touch_write = 0, touch_read = 1, touch_atomic = 2 };
constexpr int32_t CHANGED = 1 << 30;

static __attribute__((noinline, cold, unused)) void meet(
    const ctx_t& c, int64_t place, int64_t address, int mine, int theirs,
    int32_t other, int32_t its, bool same) {
    fault_t& f = c.watch->faults[place];
    const bool mixed = mine + theirs == touch_read + touch_atomic;
    const bool plain = !same && !mixed;
    // What matters more is told first.
    const int rank = plain ? 2 : mixed ? 1 : 0;
    const int known = f.count ? 2 : f.mixed ? 1 : f.same ? 0 : -1;
    f.count += plain, f.mixed += !same && mixed, f.same += same;
    if (rank <= known) return;
    f.thread = c.thread, f.other = other - 1, f.place = its & ~CHANGED;
    f.at[0] = address, f.at[1] = mine, f.at[2] = theirs;
}

// One access, by a thread of a launch whose threads run one after the other.
static __attribute__((noinline, unused)) void touch(
    const ctx_t& c, int64_t place, const void* p, int64_t bytes, touch_t kind, bool changed) {
    const int64_t address = reinterpret_cast<int64_t>(p);
    const watch_t& w = *c.watch;
    const int32_t me = int32_t(c.thread + 1);
    for (int64_t r = 0; r < w.regions; ++r) {
        const region_t& at = w.region[r];
        if (address < at.begin || address >= at.end) continue;
        const int64_t first = (address - at.begin) >> w.shift;
        const int64_t last = (address + bytes - 1 - at.begin) >> w.shift;
        for (int64_t k = first; k <= last; ++k) {
            cell_t& cell = at.cells[k];
            for (int other = 0; other < 3; ++other) {
                if (other == kind && kind != touch_write) continue;
                int worst = -1;
                bool same = true;
                for (int s = 2 * other; s < 2 * other + 2; ++s) {
                    if (!cell.thread[s] || cell.thread[s] == me) continue;
                    const bool its = cell.place[s] & CHANGED;
                    // A value that is there already may be stored at any time; what was read
                    // before is what is there after.
                    const bool calm = kind == touch_write ? !changed
                                      : other == touch_write ? !its : false;
                    if (worst < 0 || (same && !calm)) worst = s, same = calm;
                }
                if (worst >= 0)
                    meet(c, place, address, kind, other, cell.thread[worst],
                         cell.place[worst], same);
            }
            int32_t* t = cell.thread + 2 * kind;
            int32_t* q = cell.place + 2 * kind;
            const int32_t mark = int32_t(place) | (changed ? CHANGED : 0);
            if (t[0] == me) {
                if (changed && !(q[0] & CHANGED)) q[0] = mark;
            } else {
                // The other one that is kept is one that changed something, if there is any.
                if (t[0] && !(t[1] && t[1] != me && (q[1] & CHANGED) && !(q[0] & CHANGED)))
                    t[1] = t[0], q[1] = q[0];
                t[0] = me, q[0] = mark;
            }
        }
        return;
    }
}

template <class T> ENG_INLINE const T& read(const ctx_t& c, int64_t place, const T& at) {
    touch(c, place, &at, sizeof(T), touch_read, false);
    return at;
}
template <class T> ENG_INLINE T& update(const ctx_t& c, int64_t place, T& at) {
    touch(c, place, &at, sizeof(T), touch_atomic, true);
    return at;
}
template <class T> ENG_INLINE void write(const ctx_t& c, int64_t place, T& at, const T& value) {
    const bool changed = __builtin_memcmp(&at, &value, sizeof(T)) != 0;
    touch(c, place, &at, sizeof(T), touch_write, changed);
    at = value;
}

}  // namespace eng

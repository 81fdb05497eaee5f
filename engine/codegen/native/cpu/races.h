// Threads of one launch that meet in one element: see watch.h.
#pragma once
#include "watch.h"

namespace eng {

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
enum touch_t : int { touch_write = 0, touch_read = 1, touch_atomic = 2 };
constexpr int32_t CHANGED = 1 << 30;

ENG_COLD void meet(
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

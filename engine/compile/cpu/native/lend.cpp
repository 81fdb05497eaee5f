// Runs launches of which some arrays are not contiguous, or one: see lend.h.
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "lend.h"
#include "sums.h"

namespace {

using namespace eng;

// A box of an array's elements: there (`far`), and here, where the last axis is contiguous.
struct lent_t {
    const touched_t* loan;
    unsigned char *far, *near, *old;
    int64_t bytes;
    int64_t low[4], count[4], shape[4], steps[4], pitch[4];
};

int64_t size_of(int64_t step) { return step < 0 ? -step : step; }

// Elements of a column that are copied at once, a line; columns that are asked for ahead of time.
constexpr int64_t strip = 16, ahead = 16;

// Words of four rows and columns that are next to each other: in the rows, and in the columns.
#if defined(__clang__) || __GNUC__ >= 12
constexpr bool turns = true;
typedef uint32_t words_t __attribute__((vector_size(16)));
inline words_t load(const unsigned char* p) {
    words_t w;
    memcpy(&w, p, sizeof(w));
    return w;
}
inline void store(unsigned char* p, words_t w) { memcpy(p, &w, sizeof(w)); }
inline words_t low(words_t a, words_t b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
inline words_t high(words_t a, words_t b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
inline words_t first(words_t a, words_t b) { return __builtin_shufflevector(a, b, 0, 1, 4, 5); }
inline words_t second(words_t a, words_t b) { return __builtin_shufflevector(a, b, 2, 3, 6, 7); }
inline void turn(const unsigned char* from, int64_t from_step, unsigned char* to, int64_t to_step) {
    const words_t a = load(from), b = load(from + from_step);
    const words_t c = load(from + 2 * from_step), d = load(from + 3 * from_step);
    store(to, first(low(a, b), low(c, d)));
    store(to + to_step, second(low(a, b), low(c, d)));
    store(to + 2 * to_step, first(high(a, b), high(c, d)));
    store(to + 3 * to_step, second(high(a, b), high(c, d)));
}
#else
constexpr bool turns = false;
inline void turn(const unsigned char*, int64_t, unsigned char*, int64_t) {}
#endif

// n rows of m elements. by_column: elements of a column are nearer to each other than those of a row.
template <int S, bool BACK>
void copy_plane(unsigned char* far, int64_t far_n, int64_t far_m, unsigned char* near,
                int64_t near_n, int64_t n, int64_t m, bool by_column) {
    if (!by_column) {
        for (int64_t i = 0; i < n; ++i, far += far_n, near += near_n) {
            if (far_m == S) {
                memcpy(BACK ? far : near, BACK ? near : far, size_t(m * S));
                continue;
            }
            for (int64_t j = 0; j < m; ++j) {
                if (BACK) memcpy(far + j * far_m, near + j * S, S);
                else memcpy(near + j * S, far + j * far_m, S);
            }
        }
        return;
    }
    for (int64_t at = 0; at < n; at += strip) {
        const int64_t some = least(strip, n - at);
        int64_t j = 0;
        if (turns && S == 4 && far_n == 4 && some == strip)
            for (; j + 4 <= m; j += 4) {
                // Lines are far from each other, so that the processor does not foresee them.
                for (int64_t k = 0; k < 4; ++k)
                    __builtin_prefetch(far + at * 4 + (j + ahead + k) * far_m);
                ENG_UNROLL for (int64_t i = 0; i < strip; i += 4) {
                    unsigned char* there = far + (at + i) * 4 + j * far_m;
                    unsigned char* here = near + (at + i) * near_n + j * 4;
                    if (BACK) turn(here, near_n, there, far_m);
                    else turn(there, far_m, here, near_n);
                }
            }
        for (; j < m; ++j) {
            unsigned char* there = far + at * far_n + j * far_m;
            unsigned char* here = near + at * near_n + j * S;
            for (int64_t i = 0; i < some; ++i) {
                if (BACK) memcpy(there + i * far_n, here + i * near_n, S);
                else memcpy(here + i * near_n, there + i * far_n, S);
            }
        }
    }
}

template <int S, bool BACK> void copy_box(const lent_t& a, int64_t size) {
    const int last = a.loan->axes - 1;
    int p = -1;  // the axis of the rows
    for (int d = 0; d < last; ++d)
        if (a.count[d] > 1 && (p < 0 || size_of(a.steps[d]) < size_of(a.steps[p]))) p = d;
    const bool column = p >= 0 && size_of(a.steps[p]) < size_of(a.steps[last]);
    const int64_t n = p < 0 ? 1 : a.count[p];
    const int64_t far_n = p < 0 ? 0 : a.steps[p], near_n = p < 0 ? 0 : a.pitch[p];
    int64_t i[4] = {};
    for (;;) {
        unsigned char *far = a.far, *near = a.near;
        for (int d = 0; d < last; ++d) far += i[d] * a.steps[d], near += i[d] * a.pitch[d];
        if (S) {
            copy_plane<S ? S : 1, BACK>(far, far_n, a.steps[last], near, near_n, n, a.count[last],
                                        column);
        } else {
            for (int64_t k = 0; k < n; ++k)
                for (int64_t j = 0; j < a.count[last]; ++j) {
                    unsigned char* there = far + k * far_n + j * a.steps[last];
                    unsigned char* here = near + k * near_n + j * size;
                    memcpy(BACK ? there : here, BACK ? here : there, uint64_t(size));
                }
        }
        int d = last - 1;
        for (; d >= 0; --d) {
            if (d == p) continue;
            if (++i[d] < a.count[d]) break;
            i[d] = 0;
        }
        if (d < 0) return;
    }
}

template <bool BACK> void copy(const lent_t& a) {
    switch (a.loan->size) {
        case 4: return copy_box<4, BACK>(a, 4);
        case 8: return copy_box<8, BACK>(a, 8);
        case 12: return copy_box<12, BACK>(a, 12);
        case 16: return copy_box<16, BACK>(a, 16);
        default: return copy_box<0, BACK>(a, a.loan->size);
    }
}

template <class T> void put_changes(unsigned char* far, const unsigned char* near,
                                    const unsigned char* old, int64_t size) {
    for (int64_t k = 0; k < size; k += int64_t(sizeof(T)))
        if (memcmp(near + k, old + k, sizeof(T)) != 0) memcpy(far + k, near + k, sizeof(T));
}

// Does something for each row of a box, there and here.
template <class F> void for_rows(const lent_t& a, F row) {
    const int last = a.loan->axes - 1;
    int64_t i[4] = {};
    for (;;) {
        unsigned char *far = a.far, *near = a.near;
        for (int d = 0; d < last; ++d) far += i[d] * a.steps[d], near += i[d] * a.pitch[d];
        row(far, near);
        int d = last - 1;
        for (; d >= 0; --d) {
            if (++i[d] < a.count[d]) break;
            i[d] = 0;
        }
        if (d < 0) return;
    }
}

// Brings back what is no longer as it was, and leaves the rest to whom it belongs.
void bring_changes(const lent_t& a) {
    const int last = a.loan->axes - 1;
    const int64_t size = a.loan->size, to_old = a.old - a.near;
    for_rows(a, [&](unsigned char* far, unsigned char* near) {
        for (int64_t j = 0; j < a.count[last]; ++j, far += a.steps[last], near += size) {
            if (size % 4) put_changes<uint8_t>(far, near, near + to_old, size);
            else put_changes<uint32_t>(far, near, near + to_old, size);
        }
    });
}

// What an argument says of an array.
void look(const unsigned char* args, const touched_t& loan, int64_t* shape, int64_t* steps) {
    memcpy(shape, args + loan.at + 8, 8 * size_t(loan.axes));
    memcpy(steps, args + loan.at + 8 + 8 * loan.axes, 8 * size_t(loan.axes));
}

// Whether no two elements share memory, in whatever order the axes lie.
bool tell_apart(const touched_t& loan, const int64_t* shape, const int64_t* steps) {
    int64_t reach = loan.size;
    unsigned done = 0;
    for (int k = 0; k < loan.axes; ++k) {
        int next = -1;
        for (int d = 0; d < loan.axes; ++d)
            if (!(done >> d & 1) && shape[d] > 1 &&
                (next < 0 || size_of(steps[d]) < size_of(steps[next]))) next = d;
        if (next < 0) return true;
        done |= 1u << next;
        if (size_of(steps[next]) < reach) return false;
        reach += size_of(steps[next]) * (shape[next] - 1);
    }
    return true;
}

// Whether two arrays whose memory meets have no byte in common: fields of one array of structs.
bool interleave(const unsigned char* args, const touched_t& a, const touched_t& b) {
    int64_t g = 0;
    for (int k = 0; k < 2; ++k) {
        const touched_t& x = k ? a : b;
        int64_t shape[4], steps[4];
        look(args, x, shape, steps);
        for (int d = 0; d < x.axes; ++d)
            for (int64_t s = shape[d] > 1 ? size_of(steps[d]) : 0; s;) {
                const int64_t rest = g % s;
                g = s, s = rest;
            }
    }
    if (!g) return false;
    int64_t by = (reinterpret_cast<int64_t>(data(args, a.at)) -
                  reinterpret_cast<int64_t>(data(args, b.at))) % g;
    by += by < 0 ? g : 0;
    return by >= b.size && by + a.size <= g;
}

// Whether a thread has the same element of both arrays, and of no other elements any.
bool are_one(const unsigned char* args, const touched_t& a, const touched_t& b) {
    if (!a.lends || !b.lends || a.size != b.size || a.axes != b.axes) return false;
    if (data(args, a.at) != data(args, b.at)) return false;
    int64_t shape[2][4], steps[2][4];
    look(args, a, shape[0], steps[0]);
    look(args, b, shape[1], steps[1]);
    for (int d = 0; d < a.axes; ++d) {
        const along_t &x = a.along[d], &y = b.along[d];
        if (x.axis != y.axis || x.low != x.high || y.low != y.high || x.low != y.low) return false;
        if (x.more || y.more || shape[0][d] != shape[1][d]) return false;
        if (shape[0][d] > 1 && steps[0][d] != steps[1][d]) return false;
    }
    return true;
}

// Bytes that are lent at once; for `strip` rows of the grid, and for threads that must not be cut,
// at most. Sums run over blocks of so many threads, or less.
constexpr int64_t room = 1 << 15, tall = 1 << 22, most = 1 << 28, block = 256;

class Lender {
  public:
    Lender(const unsigned char* args, eng_launch* L, const kernel_t& how, run_t plain)
        : args(args), L(L), how(how), plain(plain), begin(L->begin), end(L->end) {}
    ~Lender() { free(memory); }

    bool can(const extent_t* arrays) {
        const int64_t width = L->dim[how.axes - 1];
        if ((end - begin < how.few && !how.sums) || end <= begin || how.count > 64 || how.bytes > int64_t(sizeof(own))) return false;
        int64_t each = 0, bytes = 0;
        bool turned = false, twice[64] = {};  // arrays that are written by another name, too
        for (int64_t k = 0; k < how.count; ++k) {
            for (int64_t j = 0; j < k; ++j) {
                const extent_t &a = arrays[k], &b = arrays[j];
                const touched_t &x = how.arrays[k], &y = how.arrays[j];
                if (!(a.writes || b.writes) || a.low >= b.high || b.low >= a.high ||
                    interleave(args, x, y)) continue;
                if (!(x.early || y.early) || !are_one(args, x, y)) return false;
                twice[x.early ? k : j] = true;
            }
        }
        for (int64_t k = 0; k < how.count; ++k) {
            const touched_t& loan = how.arrays[k];
            if (arrays[k].usable && !twice[k]) continue;
            if (!loan.lends) return false;
            lent_t& a = lent[n++];
            a.loan = &loan;
            look(args, loan, a.shape, a.steps);
            if (loan.writes && !tell_apart(loan, a.shape, a.steps)) return false;
            each += loan.size;
            if (!arrays[k].usable) bytes += loan.writes ? 2 * loan.size : loan.size;
            for (int d = 0; d < loan.axes - 1; ++d)
                turned |= a.shape[d] > 1 && size_of(a.steps[d]) < size_of(a.steps[loan.axes - 1]);
        }
        if (!n) return false;
        some = room / each / block * block;
        some = some > block ? some : block;
        rows = some / (width > 0 ? width : 1);
        turned = turned && (rows >= strip || width < tall / (strip * each));
        if (turned && rows < strip) rows = strip;
        // Of columns, lines would be read again for each row.
        if (!turned && bytes > 4 * int64_t(how.words)) return false;
        // Which threads go which way must not depend on how a launch is cut: sums would.
        if (how.sums && !find(zero, L->dim, false)) return false;
        const int64_t all = end - begin;
        if (how.sums == sums_launch && (all > most / each || !box(begin, all))) return false;
        memcpy(own, args, size_t(how.bytes));
        return true;
    }

    void run() {
        for (int64_t left = end - begin; left > 0;) {
            const int64_t count = how.sums == sums_launch ? left : next(left);
            const int64_t first = how.down ? begin + left - count : end - left;
            left -= count;
            L->begin = first, L->end = first + count;
            if (box(first, count)) {
                place();
                how.go(own, L);
                for (int k = 0; k < n; ++k) {
                    if (!lent[k].loan->writes) continue;
                    if (lent[k].loan->sure) copy<true>(lent[k]);
                    else bring_changes(lent[k]);
                }
            } else {
                plain(args, L);
            }
            if (!L->error) continue;
            L->begin = begin;
            if (!how.down) L->end = end;  // else it says which threads are left to do
            return;
        }
        L->begin = begin, L->end = end;
    }

  private:
    const unsigned char* args;
    eng_launch* L;
    const kernel_t& how;
    run_t plain;
    int64_t begin, end;
    int64_t some = 0, rows = 0;  // threads, or rows of the grid, at once
    int n = 0;
    unsigned char* memory = nullptr;
    int64_t had = 0;
    const int64_t zero[4] = {};
    lent_t lent[64];
    alignas(8) unsigned char own[4096];  // arguments

    // How many threads come next, of those that are left: of one row, or some whole rows.
    int64_t next(int64_t left) const {
        const int last = how.axes - 1;
        const int64_t width = L->dim[last];
        int64_t c[4];
        coordinates<4>(*L, how.down ? begin + left - 1 : end - left, c);
        const int64_t x = how.down ? c[last] + 1 : width - c[last];
        if (last > 0 && rows > 0 && x == width && left >= width) {
            const int64_t y = how.down ? c[last - 1] + 1 : L->dim[last - 1] - c[last - 1];
            return least(least(rows, y), left / width) * width;
        }
        return least(how.sums == sums_row ? x : least(x, some), left);
    }

    // Finds what some threads touch, and memory for it. False where these are no box of the grid.
    bool box(int64_t first, int64_t count) {
        int64_t from[4], to[4];
        coordinates<4>(*L, first, from);
        coordinates<4>(*L, first + count - 1, to);
        for (int d = 0; d < how.axes; ++d) {
            const int64_t along = ++to[d] - from[d];
            if (along <= 0 || count % along) return false;
            count /= along;
        }
        return count == 1 && find(from, to, true);
    }

    // The same for a box. False where that is not inside of an array, or there is no memory.
    bool find(const int64_t* from, const int64_t* to, bool takes) {
        int64_t need = 64;
        for (int k = 0; k < n; ++k) {
            lent_t& a = lent[k];
            const int last = a.loan->axes - 1;
            int64_t pitch = a.loan->size;
            for (int d = last; d >= 0; --d) {
                const along_t& g = a.loan->along[d];
                a.low[d] = (g.axis < 0 ? 0 : from[g.axis]) + g.low;
                int64_t high = (g.axis < 0 ? 0 : to[g.axis] - 1) + g.high;
                if (a.low[d] < 0 || high >= a.shape[d]) return false;
                a.low[d] -= least(g.more, a.low[d]);
                high += least(g.more, a.shape[d] - 1 - high);
                a.count[d] = high - a.low[d] + 1;
                a.pitch[d] = pitch;
                pitch *= a.count[d];
                // Rows of whole lines, which do not all fall on one place of the cache.
                if (d == last) pitch = (pitch + 127) / 64 * 64;
            }
            a.bytes = pitch;
            need += a.loan->writes && !a.loan->sure ? 2 * pitch : pitch;
        }
        if (takes && need > had) {
            free(memory);
            memory = need > 2 * most ? nullptr : static_cast<unsigned char*>(malloc(size_t(need)));
            had = memory ? need : 0;
        }
        return !takes || memory;
    }

    // Copies what they touch, and tells arguments of it.
    void place() {
        unsigned char* at = memory + (64 - reinterpret_cast<uint64_t>(memory) % 64) % 64;
        for (int k = 0; k < n; ++k) {
            lent_t& a = lent[k];
            const int64_t axes = a.loan->axes;
            a.far = data(args, a.loan->at), a.near = at;
            uint64_t zero = reinterpret_cast<uint64_t>(at);
            for (int d = 0; d < axes; ++d) {
                a.far += a.low[d] * a.steps[d];
                zero -= uint64_t(a.low[d] * a.pitch[d]);
            }
            memcpy(own + a.loan->at, &zero, 8);
            memcpy(own + a.loan->at + 8 + 8 * axes, a.pitch, 8 * size_t(axes));
            at += a.bytes;
            copy<false>(a);
            if (!a.loan->writes || a.loan->sure) continue;
            a.old = at;
            memcpy(a.old, a.near, size_t(a.bytes));
            at += a.bytes;
        }
    }
};

}  // namespace

ENG_EXPORT bool eng_lend(const unsigned char* args, eng_launch* L, const extent_t* arrays,
                         const kernel_t* how, run_t plain) {
    Lender lender(args, L, *how, plain);
    if (!lender.can(arrays)) return false;
    lender.run();
    return true;
}

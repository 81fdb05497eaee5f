// Adjoints whose threads each read one cotangent, their own, which lies elsewhere: see
// `engine.compile.cpu.seeded`.
#pragma once
#include <string.h>

namespace {

// Before the arguments of the adjoint.
struct seeded_t {
    entry_t entry;
    unsigned char* to;          // where the adjoint reads cotangents
    const unsigned char* from;  // where they lie
    int64_t size;               // bytes of one
    int64_t some;               // threads that run at once
    int64_t bytes, at;          // of the arguments; where they name `to`
    int64_t* left;              // set where anything but zeros is left there; null: nothing is
    // Memory near by, if what `to` holds is zero: for so many at a time, each of `step` bytes, and
    // as far from all else as `to` is large, so that arrays that begin before it meet no other.
    unsigned char *near, *taken;
    int64_t count, step;
};

bool is_zero(const unsigned char* p, int64_t bytes) {
    uint64_t any = 0;
    int64_t k = 0;
    for (; k + 8 <= bytes; k += 8) {
        uint64_t w;
        memcpy(&w, p + k, 8);
        any |= w;
    }
    for (; k < bytes; ++k) any |= p[k];
    return any == 0;
}

// A part of the memory near by, while this lives; null for none.
class place_t {
  public:
    explicit place_t(const seeded_t& s) : s(s) {
        while (number < s.count && __atomic_exchange_n(s.taken + number, 1, __ATOMIC_ACQUIRE)) ++number;
    }
    ~place_t() {
        if (number < s.count) __atomic_store_n(s.taken + number, 0, __ATOMIC_RELEASE);
    }
    place_t(const place_t&) = delete;
    void operator=(const place_t&) = delete;

    unsigned char* get() const { return number < s.count ? s.near + number * s.step : nullptr; }

  private:
    const seeded_t& s;
    int64_t number = 0;
};

}  // namespace

// Runs some threads at a time, the last ones first, as adjoints do, right after their cotangents
// were copied: they are near then. As if all had been copied before, whatever comes of it.
ENG_EXPORT void eng_pool_seeded(const unsigned char* args, eng_launch* L) {
    alignas(16) unsigned char own[4096];
    seeded_t s;
    memcpy(&s, args, sizeof(s));
    args += sizeof(s);
    const place_t place(s);
    unsigned char* const here = s.bytes <= int64_t(sizeof(own)) ? place.get() : nullptr;
    if (here) memcpy(own, args, size_t(s.bytes));
    const int64_t begin = L->begin, end = L->end;
    for (int64_t stop = end; stop > begin;) {
        int64_t first = (stop - 1) / s.some * s.some;  // at whole lines
        if (first < begin) first = begin;
        const int64_t at = first * s.size, bytes = (stop - first) * s.size;
        unsigned char* const to = here ? here : s.to + at;
        memcpy(to, s.from + at, size_t(bytes));
        const uint64_t zero = reinterpret_cast<uint64_t>(here) - uint64_t(at);
        if (here) memcpy(own + s.at, &zero, 8);
        L->begin = first, L->end = stop;
        s.entry(here ? own : args, L);
        stop = first;
        if ((s.left || L->error) && !is_zero(to, bytes)) {
            if (s.left) __atomic_store_n(s.left, 1, __ATOMIC_RELAXED);
            if (here) memcpy(s.to + at, here, size_t(bytes));
        }
        if (!L->error) continue;
        if (s.left) __atomic_store_n(s.left, 1, __ATOMIC_RELAXED);  // what goes on may leave anything
        memcpy(s.to + begin * s.size, s.from + begin * s.size, size_t((first - begin) * s.size));
        L->begin = begin;  // L->end says which threads are left to do
        return;
    }
    L->begin = begin, L->end = end;
}

// Backward passes: adjoints of recorded launches.
#pragma once
#include "records.h"

namespace {

// The adjoints of a chunk of jobs, which are announced together.
struct chunk_t {
    static constexpr int64_t JOBS = 64, BYTES = 1 << 15;
    int64_t count = 0, used = 0, known = 0;
    const run_t* runs[JOBS];
    int64_t at[JOBS];
    object* grads[JOBS * MARKED];
    unsigned char args[BYTES];

    void begin() { count = used = known = 0; }

    // Takes one more: 1 where it did, 0 where it cannot, -1 where an announcement raised an error.
    // value: gives an argument by its number, null for none.
    template <class F> int add(const run_t& r, F value, object* blob) {
        const int64_t n = py.bytes_size(blob), first = known;
        if (count == JOBS || n < 0 || r.count > MARKED) return 0;
        const int64_t begin = (used + 15) / 16 * 16;
        if (begin + MOST > BYTES || n + r.bound_size > MOST) return 0;
        memcpy(args + begin, py.bytes_data(blob), n);
        int64_t size = n;
        for (int64_t i = 0; i < r.count && size >= 0; ++i) {
            object* a = value(r.marked[i]);
            object* g = a && a != py.none ? slot(a, A_GRAD) : nullptr;
            size = g && g != py.none ? append(g, args + begin, size) : -1;
            if (size < 0) break;
            keep(g);  // until the adjoint has run
            grads[known++] = g;
        }
        bool raised = false;
        const bool fits = size >= 0 && size + r.bound_size <= MOST;
        for (int64_t i = first; i < known && fits && !raised; ++i) raised = !announce(grads[i]);
        if (!fits || raised) {
            for (; known > first; --known) drop(grads[known - 1]);
            return raised ? -1 : 0;
        }
        memcpy(args + begin + size, r.bound, r.bound_size);
        runs[count] = &r;
        at[count++] = begin;
        used = begin + size + r.bound_size;
        return 1;
    }

    // Runs them. The number of the first that left something, with that; else how many there are.
    int64_t run(eng_launch& state) {
        int64_t k = 0;
        void* thread = py.save();
        for (; k < count; ++k) {
            state = *runs[k]->begin;
            runs[k]->entry(args + at[k], &state);
            if (memcmp(&state, runs[k]->begin, sizeof state) != 0) break;
        }
        py.restore(thread);
        for (; known; --known) drop(grads[known - 1]);
        return k;
    }
};

// What is too large for the stacks of some threads.
template <class T> struct heap_t {
    T* const at = static_cast<T*>(malloc(sizeof(T)));

    heap_t() { if (at) at->begin(); }
    ~heap_t() { free(at); }
    heap_t(const heap_t&) = delete;
    void operator=(const heap_t&) = delete;
};

// What is left for Python to look at in a backward pass.
struct left_t {
    int64_t number;
    eng_launch state;

    object* as_bytes() const {
        return py.bytes(reinterpret_cast<const char*>(this), sizeof *this);
    }
};

// Whether the adjoint of a launch can run as it did before, as `LaunchRecord.is_ready` says.
bool is_ready(const seen_t& one, const recipe_t& r) {
    object* const s = one.selection;
    if (!one.alone || slot(s, N_ADJOINT) == py.none) return false;
    return py.holds(slot(s, N_READY_GRIDS), one.dim) == 1 && selected(r, one.values) == s;
}

// Takes the adjoint of one more launch into a chunk, as `chunk_t::add`; keeps how it runs.
int take(
    chunk_t& chunk, const records_t& launches, int64_t k, const world_t& w,
    kept_t<chunk_t::JOBS>& kept
) {
    const seen_t one = launches[k];
    if (!one.quiet || chunk.count == chunk_t::JOBS) return 0;
    object* const adjoint = slot(one.selection, N_ADJOINT);
    const way_t way(adjoint == py.none ? nullptr : adjoint, one.dim, w);
    if (!way.run) return 0;
    const int64_t before = chunk.count;
    kept.add(way.cached);
    const int64_t count = launches.recipe(k).count;
    const auto value = [&](int64_t i) { return i < count ? one.values[i] : nullptr; };
    const int took = chunk.add(*way.run, value, one.blob);
    if (chunk.count == before) drop(kept.all[--kept.count]);
    return took;
}

// ready(launches): True where `back_all` can run the adjoints of all of them.
object* ready(object*, object* const* given, int64_t n) {
    if (n != 1 || type_of(given[0]) != py.list_type) return nothing();
    world_t w;
    if (!py.record_type || !w.look()) return nothing();
    if (py.dict_get(py.settings, py.set_overwrites) != py.restores) return nothing();
    records_t launches;
    return launches.take(given[0], py.list_size(given[0]), is_ready) ? yes() : nothing();
}

// back_all(launches[, from]): runs the adjoints of records, from that number, or the last,
// down to the first. None where nothing has happened; True where all have run and left nothing; the
// number of one that Python has to run; or that of one that left something, and what its launch
// structure holds.
object* back_all(object*, object* const* given, int64_t n) {
    if (n < 1 || n > 2 || type_of(given[0]) != py.list_type) return nothing();
    const int64_t most = n == 2 ? py.as_long(given[1]) + 1 : py.list_size(given[0]);
    world_t w;
    if (!py.record_type || most < 0 || !w.look()) return nothing();
    if (py.dict_get(py.settings, py.set_overwrites) != py.restores) return nothing();
    records_t launches;
    heap_t<chunk_t> chunk;
    if (!chunk.at) return nothing();
    if (n == 2 ? !launches.take(given[0], most)
               : !launches.take(given[0], most, is_ready)) return nothing();
    for (int64_t k = launches.count - 1; k >= 0;) {
        chunk.at->begin();
        kept_t<chunk_t::JOBS> kept;
        int took = 1;
        for (int64_t j = k; j >= 0 && took == 1; --j) {
            took = take(*chunk.at, launches, j, w, kept);
        }
        left_t left;
        const int64_t done = chunk.at->run(left.state);
        k -= done;
        if (took < 0 || !calm()) return nullptr;
        if (done < chunk.at->count) {
            left.number = k;
            return left.as_bytes();
        }
        if (py.signals() != 0) return nullptr;
        if (done == 0) return py.from_long(k);
    }
    return yes();
}

}  // namespace

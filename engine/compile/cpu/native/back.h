// Backward passes: adjoints of recorded launches.
#pragma once
#include <stdlib.h>

#include "world.h"

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
    int add(const run_t& r, object* values, object* blob) {
        const int64_t n = py.bytes_size(blob), first = known;
        if (count == JOBS || n < 0 || r.count > MARKED) return 0;
        const int64_t begin = (used + 15) / 16 * 16;
        if (begin + MOST > BYTES || n + r.bound_size > MOST) return 0;
        memcpy(args + begin, py.bytes_data(blob), n);
        int64_t size = n;
        for (int64_t i = 0; i < r.count && size >= 0; ++i) {
            object* a = py.list_item(values, r.marked[i]);
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

// back(run, values, args): announces what an adjoint adds to the gradients of marked arrays, and
// runs it.
object* back(object*, object* const* given, int64_t n) {
    if (n != 3) return nothing();
    heap_t<chunk_t> chunk;
    if (!chunk.at) return nothing();
    const int took = chunk.at->add(*words<run_t>(given[0]), given[1], given[2]);
    if (took != 1) return took < 0 ? nullptr : nothing();
    eng_launch state;
    return chunk.at->run(state) ? yes() : as_bytes(state);
}

// What is left for Python to look at in a backward pass.
struct left_t {
    int64_t number;
    eng_launch state;

    object* as_bytes() const {
        return py.bytes(reinterpret_cast<const char*>(this), sizeof *this);
    }
};

// Whether a record's adjoint can run as it did before, as `LaunchRecord.is_ready` says.
bool is_ready(object* record, recipes_t& recipes) {
    object *const s = slot(record, R_SELECTION), *const dim = slot(record, R_DIM);
    object *const values = slot(record, R_VALUES);
    if (slot(s, N_ADJOINT) == py.none || slot(record, R_ALIASED) != py.nowhere) return false;
    if (py.holds(slot(s, N_CLEARED), dim) != 1 || type_of(values) != py.list_type) return false;
    const recipe_t* const r = recipes.of(record);
    if (!r || py.list_size(values) != r->count || r->count > VALUES) return false;
    kept_t<VALUES> all;
    for (int64_t i = 0; i < r->count; ++i) all.add(py.list_item(values, i));
    return selected(*r, all.all) == s;
}

// The records of a tape, kept: others may change the list while adjoints run.
struct records_t {
    object** all;
    int64_t count = 0;

    // The first ones of a list.
    records_t(object* list, int64_t most) : all(static_cast<object**>(malloc((most + 1) * 8))) {
        for (; all && count < most; ++count) {
            all[count] = py.list_item(list, count);
            keep(all[count]);
        }
    }

    ~records_t() {
        while (count) drop(all[--count]);
        free(all);
    }

    records_t(const records_t&) = delete;
    void operator=(const records_t&) = delete;

    bool are_launches() const {
        for (int64_t k = 0; k < count; ++k) if (type_of(all[k]) != py.record_type) return false;
        return true;
    }

    bool are_ready() const {
        recipes_t recipes;
        for (int64_t k = 0; k < count; ++k) if (!is_ready(all[k], recipes)) return false;
        return true;
    }
};

// Takes the adjoint of one more record into a chunk, as `chunk_t::add`; keeps how it runs.
int take(chunk_t& chunk, object* record, const world_t& w, kept_t<chunk_t::JOBS>& kept) {
    if (slot(record, R_JOURNAL) != py.none || slot(record, R_STACK) != py.zero) return 0;
    if (chunk.count == chunk_t::JOBS) return 0;
    const way_t way(slot(slot(record, R_SELECTION), N_ADJOINT), slot(record, R_DIM), w);
    if (!way.run) return 0;
    const int64_t before = chunk.count;
    kept.add(way.brief);
    const int took = chunk.add(*way.run, slot(record, R_VALUES), slot(record, R_BLOB));
    if (chunk.count == before) drop(kept.all[--kept.count]);
    return took;
}

// back_all(records, from): runs the adjoints of records, from that number down to the first. None
// where nothing has happened; True where all have run and left nothing; the number of a record that
// Python has to run; or that of one that left something, and what its launch structure holds.
object* back_all(object*, object* const* given, int64_t n) {
    if (n != 2 || type_of(given[0]) != py.list_type) return nothing();
    const int64_t all = py.list_size(given[0]), from = py.as_long(given[1]);
    world_t w;
    if (!py.record_type || from < -1 || from >= all || !w.look()) return nothing();
    if (py.dict_get(py.settings, py.kept) != py.restores) return nothing();
    const records_t records(given[0], from + 1);
    heap_t<chunk_t> chunk;
    if (!records.all || !chunk.at || !records.are_launches()) return nothing();
    if (from == all - 1 && !records.are_ready()) return nothing();
    for (int64_t k = from; k >= 0;) {
        chunk.at->begin();
        kept_t<chunk_t::JOBS> kept;
        int took = 1;
        for (int64_t j = k; j >= 0 && took == 1; --j) {
            took = take(*chunk.at, records.all[j], w, kept);
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

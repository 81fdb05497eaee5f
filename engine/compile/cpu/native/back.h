// Backward passes: adjoints of recorded launches.
#pragma once
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
            py.keep(g);  // until the adjoint has run
            grads[known++] = g;
        }
        bool raised = false;
        const bool fits = size >= 0 && size + r.bound_size <= MOST;
        for (int64_t i = first; i < known && fits && !raised; ++i) raised = !announce(grads[i]);
        if (!fits || raised) {
            for (; known > first; --known) py.drop(grads[known - 1]);
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
        for (; known; --known) py.drop(grads[known - 1]);
        return k;
    }
};

// back(run, values, args): announces what an adjoint adds to the gradients of marked arrays, and
// runs it.
object* back(object*, object* const* given, int64_t n) {
    if (n != 3) return nothing();
    chunk_t chunk;
    const int took = chunk.add(*words<run_t>(given[0]), given[1], given[2]);
    if (took != 1) return took < 0 ? nullptr : nothing();
    eng_launch state;
    return chunk.run(state) ? yes() : as_bytes(state);
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
bool is_ready(object* record) {
    object *const s = slot(record, R_SELECTION), *const dim = slot(record, R_DIM);
    object *const values = slot(record, R_VALUES);
    if (slot(s, N_ADJOINT) == py.none || slot(record, R_ALIASED) != py.nowhere) return false;
    if (py.holds(slot(s, N_CLEARED), dim) != 1 || type_of(values) != py.list_type) return false;
    object* address = py.get(slot(record, R_PLAN), py.recipe);
    const recipe_t* const r = address && type_of(address) == py.integer
        ? words<recipe_t>(address) : nullptr;
    if (address) py.drop(address);
    if (!r || py.list_size(values) != r->count || r->count > VALUES) return false;
    object* all[VALUES];
    for (int64_t i = 0; i < r->count; ++i) all[i] = py.list_item(values, i);
    return selected(*r, all) == s;
}

// How the adjoint of a record runs; null where Python has to run it.
const run_t* adjoint(object* record, const world_t& w) {
    if (slot(record, R_JOURNAL) != py.none || slot(record, R_STACK) != py.zero) return nullptr;
    return way_t(slot(slot(record, R_SELECTION), N_ADJOINT), slot(record, R_DIM), w).run;
}

// back_all(records, from): runs the adjoints of records, from that number down to the first. None
// where nothing has happened; True where all have run and left nothing; the number of a record that
// Python has to run; or that of one that left something, and what its launch structure holds.
object* back_all(object*, object* const* given, int64_t n) {
    if (n != 2 || type_of(given[0]) != py.list_type) return nothing();
    object* const records = given[0];
    const int64_t all = py.list_size(records), from = py.as_long(given[1]);
    world_t w;
    if (!py.record_type || from >= all || !w.look()) return nothing();
    if (py.dict_get(py.settings, py.kept) != py.restores) return nothing();
    if (from == all - 1) {
        for (int64_t k = 0; k < all; ++k) {
            object* const r = py.list_item(records, k);
            if (type_of(r) != py.record_type || !is_ready(r)) return nothing();
        }
    }
    for (int64_t k = from; k >= 0;) {
        chunk_t chunk;
        int took = 1;
        // Others may change the list, or what its records need, while adjoints run.
        object* kept[chunk_t::JOBS];
        int64_t taken = 0;
        for (; k - taken >= 0; ++taken) {
            object* const r = py.list_item(records, k - taken);
            const run_t* run = r ? adjoint(r, w) : nullptr;
            took = run ? chunk.add(*run, slot(r, R_VALUES), slot(r, R_BLOB)) : 0;
            if (took != 1) break;
            kept[taken] = slot(slot(slot(r, R_SELECTION), N_ADJOINT), E_BRIEFS);
            kept[taken] = py.dict_get(kept[taken], slot(r, R_DIM));
            py.keep(kept[taken]);
        }
        left_t left;
        const int64_t done = chunk.run(left.state);
        for (int64_t j = 0; j < taken; ++j) py.drop(kept[j]);
        k -= done;
        if (took < 0) return nullptr;
        if (py.error()) py.clear();
        if (done < chunk.count) {
            left.number = k;
            return left.as_bytes();
        }
        if (py.signals() != 0) return nullptr;
        if (done == 0) return py.from_long(k);
    }
    return yes();
}

}  // namespace

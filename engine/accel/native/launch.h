// Whole launches, recorded or not: as `launch.run` does it, where nothing is to be
// said of them.
#pragma once
#include "hold.h"
#include "world.h"

namespace {

// The place of the call in user code, as `call_site` finds it: one object for all calls there.
// depth: which frame it is, if it is of user code: 1 for that of the Python function that runs, 2 for
// the one that called that, and so on.
object* site(int depth) {
    struct known_t { object *code, *site; int last; };
    static known_t known[256];  // a site keeps its code, so that no other has its address
    known_t* at = nullptr;
    object* code = nullptr;
    int last = 0;
    object* caller = py.frame_back ? py.frame() : nullptr;
    if (caller) {
        keep(caller);
        for (int k = 1; caller && k < depth; ++k) {
            object* const next = py.frame_back(caller);
            drop(caller);
            caller = next;
        }
        code = caller ? py.frame_code(caller) : nullptr;
        last = code ? py.frame_last(caller) : 0;
        if (caller) drop(caller);
    }
    if (code) {
        drop(code);  // it runs
        const uintptr_t mixed = (reinterpret_cast<uintptr_t>(code) >> 4) * 31 + last / 2;
        at = &known[(mixed ^ mixed >> 8) % 256];
        if (at->site && at->code == code && at->last == last) {
            keep(at->site);
            return at->site;
        }
    }
    object* count = py.from_long(depth);
    object* found = count ? py.call(py.site, count, static_cast<object*>(nullptr)) : nullptr;
    if (count) drop(count);
    object* const own = found && found != py.none ? slot(found, T_CODE) : nullptr;
    if (at && own == code) {
        object* const old = at->site;
        keep(found);
        *at = {code, found, last};
        if (old) drop(old);  // which may run anything
    }
    return found;
}

// A range of addresses as Python has it.
object* range(object* lo, object* hi) {
    object* out = py.tuple(2);
    if (!out) return nullptr;
    keep(lo);
    py.tuple_set(out, 0, lo);
    keep(hi);
    py.tuple_set(out, 1, hi);
    return out;
}

struct launch_t {
    const recipe_t& r;
    object* dim;
    int64_t inputs;
    kept_t<VALUES> kept;
    object* const* const values = kept.all;
    unsigned char args[MOST];
    int64_t size = 0;
    int depth;  // see `site`

    launch_t(const recipe_t& recipe, object* grid, int frames)
        : r(recipe), dim(grid), depth(frames) {}

    bool take(object* first, object* second) {
        const int64_t a = length(first), b = length(second);
        if (a < 0 || b < 0 || a + b != r.count || r.count > VALUES) return false;
        inputs = a;
        for (int64_t i = 0; i < r.count && size >= 0; ++i) {
            kept.add(i < a ? item(first, i) : item(second, i - a));
            size = append(values[i], r.kinds->of[i].kind, r.kinds->of[i].code, args, size);
        }
        return size >= 0;
    }

    bool fits(const way_t& way) const { return way.run && size + way.run->bound_size <= MOST; }

    bool may_write_all() const {
        for (int64_t k = 1; k <= r.writes[0]; ++k) if (!may_write(values[r.writes[k]])) return false;
        return true;
    }

    bool announce_all() const {
        for (int64_t k = 1; k <= r.writes[0]; ++k) if (!announce(values[r.writes[k]])) return false;
        return true;
    }

    object* all_values() const {
        object* out = py.list(r.count);
        for (int64_t i = 0; out && i < r.count; ++i) {
            keep(values[i]);
            py.list_set(out, i, values[i]);
        }
        return out;
    }

    // Runs the kernel; whether it left nothing.
    bool is_quiet(const run_t& way, eng_launch& state) {
        memcpy(args + size, way.bound, way.bound_size);
        return runs(way, args, state);
    }

    // What a kernel left in its launch structure, and more, which it takes.
    static object* left(const eng_launch& state, object* more) {
        object* out = more ? py.list(2) : nullptr;
        object* bytes = out ? as_bytes(state) : nullptr;
        if (bytes) {
            py.list_set(out, 0, bytes);
            py.list_set(out, 1, more);
            return out;
        }
        if (more) drop(more);
        if (out) drop(out);
        return nullptr;
    }
};

// A launch that is not recorded: what it left comes with its values and arguments.
object* unrecorded(launch_t& l, const world_t& w) {
    const way_t way(l.r.forward, l.dim, w);
    if (!l.fits(way) || !l.may_write_all()) return nothing();
    if (!l.announce_all()) return nullptr;
    eng_launch state;
    return l.is_quiet(*way.run, state) ? yes() : l.left(state, l.all_values());
}

// Whether addresses of two arrays meet.
bool meet(object* a, object* b) {
    return number(a, A_LO) < number(b, A_HI) && number(b, A_LO) < number(a, A_HI);
}

// The record of a launch that is about to run, with holds on what its inputs contain; null where
// there was an error.
object* record_of(const launch_t& l, object* selection) {
    const recipe_t& r = l.r;
    kept_t<VALUES + 3> parts;  // until the record has them
    const auto take = [&](object* part) {
        if (part) parts.add(part), drop(part);
        return part != nullptr;
    };
    if (!take(py.bytes(reinterpret_cast<const char*>(l.args), l.size))) return nullptr;
    if (!take(py.from_long(l.inputs)) || !take(site(l.depth))) return nullptr;
    bool leads = false;  // anywhere: holds on memory of the engine's own do not, as `held` says
    for (int64_t k = 0; k < r.held[0]; ++k) {
        object* const a = l.values[r.held[1 + k]];
        object* const s = slot(a, A_STORAGE);
        leads = leads || slot(s, S_EXTERNAL) != py.no || slot(s, S_KEPT) != py.none;
        if (!take(held(a))) return nullptr;
    }
    object* out = py.make(py.record_type, 0);
    object *values = out ? l.all_values() : nullptr, *holds = values ? py.list(r.held[0]) : nullptr;
    if (!holds) {
        if (values) drop(values);
        if (out) drop(out);
        return nullptr;
    }
    for (int64_t k = 0; k < r.held[0]; ++k) {
        keep(parts.all[3 + k]);
        py.list_set(holds, k, parts.all[3 + k]);
    }
    if (!leads) py.no_cycle(holds);
    share(out, R_PLAN, r.plan);
    share(out, R_DIM, l.dim);
    share(out, R_BLOB, parts.all[0]);
    share(out, R_INPUTS, parts.all[1]);
    share(out, R_SITE, parts.all[2]);
    share(out, R_SELECTION, selection);
    share(out, R_ALIASED, py.no_aliases);
    share(out, R_JOURNAL, py.none);
    share(out, R_STACK, py.zero);
    set(out, R_VALUES, values);
    set(out, R_HELD, holds);
    return out;
}

struct tape_t {
    object *records = nullptr, *overwrites = nullptr, *read = nullptr;

    ~tape_t() {
        if (records) drop(records);
        if (overwrites) drop(overwrites);
    }

    // Whether a tape is one as they are by default, and has a list of all its records.
    bool take(object* tape) {
        if (type_of(tape) != py.tape_type || !settings.for_tapes()) return false;
        records = py.get(tape, py.records);
        overwrites = records ? py.get(tape, py.overwrites) : nullptr;
        read = overwrites ? slot(overwrites, O_READ) : nullptr;
        return read && type_of(records) == py.list_type;
    }

    // Whether a launch overwrites nothing that an earlier record reads again.
    bool suits(const launch_t& l) const {
        const int64_t *writes = l.r.writes, *pairs = l.r.pairs;
        for (int64_t k = 1; k <= pairs[0]; ++k) {
            object *a = l.values[pairs[2 * k - 1]], *b = l.values[pairs[2 * k]];
            if (meet(a, b)) return false;
        }
        if (!py.dict_size(read)) return true;
        for (int64_t k = 1; k <= writes[0]; ++k) {
            if (py.dict_get(read, slot(l.values[writes[k]], A_STORAGE))) return false;
        }
        return true;
    }

    // Notes what a launch reads again: of each storage one range around all of it, as
    // `Overwrites._watch` does. Several arguments may be parts of one storage.
    bool note(const launch_t& l, object* watched) const {
        for (int64_t k = 0; k < py.tuple_size(watched); ++k) {
            object* const a = l.values[py.as_long(py.tuple_item(watched, k))];
            object* const known = py.dict_get(read, slot(a, A_STORAGE));
            object *lo = slot(a, A_LO), *hi = slot(a, A_HI);
            if (known) {
                object *const from = py.tuple_item(known, 0), *const to = py.tuple_item(known, 1);
                const bool below = py.as_long(lo) < py.as_long(from);
                const bool above = py.as_long(to) < py.as_long(hi);
                if (!below && !above) continue;
                if (!below) lo = from;
                if (!above) hi = to;
            }
            object* all = range(lo, hi);
            const bool done = all && py.dict_set(read, slot(a, A_STORAGE), all) == 0;
            if (all) drop(all);
            if (!done) return false;
        }
        return true;
    }
};

// One that is recorded: what it left comes with the record, which is not on the tape then.
object* recorded(launch_t& l, const world_t& w, object* tape) {
    for (int64_t i = 0; i < l.r.count; ++i) {
        if (l.r.kinds->of[i].code == ARRAY && !slot(l.values[i], A_STORAGE)) return nothing();
    }
    tape_t t;
    if (!t.take(tape)) return nothing();
    object* selection = selected(l.r, l.values);
    object* const executable = selection ? slot(selection, N_EXECUTABLE) : nullptr;
    const way_t way(executable, l.dim, w);
    if (!l.fits(way) || !l.may_write_all()) return nothing();
    if (!t.suits(l)) return nothing();
    object* record = record_of(l, selection);
    if (!record) return nullptr;
    if (!t.note(l, slot(selection, N_WATCHED)) || !l.announce_all()) return drop(record), nullptr;
    eng_launch state;
    if (!l.is_quiet(*way.run, state)) return l.left(state, record);
    const bool done = py.list_add(t.records, record) == 0;
    drop(record);
    return done ? yes() : nullptr;
}

// A grid as Python's short way takes it; null for others. The caller drops it.
object* grid(object* dim) {
    constexpr long long LONGEST = (1LL << 31) - 1, SHORT = 1 << 20;  // three of it are below all limits
    const bool one = type_of(dim) == py.tuple_type && py.tuple_size(dim) == 1;
    if (one) dim = py.tuple_item(dim, 0);
    if (type_of(dim) == py.integer) {
        const long long n = py.as_long(dim);
        return n < 0 || n > LONGEST ? nullptr : grids.of(dim, n);
    }
    if (one || type_of(dim) != py.tuple_type) return nullptr;
    const int64_t n = py.tuple_size(dim);
    if (n < 2 || n > 3) return nullptr;
    for (int64_t k = 0; k < n; ++k) {
        object* const extent = py.tuple_item(dim, k);
        if (type_of(extent) != py.integer) return nullptr;
        const long long all = py.as_long(extent);
        if (all < 0 || all > SHORT) return nullptr;
    }
    keep(dim);
    return dim;
}

// A whole launch, recorded where there is a tape and it is to be. True where it has run and left
// nothing; a list of its launch structure and its record or values where it left something.
object* run_recipe(const recipe_t& r, object* extent, object* inputs, object* outputs, bool record,
                 int depth) {
    world_t w;
    if (!w.look()) return nothing();
    object* dim = grid(extent);
    if (!dim) return nothing();
    launch_t l(r, dim, depth);
    object* const out = !l.take(inputs, outputs) ? nothing()
        : record && w.tape ? recorded(l, w, w.tape) : unrecorded(l, w);
    drop(dim);
    return out;
}

}  // namespace

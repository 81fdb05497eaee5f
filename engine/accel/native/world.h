// What decides whether a launch may go the short way: listeners, settings, limits.
#pragma once
#include "arguments.h"

namespace {

constexpr int64_t VALUES = 64;  // arguments of a launch

// What settings say, as long as they are what they were.
struct settings_t {
    watched_t own, cuts, tapes, flow;
    bool plain = false, usual = false, backward = false;
    object *stack = nullptr, *journal = nullptr;
    long long least = 0;

    // Whether launches need nothing but what is noted here.
    bool look() {
        object* const c = py.settings;
        const bool same = !own.changed(c);
        if (!cuts.changed(py.schedule) && same) return plain;
        plain = py.dict_get(c, py.print_launches) == py.no && py.dict_get(c, py.verify_fp) == py.no
            && py.dict_get(c, py.device) == py.host_name;
        object* const after = py.dict_get(c, py.native_after);
        plain = plain && after && type_of(after) == py.integer && py.as_long(after) >= 0;
        stack = py.dict_get(c, py.stack_limit);
        journal = py.dict_get(c, py.journal_limit);
        object* const cut = py.dict_get(py.schedule, py.least);
        plain = plain && stack && journal && cut && type_of(cut) == py.integer;
        least = plain ? py.as_long(cut) : 0;
        return plain;
    }

    // Whether tapes do what they do by default.
    bool for_tapes() {
        object* const c = py.settings;
        if (!tapes.changed(c)) return usual;
        return usual = py.dict_get(c, py.set_verify_access) == py.no && py.dict_get(c, py.set_overwrites) == py.restores
            && py.dict_get(c, py.snapshots) == py.lazy;
    }

    // Whether gradients flow where nothing else is said.
    bool flows() {
        if (!flow.changed(py.settings)) return backward;
        return backward = py.dict_get(py.settings, py.set_enable_backward) == py.yes;
    }
};

settings_t settings;

struct world_t {
    object *stack, *journal;
    long long least;
    object* tape = nullptr;  // that records here; null for none

    world_t() = default;
    world_t(const world_t&) = delete;
    void operator=(const world_t&) = delete;
    ~world_t() { if (tape) drop(tape); }

    // Whether nobody but one tape observes launches, and they go to the one device there is.
    bool look() {
        for (object* list : py.quiet) if (py.list_size(list)) return false;
        if (!settings.look()) return false;
        object* here = nullptr;
        if (py.context(py.here, nullptr, &here) != 0 || !here) return false;
        const int64_t count = type_of(here) == py.tuple_type ? py.tuple_size(here) : -1;
        object* const only = count == 1 ? py.tuple_item(here, 0) : nullptr;
        const bool records = only && py.tape_type && type_of(only) == py.tape_type;
        if (records) keep(tape = only);
        drop(here);
        if (count != 0 && !records) return false;
        stack = settings.stack, journal = settings.journal, least = settings.least;
        return true;
    }
};

bool same(object* a, object* b) {
    if (a == b) return true;
    if (type_of(a) != py.integer || type_of(b) != py.integer) return false;
    const bool found = py.as_long(a) == py.as_long(b);
    return !py.error() ? found : (py.clear(), false);  // too large to be told apart here
}

// Grids of one axis, which are made once: users give numbers.
struct grids_t {
    static constexpr int COUNT = 16;
    struct { long long n; object* grid; } known[COUNT] = {};
    int64_t replaced = 0;

    // The caller drops it; null where memory ran out.
    object* of(object* extent, long long n) {
        auto& at = known[n % COUNT];
        if (!at.grid || at.n != n) {
            object* out = py.tuple(1);
            if (!out) return nullptr;
            keep(extent);
            py.tuple_set(out, 0, extent);
            py.no_cycle(out);
            if (at.grid) drop(at.grid), ++replaced;
            at = {n, out};
        }
        keep(at.grid);
        return at.grid;
    }

    bool has(object* grid) const {
        for (const auto& at : known) if (at.grid == grid) return true;
        return false;
    }
};

grids_t grids;

// What was found last for an executable and one of these grids.
struct found_t {
    uint64_t version;  // of the dictionary where it is, which keeps it
    int64_t replaced;
    object *grid, *cached;
};

object* cached_launch_of(object* cached_launches, object* grid) {
    static found_t all[64];
    if (!py.version) return py.dict_get(cached_launches, grid);
    found_t& at = all[reinterpret_cast<uintptr_t>(cached_launches) / 64 % 64];
    const uint64_t version = watched_t::version(cached_launches);
    if (at.grid == grid && at.version == version && at.replaced == grids.replaced) return at.cached;
    object* const found = py.dict_get(cached_launches, grid);
    if (found && grids.has(grid)) at = {version, grids.replaced, grid, found};
    return found;
}

// How an executable runs a grid without Python, kept as long as this lives.
struct way_t {
    const run_t* run = nullptr;  // null where there is no such way
    object* cached = nullptr;

    // Gives up the cached, for the caller to drop.
    object* take() {
        object* const b = cached;
        cached = nullptr;
        return b;
    }

    way_t(object* executable, object* dim, const world_t& w) {
        object* const cached_launches = executable ? slot(executable, E_CACHED) : nullptr;
        object* const b = cached_launches ? cached_launch_of(cached_launches, dim) : nullptr;
        if (!b || type_of(b) != py.cached_launch_type) return;
        object* const at = slot(b, B_ADDRESS);
        if (!at || type_of(at) != py.integer || number(b, B_WORK) >= w.least) return;
        if (!same(slot(b, B_STACK), w.stack) || !same(slot(b, B_JOURNAL), w.journal)) return;
        run = words<run_t>(at);
        cached = b;
        keep(cached);
    }

    ~way_t() { if (cached) drop(cached); }

    way_t(const way_t&) = delete;
    void operator=(const way_t&) = delete;
};

// What a kernel is, for launches: `engine.accel.recipes` has packed it.
struct recipe_t {
    int64_t count;
    const kinds_t* kinds;
    object *kernel, *plan, *forward, *usual;  // forward: an executable
    const int64_t *writes, *pairs, *bits, *held;  // each begins with how many there are
};

// The recipes of plans: that of the last launch is mostly that of the next one.
struct recipes_t {
    object* plan = nullptr;
    const recipe_t* known = nullptr;

    // Null where there is none.
    const recipe_t* of(object* of) {
        if (of == plan) return known;
        plan = of;
        object* found = py.get(plan, py.recipe);
        known = found && type_of(found) == py.integer ? words<recipe_t>(found) : nullptr;
        if (found) drop(found);
        return known;
    }
};

// The bits of arrays that a gradient flows to; -1 where Python has to look. The values are kept by
// who asks.
int64_t mask(const recipe_t& r, object* const* values) {
    int64_t out = 0;
    for (int64_t k = 0; k < r.bits[0]; ++k) {
        object* const a = values[r.bits[1 + 2 * k]];
        if (a == py.none || slot(a, A_FLAG) != py.yes) continue;
        if (slot(a, A_ORIGIN) != py.none) {
            object* wanted = py.get(a, py.requires);
            if (!wanted) {
                by_python = true;
                return -1;
            }
            drop(wanted);
            if (wanted != py.yes) continue;
        }
        out |= r.bits[2 + 2 * k];
    }
    return out;
}

// Whether gradients flow through launches of a kernel, and nothing but the setting of all says so.
bool enabled(object* kernel) {
    object* own = py.get(kernel, py.options);
    object* module = own ? py.get(kernel, py.module) : nullptr;
    object* other = module ? py.get(module, py.options) : nullptr;
    object* const said = other && type_of(own) == type_of(other) && py.dict_size(own) == 0
        ? py.dict_get(other, py.enabled) : py.no;
    const bool free = !said || said == py.none;
    object* const parts[] = {own, module, other};
    for (object* o : parts) if (o) drop(o);
    return free && settings.flows();
}

// What a launch of these values is recorded with; null where Python has to look.
object* selected(const recipe_t& r, object* const* values) {
    const int64_t bits = mask(r, values);
    if (bits < 0 || !enabled(r.kernel)) return nullptr;
    object* key = py.from_long(bits);
    object* const found = key ? py.dict_get(r.usual, key) : nullptr;
    if (key) drop(key);
    return found;
}

}  // namespace

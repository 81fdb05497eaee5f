// Small launches without Python's share of them: arguments as bytes, writes announced, the kernel
// called. What is not as it nearly always is, is left to Python: the answer is None then, and
// nothing has happened.
//
// Of Python's interface only functions of its stable part are used, by a table that comes from
// Python: nothing is included, and nothing has to be linked.
#include <stdint.h>
#include <string.h>

#include "block.h"

namespace {

struct object;

struct python_t {
    int64_t (*list_size)(object*);
    object* (*list_item)(object*, int64_t);  // borrowed
    object* (*get)(object*, object*);
    int (*set)(object*, object*, object*);
    object* (*type)(object*);
    object* (*bytes)(const char*, int64_t);
    char* (*bytes_data)(object*);
    int64_t (*bytes_size)(object*);
    long long (*as_long)(object*);
    object* (*from_long)(long long);
    double (*as_double)(object*);
    object* (*call)(object*, ...);  // ends with a null pointer
    void (*keep)(object*);
    void (*drop)(object*);
    object* (*error)();
    void (*clear)();
    void* (*save)();
    void (*restore)(void*);
    int (*signals)();
    // objects
    object *none, *yes, *array, *real, *integer;
    object *type_of, *packed, *storage, *contiguous, *writable, *guard, *hold, *version, *announce,
        *lo, *hi, *grad;
};

python_t py;

enum { ARRAY, FLOAT32, FLOAT64, INT32, INT64 };

constexpr int64_t MOST = 4096, MARKED = 16;  // bytes of arguments; arrays that are written

// What Python has packed into words: see `engine.compile.cpu.launcher`.
struct kinds_t {
    int64_t count;
    struct { object* kind; int64_t code; } of[1];
};

struct run_t {
    void (*entry)(const unsigned char*, eng_launch*);
    const eng_launch* begin;
    const unsigned char* bound;
    int64_t bound_size;
    int64_t count;
    int64_t marked[1];
};

struct step_t {
    void (*entry)(const unsigned char*, eng_launch*);
    const unsigned char* args;
    const eng_launch* begin;
};

object* nothing() {
    if (py.error()) py.clear();
    py.keep(py.none);
    return py.none;
}

template <class T> const T* words(object* address) {
    return reinterpret_cast<const T*>(static_cast<intptr_t>(py.as_long(address)));
}

bool is(object* a, object* name, object* wanted) {
    object* found = py.get(a, name);
    if (!found) return false;
    py.drop(found);
    return found == wanted;
}

bool is_of(object* a, object* type) {
    object* found = py.type(a);
    py.drop(found);
    return found == type;
}

// An array's bytes behind others; their number after that, -1 where it does not fit.
int64_t append(object* a, unsigned char* to, int64_t size) {
    object* packed = py.get(a, py.packed);
    if (!packed) return -1;
    const int64_t n = py.bytes_size(packed);
    const bool fits = n >= 0 && size + n <= MOST;
    if (fits) memcpy(to + size, py.bytes_data(packed), n);
    py.drop(packed);
    return fits ? size + n : -1;
}

// Whether nobody holds what a storage contains; a hold that is gone is forgotten.
bool is_free(object* storage) {
    object* hold = py.get(storage, py.hold);
    if (!hold) return false;
    bool free = hold == py.none;
    if (!free) {
        object* held = py.call(hold, static_cast<object*>(nullptr));  // a weak reference
        free = held == py.none && py.set(storage, py.hold, py.none) == 0;
        if (held) py.drop(held);
    }
    py.drop(hold);
    return free;
}

// `Storage.before_write` of an array. False where that raised an error.
bool announce(object* a, object* storage) {
    if (is_free(storage)) {
        object* version = py.get(storage, py.version);
        if (!version) return false;
        object* next = py.from_long(py.as_long(version) + 1);
        py.drop(version);
        const bool done = next && py.set(storage, py.version, next) == 0;
        if (next) py.drop(next);
        return done;
    }
    object* parts[] = {py.get(storage, py.announce), py.get(a, py.lo), py.get(a, py.hi), nullptr};
    const bool whole = parts[0] && parts[1] && parts[2];
    if (whole) parts[3] = py.call(parts[0], parts[1], parts[2], static_cast<object*>(nullptr));
    const bool done = parts[3] != nullptr;
    for (object* o : parts) if (o) py.drop(o);
    return done;
}

// Runs the kernel: True where it left nothing, else what its launch structure holds.
object* run(const run_t& r, const unsigned char* args) {
    eng_launch state = *r.begin;
    void* thread = py.save();
    r.entry(args, &state);
    py.restore(thread);
    if (memcmp(&state, r.begin, sizeof state) == 0) {
        py.keep(py.yes);
        return py.yes;
    }
    return py.bytes(reinterpret_cast<const char*>(&state), sizeof state);
}

// pack(kinds, values): the arguments as bytes.
object* pack(object*, object* const* given, int64_t n) {
    if (n != 2) return nothing();
    const kinds_t* k = words<kinds_t>(given[0]);
    if (py.list_size(given[1]) != k->count) return nothing();
    unsigned char args[MOST];
    int64_t size = 0;
    for (int64_t i = 0; i < k->count; ++i) {
        object* v = py.list_item(given[1], i);
        const int64_t code = k->of[i].code;
        if (code == ARRAY) {
            if (!is_of(v, py.array) || !is(v, py.type_of, k->of[i].kind)) return nothing();
            size = append(v, args, size);
            if (size < 0) return nothing();
            continue;
        }
        if (size + 8 > MOST) return nothing();
        unsigned char slot[8] = {};
        if (code == FLOAT32 || code == FLOAT64) {
            if (!is_of(v, py.real)) return nothing();
            const double x = py.as_double(v);
            const float y = static_cast<float>(x);
            code == FLOAT32 ? memcpy(slot, &y, 4) : memcpy(slot, &x, 8);
        } else {
            if (!is_of(v, py.integer)) return nothing();
            const long long x = py.as_long(v);
            if (x == -1 && py.error()) return nothing();
            if (code == INT32 && (x < INT32_MIN || x > INT32_MAX)) return nothing();
            memcpy(slot, &x, code == INT32 ? 4 : 8);
        }
        memcpy(args + size, slot, 8);
        size += 8;
    }
    return py.bytes(reinterpret_cast<const char*>(args), size);
}

// launch(run, values, args): announces the writes of a launch, and runs it.
object* launch(object*, object* const* given, int64_t n) {
    if (n != 3) return nothing();
    const run_t& r = *words<run_t>(given[0]);
    object* storages[MARKED];
    int64_t known = 0;
    const int64_t size = py.bytes_size(given[2]);
    bool fits = size >= 0 && size + r.bound_size <= MOST;
    for (; known < r.count && fits; ++known) {
        object* a = py.list_item(given[1], r.marked[known]);
        object* s = storages[known] = a ? py.get(a, py.storage) : nullptr;
        fits = s && is(a, py.contiguous, py.yes) && is(s, py.writable, py.yes)
            && is(s, py.guard, py.none);
    }
    bool raised = false;
    for (int64_t i = 0; i < known; ++i) {
        if (fits && !raised) {
            raised = !announce(py.list_item(given[1], r.marked[i]), storages[i]);
        }
        if (storages[i]) py.drop(storages[i]);
    }
    if (raised) return nullptr;
    if (!fits) return nothing();
    if (!r.bound_size) return run(r, reinterpret_cast<unsigned char*>(py.bytes_data(given[2])));
    unsigned char args[MOST];
    memcpy(args, py.bytes_data(given[2]), size);
    memcpy(args + size, r.bound, r.bound_size);
    return run(r, args);
}

// back(run, values, args): the same for an adjoint, which adds to gradients of marked arrays.
object* back(object*, object* const* given, int64_t n) {
    if (n != 3) return nothing();
    const run_t& r = *words<run_t>(given[0]);
    unsigned char args[MOST];
    object *grads[MARKED], *storages[MARKED];
    int64_t size = py.bytes_size(given[2]), known = 0;
    bool fits = size >= 0 && size <= MOST, raised = false;
    if (fits) memcpy(args, py.bytes_data(given[2]), size);
    for (; known < r.count && fits; ++known) {
        object* a = py.list_item(given[1], r.marked[known]);
        object* g = grads[known] = a ? py.get(a, py.grad) : nullptr;
        storages[known] = g && g != py.none ? py.get(g, py.storage) : nullptr;
        fits = storages[known] != nullptr;
        if (fits) size = append(g, args, size);
        fits = fits && size >= 0;
    }
    fits = fits && size + r.bound_size <= MOST;
    for (int64_t i = 0; i < known && fits && !raised; ++i) {
        raised = !announce(grads[i], storages[i]);
    }
    object* came = nullptr;
    if (fits && !raised) {
        memcpy(args + size, r.bound, r.bound_size);
        came = run(r, args);  // the gradients are kept until then
    }
    for (int64_t i = 0; i < known; ++i) {
        if (grads[i]) py.drop(grads[i]);
        if (storages[i]) py.drop(storages[i]);
    }
    return raised ? nullptr : came ? came : nothing();
}

// clear(array): announces a write of zeros to all of an array, and writes them; True.
object* clear(object*, object* const* given, int64_t n) {
    if (n != 1) return nothing();
    object *a = given[0], *storage = py.get(a, py.storage);
    const bool fits = storage && is(a, py.contiguous, py.yes) && is(storage, py.writable, py.yes)
        && is(storage, py.guard, py.none);
    object *lo = fits ? py.get(a, py.lo) : nullptr, *hi = fits ? py.get(a, py.hi) : nullptr;
    const bool raised = fits && lo && hi && !announce(a, storage);
    if (fits && lo && hi && !raised) {
        const long long from = py.as_long(lo);
        memset(reinterpret_cast<void*>(static_cast<intptr_t>(from)), 0, py.as_long(hi) - from);
    }
    const bool done = fits && lo && hi;
    object* parts[] = {storage, lo, hi};
    for (object* o : parts) if (o) py.drop(o);
    if (raised) return nullptr;
    if (!done) return nothing();
    py.keep(py.yes);
    return py.yes;
}

// many(steps, first, end, progress): runs launches whose writes are announced, one after another.
// True where they left nothing, else the number of the first that did, and what its launch structure
// holds. progress: where the number of those is written that have run and left nothing.
object* many(object*, object* const* given, int64_t n) {
    if (n != 4) return nothing();
    const step_t* steps = words<step_t>(given[0]);
    int64_t* const progress = reinterpret_cast<int64_t*>(py.as_long(given[3]));
    const int64_t first = py.as_long(given[1]), end = py.as_long(given[2]);
    struct { int64_t number; eng_launch state; } left;
    bool quiet = true;
    void* thread = py.save();
    for (int64_t k = first; k < end && quiet; ++k) {
        const step_t& s = steps[k];
        left.number = k;
        left.state = *s.begin;
        s.entry(s.args, &left.state);
        quiet = memcmp(&left.state, s.begin, sizeof left.state) == 0;
        *progress = k + quiet;
    }
    py.restore(thread);
    if (!quiet) return py.bytes(reinterpret_cast<const char*>(&left), sizeof left);
    py.keep(py.yes);
    return py.yes;
}

// The adjoints of a chunk of jobs: as `back` does each, but announced together.
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
        object* storages[MARKED];
        int64_t got = 0;
        bool fits = true, raised = false;
        for (; got < r.count && fits; ++got) {
            object* a = py.list_item(values, r.marked[got]);
            object* g = grads[known++] = a ? py.get(a, py.grad) : nullptr;
            storages[got] = g && g != py.none ? py.get(g, py.storage) : nullptr;
            fits = storages[got] != nullptr;
            if (fits) size = append(g, args + begin, size);
            fits = fits && size >= 0;
        }
        fits = fits && size + r.bound_size <= MOST;
        for (int64_t i = 0; i < got && fits && !raised; ++i) {
            raised = !announce(grads[first + i], storages[i]);
        }
        for (int64_t i = 0; i < got; ++i) if (storages[i]) py.drop(storages[i]);
        if (!fits || raised) {
            for (; known > first; --known) if (grads[known - 1]) py.drop(grads[known - 1]);
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

// backs(jobs, first): runs adjoints from number `first` on, each a run, values and arguments among
// the jobs. True where all have run and left nothing; the number of one that Python has to look at,
// which has not run; or that of one that left something, and what its launch structure holds.
object* backs(object*, object* const* given, int64_t n) {
    if (n != 2) return nothing();
    const int64_t all = py.list_size(given[0]) / 3;
    int64_t k = py.as_long(given[1]);
    struct { int64_t number; eng_launch state; } left;
    while (k < all) {
        chunk_t chunk;
        int took = 1;
        for (int64_t j = k; j < all; ++j) {
            object* const at = py.list_item(given[0], 3 * j);
            const run_t* r = at == py.none ? nullptr : words<run_t>(at);
            object* const values = py.list_item(given[0], 3 * j + 1);
            took = r ? chunk.add(*r, values, py.list_item(given[0], 3 * j + 2)) : 0;
            if (took != 1) break;
        }
        const int64_t done = chunk.run(left.state);
        k += done;
        if (took < 0) return nullptr;
        if (py.error()) py.clear();
        if (done < chunk.count) {
            left.number = k;
            return py.bytes(reinterpret_cast<const char*>(&left), sizeof left);
        }
        if (py.signals() != 0) return nullptr;
        if (done == 0) return py.from_long(k);
    }
    py.keep(py.yes);
    return py.yes;
}

// Steps that are no kernels. fill: an address, a number of elements, the bytes of one, its bytes.
// copy: to where, from where, and bytes.
void fill(const unsigned char* args, eng_launch*) {
    int64_t told[3];
    memcpy(told, args, sizeof told);
    unsigned char* to = reinterpret_cast<unsigned char*>(static_cast<intptr_t>(told[0]));
    const int64_t all = told[1] * told[2];
    int64_t done = told[2];
    memcpy(to, args + sizeof told, done);
    for (; done < all; done *= 2) memcpy(to + done, to, done < all - done ? done : all - done);
}

void copy(const unsigned char* args, eng_launch*) {
    int64_t told[3];
    memcpy(told, args, sizeof told);
    memmove(reinterpret_cast<void*>(static_cast<intptr_t>(told[0])),
            reinterpret_cast<const void*>(static_cast<intptr_t>(told[1])), told[2]);
}

}  // namespace

// Takes the table, and gives the functions that Python makes objects of.
extern "C" __attribute__((visibility("default")))
void eng_launcher(const void* table, int64_t size, void** functions) {
    if (size != sizeof py) return;
    memcpy(&py, table, sizeof py);
    functions[0] = reinterpret_cast<void*>(&pack);
    functions[1] = reinterpret_cast<void*>(&launch);
    functions[2] = reinterpret_cast<void*>(&back);
    functions[3] = reinterpret_cast<void*>(&clear);
    functions[4] = reinterpret_cast<void*>(&many);
    functions[5] = reinterpret_cast<void*>(&backs);
    functions[6] = reinterpret_cast<void*>(&fill);
    functions[7] = reinterpret_cast<void*>(&copy);
    functions[8] = reinterpret_cast<void*>(sizeof(eng_launch));
}

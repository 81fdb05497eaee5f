// Small launches without Python's share of them: arguments as bytes, writes announced, the kernel
// called. What is not as it nearly always is, is left to Python: the answer is None then, and
// nothing has happened.
#include "back.h"
#include "call.h"
#include "gradients.h"
#include "sequence.h"

namespace {

struct step_t {
    void (*entry)(const unsigned char*, eng_launch*);
    const unsigned char* args;
    const eng_launch* begin;
};

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
    return yes();
}

// quiet(): True where nobody listens to launches and writes, but for tapes.
object* quiet(object*, object* const*, int64_t) {
    world_t w;
    return w.look() ? yes() : nothing();
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

// Takes the table, and gives the functions that Python makes objects of; whether it could.
extern "C" __attribute__((visibility("default")))
int eng_launcher(const void* table, int64_t size, void** functions) {
    if (size != sizeof py) return 0;
    memcpy(&py, table, sizeof py);
    settings = settings_t();
    void* const all[] = {
        reinterpret_cast<void*>(&many),
        reinterpret_cast<void*>(&ready), reinterpret_cast<void*>(&back_all),
        reinterpret_cast<void*>(&seeded), reinterpret_cast<void*>(&zeros),
        reinterpret_cast<void*>(&quiet), reinterpret_cast<void*>(&announce_all),
        reinterpret_cast<void*>(&ask_same), reinterpret_cast<void*>(&have_same),
        reinterpret_cast<void*>(&try_run),
        reinterpret_cast<void*>(&fill), reinterpret_cast<void*>(&copy),
        reinterpret_cast<void*>(sizeof(eng_launch)),
    };
    memcpy(functions, all, sizeof all);
    return 1;
}

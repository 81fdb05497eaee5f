// Threads that wait for work: parts of launches, which may run in any order.
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "block.h"
#include "lines.h"
#include "owned.h"
#include "processors.h"

namespace {

using entry_t = void (*)(const unsigned char*, eng_launch*);

struct job_t {
    entry_t entry;
    const unsigned char* args;
    int64_t stride;  // bytes from the arguments of one part to those of the next
    eng_launch* launches;
    const int64_t* parts;  // which parts to run
    int64_t count;
    owned_t owned;
    fenv_t modes;  // of the thread that asked
    int64_t next;
    int64_t failed;
};

struct pool_t {
    pthread_mutex_t mutex;
    pthread_cond_t wake, idle;
    uint64_t round;  // counts jobs
    int64_t workers, wanted, active;
    bool taken, open;
    job_t job;
    seat_t* seats;  // of the workers
};

struct worker_t {
    pool_t* pool;
    int64_t number;
};

constexpr int spins = 2000;  // some ten microseconds, after which a thread sleeps

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

void work(job_t& j) {
    for (;;) {
        const int64_t at = __atomic_fetch_add(&j.next, 1, __ATOMIC_RELAXED);
        if (at >= j.count) return;
        const int64_t part = j.parts[at];
        j.owned.clear_of(part);
        if (__atomic_load_n(&j.failed, __ATOMIC_RELAXED)) continue;
        eng_launch* L = j.launches + part;
        j.entry(j.args + part * j.stride, L);
        // Saved values of a part are of no use to another: their memory goes, its size stays.
        free(L->stack.data);
        L->stack.data = nullptr;
        if (L->error && L->error != eng::error_stack) __atomic_store_n(&j.failed, 1, __ATOMIC_RELAXED);
    }
}

void* run(void* given) {
    worker_t me = *static_cast<worker_t*>(given);
    free(given);
    pool_t* p = me.pool;
    uint64_t seen = 0;
    for (;;) {
        for (int k = 0; k < spins && __atomic_load_n(&p->round, __ATOMIC_ACQUIRE) == seen; ++k) relax();
        pthread_mutex_lock(&p->mutex);
        if (p->round == seen) run_anywhere(p->seats[me.number]);
        while (p->round == seen) pthread_cond_wait(&p->wake, &p->mutex);
        seen = p->round;
        if (p->open && me.number < p->wanted) {
            __atomic_fetch_add(&p->active, 1, __ATOMIC_ACQ_REL);
            pthread_mutex_unlock(&p->mutex);
            fesetenv(&p->job.modes);
            work(p->job);
            pthread_mutex_lock(&p->mutex);
            if (__atomic_sub_fetch(&p->active, 1, __ATOMIC_ACQ_REL) == 0) pthread_cond_signal(&p->idle);
        }
        pthread_mutex_unlock(&p->mutex);
    }
    return nullptr;
}

// Signals are for the threads of the program: workers block them all.
void hire(pool_t* p, int64_t wanted) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, size_t(16) << 20);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (p->workers < wanted) {
        void* seats = realloc(p->seats, size_t(wanted) * sizeof(seat_t));
        if (seats) p->seats = static_cast<seat_t*>(seats);
        else wanted = p->workers;
    }
    while (p->workers < wanted) {
        worker_t* given = static_cast<worker_t*>(malloc(sizeof(worker_t)));
        if (!given) break;
        *given = worker_t{p, p->workers};
        pthread_t id;
        if (pthread_create(&id, &attr, run, given) != 0) {
            free(given);
            break;  // fewer will do
        }
        p->seats[p->workers++] = seat_t(id);
    }
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Runs the parts of a job. A pool that is in use by another thread leaves all to the caller.
void run_job(pool_t* p, job_t& mine, int64_t threads) {
    if (threads > mine.count) threads = mine.count;
    bool shared = p && threads > 1;
    if (shared) {
        pthread_mutex_lock(&p->mutex);
        shared = !p->taken;
        p->taken = p->taken || shared;
        if (shared) {
            hire(p, threads - 1);
            const int here = processor();
            for (int64_t k = 0; k < threads - 1 && k < p->workers && k < most_moved; ++k)
                keep_off(p->seats[k], here);
            p->job = mine;
            fegetenv(&p->job.modes);
            p->wanted = threads - 1;
            p->open = true;
            __atomic_store_n(&p->round, p->round + 1, __ATOMIC_RELEASE);
            pthread_cond_broadcast(&p->wake);
        }
        pthread_mutex_unlock(&p->mutex);
    }
    if (!shared) {
        work(mine);
        return;
    }
    work(p->job);
    for (int k = 0; k < spins && __atomic_load_n(&p->active, __ATOMIC_ACQUIRE); ++k) relax();
    pthread_mutex_lock(&p->mutex);
    p->open = false;  // who wakes up now has come too late
    while (__atomic_load_n(&p->active, __ATOMIC_ACQUIRE)) pthread_cond_wait(&p->idle, &p->mutex);
    p->taken = false;
    pthread_mutex_unlock(&p->mutex);
}

}  // namespace

// A pool without threads, or null.
ENG_EXPORT void* eng_pool_new() {
    pool_t* p = static_cast<pool_t*>(calloc(1, sizeof(pool_t)));
    if (!p) return nullptr;
    pthread_mutex_init(&p->mutex, nullptr);
    pthread_cond_init(&p->wake, nullptr);
    pthread_cond_init(&p->idle, nullptr);
    return p;
}

// Runs `count` parts of a launch, in no order, by up to `threads` threads, the caller's one
// of them. A pool that is in use by another thread leaves all to the caller.
ENG_EXPORT void eng_pool_run(void* pool, void* entry, const unsigned char* args, int64_t stride,
                             eng_launch* launches, const int64_t* parts, int64_t count,
                             int64_t threads) {
    job_t mine{reinterpret_cast<entry_t>(entry), args, stride, launches, parts, count, {}, {}, 0, 0};
    run_job(static_cast<pool_t*>(pool), mine, threads);
}

namespace {

// Copies of an array, which are to be added to it: `count` of them, each `step` bytes on.
struct copies_t {
    unsigned char* target;
    const unsigned char* first;
    int64_t step, count;
};

constexpr int64_t tile = 4096, pieces = 64;

// Cuts 0 to size into parts.
void cut(int64_t size, eng_launch (&launches)[pieces], int64_t (&parts)[pieces]) {
    const int64_t each = (size + pieces - 1) / pieces;
    for (int64_t k = 0; k < pieces; ++k) {
        parts[k] = k;
        launches[k] = eng_launch{};
        launches[k].begin = k * each < size ? k * each : size;
        launches[k].end = (k + 1) * each < size ? (k + 1) * each : size;
    }
}

// Elements L->begin to L->end. Where nothing was added, nothing changes: -0.0 stays.
template <class T> void add_copies(const unsigned char* args, eng_launch* L) {
    copies_t c;
    __builtin_memcpy(&c, args, sizeof(c));
    T* to = reinterpret_cast<T*>(c.target);
    for (int64_t at = L->begin; at < L->end; at += tile) {
        const int64_t end = L->end - at < tile ? L->end : at + tile;
        for (int64_t k = 0; k < c.count; ++k) {
            const T* from = reinterpret_cast<const T*>(c.first + k * c.step);
            for (int64_t i = at; i < end; ++i) to[i] = from[i] != T(0) ? to[i] + from[i] : to[i];
        }
    }
}

}  // namespace

// Adds copies of an array of `size` numbers (of 4 or 8 bytes) to it, one after the other.
ENG_EXPORT void eng_pool_add(
    void* pool, unsigned char* target, const unsigned char* first, int64_t step, int64_t count,
    int64_t size, int64_t bytes, int64_t threads) {
    eng_launch launches[pieces];
    int64_t parts[pieces];
    cut(size, launches, parts);
    const copies_t c{target, first, step, count};
    void* entry = reinterpret_cast<void*>(bytes == 4 ? add_copies<float> : add_copies<double>);
    eng_pool_run(pool, entry, reinterpret_cast<const unsigned char*>(&c), 0, launches, parts, pieces,
                 threads);
}

namespace {

struct bytes_t {
    unsigned char* to;
    const unsigned char* from;
};

// Bytes L->begin to L->end.
void copy_bytes(const unsigned char* args, eng_launch* L) {
    bytes_t c;
    __builtin_memcpy(&c, args, sizeof(c));
    eng::stream_bytes(c.to + L->begin, c.from + L->begin, L->end - L->begin);
    eng::stream_end();
}

}  // namespace

// Copies bytes, more than caches keep, to where they are not read from.
ENG_EXPORT void eng_pool_copy(void* pool, unsigned char* to, const unsigned char* from, int64_t size,
                              int64_t threads) {
    eng_launch launches[pieces];
    int64_t parts[pieces];
    cut(size, launches, parts);
    const bytes_t c{to, from};
    eng_pool_run(pool, reinterpret_cast<void*>(copy_bytes),
                 reinterpret_cast<const unsigned char*>(&c), 0, launches, parts, pieces, threads);
}

namespace {

// Sums wrap: those of signed numbers are added as unsigned ones.
template <class T> struct sum_type { using type = T; };
template <> struct sum_type<int32_t> { using type = uint32_t; };
template <> struct sum_type<int64_t> { using type = uint64_t; };

template <class T> void add_few(const copies_t& c, int64_t size) {
    eng_launch all{};
    all.end = size;
    add_copies<T>(reinterpret_cast<const unsigned char*>(&c), &all);
}

// What beats what is there replaces it, and any number what is none; the first of equals stays.
template <class T> void replace(const own_t& o, const unsigned char* first, int64_t count,
                                unsigned char* winners) {
    T* to = reinterpret_cast<T*>(o.target);
    for (int64_t k = 0; k < count; ++k) {
        const T* from = reinterpret_cast<const T*>(first + k * o.step);
        for (int64_t i = 0; i < o.size; ++i) {
            const T now = to[i], other = from[i];
            const bool beats = o.kind == takes_most ? other > now : other < now;
            if (!beats && !(now != now && other == other)) continue;
            to[i] = other;
            if (winners) winners[i] = static_cast<unsigned char>(k + 1);
        }
    }
}

constexpr int64_t many = 20000;  // numbers, from which on several threads add

void bring_together(void* pool, const int64_t* own, unsigned char* memory, int64_t count,
                    int64_t threads) {
    own_t o;
    __builtin_memcpy(&o, own, sizeof(o));
    const unsigned char* first = memory + o.start;
    if (o.kind != adds) {
        unsigned char* winners = o.winners < 0 ? nullptr : memory + o.winners;
        with_type(o.type, [&](auto x) { replace<decltype(x)>(o, first, count, winners); });
    } else if (o.type < 2 && o.size >= many) {
        eng_pool_add(pool, reinterpret_cast<unsigned char*>(o.target), first, o.step, count, o.size,
                     o.type == 0 ? 4 : 8, threads);
    } else {
        const copies_t c{reinterpret_cast<unsigned char*>(o.target), first, o.step, count};
        with_type(o.type, [&](auto x) {
            add_few<typename sum_type<decltype(x)>::type>(c, o.size);
        });
    }
}

}  // namespace

// Runs the parts of a launch, round by round, and brings together what each part has of its own.
// words: how many rounds; of each, how many parts, and which; how many arrays (`own_t`), and these.
// memory: of all that parts have of their own, and of the winners; anything may be in it.
// Returns -1 where nothing is left to do or to look at, -2 where all is done and something is left
// in the launch structures, the number of a round after which some have an error, and -3 where no
// memory is there and nothing has run.
ENG_EXPORT int64_t eng_pool_launch(void* pool, void* entry, const unsigned char* args, int64_t nargs,
                                   eng_launch* launches, int64_t count, const int64_t* words,
                                   unsigned char* memory, int64_t threads) {
    const int64_t rounds = *words++;
    const int64_t* owns = words;
    for (int64_t k = 0; k < rounds; ++k) owns += 1 + owns[0];
    const int64_t n = *owns++;
    const owned_t owned{owns, n, memory};
    unsigned char* blocks = nullptr;
    if (n > 0) {
        blocks = static_cast<unsigned char*>(malloc(size_t(count * nargs)));
        if (!blocks) return -3;
        owned.each([&](const int64_t* own) { begin(own, memory, count - 1); });
        for (int64_t part = 0; part < count; ++part) {
            unsigned char* mine = blocks + part * nargs;
            __builtin_memcpy(mine, args, size_t(nargs));
            if (part > 0) owned.each([&](const int64_t* own) { place(mine, own, memory, part); });
        }
    }
    int64_t came = -1;
    for (int64_t k = 0; k < rounds && came < 0; ++k) {
        job_t mine{reinterpret_cast<entry_t>(entry), blocks ? blocks : args, blocks ? nargs : 0,
                   launches, words + 1, words[0], owned, {}, 0, 0};
        run_job(static_cast<pool_t*>(pool), mine, threads);
        words += 1 + words[0];
        for (int64_t j = 0; j < count; ++j)
            if (launches[j].error) came = k;
    }
    free(blocks);
    if (came >= 0) {  // the rest is run by others
        for (int64_t k = came + 1; k < rounds; words += 1 + words[0], ++k)
            for (int64_t j = 1; j <= words[0]; ++j) owned.clear_of(words[j]);
        return came;
    }
    owned.each([&](const int64_t* own) { bring_together(pool, own, memory, count - 1, threads); });
    for (int64_t j = 0; j < count; ++j) {
        const eng_launch& L = launches[j];
        if (L.stack.data || L.stack.cap || L.journal.data || L.output.data) return -2;
    }
    return -1;
}

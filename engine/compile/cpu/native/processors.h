// Which processors the threads of a pool run on.
#pragma once
#include <pthread.h>

#if defined(__linux__)
#include <sched.h>

namespace {

// A worker. off: the processor that it keeps off, or -1. usual: where it may run but for that;
// given: where it was last told to.
struct seat_t {
    pthread_t thread;
    int off;
    cpu_set_t usual, given;
};

inline void begin_at(seat_t& p, pthread_t thread) { p.thread = thread, p.off = -1; }

inline int processor() { return sched_getcpu(); }

// Linux may wake a thread on the processor of who wakes it: then the two take turns there for some
// milliseconds, while others have nothing to do. So workers keep off the one that a launch is made on.
inline void keep_off(seat_t& p, int here) {
    if (here < 0 || p.off == here) return;
    cpu_set_t now;
    if (pthread_getaffinity_np(p.thread, sizeof(now), &now) != 0) return;
    // Where somebody else has told it to run, it stays.
    if (p.off < 0 || !CPU_EQUAL(&now, &p.given)) p.usual = now;
    cpu_set_t left = p.usual;
    CPU_CLR(here, &left);
    if (CPU_COUNT(&left) == 0) left = p.usual;
    p.off = here, p.given = left;
    if (!CPU_EQUAL(&now, &left) && pthread_setaffinity_np(p.thread, sizeof(left), &left) != 0) p.given = now;
}

}  // namespace
#else

namespace {

struct seat_t {
    pthread_t thread;
};

inline void begin_at(seat_t& p, pthread_t thread) { p.thread = thread; }
inline int processor() { return -1; }
inline void keep_off(seat_t&, int) {}

}  // namespace
#endif

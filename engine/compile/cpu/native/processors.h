// On which processors the threads of a pool run.
#pragma once
#include <pthread.h>
#include <sched.h>

namespace {

#if defined(__linux__)

// A worker. off: the processor that it was told to keep off, or -1: it may run in `left` alone then
// and not, as before, in `usual`.
struct seat_t {
    pthread_t thread;
    int off = -1;
    cpu_set_t usual{}, left{};

    explicit seat_t(pthread_t thread) : thread(thread) {}
};

constexpr int64_t most_moved = 7;  // workers: where there are more, few are in each other's way

inline int processor() { return sched_getcpu(); }

// Linux may wake a thread on the processor of who wakes it: then the two take turns there for some
// milliseconds, while others have nothing to do. So a worker keeps off the one that a launch is made
// on, until it sleeps.
inline void keep_off(seat_t& s, int here) {
    cpu_set_t now;
    if (here < 0 || s.off == here) return;
    if (pthread_getaffinity_np(s.thread, sizeof(now), &now) != 0) return;
    if (s.off < 0 || !CPU_EQUAL(&now, &s.left)) s.usual = now;
    s.off = -1, s.left = s.usual;
    CPU_CLR(here, &s.left);
    if (CPU_COUNT(&s.left) == 0) s.left = s.usual;
    if (CPU_EQUAL(&s.left, &now)) return;
    if (pthread_setaffinity_np(s.thread, sizeof(s.left), &s.left) == 0) s.off = here;
}

// A worker's own doing, before it sleeps; somebody may have told it otherwise meanwhile.
inline void run_anywhere(seat_t& s) {
    cpu_set_t now;
    if (s.off >= 0 && sched_getaffinity(0, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &s.left))
        sched_setaffinity(0, sizeof(s.usual), &s.usual);
    s.off = -1;
}
#else
struct seat_t {
    explicit seat_t(pthread_t) {}
};

constexpr int64_t most_moved = 0;
inline int processor() { return -1; }
inline void keep_off(seat_t&, int) {}
inline void run_anywhere(seat_t&) {}
#endif

}  // namespace

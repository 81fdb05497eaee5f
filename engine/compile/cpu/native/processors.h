// On which processors the threads of a pool wake up.
#pragma once
#include <pthread.h>
#include <sched.h>

namespace {

#if defined(__linux__)

// A worker. asleep: whether it waits to be woken. moved: whether it may not run everywhere, but for
// that: `usual`, until it has woken up.
struct seat_t {
    pthread_t thread;
    bool asleep, moved;
    cpu_set_t usual;
};

constexpr int64_t most_moved = 7;  // workers: where there are more, few are in each other's way

inline int processor() { return sched_getcpu(); }

// Linux may wake a thread on the processor of who wakes it: then the two take turns there for some
// milliseconds, while others have nothing to do. So a worker wakes up on another one.
inline void keep_off(seat_t& s, int here) {
    if (here < 0 || !s.asleep || s.moved) return;
    if (pthread_getaffinity_np(s.thread, sizeof(s.usual), &s.usual) != 0) return;
    cpu_set_t left = s.usual;
    CPU_CLR(here, &left);
    if (CPU_COUNT(&left) == 0 || CPU_EQUAL(&left, &s.usual)) return;
    s.moved = pthread_setaffinity_np(s.thread, sizeof(left), &left) == 0;
}

// What a worker does that has woken up, while nobody changes its seat: gives what it does after that.
inline auto woken(seat_t& s) {
    const bool moved = s.moved;
    const cpu_set_t usual = s.usual;
    s.asleep = s.moved = false;
    return [=] {
        if (moved) sched_setaffinity(0, sizeof(usual), &usual);
    };
}
#else
struct seat_t {
    pthread_t thread;
    bool asleep;
};

constexpr int64_t most_moved = 0;
inline int processor() { return -1; }
inline void keep_off(seat_t&, int) {}
inline auto woken(seat_t&) {
    return [] {};
}
#endif

}  // namespace

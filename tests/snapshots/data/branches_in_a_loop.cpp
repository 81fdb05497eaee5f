// ---- primal
#include "late.h"
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L);
namespace ns_primal {
template <class A_x, class A_out>
ENG_INLINE void thread(A_x v_x, A_out v_out, int64_t k0) {
    float v_total{};
    float v_r{};
    const int32_t v_i = int32_t(k0);
    v_total = 0.0f;
    const int32_t v_t_1 = int32_t(v_x.shape[0]);
    for (int32_t v_j = 0; v_j < v_t_1; ++v_j) {
        const bool v_t_2 = (v_j == v_i);
        if (v_t_2) {
            continue;
        }
        const bool v_t_3 = (v_total > 1.0e+01f);
        if (v_t_3) {
            break;
        }
        const float v_t_4 = v_x.at(v_j);
        const bool v_t_5 = (v_t_4 > 0.0f);
        if (v_t_5) {
            const float v_t_6 = v_x.at(k0);
            const float v_t_7 = v_x.at(v_j);
            const float v_t_8 = (v_t_6 * v_t_7);
            v_r = v_t_8;
        } else {
            const float v_t_9 = v_x.at(v_j);
            const float v_t_10 = eng::exp(v_t_9);
            v_r = v_t_10;
        }
        const float v_t_11 = (v_total + v_r);
        v_total = v_t_11;
    }
    v_out.at(k0) = v_total;
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_out) {
    auto v_x = eng::flat<eng::array_t<float,1,true>>(args, 0, d_x);
    auto v_out = eng::flat<eng::array_t<float,1,true>>(args, 24, d_out);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { thread(v_x, v_out, k0); }
    }
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 0), eng::data(args, 24));
}
static eng::form_t other{nullptr, primal, "primal", R"engine(#include "common.h"
#include "lend.h"
namespace ns_ENGINE_OTHER {
template <class A_x, class A_out>
ENG_INLINE void thread(A_x v_x, A_out v_out, int64_t k0) {
    float v_total{};
    float v_r{};
    const int32_t v_i = int32_t(k0);
    v_total = 0.0f;
    const int32_t v_t_1 = int32_t(v_x.shape[0]);
    for (int32_t v_j = 0; v_j < v_t_1; ++v_j) {
        const bool v_t_2 = (v_j == v_i);
        if (v_t_2) {
            continue;
        }
        const bool v_t_3 = (v_total > 1.0e+01f);
        if (v_t_3) {
            break;
        }
        const float v_t_4 = v_x.at(v_j);
        const bool v_t_5 = (v_t_4 > 0.0f);
        if (v_t_5) {
            const float v_t_6 = v_x.at(k0);
            const float v_t_7 = v_x.at(v_j);
            const float v_t_8 = (v_t_6 * v_t_7);
            v_r = v_t_8;
        } else {
            const float v_t_9 = v_x.at(v_j);
            const float v_t_10 = eng::exp(v_t_9);
            v_r = v_t_10;
        }
        const float v_t_11 = (v_total + v_r);
        v_total = v_t_11;
    }
    v_out.at(k0) = v_total;
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1>>(args, 24);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { ENG_SCALAR; thread(v_x, v_out, k0); }
    }
}
static void run_any(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    if (eng::lend(args, L, arrays, how, run)) return;
    run(args, L);
}
}
ENG_EXPORT void ENGINE_OTHER(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    ns_ENGINE_OTHER::run_any(args, L, arrays, how);
}
)engine",
    eng::precise, eng::large};
static const eng::along_t along_out[] = {{0, 0, 0, 0}};
static const eng::touched_t touched[] = {
    {0, 4, 1, false, false, false, false, false, nullptr},
    {24, 4, 1, true, true, true, true, false, along_out},
};
static const eng::kernel_t how{touched, 2, 48, 1, 12, 40, eng::sums_none, false,
    go, &other};
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    eng::extent_t arrays[2];
    const bool apart = eng::apart(args, ns_primal::touched, arrays) && L->ndim == 1;
    if (apart && L->begin < L->end) return ns_primal::go(args, L);
    eng::otherwise(args, L, arrays, ns_primal::how, apart);
}

// ---- adjoint
#include "late.h"
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L);
namespace ns_adjoint {
template <class A_x, class A_out, class A_adj_x, class A_adj_out>
ENG_INLINE void thread(eng::ctx_t& ctx, A_x v_x, A_out v_out, A_adj_x v_adj_x, A_adj_out v_adj_out, int64_t k0) {
    float v_total{};
    bool v_left{};
    uint64_t v_count{};
    uint64_t v_trips_1{};
    bool v_go{};
    float v_r{};
    float v_adj_total{};
    float v_adj_r{};
    const int32_t v_i = int32_t(k0);
    v_total = 0.0f;
    const int32_t v_t_1 = int32_t(v_x.shape[0]);
    v_left = false;
    const uint64_t v_trips = eng::trips(0, v_t_1, 1);
    v_count = uint64_t(0ull);
    v_trips_1 = uint64_t(0ull);
    for (;;) {
        const bool v_t_15 = (v_count < v_trips);
        const bool v_t_17 = eng::lnot(v_left);
        const bool v_t_18 = eng::land(v_t_15, v_t_17);
        if (!(v_t_18)) break;
        if (!eng::push(ctx, v_total)) return;
        if (!eng::push(ctx, v_count)) return;
        const int32_t v_t_19 = eng::cast<int32_t>(v_count);
        v_go = true;
        const bool v_t_20 = (v_t_19 == v_i);
        if (v_t_20) {
            v_go = false;
        }
        if (v_go) {
            const bool v_t_21 = (v_total > 1.0e+01f);
            if (v_t_21) {
                v_left = true;
                v_go = false;
            }
            if (v_go) {
                const float v_t_22 = v_x.at(v_t_19);
                const bool v_t_23 = (v_t_22 > 0.0f);
                if (v_t_23) {
                    const float v_t_24 = v_x.at(k0);
                    const float v_t_25 = v_x.at(v_t_19);
                    const float v_t_26 = (v_t_24 * v_t_25);
                    v_r = v_t_26;
                } else {
                    const float v_t_27 = v_x.at(v_t_19);
                    const float v_t_28 = eng::exp(v_t_27);
                    v_r = v_t_28;
                }
                const float v_t_29 = (v_total + v_r);
                v_total = v_t_29;
            }
        }
        const uint64_t v_t_30 = (v_count + uint64_t(1ull));
        v_count = v_t_30;
        const uint64_t v_t_31 = (v_trips_1 + uint64_t(1ull));
        v_trips_1 = v_t_31;
    }
    const uint64_t v_t_32 = v_trips_1;
    const float v_ct = v_adj_out.at(k0);
    v_adj_out.at(k0) = 0.0f;
    v_adj_total = v_ct;
    for (uint64_t v_done = uint64_t(0ull); v_done < v_t_32; ++v_done) {
        bool v_t_37;
        bool v_t_5;
        float v_t_6;
        float v_t_7;
        float v_t_10;
        v_count = eng::pop<uint64_t>(ctx);
        v_total = eng::pop<float>(ctx);
        const int32_t v_t_14 = eng::cast<int32_t>(v_count);
        v_go = true;
        const bool v_t_2 = (v_t_14 == v_i);
        if (v_t_2) {
            v_go = false;
        }
        const bool v_t_36 = v_go;
        if (v_t_36) {
            const bool v_t_3 = (v_total > 1.0e+01f);
            if (v_t_3) {
                v_go = false;
            }
            v_t_37 = v_go;
            if (v_t_37) {
                const float v_t_4 = v_x.at(v_t_14);
                v_t_5 = (v_t_4 > 0.0f);
                if (v_t_5) {
                    v_t_6 = v_x.at(k0);
                    v_t_7 = v_x.at(v_t_14);
                } else {
                    const float v_t_9 = v_x.at(v_t_14);
                    v_t_10 = eng::exp(v_t_9);
                }
            }
        }
        if (v_t_36) {
            if (v_t_37) {
                const float v_ct_1 = v_adj_total;
                v_adj_total = v_ct_1;
                const float v_t_40 = (v_adj_r + v_ct_1);
                if (v_t_5) {
                    v_adj_r = 0.0f;
                    const float v_t_42 = (v_t_40 * v_t_7);
                    const float v_t_43 = (v_t_40 * v_t_6);
                    eng::atomic_add(v_adj_x.at(v_t_14), v_t_43);
                    eng::atomic_add(v_adj_x.at(k0), v_t_42);
                } else {
                    v_adj_r = 0.0f;
                    const float v_t_47 = (v_t_40 * v_t_10);
                    eng::atomic_add(v_adj_x.at(v_t_14), v_t_47);
                }
            }
        }
    }
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_adj_x, unsigned char* ENG_ONLY d_adj_out) {
    auto v_x = eng::flat<eng::array_t<float,1,true>>(args, 0, d_x);
    auto v_out = eng::arg<eng::array_t<float,1>>(args, 24);
    auto v_adj_x = eng::flat<eng::array_t<float,1,true>>(args, 48, d_adj_x);
    auto v_adj_out = eng::flat<eng::array_t<float,1,true>>(args, 72, d_adj_out);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        n = eng::row_down<1>(L, row, begin, c);
        const int64_t stop = c[0], first = stop - n;
        for (int64_t k0 = stop; k0 > first; --k0) { thread(ctx, v_x, v_out, v_adj_x, v_adj_out, k0); if (ctx.error) { eng::abandon(L, ctx, row - (stop - k0), false); break; } }
        if (ctx.error) break;
    }
    eng::leave(L, ctx);
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 0), eng::data(args, 48), eng::data(args, 72));
}
static eng::form_t other{nullptr, adjoint, "adjoint", R"engine(#include "common.h"
#include "lend.h"
namespace ns_ENGINE_OTHER {
template <class A_x, class A_out, class A_adj_x, class A_adj_out>
ENG_INLINE void thread(eng::ctx_t& ctx, A_x v_x, A_out v_out, A_adj_x v_adj_x, A_adj_out v_adj_out, int64_t k0) {
    float v_total{};
    bool v_left{};
    uint64_t v_count{};
    uint64_t v_trips_1{};
    bool v_go{};
    float v_r{};
    float v_adj_total{};
    float v_adj_r{};
    const int32_t v_i = int32_t(k0);
    v_total = 0.0f;
    const int32_t v_t_1 = int32_t(v_x.shape[0]);
    v_left = false;
    const uint64_t v_trips = eng::trips(0, v_t_1, 1);
    v_count = uint64_t(0ull);
    v_trips_1 = uint64_t(0ull);
    for (;;) {
        const bool v_t_15 = (v_count < v_trips);
        const bool v_t_17 = eng::lnot(v_left);
        const bool v_t_18 = eng::land(v_t_15, v_t_17);
        if (!(v_t_18)) break;
        if (!eng::push(ctx, v_total)) return;
        if (!eng::push(ctx, v_count)) return;
        const int32_t v_t_19 = eng::cast<int32_t>(v_count);
        v_go = true;
        const bool v_t_20 = (v_t_19 == v_i);
        if (v_t_20) {
            v_go = false;
        }
        if (v_go) {
            const bool v_t_21 = (v_total > 1.0e+01f);
            if (v_t_21) {
                v_left = true;
                v_go = false;
            }
            if (v_go) {
                const float v_t_22 = v_x.at(v_t_19);
                const bool v_t_23 = (v_t_22 > 0.0f);
                if (v_t_23) {
                    const float v_t_24 = v_x.at(k0);
                    const float v_t_25 = v_x.at(v_t_19);
                    const float v_t_26 = (v_t_24 * v_t_25);
                    v_r = v_t_26;
                } else {
                    const float v_t_27 = v_x.at(v_t_19);
                    const float v_t_28 = eng::exp(v_t_27);
                    v_r = v_t_28;
                }
                const float v_t_29 = (v_total + v_r);
                v_total = v_t_29;
            }
        }
        const uint64_t v_t_30 = (v_count + uint64_t(1ull));
        v_count = v_t_30;
        const uint64_t v_t_31 = (v_trips_1 + uint64_t(1ull));
        v_trips_1 = v_t_31;
    }
    const uint64_t v_t_32 = v_trips_1;
    const float v_ct = v_adj_out.at(k0);
    v_adj_out.at(k0) = 0.0f;
    v_adj_total = v_ct;
    for (uint64_t v_done = uint64_t(0ull); v_done < v_t_32; ++v_done) {
        bool v_t_37;
        bool v_t_5;
        float v_t_6;
        float v_t_7;
        float v_t_10;
        v_count = eng::pop<uint64_t>(ctx);
        v_total = eng::pop<float>(ctx);
        const int32_t v_t_14 = eng::cast<int32_t>(v_count);
        v_go = true;
        const bool v_t_2 = (v_t_14 == v_i);
        if (v_t_2) {
            v_go = false;
        }
        const bool v_t_36 = v_go;
        if (v_t_36) {
            const bool v_t_3 = (v_total > 1.0e+01f);
            if (v_t_3) {
                v_go = false;
            }
            v_t_37 = v_go;
            if (v_t_37) {
                const float v_t_4 = v_x.at(v_t_14);
                v_t_5 = (v_t_4 > 0.0f);
                if (v_t_5) {
                    v_t_6 = v_x.at(k0);
                    v_t_7 = v_x.at(v_t_14);
                } else {
                    const float v_t_9 = v_x.at(v_t_14);
                    v_t_10 = eng::exp(v_t_9);
                }
            }
        }
        if (v_t_36) {
            if (v_t_37) {
                const float v_ct_1 = v_adj_total;
                v_adj_total = v_ct_1;
                const float v_t_40 = (v_adj_r + v_ct_1);
                if (v_t_5) {
                    v_adj_r = 0.0f;
                    const float v_t_42 = (v_t_40 * v_t_7);
                    const float v_t_43 = (v_t_40 * v_t_6);
                    eng::atomic_add(v_adj_x.at(v_t_14), v_t_43);
                    eng::atomic_add(v_adj_x.at(k0), v_t_42);
                } else {
                    v_adj_r = 0.0f;
                    const float v_t_47 = (v_t_40 * v_t_10);
                    eng::atomic_add(v_adj_x.at(v_t_14), v_t_47);
                }
            }
        }
    }
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,1>>(args, 24);
    auto v_adj_x = eng::arg<eng::array_t<float,1>>(args, 48);
    auto v_adj_out = eng::arg<eng::array_t<float,1>>(args, 72);
    eng::ctx_t ctx = eng::enter(L);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        n = eng::row_down<1>(L, row, begin, c);
        const int64_t stop = c[0], first = stop - n;
        for (int64_t k0 = stop; k0 > first; --k0) { ENG_SCALAR; thread(ctx, v_x, v_out, v_adj_x, v_adj_out, k0); if (ctx.error) { eng::abandon(L, ctx, row - (stop - k0), false); break; } }
        if (ctx.error) break;
    }
    eng::leave(L, ctx);
}
static void run_any(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    if (eng::lend(args, L, arrays, how, run)) return;
    run(args, L);
}
}
ENG_EXPORT void ENGINE_OTHER(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {
    ns_ENGINE_OTHER::run_any(args, L, arrays, how);
}
)engine",
    eng::precise, eng::large};
static const eng::along_t along_adj_out[] = {{0, 0, 0, 0}};
static const eng::touched_t touched[] = {
    {0, 4, 1, false, false, false, false, false, nullptr},
    {48, 4, 1, true, false, false, false, false, nullptr},
    {72, 4, 1, true, true, true, true, false, along_adj_out},
};
static const eng::kernel_t how{touched, 3, 96, 1, 4, 119, eng::sums_block, true,
    go, &other};
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    eng::extent_t arrays[3];
    const bool apart = eng::apart(args, ns_adjoint::touched, arrays) && L->ndim == 1;
    if (apart && L->begin < L->end) return ns_adjoint::go(args, L);
    eng::otherwise(args, L, arrays, ns_adjoint::how, apart);
}

// ---- primal
#include "late.h"
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L);
namespace ns_primal {
template <class A_x, class A_bin, class A_out>
ENG_INLINE void thread(A_x v_x, A_bin v_bin, A_out v_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const int32_t v_t_1 = v_bin.at(k0);
    const float v_t_2 = v_x.at(k0);
    const float v_t_3 = v_x.at(k0);
    const float v_t_4 = (v_t_2 * v_t_3);
    const int32_t v_t_5 = int32_t(v_out.shape[0]);
    const int32_t v_t_6 = ((v_t_1) < 0 ? (v_t_1) + (v_t_5) : (v_t_1));
    do {
        const int64_t later = k0 + 32;
        {
            const int64_t k0 = later;
            const int32_t v_0_i = int32_t(k0);
            if (!(eng::inside(k0, v_bin.shape[0]))) break;
            const int32_t v_1_t_1 = v_bin.at(k0);
            eng::ask(v_out, v_1_t_1);
        }
    } while (false);
    eng::atomic_add(v_out.at(v_t_6), v_t_4);
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_bin, unsigned char* ENG_ONLY d_out) {
    auto v_x = eng::flat<eng::array_t<float,1,true>>(args, 0, d_x);
    auto v_bin = eng::flat<eng::array_t<int32_t,1,true>>(args, 24, d_bin);
    auto v_out = eng::flat<eng::array_t<float,1,true>>(args, 48, d_out);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { thread(v_x, v_bin, v_out, k0); }
    }
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 0), eng::data(args, 24), eng::data(args, 48));
}
static eng::form_t other{nullptr, primal, "primal", R"engine(#include "common.h"
#include "lend.h"
namespace ns_ENGINE_OTHER {
template <class A_x, class A_bin, class A_out>
ENG_INLINE void thread(A_x v_x, A_bin v_bin, A_out v_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const int32_t v_t_1 = v_bin.at(k0);
    const float v_t_2 = v_x.at(k0);
    const float v_t_3 = v_x.at(k0);
    const float v_t_4 = (v_t_2 * v_t_3);
    const int32_t v_t_5 = int32_t(v_out.shape[0]);
    const int32_t v_t_6 = ((v_t_1) < 0 ? (v_t_1) + (v_t_5) : (v_t_1));
    do {
        const int64_t later = k0 + 32;
        {
            const int64_t k0 = later;
            const int32_t v_0_i = int32_t(k0);
            if (!(eng::inside(k0, v_bin.shape[0]))) break;
            const int32_t v_1_t_1 = v_bin.at(k0);
            eng::ask(v_out, v_1_t_1);
        }
    } while (false);
    eng::atomic_add(v_out.at(v_t_6), v_t_4);
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_bin = eng::arg<eng::array_t<int32_t,1>>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1>>(args, 48);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { ENG_SCALAR; thread(v_x, v_bin, v_out, k0); }
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
static const eng::along_t along_x[] = {{0, 0, 0, 0}};
static const eng::along_t along_bin[] = {{0, 0, 0, 32}};
static const eng::touched_t touched[] = {
    {0, 4, 1, false, false, true, false, true, along_x},
    {24, 4, 1, false, false, true, false, true, along_bin},
    {48, 4, 1, true, false, false, true, false, nullptr},
};
static const eng::kernel_t how{touched, 3, 72, 1, 375, 1, eng::sums_block, false,
    go, &other};
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    eng::extent_t arrays[3];
    const bool apart = eng::apart(args, ns_primal::touched, arrays) && L->ndim == 1;
    if (apart && L->begin < L->end) return ns_primal::go(args, L);
    eng::otherwise(args, L, arrays, ns_primal::how, apart);
}

// ---- adjoint
#include "late.h"
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L);
namespace ns_adjoint {
template <class A_x, class A_bin, class A_out, class A_adj_x, class A_adj_out>
ENG_INLINE void thread(A_x v_x, A_bin v_bin, A_out v_out, A_adj_x v_adj_x, A_adj_out v_adj_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const int32_t v_t_1 = v_bin.at(k0);
    const float v_t_2 = v_x.at(k0);
    const float v_t_3 = v_x.at(k0);
    const int32_t v_t_5 = int32_t(v_out.shape[0]);
    const int32_t v_t_6 = ((v_t_1) < 0 ? (v_t_1) + (v_t_5) : (v_t_1));
    const float v_ct = v_adj_out.at(v_t_6);
    const float v_t_7 = (v_ct * v_t_3);
    const float v_t_8 = (v_ct * v_t_2);
    eng::atomic_add(v_adj_x.at(k0), v_t_8);
    eng::atomic_add(v_adj_x.at(k0), v_t_7);
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_bin, unsigned char* ENG_ONLY d_adj_x, unsigned char* ENG_ONLY d_adj_out) {
    auto v_x = eng::flat<eng::array_t<float,1,true>>(args, 0, d_x);
    auto v_bin = eng::flat<eng::array_t<int32_t,1,true>>(args, 24, d_bin);
    auto v_out = eng::arg<eng::array_t<float,1>>(args, 48);
    auto v_adj_x = eng::flat<eng::array_t<float,1,true>>(args, 72, d_adj_x);
    auto v_adj_out = eng::flat<eng::array_t<float,1,true>>(args, 96, d_adj_out);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) { thread(v_x, v_bin, v_out, v_adj_x, v_adj_out, k0); }
    }
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 0), eng::data(args, 24), eng::data(args, 72), eng::data(args, 96));
}
static eng::form_t other{nullptr, adjoint, "adjoint", R"engine(#include "common.h"
#include "lend.h"
namespace ns_ENGINE_OTHER {
template <class A_x, class A_bin, class A_out, class A_adj_x, class A_adj_out>
ENG_INLINE void thread(A_x v_x, A_bin v_bin, A_out v_out, A_adj_x v_adj_x, A_adj_out v_adj_out, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const int32_t v_t_1 = v_bin.at(k0);
    const float v_t_2 = v_x.at(k0);
    const float v_t_3 = v_x.at(k0);
    const int32_t v_t_5 = int32_t(v_out.shape[0]);
    const int32_t v_t_6 = ((v_t_1) < 0 ? (v_t_1) + (v_t_5) : (v_t_1));
    const float v_ct = v_adj_out.at(v_t_6);
    const float v_t_7 = (v_ct * v_t_3);
    const float v_t_8 = (v_ct * v_t_2);
    eng::atomic_add(v_adj_x.at(k0), v_t_8);
    eng::atomic_add(v_adj_x.at(k0), v_t_7);
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_bin = eng::arg<eng::array_t<int32_t,1>>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1>>(args, 48);
    auto v_adj_x = eng::arg<eng::array_t<float,1>>(args, 72);
    auto v_adj_out = eng::arg<eng::array_t<float,1>>(args, 96);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        n = eng::row_down<1>(L, row, begin, c);
        const int64_t stop = c[0], first = stop - n;
        for (int64_t k0 = stop; k0 > first; --k0) { ENG_SCALAR; thread(v_x, v_bin, v_out, v_adj_x, v_adj_out, k0); }
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
static const eng::along_t along_x[] = {{0, 0, 0, 0}};
static const eng::along_t along_bin[] = {{0, 0, 0, 0}};
static const eng::along_t along_adj_x[] = {{0, 0, 0, 0}};
static const eng::touched_t touched[] = {
    {0, 4, 1, false, false, true, false, false, along_x},
    {24, 4, 1, false, false, true, false, false, along_bin},
    {72, 4, 1, true, true, true, true, false, along_adj_x},
    {96, 4, 1, false, false, false, false, false, nullptr},
};
static const eng::kernel_t how{touched, 4, 120, 1, 300, 1, eng::sums_none, false,
    go, &other};
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 1)) return;
    eng::extent_t arrays[4];
    const bool apart = eng::apart(args, ns_adjoint::touched, arrays) && L->ndim == 1;
    if (apart && L->begin < L->end) return ns_adjoint::go(args, L);
    eng::otherwise(args, L, arrays, ns_adjoint::how, apart);
}

// ---- primal
#include "trig_sin.h"
#include "lend.h"
namespace ns_primal {
template <class A_x, class A_out>
ENG_INLINE void thread(A_x v_x, A_out v_out, int64_t k0, int64_t k1, int64_t k2, int64_t k3) {
    const int32_t v_t = int32_t(k0);
    const int32_t v_t_1 = int32_t(k1);
    const int32_t v_t_2 = int32_t(k2);
    const int32_t v_t_3 = int32_t(k3);
    const float v_t_4 = v_x.at(k0, k1, k2, k3);
    const float v_t_5 = eng::sin(v_t_4);
    const int32_t v_t_6 = (2 * v_t_1);
    const int32_t v_t_7 = (v_t + v_t_6);
    const int32_t v_t_8 = (3 * v_t_2);
    const int32_t v_t_9 = (v_t_7 + v_t_8);
    const int32_t v_t_10 = (4 * v_t_3);
    const int32_t v_t_11 = (v_t_9 + v_t_10);
    const float v_t_12 = eng::cast<float>(v_t_11);
    const float v_t_13 = (v_t_5 * v_t_12);
    v_out.at(k0, k1, k2, k3) = v_t_13;
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,4>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,4>>(args, 72);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[4];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<4>(L, row, n, c);
        const int64_t k0 = c[0];
        const int64_t k1 = c[1];
        const int64_t k2 = c[2];
        const int64_t first = c[3], stop = first + n;
        for (int64_t k3 = first; k3 < stop; ++k3) { ENG_SCALAR; thread(v_x, v_out, k0, k1, k2, k3); }
    }
}
template <bool near, class A_x, class A_out>
ENG_INLINE void before(A_x v_x, A_out v_out, int64_t k0, int64_t k1, int64_t k2, int64_t k3, float& g0, int32_t& far) {
    const int32_t v_t = int32_t(k0);
    const int32_t v_t_1 = int32_t(k1);
    const int32_t v_t_2 = int32_t(k2);
    const int32_t v_t_3 = int32_t(k3);
    const float v_t_4 = v_x.at(k0, k1, k2, k3);
    const float v_t_5 = eng::vm::sin_ahead<near>(v_t_4, far);
    g0 = v_t_5;
}
template <class A_x, class A_out>
ENG_INLINE void after(A_x v_x, A_out v_out, int64_t k0, int64_t k1, int64_t k2, int64_t k3, const float g0) {
    const int32_t v_t = int32_t(k0);
    const int32_t v_t_1 = int32_t(k1);
    const int32_t v_t_2 = int32_t(k2);
    const int32_t v_t_3 = int32_t(k3);
    const float v_t_4 = v_x.at(k0, k1, k2, k3);
    const float v_t_5 = g0;
    const int32_t v_t_6 = (2 * v_t_1);
    const int32_t v_t_7 = (v_t + v_t_6);
    const int32_t v_t_8 = (3 * v_t_2);
    const int32_t v_t_9 = (v_t_7 + v_t_8);
    const int32_t v_t_10 = (4 * v_t_3);
    const int32_t v_t_11 = (v_t_9 + v_t_10);
    const float v_t_12 = eng::cast<float>(v_t_11);
    const float v_t_13 = (v_t_5 * v_t_12);
    v_out.at(k0, k1, k2, k3) = v_t_13;
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_out) {
    auto v_x = eng::flat<eng::array_t<float,4,true>>(args, 0, d_x);
    auto v_out = eng::flat<eng::array_t<float,4,true>>(args, 72, d_out);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[4];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<4>(L, row, n, c);
        const int64_t k0 = c[0];
        const int64_t k1 = c[1];
        const int64_t k2 = c[2];
        const int64_t first = c[3], stop = first + n;
        int64_t at = first;
        for (; at + 64 <= stop; at += 64) {
            alignas(64) float g0[64];
            int32_t far = 0;
            for (int64_t j = 0; j < 64; ++j) { const int64_t k3 = at + j; before<true>(v_x, v_out, k0, k1, k2, k3, g0[j], far); }
            if (far) for (int64_t j = 0; j < 64; ++j) { const int64_t k3 = at + j; before<false>(v_x, v_out, k0, k1, k2, k3, g0[j], far); }
            for (int64_t j = 0; j < 64; ++j) { const int64_t k3 = at + j; after(v_x, v_out, k0, k1, k2, k3, g0[j]); }
        }
        for (int64_t k3 = at; k3 < stop; ++k3) { thread(v_x, v_out, k0, k1, k2, k3); }
    }
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 0), eng::data(args, 72));
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 4)) return;
    const eng::extent_t arrays[] = {
        eng::extent(eng::arg<eng::array_t<float,4>>(args, 0), eng::use_reads),
        eng::extent(eng::arg<eng::array_t<float,4>>(args, 72), eng::use_alone),
    };
    static const eng::loan_t loans[] = {
        {0, 4, 4, true, false, false, true, {{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {3, 0, 0, 0}}},
        {72, 4, 4, true, true, true, false, {{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {3, 0, 0, 0}}},
    };
    static const eng::lender_t how{loans, 2, 144, 4, 68, 7, eng::sums_none, false,
        ns_primal::go, ns_primal::run};
    if (eng::apart(arrays) && L->ndim == 4) {
        return ns_primal::go(args, L);
    }
    if (eng::lend(args, L, arrays, how)) return;
    ns_primal::run(args, L);
}

// ---- adjoint
#include "trig_cos.h"
#include "lend.h"
namespace ns_adjoint {
template <class A_x, class A_out, class A_adj_x, class A_adj_out>
ENG_INLINE void thread(A_x v_x, A_out v_out, A_adj_x v_adj_x, A_adj_out v_adj_out, int64_t k0, int64_t k1, int64_t k2, int64_t k3) {
    const int32_t v_t = int32_t(k0);
    const int32_t v_t_1 = int32_t(k1);
    const int32_t v_t_2 = int32_t(k2);
    const int32_t v_t_3 = int32_t(k3);
    const float v_t_4 = v_x.at(k0, k1, k2, k3);
    const int32_t v_t_6 = (2 * v_t_1);
    const int32_t v_t_7 = (v_t + v_t_6);
    const int32_t v_t_8 = (3 * v_t_2);
    const int32_t v_t_9 = (v_t_7 + v_t_8);
    const int32_t v_t_10 = (4 * v_t_3);
    const int32_t v_t_11 = (v_t_9 + v_t_10);
    const float v_t_12 = eng::cast<float>(v_t_11);
    const float v_ct = v_adj_out.at(k0, k1, k2, k3);
    v_adj_out.at(k0, k1, k2, k3) = 0.0f;
    const float v_t_15 = (v_ct * v_t_12);
    const float v_t_18 = eng::cos(v_t_4);
    const float v_t_19 = (v_t_15 * v_t_18);
    eng::atomic_add(v_adj_x.at(k0, k1, k2, k3), v_t_19);
}
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,4>>(args, 0);
    auto v_out = eng::arg<eng::array_t<float,4>>(args, 72);
    auto v_adj_x = eng::arg<eng::array_t<float,4>>(args, 144);
    auto v_adj_out = eng::arg<eng::array_t<float,4>>(args, 216);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[4];
    for (int64_t row = end - 1, n; row >= begin; row -= n) {
        n = eng::row_down<4>(L, row, begin, c);
        const int64_t k0 = c[0];
        const int64_t k1 = c[1];
        const int64_t k2 = c[2];
        const int64_t stop = c[3], first = stop - n;
        for (int64_t k3 = stop; k3 > first; --k3) { ENG_SCALAR; thread(v_x, v_out, v_adj_x, v_adj_out, k0, k1, k2, k3); }
    }
}
template <bool near, class A_x, class A_out, class A_adj_x, class A_adj_out>
ENG_INLINE void before(A_x v_x, A_out v_out, A_adj_x v_adj_x, A_adj_out v_adj_out, int64_t k0, int64_t k1, int64_t k2, int64_t k3, float& g0, int32_t& far) {
    const int32_t v_t = int32_t(k0);
    const int32_t v_t_1 = int32_t(k1);
    const int32_t v_t_2 = int32_t(k2);
    const int32_t v_t_3 = int32_t(k3);
    const float v_t_4 = v_x.at(k0, k1, k2, k3);
    const float v_t_18 = eng::vm::cos_ahead<near>(v_t_4, far);
    g0 = v_t_18;
}
template <class A_x, class A_out, class A_adj_x, class A_adj_out>
ENG_INLINE void after(A_x v_x, A_out v_out, A_adj_x v_adj_x, A_adj_out v_adj_out, int64_t k0, int64_t k1, int64_t k2, int64_t k3, const float g0) {
    const int32_t v_t = int32_t(k0);
    const int32_t v_t_1 = int32_t(k1);
    const int32_t v_t_2 = int32_t(k2);
    const int32_t v_t_3 = int32_t(k3);
    const float v_t_4 = v_x.at(k0, k1, k2, k3);
    const int32_t v_t_6 = (2 * v_t_1);
    const int32_t v_t_7 = (v_t + v_t_6);
    const int32_t v_t_8 = (3 * v_t_2);
    const int32_t v_t_9 = (v_t_7 + v_t_8);
    const int32_t v_t_10 = (4 * v_t_3);
    const int32_t v_t_11 = (v_t_9 + v_t_10);
    const float v_t_12 = eng::cast<float>(v_t_11);
    const float v_ct = v_adj_out.at(k0, k1, k2, k3);
    v_adj_out.at(k0, k1, k2, k3) = 0.0f;
    const float v_t_15 = (v_ct * v_t_12);
    const float v_t_18 = g0;
    const float v_t_19 = (v_t_15 * v_t_18);
    eng::atomic_add(v_adj_x.at(k0, k1, k2, k3), v_t_19);
}
ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_adj_x, unsigned char* ENG_ONLY d_adj_out) {
    auto v_x = eng::flat<eng::array_t<float,4,true>>(args, 0, d_x);
    auto v_out = eng::arg<eng::array_t<float,4>>(args, 72);
    auto v_adj_x = eng::flat<eng::array_t<float,4,true>>(args, 144, d_adj_x);
    auto v_adj_out = eng::flat<eng::array_t<float,4,true>>(args, 216, d_adj_out);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[4];
    for (int64_t row = begin, n = 0; row < end; row += n) {
        n = eng::next_row<4>(L, row, n, c);
        const int64_t k0 = c[0];
        const int64_t k1 = c[1];
        const int64_t k2 = c[2];
        const int64_t first = c[3], stop = first + n;
        int64_t at = first;
        for (; at + 64 <= stop; at += 64) {
            alignas(64) float g0[64];
            int32_t far = 0;
            for (int64_t j = 0; j < 64; ++j) { const int64_t k3 = at + j; before<true>(v_x, v_out, v_adj_x, v_adj_out, k0, k1, k2, k3, g0[j], far); }
            if (far) for (int64_t j = 0; j < 64; ++j) { const int64_t k3 = at + j; before<false>(v_x, v_out, v_adj_x, v_adj_out, k0, k1, k2, k3, g0[j], far); }
            for (int64_t j = 0; j < 64; ++j) { const int64_t k3 = at + j; after(v_x, v_out, v_adj_x, v_adj_out, k0, k1, k2, k3, g0[j]); }
        }
        for (int64_t k3 = at; k3 < stop; ++k3) { thread(v_x, v_out, v_adj_x, v_adj_out, k0, k1, k2, k3); }
    }
}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {
    run_apart(args, L, eng::data(args, 0), eng::data(args, 144), eng::data(args, 216));
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, false, 4)) return;
    const eng::extent_t arrays[] = {
        eng::extent(eng::arg<eng::array_t<float,4>>(args, 0), eng::use_reads),
        eng::extent(eng::arg<eng::array_t<float,4>>(args, 144), eng::use_alone),
        eng::extent(eng::arg<eng::array_t<float,4>>(args, 216), eng::use_alone),
    };
    static const eng::loan_t loans[] = {
        {0, 4, 4, true, false, false, false, {{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {3, 0, 0, 0}}},
        {144, 4, 4, true, true, true, false, {{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {3, 0, 0, 0}}},
        {216, 4, 4, true, true, true, false, {{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {3, 0, 0, 0}}},
    };
    static const eng::lender_t how{loans, 3, 288, 4, 65, 7, eng::sums_none, false,
        ns_adjoint::go, ns_adjoint::run};
    if (eng::apart(arrays) && L->ndim == 4) {
        return ns_adjoint::go(args, L);
    }
    if (eng::lend(args, L, arrays, how)) return;
    ns_adjoint::run(args, L);
}

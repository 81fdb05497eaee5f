// ---- primal
namespace ns_primal {
struct r_f0_polar { float r0; float r1; };
ENG_FN r_f0_polar f0_polar(float v_x, float v_y) {
    const float v_t = (v_x * v_x);
    const float v_t_1 = (v_y * v_y);
    const float v_t_2 = (v_t + v_t_1);
    const float v_t_3 = eng::sqrt(v_t_2);
    const float v_t_4 = eng::atan2(v_y, v_x);
    return r_f0_polar{v_t_3, v_t_4};
}
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_y, eng::array_t<float,1,FLAT> v_out, int64_t k) {
    const int32_t v_i = int32_t(k);
    const float v_t_1 = v_x.at(k);
    const float v_t_2 = v_y.at(k);
    r_f0_polar call_t_3 = f0_polar(v_t_1, v_t_2);
    const float v_t_3 = call_t_3.r0;
    const float v_t_4 = call_t_3.r1;
    const float v_t_5 = (v_t_3 * v_t_4);
    v_out.at(k) = v_t_5;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_y = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 48);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(v_x, v_y, v_out, k); }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 48));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<float,1,FLAT> v_x, eng::array_t<float,1,FLAT> v_y, eng::array_t<float,1,FLAT> v_out, eng::array_t<float,1,FLAT> v_adj_x, eng::array_t<float,1,FLAT> v_adj_y, eng::array_t<float,1,FLAT> v_adj_out, int64_t k) {
    const int32_t v_i = int32_t(k);
    const float v_t_1 = v_x.at(k);
    const float v_t_2 = v_y.at(k);
    const float v_t = (v_t_1 * v_t_1);
    const float v_t_6 = (v_t_2 * v_t_2);
    const float v_t_7 = (v_t + v_t_6);
    const float v_t_8 = eng::sqrt(v_t_7);
    const float v_t_9 = eng::atan2(v_t_2, v_t_1);
    const float v_ct = v_adj_out.at(k);
    v_adj_out.at(k) = 0.0f;
    const float v_t_4 = (v_ct * v_t_9);
    const float v_t_10 = (v_ct * v_t_8);
    const float v_t_13 = (v_t_2 * v_t_2);
    const float v_t_14 = (v_t_1 * v_t_1);
    const float v_t_15 = (v_t_13 + v_t_14);
    const bool v_t_16 = (v_t_15 == 0.0f);
    const float v_t_17 = eng::select(v_t_16, 1.0f, v_t_15);
    const float v_t_18 = eng::div(v_t_1, v_t_17);
    const float v_t_19 = eng::neg(v_t_2);
    const float v_t_20 = eng::div(v_t_19, v_t_17);
    const float v_t_21 = (v_t_10 * v_t_18);
    const float v_t_22 = (v_t_10 * v_t_20);
    const float v_t_25 = eng::div(5.0e-01f, v_t_8);
    const float v_t_26 = (v_t_4 * v_t_25);
    const float v_t_30 = (v_t_26 * v_t_2);
    const float v_t_31 = (v_t_26 * v_t_2);
    const float v_t_32 = (v_t_21 + v_t_30);
    const float v_t_33 = (v_t_32 + v_t_31);
    const float v_t_34 = (v_t_26 * v_t_1);
    const float v_t_35 = (v_t_26 * v_t_1);
    const float v_t_36 = (v_t_22 + v_t_34);
    const float v_t_37 = (v_t_36 + v_t_35);
    eng::atomic_add(v_adj_y.at(k), v_t_33);
    eng::atomic_add(v_adj_x.at(k), v_t_37);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 0);
    auto v_y = eng::arg<eng::array_t<float,1,FLAT>>(args, 24);
    auto v_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 48);
    auto v_adj_x = eng::arg<eng::array_t<float,1,FLAT>>(args, 72);
    auto v_adj_y = eng::arg<eng::array_t<float,1,FLAT>>(args, 96);
    auto v_adj_out = eng::arg<eng::array_t<float,1,FLAT>>(args, 120);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = end - 1; k >= begin; --k) { thread<FLAT>(v_x, v_y, v_out, v_adj_x, v_adj_y, v_adj_out, k); }
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 48))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 72))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 96))
        && eng::is_flat(eng::arg<eng::array_t<float,1>>(args, 120));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

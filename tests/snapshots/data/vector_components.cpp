// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<eng::vec_t<3,float>,1,FLAT> v_v, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_out, int64_t k) {
    eng::vec_t<3,float> v_b{};
    const int32_t v_i = int32_t(k);
    eng::vec_t<3,float> v_a = v_v.at(k);
    const float v_t_2 = eng::extract(v_a, 1);
    const float v_t_3 = eng::extract(v_a, 2);
    const float v_t_4 = eng::extract(v_a, 0);
    const float v_t_5 = (v_t_4 * 2.0f);
    eng::vec_t<3,float> v_t_6 = eng::construct<eng::vec_t<3,float>>(v_t_2, v_t_3, v_t_5);
    v_b = v_t_6;
    const float v_t_7 = eng::length(v_a);
    eng::item(v_b, 0) = v_t_7;
    const float v_t_9 = eng::extract(v_b, 1);
    const float v_t_10 = eng::dot(v_a, v_b);
    const float v_t_11 = (v_t_9 + v_t_10);
    eng::item(v_b, 1) = v_t_11;
    eng::vec_t<3,float> v_t_13 = eng::cross(v_a, v_b);
    const float v_t_14 = eng::extract(v_b, 2);
    eng::vec_t<3,float> v_t_15 = eng::unscale(v_t_13, v_t_14);
    v_out.at(k) = v_t_15;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_v = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 24);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(v_v, v_out, k); }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 24));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<eng::vec_t<3,float>,1,FLAT> v_v, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_out, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_adj_v, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_adj_out, int64_t k) {
    const int32_t v_i = int32_t(k);
    eng::vec_t<3,float> v_a = v_v.at(k);
    const float v_t_2 = eng::extract(v_a, 1);
    const float v_t_3 = eng::extract(v_a, 2);
    const float v_t_4 = eng::extract(v_a, 0);
    const float v_t_5 = (v_t_4 * 2.0f);
    eng::vec_t<3,float> v_t_6 = eng::construct<eng::vec_t<3,float>>(v_t_2, v_t_3, v_t_5);
    const float v_t_7 = eng::length(v_a);
    eng::vec_t<3,float> v_t_8 = eng::insert(v_t_6, 0, v_t_7);
    const float v_t_10 = eng::dot(v_a, v_t_8);
    const float v_t_11 = (v_t_3 + v_t_10);
    eng::vec_t<3,float> v_t_12 = eng::insert(v_t_8, 1, v_t_11);
    eng::vec_t<3,float> v_t_13 = eng::cross(v_a, v_t_12);
    eng::vec_t<3,float> v_t_15 = eng::unscale(v_t_13, v_t_5);
    eng::vec_t<3,float> v_ct = v_adj_out.at(k);
    v_adj_out.at(k) = eng::vec_t<3,float>{{0.0f, 0.0f, 0.0f}};
    eng::vec_t<3,float> v_t_1 = eng::unscale(v_ct, v_t_5);
    const float v_t_9 = eng::dot(v_ct, v_t_15);
    const float v_t_14 = eng::neg(v_t_9);
    const float v_t_16 = eng::div(v_t_14, v_t_5);
    eng::vec_t<3,float> v_t_19 = eng::cross(v_t_12, v_t_1);
    eng::vec_t<3,float> v_t_20 = eng::cross(v_t_1, v_a);
    eng::vec_t<3,float> v_t_23 = eng::insert(v_t_20, 1, 0.0f);
    const float v_t_24 = eng::extract(v_t_20, 1);
    eng::vec_t<3,float> v_t_29 = eng::scale(v_t_8, v_t_24);
    eng::vec_t<3,float> v_t_30 = eng::scale(v_a, v_t_24);
    eng::vec_t<3,float> v_t_31 = (v_t_19 + v_t_29);
    eng::vec_t<3,float> v_t_32 = (v_t_23 + v_t_30);
    eng::vec_t<3,float> v_t_33 = eng::insert(v_t_32, 0, 0.0f);
    const float v_t_34 = eng::extract(v_t_32, 0);
    const bool v_t_37 = (v_t_7 == 0.0f);
    const float v_t_38 = eng::select(v_t_37, 1.0f, v_t_7);
    const float v_t_39 = eng::div(v_t_34, v_t_38);
    eng::vec_t<3,float> v_t_40 = eng::scale(v_a, v_t_39);
    eng::vec_t<3,float> v_t_41 = (v_t_31 + v_t_40);
    const float v_t_43 = eng::extract(v_t_33, 1);
    const float v_t_44 = eng::extract(v_t_33, 2);
    const float v_t_46 = (v_t_24 + v_t_43);
    const float v_t_47 = (v_t_16 + v_t_44);
    const float v_t_48 = (v_t_47 * 2.0f);
    const float v_t_51 = eng::extract(v_t_41, 0);
    const float v_t_52 = (v_t_51 + v_t_48);
    eng::vec_t<3,float> v_t_53 = eng::insert(v_t_41, 0, v_t_52);
    const float v_t_54 = eng::extract(v_t_53, 2);
    const float v_t_55 = (v_t_54 + v_t_46);
    eng::vec_t<3,float> v_t_56 = eng::insert(v_t_53, 2, v_t_55);
    const float v_t_57 = eng::extract(v_t_56, 1);
    eng::vec_t<3,float> v_t_59 = eng::insert(v_t_56, 1, v_t_57);
    eng::atomic_add(v_adj_v.at(k), v_t_59);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_v = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 0);
    auto v_out = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 24);
    auto v_adj_v = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 48);
    auto v_adj_out = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 72);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = end - 1; k >= begin; --k) { thread<FLAT>(v_v, v_out, v_adj_v, v_adj_out, k); }
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 48))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 72));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

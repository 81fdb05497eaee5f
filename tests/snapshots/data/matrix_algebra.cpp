// ---- primal
namespace ns_primal {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<eng::mat_t<3,3,float>,1,FLAT> v_m, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_v, eng::array_t<eng::mat_t<3,3,float>,1,FLAT> v_out, int64_t k) {
    eng::mat_t<3,3,float> v_a{};
    const int32_t v_i = int32_t(k);
    eng::mat_t<3,3,float> v_t_1 = v_m.at(k);
    eng::mat_t<3,3,float> v_t_2 = eng::transpose(v_t_1);
    eng::mat_t<3,3,float> v_t_3 = v_m.at(k);
    eng::mat_t<3,3,float> v_t_4 = eng::matmul(v_t_2, v_t_3);
    v_a = v_t_4;
    const float v_t_5 = eng::trace(v_a);
    eng::item(v_a, 1, 2) = v_t_5;
    eng::mat_t<3,3,float> v_t_7 = eng::inverse(v_a);
    eng::vec_t<3,float> v_t_8 = v_v.at(k);
    eng::vec_t<3,float> v_t_9 = eng::matvec(v_a, v_t_8);
    eng::vec_t<3,float> v_t_10 = v_v.at(k);
    eng::mat_t<3,3,float> v_t_11 = eng::outer(v_t_9, v_t_10);
    const float v_t_12 = eng::determinant(v_a);
    eng::mat_t<3,3,float> v_t_13 = eng::scale(v_t_11, v_t_12);
    eng::mat_t<3,3,float> v_t_14 = (v_t_7 + v_t_13);
    v_out.at(k) = v_t_14;
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_m = eng::arg<eng::array_t<eng::mat_t<3,3,float>,1,FLAT>>(args, 0);
    auto v_v = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 24);
    auto v_out = eng::arg<eng::array_t<eng::mat_t<3,3,float>,1,FLAT>>(args, 48);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = begin; k < end; ++k) { thread<FLAT>(v_m, v_v, v_out, k); }
}
}
ENG_EXPORT void primal(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<eng::mat_t<3,3,float>,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<eng::mat_t<3,3,float>,1>>(args, 48));
    if (flat) ns_primal::run<true>(args, L);
    else ns_primal::run<false>(args, L);
}

// ---- adjoint
namespace ns_adjoint {
template <bool FLAT>
ENG_INLINE void thread(eng::array_t<eng::mat_t<3,3,float>,1,FLAT> v_m, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_v, eng::array_t<eng::mat_t<3,3,float>,1,FLAT> v_out, eng::array_t<eng::mat_t<3,3,float>,1,FLAT> v_adj_m, eng::array_t<eng::vec_t<3,float>,1,FLAT> v_adj_v, eng::array_t<eng::mat_t<3,3,float>,1,FLAT> v_adj_out, int64_t k) {
    const int32_t v_i = int32_t(k);
    eng::mat_t<3,3,float> v_t_1 = v_m.at(k);
    eng::mat_t<3,3,float> v_t_2 = eng::transpose(v_t_1);
    eng::mat_t<3,3,float> v_t_3 = v_m.at(k);
    eng::mat_t<3,3,float> v_t_4 = eng::matmul(v_t_2, v_t_3);
    const float v_t_5 = eng::trace(v_t_4);
    eng::mat_t<3,3,float> v_t_6 = eng::insert(v_t_4, 1, 2, v_t_5);
    eng::mat_t<3,3,float> v_t_7 = eng::inverse(v_t_6);
    eng::vec_t<3,float> v_t_8 = v_v.at(k);
    eng::vec_t<3,float> v_t_9 = eng::matvec(v_t_6, v_t_8);
    eng::vec_t<3,float> v_t_10 = v_v.at(k);
    eng::mat_t<3,3,float> v_t_11 = eng::outer(v_t_9, v_t_10);
    const float v_t_12 = eng::determinant(v_t_6);
    eng::mat_t<3,3,float> v_ct = v_adj_out.at(k);
    v_adj_out.at(k) = eng::mat_t<3,3,float>{{0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}};
    eng::mat_t<3,3,float> v_t_17 = eng::scale(v_ct, v_t_12);
    const float v_t_18 = eng::ddot(v_ct, v_t_11);
    const float v_t_21 = eng::extract(v_t_6, 0, 0);
    const float v_t_22 = eng::extract(v_t_6, 0, 1);
    const float v_t_23 = eng::extract(v_t_6, 0, 2);
    const float v_t_24 = eng::extract(v_t_6, 1, 0);
    const float v_t_25 = eng::extract(v_t_6, 1, 1);
    const float v_t_27 = eng::extract(v_t_6, 2, 0);
    const float v_t_28 = eng::extract(v_t_6, 2, 1);
    const float v_t_29 = eng::extract(v_t_6, 2, 2);
    const float v_t_30 = (v_t_25 * v_t_29);
    const float v_t_31 = (v_t_5 * v_t_28);
    const float v_t_32 = (v_t_30 - v_t_31);
    const float v_t_33 = (v_t_24 * v_t_29);
    const float v_t_34 = (v_t_5 * v_t_27);
    const float v_t_35 = (v_t_33 - v_t_34);
    const float v_t_36 = eng::neg(v_t_35);
    const float v_t_37 = (v_t_24 * v_t_28);
    const float v_t_38 = (v_t_25 * v_t_27);
    const float v_t_39 = (v_t_37 - v_t_38);
    const float v_t_40 = (v_t_22 * v_t_29);
    const float v_t_41 = (v_t_23 * v_t_28);
    const float v_t_42 = (v_t_40 - v_t_41);
    const float v_t_43 = eng::neg(v_t_42);
    const float v_t_44 = (v_t_21 * v_t_29);
    const float v_t_45 = (v_t_23 * v_t_27);
    const float v_t_46 = (v_t_44 - v_t_45);
    const float v_t_47 = (v_t_21 * v_t_28);
    const float v_t_48 = (v_t_22 * v_t_27);
    const float v_t_49 = (v_t_47 - v_t_48);
    const float v_t_50 = eng::neg(v_t_49);
    const float v_t_51 = (v_t_22 * v_t_5);
    const float v_t_52 = (v_t_23 * v_t_25);
    const float v_t_53 = (v_t_51 - v_t_52);
    const float v_t_54 = (v_t_21 * v_t_5);
    const float v_t_55 = (v_t_23 * v_t_24);
    const float v_t_56 = (v_t_54 - v_t_55);
    const float v_t_57 = eng::neg(v_t_56);
    const float v_t_58 = (v_t_21 * v_t_25);
    const float v_t_59 = (v_t_22 * v_t_24);
    const float v_t_60 = (v_t_58 - v_t_59);
    eng::mat_t<3,3,float> v_t_61 = eng::construct<eng::mat_t<3,3,float>>(v_t_32, v_t_36, v_t_39, v_t_43, v_t_46, v_t_50, v_t_53, v_t_57, v_t_60);
    eng::mat_t<3,3,float> v_t_62 = eng::scale(v_t_61, v_t_18);
    eng::vec_t<3,float> v_t_64 = eng::matvec(v_t_17, v_t_10);
    eng::vec_t<3,float> v_t_65 = eng::vecmat(v_t_9, v_t_17);
    eng::atomic_add(v_adj_v.at(k), v_t_65);
    eng::mat_t<3,3,float> v_t_68 = eng::outer(v_t_64, v_t_8);
    eng::vec_t<3,float> v_t_69 = eng::vecmat(v_t_64, v_t_6);
    eng::mat_t<3,3,float> v_t_70 = (v_t_62 + v_t_68);
    eng::atomic_add(v_adj_v.at(k), v_t_69);
    eng::mat_t<3,3,float> v_t_72 = eng::transpose(v_t_7);
    eng::mat_t<3,3,float> v_t_73 = eng::matmul(v_t_72, v_ct);
    eng::mat_t<3,3,float> v_t_74 = eng::matmul(v_t_73, v_t_72);
    eng::mat_t<3,3,float> v_t_75 = eng::neg(v_t_74);
    eng::mat_t<3,3,float> v_t_76 = (v_t_70 + v_t_75);
    eng::mat_t<3,3,float> v_t_77 = eng::insert(v_t_76, 1, 2, 0.0f);
    const float v_t_78 = eng::extract(v_t_76, 1, 2);
    eng::mat_t<3,3,float> v_t_81 = eng::identity<eng::mat_t<3,3,float>>();
    eng::mat_t<3,3,float> v_t_82 = eng::scale(v_t_81, v_t_78);
    eng::mat_t<3,3,float> v_t_83 = (v_t_77 + v_t_82);
    eng::mat_t<3,3,float> v_t_84 = eng::transpose(v_t_3);
    eng::mat_t<3,3,float> v_t_85 = eng::matmul(v_t_83, v_t_84);
    eng::mat_t<3,3,float> v_t_86 = eng::transpose(v_t_2);
    eng::mat_t<3,3,float> v_t_87 = eng::matmul(v_t_86, v_t_83);
    eng::atomic_add(v_adj_m.at(k), v_t_87);
    eng::mat_t<3,3,float> v_t_90 = eng::transpose(v_t_85);
    eng::atomic_add(v_adj_m.at(k), v_t_90);
}
template <bool FLAT>
static void run(const unsigned char* args, eng_launch* L) {
    auto v_m = eng::arg<eng::array_t<eng::mat_t<3,3,float>,1,FLAT>>(args, 0);
    auto v_v = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 24);
    auto v_out = eng::arg<eng::array_t<eng::mat_t<3,3,float>,1,FLAT>>(args, 48);
    auto v_adj_m = eng::arg<eng::array_t<eng::mat_t<3,3,float>,1,FLAT>>(args, 72);
    auto v_adj_v = eng::arg<eng::array_t<eng::vec_t<3,float>,1,FLAT>>(args, 96);
    auto v_adj_out = eng::arg<eng::array_t<eng::mat_t<3,3,float>,1,FLAT>>(args, 120);
    const int64_t begin = L->begin, end = L->end;
    for (int64_t k = end - 1; k >= begin; --k) { thread<FLAT>(v_m, v_v, v_out, v_adj_m, v_adj_v, v_adj_out, k); }
}
}
ENG_EXPORT void adjoint(const unsigned char* args, eng_launch* L) {
    if (!eng::fits(L, true, 0)) return;
    const bool flat = eng::is_flat(eng::arg<eng::array_t<eng::mat_t<3,3,float>,1>>(args, 0))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 24))
        && eng::is_flat(eng::arg<eng::array_t<eng::mat_t<3,3,float>,1>>(args, 48))
        && eng::is_flat(eng::arg<eng::array_t<eng::mat_t<3,3,float>,1>>(args, 72))
        && eng::is_flat(eng::arg<eng::array_t<eng::vec_t<3,float>,1>>(args, 96))
        && eng::is_flat(eng::arg<eng::array_t<eng::mat_t<3,3,float>,1>>(args, 120));
    if (flat) ns_adjoint::run<true>(args, L);
    else ns_adjoint::run<false>(args, L);
}

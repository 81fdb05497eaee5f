"""The text itself: the same every time, free of places, and such that compilers vectorise it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engine.codegen import cpp, headers
from engine.codegen.layout import arg_offsets
from engine.codegen.literals import literal
from engine.codegen.spelling import identifier, name_of
from engine.compile.cpu.toolchain import find_toolchain
from engine.diagnostics import Span
from engine.ir.builder import Builder
from engine.ir.nodes import Atomic, Call, Const, Function, If, Return, Stmt, Store, Var
from engine.lang.types import FLOAT32, FLOAT64, INT32, SCALARS, ArrayType, VectorType
from tests.unit.codegen.native_ir import F1, F2, V3, f32, function, i32, kernel, tid


def saxpy(file: str = "model.py") -> Function:
    x, y, a = Var("x", F1), Var("y", F1), Var("a", FLOAT32)

    def build(b: Builder) -> None:
        b.span = Span(file, 7, 5, 7, 30)
        i = tid(b)
        b.span = Span(file, 8, 5, 8, 30)
        ax = b.op("mul", a, b.load(x, [i], [], FLOAT32))
        b.add(Store(y, (i,), b.op("add", ax, b.load(y, [i], [], FLOAT32)), (), b.span))

    return kernel([x, y, a], build)


THREAD = """\
template <class A_x, class A_y>
ENG_INLINE void thread(A_x v_x, A_y v_y, float v_a, int64_t k0) {
    const int32_t v_i = int32_t(k0);
    const float v_t = v_x.at(k0);
    const float v_t_1 = (v_a * v_t);
    const float v_t_2 = v_y.at(k0);
    const float v_t_3 = (v_t_1 + v_t_2);
    v_y.at(k0) = v_t_3;
}
"""
ANY = f"""\
#include "common.h"
#include "late.h"
namespace ns_ENGINE_OTHER {{
{THREAD}static void run(const unsigned char* args, eng_launch* L) {{
    auto v_x = eng::arg<eng::array_t<float,1>>(args, 0);
    auto v_y = eng::arg<eng::array_t<float,1>>(args, 24);
    auto v_a = eng::arg<float>(args, 48);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {{
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) {{ ENG_SCALAR; thread(v_x, v_y, v_a, k0); }}
    }}
}}
static void run_any(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {{
    run(args, L);
}}
}}
ENG_EXPORT void ENGINE_OTHER(const unsigned char* args, eng_launch* L,
    const eng::extent_t* arrays, const eng::kernel_t& how) {{
    ns_ENGINE_OTHER::run_any(args, L, arrays, how);
}}
"""
EXPECTED = f"""\
#include "late.h"
ENG_EXPORT void saxpy(const unsigned char* args, eng_launch* L);
namespace ns_saxpy {{
{THREAD}ENG_ALONE void run_apart(const unsigned char* args, eng_launch* L,
    unsigned char* ENG_ONLY d_x, unsigned char* ENG_ONLY d_y) {{
    auto v_x = eng::flat<eng::array_t<float,1,true>>(args, 0, d_x);
    auto v_y = eng::flat<eng::array_t<float,1,true>>(args, 24, d_y);
    auto v_a = eng::arg<float>(args, 48);
    const int64_t begin = L->begin, end = L->end;
    int64_t c[1];
    for (int64_t row = begin, n = 0; row < end; row += n) {{
        n = eng::next_row<1>(L, row, n, c);
        const int64_t first = c[0], stop = first + n;
        for (int64_t k0 = first; k0 < stop; ++k0) {{ thread(v_x, v_y, v_a, k0); }}
    }}
}}
ENG_ALONE void go(const unsigned char* args, eng_launch* L) {{
    run_apart(args, L, eng::data(args, 0), eng::data(args, 24));
}}
static eng::form_t other{{nullptr, saxpy, "saxpy", R"engine({ANY})engine",
    eng::precise, eng::large}};
static const eng::touched_t touched[] = {{
    {{0, 4, 1, false, false, false, false, true, nullptr}},
    {{24, 4, 1, true, false, false, true, false, nullptr}},
}};
static const eng::kernel_t how{{touched, 2, 56, 1, 500, 1, eng::sums_block, false,
    go, &other}};
}}
ENG_EXPORT void saxpy(const unsigned char* args, eng_launch* L) {{
    if (!eng::fits(L, false, 1)) return;
    eng::extent_t arrays[2];
    const bool apart = eng::apart(args, ns_saxpy::touched, arrays);
    if (apart && L->begin < L->end) return ns_saxpy::go(args, L);
    eng::otherwise(args, L, arrays, ns_saxpy::how, apart);
}}
"""


def test_text_of_a_kernel() -> None:
    assert cpp.emit(saxpy(), "saxpy") == EXPECTED


def test_text_does_not_depend_on_the_place_of_the_source() -> None:
    one, other = saxpy("/home/a/model.py"), saxpy("/tmp/b/other.py")
    assert cpp.emit(one, "s") == cpp.emit(other, "s")
    assert cpp.emit(replace(one, name="renamed"), "s") == cpp.emit(one, "s")


def test_line_directives_name_the_file_without_its_folder() -> None:
    text = cpp.emit(saxpy("/home/someone/model.py"), "s", lines=True)
    assert text.count('#line 7 "model.py"') == 2  # also in what is compiled later
    assert text.count('#line 8 "model.py"') == 2
    assert "someone" not in text
    plain = "".join(line for line in text.splitlines(True) if not line.startswith("#line"))
    assert plain == cpp.emit(saxpy(), "s")


@pytest.mark.parametrize(
    ("value", "t", "expected"),
    [
        (1.0, FLOAT32, "1.0f"),
        (-0.0, FLOAT64, "(-0.0)"),
        (0.1, FLOAT32, "1.0e-01f"),
        (0.1, FLOAT64, "1.0e-01"),
        (1e39, FLOAT32, "eng::infinity<float>()"),
        (float("nan"), FLOAT64, "eng::quiet_nan<double>()"),
        (-(2**31), INT32, "(-2147483647 - 1)"),
        (-3, INT32, "(-3)"),
        (2**64 - 1, SCALARS["uint64"], "uint64_t(18446744073709551615ull)"),
        (-1, SCALARS["int8"], "int8_t((-1))"),
        (True, SCALARS["bool"], "true"),
        ((1.0, 2.0, 3.0), V3, "eng::vec_t<3,float>{{1.0f, 2.0f, 3.0f}}"),
    ],
)
def test_literals(value: object, t: object, expected: str) -> None:
    assert literal(Const(value, t)) == expected  # type: ignore[arg-type]


def test_argument_block() -> None:
    types = [ArrayType(FLOAT32, 1), FLOAT32, VectorType(FLOAT32, 3), ArrayType(V3, 4), INT32]
    assert arg_offsets(types) == (0, 24, 32, 48, 120, 128)


def stencil() -> Function:
    """Five points, inside a guard: the loads are conditional."""
    u, v = Var("u", F2), Var("v", F2)

    def build(b: Builder) -> None:
        i, j = tid(b, 0, 2), tid(b, 1, 2)
        last = b.op("sub", b.op("shape", u, i32(1)), i32(1))
        inside = b.op("land", b.op("gt", j, i32(0)), b.op("lt", j, last))
        then = b.child()
        total = then.e(then.load(u, [i, then.op("sub", j, i32(1))], [], FLOAT32))
        total = total + then.e(then.load(u, [i, then.op("add", j, i32(1))], [], FLOAT32))
        total = total + then.e(then.load(u, [then.op("add", i, i32(1)), j], [], FLOAT32))
        then.add(Store(v, (i, j), total.atom))
        b.add(If(inside, then.block()))

    return kernel([u, v], build)


def product_adjoint() -> Function:
    """What the adjoint of z = x * y comes to: six arrays, three of them written."""
    x, y, z, dx, dy, dz = (Var(name, F1) for name in ("x", "y", "z", "dx", "dy", "dz"))

    def build(b: Builder) -> None:
        i = tid(b)
        ct = b.load(dz, [i], [], FLOAT32)
        b.add(Store(dz, (i,), f32(0)))
        b.add(Atomic(None, "add", dx, (i,), b.op("mul", ct, b.load(y, [i], [], FLOAT32))))
        b.add(Atomic(None, "add", dy, (i,), b.op("mul", ct, b.load(x, [i], [], FLOAT32))))

    return kernel([x, y, z, dx, dy, dz], build)


def early_return() -> Function:
    """A guard that returns, and a called function."""
    x, y, n, v = Var("x", F1), Var("y", F1), Var("n", INT32), Var("v", FLOAT32)

    def root(b: Builder) -> None:
        b.add(Return((b.op("sqrt", b.op("mul", v, f32(3))),)))

    f = function("root", [v], [FLOAT32], root)

    def build(b: Builder) -> None:
        i = tid(b)
        stop: tuple[Stmt, ...] = (Return(),)
        b.add(If(b.op("ge", i, n), stop))
        out = b.temp(FLOAT32)
        b.add(Call((out,), f, (b.load(x, [i], [], FLOAT32),)))
        b.add(Store(y, (i,), out))

    return kernel([x, y, n], build)


def components() -> Function:
    """Vectors: three numbers of each thread lie side by side."""
    x, y = Var("x", ArrayType(V3, 1)), Var("y", F1)

    def build(b: Builder) -> None:
        i = tid(b)
        b.add(Store(y, (i,), b.op("length", b.load(x, [i], [], V3))))

    return kernel([x, y], build)


@pytest.mark.parametrize(
    "make", [saxpy, stencil, product_adjoint, early_return, components], ids=lambda f: f.__name__
)
def test_gcc_vectorises_the_loop_over_threads(make: Callable[[], Function], tmp_path: Path) -> None:
    toolchain = find_toolchain()
    if "Free Software Foundation" not in toolchain.version:
        pytest.skip("asks GCC for its report")
    source = tmp_path / "kernel.cpp"
    source.write_text(f'#include "{headers.COMMON}"\n{cpp.emit(make(), "s")}')
    command = toolchain.compile_command(str(source), str(tmp_path / "kernel.so"), headers.CPU)
    done = subprocess.run([*command, "-fopt-info-vec"], capture_output=True, text=True, check=True)
    assert "loop vectorized" in done.stderr


def test_native_code_compiles_without_warnings(tmp_path: Path) -> None:
    toolchain = find_toolchain()
    source = tmp_path / "kernel.cpp"
    source.write_text(f'#include "{headers.COMMON}"\n{cpp.emit(stencil(), "s")}')
    command = toolchain.compile_command(str(source), str(tmp_path / "kernel.so"), headers.CPU)
    flags = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-variable"]
    done = subprocess.run([*command, *flags], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_header_that_few_need_is_there_for_all_that_it_has() -> None:
    path = next(f / headers.DECOMPOSE for f in headers.CPU if (f / headers.DECOMPOSE).is_file())
    text = path.read_text()
    names = {
        *re.findall(r"(?:ENG_INLINE|ENG_FN)\s[^({;]*?\b(\w+)\(", text),
        *re.findall(r"struct (\w+)", text),
        *re.findall(r"constexpr (?:T|int) (\w+)", text),
        *re.findall(r"ENG_OF_HALVES\((\w+),", text),
    } - {"", "name"}
    assert len(names) > 15
    assert all(cpp._DECOMPOSE.search(f" eng::{name}<2>(x)") for name in names)


@pytest.mark.parametrize("name", ["plain", "größe", "f.<locals>.g", "_u41_", "名", ""])
def test_names_come_back_from_identifiers(name: str) -> None:
    word = identifier(name)
    assert word.isascii() and (not word or f"a{word}".isidentifier())
    assert name_of(word) == ("A" if name == "_u41_" else name)  # the one that looks like a code

"""The one cleaner of what is printed."""

from __future__ import annotations

import unicodedata

import pytest

from engine.characters import clean, line, spelled


@pytest.mark.parametrize("cleaner", [spelled, clean, line])
def test_no_character_without_a_shape_is_left(cleaner: object) -> None:
    assert callable(cleaner)
    for number in [*range(0x3000), 0xD800, 0xDC80, 0xFEFF, 0xFFF9, 0xE000, 0xE0041, 0x10FFFF]:
        c = chr(number)
        out = cleaner(f"a{c}b")
        left = {unicodedata.category(x) for x in out} & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        assert left <= ({"Cc"} if c == "\n" and cleaner is not line else set()), hex(number)
        if c.isprintable():
            assert out == f"a{c}b"
        elif c not in "\n\t":
            assert f"{number:x}" in out


@pytest.mark.parametrize("text", [
    "::error::x", "  ::error::x", "a\n::error::x", "a\n \t::error::x", "##[error]x", "a ##[error]x",
    "\x0b::error::x", "\u2028::error::x", "\u00a0::error::x", "a\r::error::x", ":::error::x",
    "###[error]x", "##[##[error]x", "a\r\n::x::y",
])  # fmt: skip
def test_no_line_is_a_command(text: str) -> None:
    for cleaner in (clean, line):
        out = cleaner(text)
        assert cleaner(out) == out
        assert "##[" not in out
        assert not any(x.strip().startswith("::") for x in out.splitlines())
    assert "\n" not in line(text)


@pytest.mark.parametrize("text", ["x[::2]", "std::vector", "a: b", "# [x]", "", "日本 — ünï"])
def test_ordinary_text_stays(text: str) -> None:
    assert clean(text) == line(text) == spelled(text) == text

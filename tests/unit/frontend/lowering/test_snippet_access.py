"""Accesses of native text to its arrays: a read only if it can be nothing else."""

from __future__ import annotations

import pytest

from engine.frontend.lowering.snippet_access import access

WRITES = [
    "std::swap(a[i],a[i+1]);",
    "(a[i])=5.0;",
    "++(a[i]);",
    "(a[i])++;",
    "(i>=0?a[i]:a[i+1])=5.0;",
    "(0,a[i])=5.0;",
    "if(((a[i])=5.0)>0){}",
    "using std::swap; swap(a[i],a[i+1]);",
    "*std::addressof(a[i])=5.0;",
    "decltype(auto) q=(a[i]); q=5.0;",
    "typedef double& R; R q=a[i]; q=5.0;",
    "struct S{double& q;}; S s{a[i]}; s.q=5.0;",
    "double& q=a[i]; q=3;",
    "auto& q = i>0 ? a[i] : a[0]; q=3;",
    "f(a[i]);",
    "std::tie(a[i]) = t;",
    "auto&& q=a[i]; q=2;",
    "double& q = (a[i]); q = 1;",
    "double& q{a[i]}; q=1;",
    "double& q(a[i]); q=1;",
    "((a[i]))=3;",
    "a[i]++;",
    "a[i]*=2;",
    "static_cast<float&>(a[i]) = v;",
]
READS = [
    "y[i] = a[i];",
    "y[i] = sin(a[i]) * 2;",
    "float v = a[i]; y[i] = v;",
    "return a[i];",
    "y[i] = (a[i]);",
    "y[i] = std::max(a[i], 0.0f);",
    "if (a[i] > 0) y[i] = 1;",
    "y[i] = (float)a[i];",
    "y[i] = b ? a[i] : 0;",
    "y[i] = -a[i];",
    "y[a[i]] = 1;",
    "atomic_add(y, i, a[i]);",
    "for (int q = 0; q < a[i]; ++q) y[q] = 1;",
    "y[i] = float(a[i]) + v;",
    "{ y[i] = a[i]; }",
    "y[i] += a[i] * a[i];",
    "const float v = a[i], w = a[i + 1];",
    "y[i] = exp(-(a[i] - 1.0f));",
]


@pytest.mark.parametrize("text", WRITES)
def test_what_may_change_an_element(text: str) -> None:
    found = access(text, ["a", "y"])
    assert "a" in found.writes | found.updates


@pytest.mark.parametrize("text", READS)
def test_what_only_reads(text: str) -> None:
    found = access(text, ["a", "y"])
    assert "a" in found.reads and "a" not in found.writes | found.updates


@pytest.mark.parametrize(
    "text, pure",
    [
        ("y[i] = sin(a[i]);", True),
        ("float v = std::max(a[i], 0.0f); y[i] = v;", True),
        ("static int c = 0; return c++;", False),
        ("return rand();", False),
        ("extern int c; return c;", False),
        ("auto f = [&](float v) { return v; }; y[i] = f(1.0f);", False),
    ],
)
def test_what_keeps_no_state(text: str, pure: bool) -> None:
    assert access(text, ["a", "y"]).pure is pure

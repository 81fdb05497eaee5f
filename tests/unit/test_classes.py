"""Dataclasses that write their methods late behave as those of `dataclasses`."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from engine import classes

# The engine's own, and what they must be like.
BOTH = [classes.dataclass, dataclasses.dataclass]
# What `dataclass` may be given.
OPTIONS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"eq": False},
    {"frozen": True, "slots": True, "eq": False},
    {"repr": False},
]


def family(make: Callable[..., Any], options: dict[str, bool]) -> tuple[Any, Any, Any]:
    """Classes with all that fields can have, one of them heir of the other."""

    @make(**options)
    class Base:
        KIND: ClassVar[str] = "base"
        a: int
        b: float = 2.0
        c: list[int] = dataclasses.field(default_factory=list, compare=False)
        d: int = dataclasses.field(default=4, repr=False)

        def doubled(self) -> int:
            return 2 * self.a

    @make(**options)
    class Heir(Base):
        b: float = 3.0
        e: str = "e"

    @make(**options)
    class Empty:
        pass

    return Base, Heir, Empty


def short(text: str) -> str:
    return text.replace("family.<locals>.", "")


def seen(kinds: tuple[Any, Any, Any], use: Callable[..., Any]) -> Any:
    """What comes of it, or how it fails."""
    try:
        return use(*kinds)
    except (TypeError, AttributeError) as error:
        return type(error).__name__, short(str(error))


def change(x: Any, name: str, value: object) -> Any:
    setattr(x, name, value)
    return getattr(x, name)


USES: dict[str, Callable[..., Any]] = {
    "shown": lambda b, h, e: short(repr(b(1, c=[1]))) if b.__dataclass_params__.repr else "",
    "heir shown": lambda b, h, e: short(repr(h(1))) if b.__dataclass_params__.repr else "",
    "empty shown": lambda b, h, e: short(repr(e())) if b.__dataclass_params__.repr else "",
    "defaults": lambda b, h, e: [(x.a, x.b, x.c, x.d) for x in (b(1), h(1), b(1, 2, [3], 4))],
    "lists of their own": lambda b, h, e: b(1).c is b(1).c,
    "equal": lambda b, h, e: [b(1) == b(1), b(1) == b(2), b(1) != b(1), b(1, c=[1]) == b(1)],
    "equal to others": lambda b, h, e: [b(1) == h(1), h(1) == h(1), b(1) == 1, e() == e()],
    "nan": lambda b, h, e: b(1, float("nan")) == b(1, float("nan")),
    "hash": lambda b, h, e: [len({hash(x) for x in [b(1), b(1)]}), len({h(1), h(1), h(2)})],
    "hash of values": lambda b, h, e: hash(b(1)) == hash((1, 2.0, 4)),
    "no value": lambda b, h, e: b(),
    "too many": lambda b, h, e: b(1, 2, 3, 4, 5),
    "unknown": lambda b, h, e: b(1, z=2),
    "set": lambda b, h, e: change(b(1), "a", 2),
    "set in an heir": lambda b, h, e: change(h(1), "b", 2),
    "deleted": lambda b, h, e: delattr(b(1), "a"),
    "methods": lambda b, h, e: [b(3).doubled(), h(3).doubled(), h.KIND],
    "fields": lambda b, h, e: [
        (f.name, f.type, f.default, f.repr, f.compare, f.init) for f in dataclasses.fields(h)
    ],
    "no fields": lambda b, h, e: dataclasses.fields(e),
    "is one": lambda b, h, e: [dataclasses.is_dataclass(x) for x in (b, h, e, b(1))],
    "replaced": lambda b, h, e: dataclasses.astuple(dataclasses.replace(h(1), a=5, e="y")),
    "wrongly replaced": lambda b, h, e: dataclasses.replace(h(1), z=5),
    "as dict": lambda b, h, e: dataclasses.asdict(h(1, c=[2])),
    "names": lambda b, h, e: [h.__match_args__, e.__match_args__, h.__name__, h.__module__],
    "copied": lambda b, h, e: dataclasses.astuple(copy.deepcopy(h(1, c=[2]))),
    "has a dict": lambda b, h, e: [hasattr(x, "__dict__") for x in (b(1), h(1), e())],
    # Python 3.10 repeats in an heir what its base has.
    "slots": lambda b, h, e: [
        vars(x).get("__slots__") for x in ((b, h, e) if sys.version_info >= (3, 11) else (b,))
    ],
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("use", USES)
def test_each_use_is_as_of_dataclasses(use: str, options: dict[str, bool]) -> None:
    found, right = (seen(family(make, options), USES[use]) for make in BOTH)
    assert found == right


@pytest.mark.parametrize("make", BOTH)
def test_patterns(make: Callable[..., Any]) -> None:
    base, heir, _ = family(make, {"frozen": True, "slots": True})
    match heir(7, e="x"):
        case base(a, b):
            assert (a, b) == (7, 3.0)
        case _:
            raise AssertionError


@pytest.mark.parametrize("first", BOTH)
@pytest.mark.parametrize("second", BOTH)
def test_both_kinds_inherit_from_each_other(first: Any, second: Any) -> None:
    @first(frozen=True, slots=True)
    class Base:
        a: int
        b: int = 2

    @second(frozen=True, slots=True)
    class Heir(Base):
        c: int = 3

    assert Heir(1) == Heir(1, 2, 3) and hash(Heir(1)) == hash((1, 2, 3))
    assert [f.name for f in dataclasses.fields(Heir)] == ["a", "b", "c"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Heir(1).a = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        second(type("Wrong", (Base,), {"__annotations__": {}}))


@pytest.mark.parametrize("make", BOTH)
def test_own_methods_stay(make: Callable[..., Any]) -> None:
    @make(frozen=True)
    class Own:
        a: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", self.a + 1)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __repr__(self) -> str:
            return "mine"

    @make(frozen=True)
    class Hashed(Own):
        def __hash__(self) -> int:
            return 17

    assert Own(1).b == 2 and Own(1) == Own(2) and repr(Own(1)) == "mine"  # type: ignore[attr-defined]
    assert hash(Own(1)) == hash((1,)) and hash(Hashed(1)) == 17 and Hashed(1) == Hashed(1)


@pytest.mark.parametrize("make", BOTH)
def test_what_is_wrong_is_told(make: Callable[..., Any]) -> None:
    def wrong() -> object:
        @make
        class Wrong:
            a: int = 1
            b: int  # type: ignore[misc]

        return Wrong(1, 2)

    def mutable() -> object:
        @make
        class Mutable:
            a: list[int] = []  # noqa: RUF012

        return Mutable()

    with pytest.raises(TypeError, match="'b' follows default argument"):
        wrong()
    with pytest.raises(ValueError, match="mutable default"):
        mutable()


@classes.dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: tuple[int, ...] = ()


def test_objects_can_be_pickled_and_copied() -> None:
    one = Kept(1, (2,))
    assert pickle.loads(pickle.dumps(one)) == one
    assert copy.copy(one) == one and copy.copy(one) is not one


def test_methods_are_written_once() -> None:
    base, _, _ = family(classes.dataclass, {})
    late = base.__dict__["__init__"]
    assert base(1) == base(1) and base.__dict__["__init__"] is not late
    one = base.__new__(base)
    late.__get__(one, base)(5)  # whoever still holds it
    assert one.a == 5 and base.__init__.__qualname__.endswith("Base.__init__")


def test_cycles_are_shown() -> None:
    @classes.dataclass
    class Node:
        next: Any = None

    node = Node()
    node.next = node
    assert repr(node).endswith("Node(next=...)")

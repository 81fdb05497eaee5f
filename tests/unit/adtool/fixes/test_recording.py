"""A launch beside the block of a tape goes into it, where nothing stands between."""

from __future__ import annotations

import pytest

from adtool.fixes.edits import applied
from adtool.fixes.recording import into_block
from tests.unit.adtool.fixes.conftest import Place

HEAD = "import engine as wp\nfrom engine import Tape, launch\n"
CALL = "wp.launch(f, 3, [x], [y])"
BLOCK = "with wp.Tape() as tape:\n    wp.launch(g, 3, [y], [z])\n"


def moved(place: Place, text: str, call: str = CALL) -> str | None:
    fix = into_block(place(HEAD + text, call))
    if fix is None:
        return None
    assert not fix.safe
    return applied((HEAD + text).encode(), fix.edits).decode()[len(HEAD) :]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{CALL}  # é\n{BLOCK}", BLOCK.replace(":\n", f":\n    {CALL}  # é\n")),
        (f"{CALL}\n\n{BLOCK}", BLOCK.replace(":\n", f":\n    {CALL}\n")),
        (f"{BLOCK}{CALL}\n", f"{BLOCK}    {CALL}\n"),
        (f"tape = wp.Tape()\n{BLOCK}{CALL}", f"tape = wp.Tape()\n{BLOCK}    {CALL}"),
        (
            f"t = Tape()\nif x:\n\twith (\n\t\tt\n\t):  # :\n\t\t# first\n\t\tpass\n\t{CALL}\n",
            f"t = Tape()\nif x:\n\twith (\n\t\tt\n\t):  # :\n\t\t# first\n\t\tpass\n\t\t{CALL}\n",
        ),
        (
            f"if x:\n\t{CALL}\n\twith Tape(\n\t) as t:  # :\n\t\t# first\n\t\tpass\n",
            f"if x:\n\twith Tape(\n\t) as t:  # :\n\t\t{CALL}\n\t\t# first\n\t\tpass\n",
        ),
        (
            f"{BLOCK}wp.launch(\n    f, 3,\n    [x], [y]\n)\n",
            f"{BLOCK}    wp.launch(\n        f, 3,\n        [x], [y]\n    )\n",
        ),
    ],
)
def test_moved(place: Place, before: str, after: str) -> None:
    assert moved(place, before) == after


@pytest.mark.parametrize(
    "text",
    [
        f"{CALL}\nn = 3\n{BLOCK}",
        f"{CALL}\n# a word\n{BLOCK}",
        f"{CALL}; n = 3\n{BLOCK}",
        f"done = {CALL}\n{BLOCK}",
        f"if x:\n    {CALL}\n{BLOCK}",
        f"{CALL}\nwith open(x) as file:\n    pass\n",
        f"{CALL}\nwith wp.Tape() as tape, open(x):\n    pass\n",
        f"{CALL}\nwith wp.Tape() as tape: pass\n",
        f"{CALL}\nwith other:\n    pass\n",
        CALL,
    ],
)
def test_not_moved(place: Place, text: str) -> None:
    assert moved(place, text) is None


def test_a_text_over_several_lines_stays_as_it_is(place: Place) -> None:
    call = "wp.launch(f, 3, [x], name='a\\nb')"
    text = f"{BLOCK}wp.launch(f, 3, [x], name='''a\nb''')\n"
    assert moved(place, text, call) is None

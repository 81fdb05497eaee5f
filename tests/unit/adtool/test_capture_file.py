"""The file of a capture, as processes read it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from adtool.captures import container
from adtool.captures.container import CaptureReader, CaptureWriter

ARRAYS, ROUNDS, FORKS = 200, 5, 3


def written(path: Path) -> dict[str, np.ndarray]:
    arrays: dict[str, np.ndarray] = {}
    with CaptureWriter(path) as out:
        for k in range(ARRAYS):
            values = np.arange(k + 1, dtype=np.float32) + k
            arrays[out.put(values)] = values
    return arrays


def all_read(reader: CaptureReader, arrays: dict[str, np.ndarray], seed: int) -> bool:
    digests = [*arrays] * ROUNDS
    random.Random(seed).shuffle(digests)
    return all(
        np.array_equal(reader.get(d, arrays[d].shape, arrays[d].dtype), arrays[d]) for d in digests
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_forks_read_it_at_places_of_their_own(tmp_path: Path) -> None:
    arrays = written(tmp_path / "run.adt")
    with CaptureReader(tmp_path / "run.adt") as reader:
        children = []
        for seed in range(FORKS):
            pid = os.fork()
            if not pid:
                right = False
                try:
                    right = all_read(reader, arrays, seed)
                finally:
                    os._exit(0 if right else 1)
            children.append(pid)
        assert all_read(reader, arrays, FORKS)
        assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * FORKS


@pytest.mark.parametrize("whence", [os.SEEK_SET, os.SEEK_CUR, os.SEEK_END])
def test_its_positions_are_those_of_a_file(tmp_path: Path, whence: int) -> None:
    (tmp_path / "x").write_bytes(bytes(range(100)))
    with (
        open(tmp_path / "x", "rb") as plain,
        open(tmp_path / "x", "rb") as opened,
        container._OwnPlace(opened) as own,
    ):
        for offset in (0, 7, -3, 200, -500):
            for file in (plain, own):
                file.seek(40)
            try:
                expected = plain.seek(offset, whence), plain.read(5)
            except (OSError, ValueError):
                with pytest.raises(ValueError, match="before the file"):
                    own.seek(offset, whence)
                continue
            assert (own.seek(offset, whence), own.read(5)) == expected

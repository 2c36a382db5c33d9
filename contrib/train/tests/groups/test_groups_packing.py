"""Any number of rows fills the same number of steps."""

from __future__ import annotations

import concertino as ct
import pytest
from concertino_train.groups import pack
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.integers(0, 500), unique=True, max_size=60),
    steps=st.integers(1, 7),
    multiple=st.integers(1, 5),
    with_lengths=st.booleans(),
)
def test_every_row_has_one_place_and_the_steps_are_as_many_as_asked_for(
    rows: list[int], steps: int, multiple: int, with_lengths: bool
) -> None:
    packing = pack(rows, steps, multiple=multiple, lengths=[row + 1 for row in rows] if with_lengths else None)
    assert packing.rows.shape[0] == steps
    assert packing.rows.shape[1] % multiple == 0
    assert packing.rows.shape[1] > 0
    assert sorted(packing.rows[packing.real].tolist()) == sorted(rows)
    assert packing.rows.size - len(rows) < steps * multiple or not rows
    if not with_lengths:
        assert packing.rows[packing.real].tolist() == rows


def test_no_rows_are_steps_of_padding() -> None:
    packing = pack([], 3, multiple=4)
    assert packing.rows.shape == (3, 4)
    assert not packing.real.any()


def test_padding_is_shared_between_the_steps() -> None:
    assert pack(range(5), 3).real.sum(axis=1).tolist() == [2, 2, 1]


def test_lengths_even_out_the_tokens_of_steps() -> None:
    lengths = [100, 1, 1, 1, 100, 1, 1, 1]
    packing = pack(range(8), 2, lengths=lengths)
    assert [sum(lengths[row] for row in step) for step in packing.rows] == [103, 103]


def test_what_cannot_be_packed_is_refused() -> None:
    with pytest.raises(ct.UsageError, match="steps=0"):
        pack([1], 0)
    with pytest.raises(ct.UsageError, match="different numbers"):
        pack([1, 1], 2)
    with pytest.raises(ct.UsageError, match="different numbers"):
        pack([-1], 2)
    with pytest.raises(ct.UsageError, match="1 lengths for 2 rows"):
        pack([1, 2], 2, lengths=[3])

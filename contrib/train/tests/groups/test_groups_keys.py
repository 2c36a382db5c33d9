"""What a group is."""

from __future__ import annotations

import subprocess
import sys

import concertino as ct
import numpy as np
import pytest
from concertino_train.groups import GroupKey, Groups
from concertino_train.groups.keys import MixedGroupError, prompt_digest


def test_rows_of_one_key_are_one_group_in_the_order_of_first_occurrence() -> None:
    keys = [GroupKey("b"), GroupKey("a"), GroupKey("b")]
    groups = Groups.of(keys)
    assert groups.keys == (GroupKey("b"), GroupKey("a"))
    assert groups.index.tolist() == [0, 1, 0]
    assert groups.sizes.tolist() == [2, 1]


def test_turns_and_roles_are_groups_of_their_own() -> None:
    keys = [GroupKey("q", role, turn) for turn in (1, 2) for role in ("coder", "tester") for _ in range(3)]
    groups = Groups.of(keys, size=3)
    assert len(groups) == 4
    assert str(groups.keys[1]) == "q, tester in turn 1"
    assert [key.of_turn for key in (GroupKey("q"), GroupKey("q", "coder", 1))] == [False, True]


def test_different_prompts_in_a_group_are_refused_with_group_and_rows() -> None:
    same, other = prompt_digest([1, 2, 3]), prompt_digest([1, 2, 4])
    keys = [GroupKey("q", "coder", 2)] * 3
    assert len(Groups.of(keys, [same] * 3)) == 1
    with pytest.raises(MixedGroupError, match="group q, coder in turn 2: rows 0 and 2 have different prompts"):
        Groups.of(keys, [same, same, other])


def test_later_turns_of_whole_rollouts_under_one_key_are_refused() -> None:
    first = prompt_digest([7, 7])
    later = [prompt_digest([7, 7, said]) for said in (1, 2)]
    with pytest.raises(MixedGroupError, match="put role and turn into the key"):
        Groups.of([GroupKey("q")] * 4, [first, first, *later])


def test_another_size_or_number_is_refused() -> None:
    with pytest.raises(ct.UsageError, match="group b has 1 rows; expected 2"):
        Groups.of([GroupKey("a"), GroupKey("a"), GroupKey("b")], size=2)
    with pytest.raises(ct.UsageError, match="2 keys and 1 prompts"):
        Groups.of([GroupKey("a"), GroupKey("a")], ["x"])


def test_a_digest_is_the_same_in_any_process_and_for_any_kind_of_list() -> None:
    program = "from concertino_train.groups.keys import prompt_digest; print(prompt_digest([1, 2, 151643]))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()
    assert printed == prompt_digest((1, 2, 151643)) == prompt_digest(np.array([1, 2, 151643], dtype=np.int32))
    assert prompt_digest([1, 2]) != prompt_digest([2, 1])
    assert prompt_digest([]) != prompt_digest([0])

"""Where rows stand, what they are as tensors, and which tasks come: no TRL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from concertino import UsageError
from concertino_local.codec import ByteCodec
from concertino_train.rollouts import Batch
from concertino_train.rollouts.task_stream import TaskStream
from concertino_train.trainer.layout import layout
from concertino_train.trainer.reference import ReferencePolicy
from concertino_train.trainer.tensors import loss_mask, part, pieces, placed_tensors
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def kept_rows(draw: st.DrawFn, roles: int) -> tuple[list[int], list[int], list[int]]:
    """Rows that are trained on one rank: their numbers, lengths and roles."""
    kept = sorted(draw(st.sets(st.integers(0, 40), max_size=12)))
    return kept, [draw(st.integers(1, 9)) for _ in kept], [number % roles for number in kept]


def counted(rows: tuple[list[int], list[int], list[int]], steps: int, roles: int) -> Any:
    """How many rows a rank has in each block."""
    seen: list[Any] = []
    layout(*rows, steps=steps, number_of_roles=roles, greatest=lambda own: seen.append(own) or own)  # type: ignore[func-returns-value]
    return seen[0]


@given(st.integers(1, 4), st.integers(1, 3), st.data())
def test_every_row_has_one_place_and_every_rank_the_same_width(steps: int, roles: int, data: st.DataObject) -> None:
    ranks = [data.draw(kept_rows(roles)) for _ in range(2)]
    most = np.maximum(*(counted(rows, steps, roles) for rows in ranks))
    found = [layout(*rows, steps=steps, number_of_roles=roles, greatest=lambda own: most) for rows in ranks]
    assert found[0].rows.shape == found[1].rows.shape == (steps, len(found[0].roles))
    assert np.array_equal(found[0].used, found[1].used)
    for (kept, _, role), each in zip(ranks, found, strict=True):
        real, of_row = each.rows >= 0, dict(zip(kept, role, strict=True))
        assert sorted(each.rows[real].tolist()) == kept
        assert each.used[real].all()
        assert all(each.roles[place] == of_row[each.rows[step, place]] for step, place in np.argwhere(real))
        assert real.sum(1).max() <= sum(-(-role.count(n) // steps) for n in range(roles))


@pytest.fixture
def tensors(made_batch: Callable[..., Batch], codec: ByteCodec) -> tuple[Batch, Any, dict[str, torch.Tensor]]:
    batch = made_batch(1, 2, 3, roles=("planner", "critic"))
    lengths = [len(row.prompt) + len(row.completion) for row in batch.rows]
    roles = [("planner", "critic").index(row.role) for row in batch.rows]
    found = layout(range(12), lengths, roles, steps=4, number_of_roles=2)
    return batch, found, placed_tensors(batch, found, codec.pad_id, "cpu")


def test_tensors_hold_the_sampled_tokens_and_the_mask_of_each_row(
    tensors: tuple[Batch, Any, dict[str, torch.Tensor]], codec: ByteCodec
) -> None:
    batch, found, made = tensors
    for place, number in enumerate(found.rows.ravel().tolist()):
        prompt = made["prompt_ids"][place][made["prompt_mask"][place].bool()].tolist()
        seen = made["completion_mask"][place].bool()
        assert bool(seen.any())
        if number < 0:
            assert prompt == [codec.pad_id]
            assert not loss_mask(made)[place].any()
            continue
        row = batch.rows[number]
        assert tuple(prompt) == row.prompt
        assert tuple(made["completion_ids"][place][seen].tolist()) == row.completion
        assert tuple(loss_mask(made)[place][seen].tolist()) == row.mask
        assert int(loss_mask(made)[place].sum()) == row.trained
        assert made["sampled"][place][seen].tolist() == pytest.approx(row.logprobs)
        assert float(made["advantages"][place]) == pytest.approx(batch.credit[number])


def test_pieces_are_of_one_role_and_hold_every_row_once(tensors: tuple[Batch, Any, dict[str, torch.Tensor]]) -> None:
    _, _, made = tensors
    chosen = pieces(made, 2)
    assert sorted(torch.cat(chosen).tolist()) == torch.nonzero(made["used"])[:, 0].tolist()
    for places in chosen:
        assert len(places) <= 2
        assert len(made["role"][places].unique()) == 1
    assert [each.tolist() for each in pieces({**made, "used": torch.zeros_like(made["used"])}, 2)] == [[0]]


def test_a_part_is_cut_to_its_longest_row(tensors: tuple[Batch, Any, dict[str, torch.Tensor]]) -> None:
    batch, found, made = tensors
    place = int(torch.nonzero(torch.from_numpy(found.rows.ravel() >= 0))[0])
    row = batch.rows[found.rows.ravel()[place]]
    alone = part({**made, "total": torch.tensor(3)}, torch.tensor([place]))
    assert alone["prompt_ids"].shape == (1, len(row.prompt))
    assert alone["completion_ids"].shape == alone["sampled"].shape == (1, len(row.completion))
    assert int(alone["total"]) == 3


def test_a_reference_leaves_the_model_as_it_was(tiny: Callable[..., Any], parameters: Any) -> None:
    model = tiny()
    reference, start = ReferencePolicy(model), parameters(model)
    with torch.no_grad():
        for value in model.parameters():
            value.add_(1.0)
    moved = parameters(model)
    with reference.active(model):
        assert torch.equal(parameters(model), start)
    assert torch.equal(parameters(model), moved)


def test_tasks_come_in_a_new_order_in_every_pass_and_every_task_once() -> None:
    stream = TaskStream(list("abcde"), seed=1)
    passes = [stream.take(5) for _ in range(3)]
    assert all(sorted(each) == list("abcde") for each in passes)
    assert passes[0] != passes[1] != passes[2]
    assert TaskStream(list("abcde"), seed=1).take(15) == [task for each in passes for task in each]
    assert TaskStream(list("abcde"), shuffle=False).take(7) == list("abcdeab")


def test_ranks_share_the_tasks_that_one_rank_would_have() -> None:
    alone = TaskStream(list(range(7)), seed=2).take(12)
    both = [TaskStream(list(range(7)), seed=2, rank=rank, ranks=2) for rank in range(2)]
    taken = [stream.take(6) for stream in both]
    assert [task for pair in zip(*taken, strict=True) for task in pair] == alone


def test_a_stream_goes_on_where_its_state_was_made() -> None:
    stream = TaskStream(list(range(7)), seed=3)
    stream.take(4)
    other = TaskStream(list(range(7)), seed=3)
    other.load_state_dict(stream.state_dict())
    assert other.take(9) == stream.take(9)
    with pytest.raises(UsageError, match="7 tasks, there are 3"):
        TaskStream([1, 2, 3]).load_state_dict(stream.state_dict())
    with pytest.raises(UsageError, match="no tasks"):
        TaskStream([])

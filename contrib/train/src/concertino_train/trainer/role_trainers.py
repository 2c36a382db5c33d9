"""One whole model for each role: a trainer each, which take turns on one stream of rollouts.

    sample -> rows of all roles -> planner's trainer updates -> critic's trainer updates -> sample -> ...

Each trainer runs in a thread of its own, for `transformers.Trainer.train` does not return before its end; a baton lets
one of them run at a time, in the order of the roles. The invariants: a step is sampled when all roles have ended the
one before, so rollouts are made by current weights; and the order of everything is the same in every run.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from concertino import UsageError

from concertino_train.rollouts.batches import Batch
from concertino_train.running.checkpoints import complete_checkpoints

from .algorithm import Algorithm
from .grpo import OrchestratorGRPOTrainer, SampleBatch

if TYPE_CHECKING:
    from concertino_local.codec import Codec
    from transformers import PreTrainedModel


class RoleTrainers:
    """Trainers that take turns.

    Attributes:
        trainers: by role.
    """

    def __init__(
        self,
        models: Mapping[str, PreTrainedModel],
        algorithm: Algorithm,
        sample: SampleBatch,
        tasks: Sequence[Any],
        *,
        codec: Codec,
        folder: Path | str,
        **more: Any,
    ) -> None:
        """Make a trainer for each role.

        Args:
            models: by role; `sample` samples with them.
            algorithm: of all roles.
            sample: makes the batch of a step, with rows of all roles.
            tasks: questions.
            codec: of all policies.
            folder: for checkpoints; each role has its own folder in it.
            **more: for every `OrchestratorGRPOTrainer`.

        Raises:
            UsageError: there are less than two roles, or as `OrchestratorGRPOTrainer`.
        """
        if len(models) < 2:
            raise UsageError(f"RoleTrainers: got models for {list(models)}; expected two roles or more")
        self._sample, self._batch = sample, Batch([])
        self._baton = _Baton(list(models))
        self._folder = Path(folder)
        self.trainers = {
            role: OrchestratorGRPOTrainer(
                model,
                algorithm,
                partial(self._take, role),
                tasks,
                codec=codec,
                folder=self._folder / role,
                role=role,
                **more,
            )
            for role, model in models.items()
        }

    def train(self, resume: bool = False) -> dict[str, Any]:
        """Train all roles.

        Args:
            resume: continue from the newest step of which every role has a complete checkpoint.

        Returns:
            What `transformers.Trainer.train` gives, by role.

        Raises:
            UsageError: the step does not exist.
        """
        checkpoints = self._common() if resume else dict.fromkeys(self.trainers)
        self._baton = _Baton(list(self.trainers))
        results: dict[str, Any] = {}
        threads = [
            threading.Thread(
                target=contextvars.copy_context().run,
                # A new thread begins without the context variables of its maker, such as the run that logs belong to.
                args=(self._run, role, checkpoints[role], results),
                name=f"trainer of {role}",
            )
            for role in self.trainers
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:
            # The trainers wait for the baton without a timeout; only an error wakes them.
            self._baton.fail(error)
            for thread in threads:
                thread.join()
            raise
        if self._baton.error:
            raise self._baton.error
        return results

    def _run(self, role: str, checkpoint: Path | None, results: dict[str, Any]) -> None:
        """Train a role; this runs in its thread."""
        try:
            self._baton.wait(role)
            results[role] = self.trainers[role].train(checkpoint)
        except _OtherFailed:
            return
        except BaseException as error:
            self._baton.fail(error)
        finally:
            # Also after an error: a role that keeps its place in the round would be waited for without end.
            self._baton.leave(role)

    def _take(self, role: str, tasks: list[Any], step: int) -> Batch:
        """A role's trainer wants the next step: the last of them samples it, as then all weights are current."""
        if self._baton.last == role:
            self._batch = self._sample(tasks, step)
        self._baton.pass_on(role)
        self._baton.wait(role)
        return self._batch

    def _common(self) -> dict[str, Path | None]:
        # A crash between two roles leaves them at different steps, and rollouts need weights of one step.
        names = {role: {path.name for path in complete_checkpoints(self._folder / role)} for role in self.trainers}
        common = set.intersection(*names.values())
        if not common:
            raise UsageError(f"{self._folder}: there is no step of which every role has a complete checkpoint")
        newest = max(common, key=lambda name: int(name.rpartition("-")[2]))
        return {role: self._folder / role / newest for role in self.trainers}


class _OtherFailed(Exception):
    """Raised in a thread that waits while the trainer of another role has failed."""


class _Baton:
    """Lets one of several threads run at a time, in a fixed order."""

    def __init__(self, names: list[str]) -> None:
        self._names, self._turn = names, names[0]
        self._changed = threading.Condition()
        self.error: BaseException | None = None

    @property
    def last(self) -> str:
        """The name that runs last in a round."""
        return self._names[-1]

    def wait(self, name: str) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._turn == name or self.error is not None)
            if self.error is not None:
                # The first error is the cause; those of the others follow from it.
                raise _OtherFailed

    def pass_on(self, name: str) -> None:
        with self._changed:
            self._turn = self._names[(self._names.index(name) + 1) % len(self._names)]
            self._changed.notify_all()

    def leave(self, name: str) -> None:
        """Run no more."""
        with self._changed:
            following = self._names[(self._names.index(name) + 1) % len(self._names)]
            self._names = [each for each in self._names if each != name]
            if self._turn == name:
                self._turn = following
            self._changed.notify_all()

    def fail(self, error: BaseException) -> None:
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

"""Several answers to one question: a majority vote over all, or a cascade that stops as soon as enough agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from concertino import Plan, Sampling, UsageError
from concertino.strategies import Act, Done, Step, TaskContext

from concertino_bench.graders.answer_keys import FORMS, Form

from .members import AskedMember, members_of
from .procedure import Log, Procedure, ask, failures, with_instruction
from .trust import ReplyTrust
from .votes import Vote, count


@dataclass(frozen=True)
class MajorityVote(Procedure):
    """Every voter answers; the answer that most of them gave wins.

    The answer of the run is the whole text of its first voter. Of tied answers the one that was given first wins, and
    the detail of the run says that there was a tie.

    Args:
        voters: `members` asks members of the pool side by side; `leader` asks the orchestrator's model several times,
            one after another, each with a seed of its own: `run * samples + seed`, `+ 1` and so on, where `run` is the
            seed that the run samples with, 0 without one. So two runs with different seeds have no vote in common.
        members: who votes, by visible name; by default every model that is offered as an agent.
        samples: k: how often each of them is asked, or the leader.
        answers: how answers are compared: `number`, `text`, or `auto`.
        temperature, seed: how the leader samples; all else is as the run samples.
        instruction: put below the question.
    """

    voters: Literal["members", "leader"] = "members"
    members: tuple[str, ...] = ()
    samples: int = 1
    answers: Form = "auto"
    temperature: float = 0.7
    seed: int = 0
    instruction: str = ""

    name = "majority-vote"
    reads_tools = True

    def __post_init__(self) -> None:
        self._one_of("voters", ("members", "leader"))
        self._one_of("answers", FORMS)
        self._names("members")
        self._at_least(samples=1)

    def prepare(self, brief: TaskContext) -> Log:
        """Find the voters."""
        log = super().prepare(brief)
        if self.voters == "leader":
            return log
        found = members_of(brief.tools, self.members, self.name)
        return replace(log, members=tuple(member for _ in range(self.samples) for member in found))

    def decide(self, log: Log) -> Step:
        """Ask all of them, then count."""
        text = with_instruction(log.question, self.instruction)
        if self.voters == "leader":
            if len(log.replies) < self.samples:
                return ask(text, sampling=self._sampling(log))
            return outcome(self._count(log), list(log.replies), "")
        asked = len(log.results)
        if asked < len(log.members):
            # A run may allow fewer calls at once than there are voters; then the vote takes several rounds.
            width = log.parallel or len(log.members)
            return act(log.members[asked : asked + width], text, log)
        return outcome(self._count(log), log.texts, failures(log.results))

    def _sampling(self, log: Log) -> Sampling:
        """How the leader's next vote is sampled."""
        of_run = log.sampling or Sampling()
        # A seed for each vote: a server that honours seeds would otherwise give the same one again.
        seed = (of_run.seed or 0) * self.samples + self.seed + len(log.replies)
        return of_run.with_(temperature=self.temperature, seed=seed)

    def best(self, log: Log) -> str | None:
        """The answer that has most votes so far."""
        vote = self._count(log)
        return _text_of(vote, self._texts(log))

    def _texts(self, log: Log) -> list[str | None]:
        return [*log.replies] if self.voters == "leader" else log.texts

    def _count(self, log: Log) -> Vote:
        return count(self._texts(log), self.answers)


@dataclass(frozen=True)
class Cascade(Procedure):
    """Members are asked in their order, cheap ones first, until enough answers agree.

    Where they never do, the last member, the strongest, is believed; if it gave no answer, the vote of all decides.

    Args:
        members: in the order of asking; by default every model that is offered as an agent, in the pool's order.
        agreement: so many equal answers end it.
        first: members that are asked at once at the beginning.
        width: members that are asked at once later.
        samples: how often each member is asked. With 2 and more, `first=1` stops at a cheap model that agrees with
            itself.
        answers: how answers are compared: `number`, `text`, or `auto`.
        instruction: put below the question.
        trust: path of a file that `ReplyTrust.save` wrote. After the first stage it decides alone, in the place of
            `agreement`: if it believes the first member's reply, beside what the others of the stage said, that ends
            the cascade; else the others are asked, and the last one decides.
        digest: of the trust, computed if left out; a file with another digest is refused.
        trusting: a `ReplyTrust` object instead of a file; traces keep its digest only.
    """

    members: tuple[str, ...] = ()
    agreement: int = 2
    first: int = 2
    width: int = 1
    samples: int = 1
    answers: Form = "auto"
    instruction: str = ""
    trust: str = ""
    digest: str = ""
    trusting: ReplyTrust | None = field(default=None, compare=False, repr=False)

    name = "cascade"
    reads_tools = True

    def __post_init__(self) -> None:
        self._one_of("answers", FORMS)
        self._names("members")
        self._at_least(agreement=1, first=1, width=1, samples=1)
        if self.trusting is not None and not isinstance(self.trusting, ReplyTrust):
            self._refuse("trusting", "a ReplyTrust; the path of a file is `trust`")
        if not self.digest and (self.trusting is not None or (self.trust and Path(self.trust).is_file())):
            # The dataclass is frozen; the digest makes two files under one path two systems.
            object.__setattr__(self, "digest", self._trust().digest)

    def prepare(self, brief: TaskContext) -> Log:
        """Find the members, and the trust."""
        found = members_of(brief.tools, self.members, self.name)
        if (self.trust or self.digest) and found and self._trust().digest != self.digest:
            raise UsageError(
                f"{self.name}: the trust has the digest {self._trust().digest}, and the settings say {self.digest}: it "
                "has changed since; give the file that was meant, or make the strategy again without a digest"
            )
        return replace(super().prepare(brief), members=tuple(m for m in found for _ in range(self.samples)))

    def decide(self, log: Log) -> Step:
        """Ask the next ones unless enough agree."""
        asked, vote = len(log.results), count(log.texts, self.answers)
        if self.digest and asked == self.first * self.samples < len(log.members):
            trusted = self._trusted(log)
            if trusted is not None:
                return trusted
        # Replies that were not believed cannot end it by agreeing with each other.
        agreed = not self.digest and bool(vote.candidates) and len(vote.candidates[0].voters) >= self.agreement
        # A limit on calls at once must not change the outcome, so a stage that was begun is finished.
        if agreed and not self._inside_a_stage(log):
            detail = f"{asked} of {len(log.members)} answers agreed: {vote.describe()}"
            return Done(_text_of(vote, log.texts), "answered", detail)
        if asked < len(log.members):
            width = self._stage_end(log) - asked
            text = with_instruction(log.question, self.instruction)
            return act(log.members[asked : asked + min(width, log.parallel or width)], text, log)
        last = log.texts[-1] if log.texts else None
        # The last and strongest member is believed, unless no answer can be read from it.
        if last is not None and count([last], self.answers).candidates:
            why = f"{log.members[0].name} is not believed" if self.digest else f"no {self.agreement} agreed"
            detail = f"{why} ({vote.describe()}); {log.members[-1].name} decided"
            return Done(last, "answered", detail)
        return outcome(vote, log.texts, failures(log.results))

    def best(self, log: Log) -> str | None:
        """The answer that has most votes so far."""
        return _text_of(count(log.texts, self.answers), log.texts)

    def _trusted(self, log: Log) -> Done | None:
        """The end of a run whose first reply is believed."""
        text, others, trust = log.texts[0], [text or "" for text in log.texts[1:]], self._trust()
        if text is None or not trust.believes(log.question, text, others):
            return None
        chance = trust.chance(log.question, text, others)
        return Done(text, "answered", f"{log.members[0].name} is believed: {chance:.0%} likely to be right")

    def _trust(self) -> ReplyTrust:
        if self.trusting is not None:
            return self.trusting
        if not self.trust:
            raise UsageError(f"{self.name}: no trust; give trust='trust.json', which ReplyTrust.save writes")
        path = Path(self.trust)
        # Part of the cache's key, so a file that was written again is read again.
        return _loaded(str(path.absolute()), path.stat().st_mtime_ns if path.exists() else 0)

    def _stage_end(self, log: Log) -> int:
        """How many answers there are when the stage under way, or the next one, is over."""
        asked, end = len(log.results), self.first * self.samples
        # `first` members form the first stage, `width` members each later one
        while end <= asked:
            end += self.width * self.samples
        return min(end, len(log.members))

    def _inside_a_stage(self, log: Log) -> bool:
        """Whether a limit on calls at once has cut a stage in two."""
        asked = len(log.results)
        ends = {self.first * self.samples + n * self.width * self.samples for n in range(len(log.members) + 1)}
        return asked not in ends and asked < len(log.members)


def act(members: Sequence[AskedMember], text: str, log: Log) -> Act:
    """Ask some members the same, side by side."""
    return Act(Plan([member.call(text) for member in members]), len(log.rounds) + 1)


def outcome(vote: Vote, texts: list[str | None], wrong: str) -> Done:
    """The end of a vote: the first text of the winner, or why there is none."""
    answer = _text_of(vote, texts)
    detail = "; ".join(filter(None, [vote.describe(), wrong]))
    if answer is not None:
        return Done(answer, "answered", detail)
    return Done(None, "model" if all(text is None for text in texts) else "format", detail)


def _text_of(vote: Vote, texts: list[str | None]) -> str | None:
    return texts[vote.candidates[0].voters[0]] if vote.candidates else None


@lru_cache(maxsize=8)
def _loaded(path: str, stamp: int) -> ReplyTrust:
    """A trust is read once as long as its file stays the same."""
    return ReplyTrust.load(path)

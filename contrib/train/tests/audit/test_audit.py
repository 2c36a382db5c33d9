"""The audit finds what is wrong, and nothing where nothing is."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import concertino as ct
import pytest
from click.testing import CliRunner
from concertino_bench.metrics import Preference
from concertino_train.audit import AuditFailed, AuditReport, audit, read_episodes
from concertino_train.audit.batch import AuditRow
from concertino_train.audit.report import CODES
from concertino_train.cli.audit import audit_command
from concertino_train.episodes import Called, Episode, EpisodeRound, RoleTurn
from concertino_train.groups import Filters, GroupKey
from concertino_train.groups.keys import prompt_digest
from concertino_train.rewards import PRESETS, Reward, Term, Weighted, shared, toolorchestra
from concertino_train.rewards.shared import Spending

CHEAP = Preference(accuracy=1, usd=0.5)


def reward_of(**terms: Term | Weighted) -> Reward:
    return Reward("r", {name: each if isinstance(each, Weighted) else Weighted(each) for name, each in terms.items()})


def codes(report: AuditReport, level: str | None = None) -> set[str]:
    return {finding.code for finding in report.findings if level in (None, finding.level)}


def finding(report: AuditReport, code: str) -> Any:
    return next(each for each in report.findings if each.code == code)


@pytest.fixture
def healthy(make: Any) -> dict[str, list[Episode]]:
    """Three questions with right and wrong, cheap and dear episodes."""
    return {
        name: [make(f"{name}{n}", n % 2 == 0, units=n, usd=n / 10, seconds=n, group=name) for n in range(4)]
        for name in ("a", "b", "c")
    }


def test_a_healthy_batch_has_nothing_to_refuse(healthy: Any) -> None:
    report = audit(healthy, reward_of(right=shared.Correct(), cost=Weighted(Spending("units", 100), 0.5)))
    assert report.findings == ()
    assert report.ok
    assert report.refuse() is report
    assert "nothing found" in report.text()
    assert report.figures["right"] == 0.5
    assert report.figures["distinct_rewards"] == 4


# -- does success come first? ------------------------------------------------------------------------------------------


def test_a_reward_that_pays_for_failing_well_is_named_with_a_constrained_form(healthy: Any) -> None:
    report = audit(healthy, PRESETS["paramanager"])
    found = finding(report, "success-not-first")
    assert found.level == "warn"
    assert "being right is worth 1, and format, diversity, efficiency together 3" in found.seen
    assert "diversity: {when: right}" in found.change
    assert "success-not-first" not in codes(audit(healthy, PRESETS["paramanager-success-first"]))


# -- can it be learnt by heart? ----------------------------------------------------------------------------------------


def chosen(make: Any, places: Sequence[int], pool: Callable[[int], str]) -> dict[str, list[Episode]]:
    """Groups of four episodes whose first calls go to these places of six."""
    return {
        f"q{number}": [
            make(f"{number}.{n}", n % 2 == 0, units=n, group=f"q{number}", pool=pool(number), first=place, offered=6)
            for n in range(4)
        ]
        for number, place in enumerate(places)
    }


def test_one_pool_for_all_questions_is_noted(make: Any) -> None:
    report = audit(chosen(make, [0, 3, 2, 5], lambda number: "p"), reward_of(right=shared.Correct()))
    assert finding(report, "one-pool").level == "note"
    assert "pool.variation.unseen" in finding(report, "one-pool").change


def test_a_policy_that_goes_by_place_is_named_and_one_that_does_not_is_not(make: Any) -> None:
    last = audit(chosen(make, [5, 5, 5, 5], lambda number: f"p{number}"), reward_of(right=shared.Correct()))
    assert "16 of 16 first calls go to place 6 from the beginning" in finding(last, "choice-by-place").seen
    read = audit(chosen(make, [0, 3, 2, 5], lambda number: f"p{number}"), reward_of(right=shared.Correct()))
    assert not codes(read) & {"choice-by-place", "one-pool"}


# -- does spending pay? ------------------------------------------------------------------------------------------------


def test_the_released_reward_of_toolorchestra_is_refused(healthy: Any) -> None:
    released = reward_of(p=toolorchestra.PreferenceReward(CHEAP, "as_released"))
    report = audit(healthy, released)
    assert "spending-pays" in codes(report, "fail")
    assert "$" in finding(report, "spending-pays").seen
    assert "higher-cost-rewarded" in codes(report)
    with pytest.raises(AuditFailed, match=r"(?s)spending-pays.*has to enter with a minus") as refused:
        report.refuse()
    assert refused.value.report is report
    assert report.refuse(force=True) is report


def test_the_paper_s_reward_of_toolorchestra_is_not(healthy: Any) -> None:
    report = audit(healthy, reward_of(p=toolorchestra.PreferenceReward(CHEAP)))
    assert not codes(report) & {"spending-pays", "right-hurts", "higher-cost-rewarded"}


@pytest.mark.parametrize("name", ["paramanager", "toolorchestra", "mas-orchestra", "gap", "mas-orchestra-as-released"])
def test_no_reward_of_a_paper_pays_for_spending_or_takes_away_for_being_right(name: str, healthy: Any) -> None:
    assert not codes(audit(healthy, PRESETS[name])) & {"spending-pays", "right-hurts"}


@dataclass(frozen=True)
class Hidden(Term):
    """Pays for seconds, and for being wrong, without saying so."""

    name = "test/hidden"
    formula = source = meaning = "?"

    @property
    def bounds(self) -> tuple[float, float]:
        return 0, 1

    def values(self, group: Sequence[Episode]) -> list[float]:
        return [min(1.0, each.totals.seconds / 1000) + 0.5 * (not each.right) for each in group]


def test_a_term_that_does_not_say_what_it_reads_is_found_out(healthy: Any) -> None:
    report = audit(healthy, reward_of(right=Weighted(shared.Correct(), 0.1), hidden=Hidden()))
    assert {"spending-pays", "right-hurts", "wrong-above-right"} <= codes(report, "fail")
    assert "s of wall time" in finding(report, "spending-pays").seen


def test_episodes_that_earn_more_for_something_else_are_a_warning_that_names_it(make: Any) -> None:
    wide = EpisodeRound(calls=(Called("x"), Called("y"), Called("z")))
    narrow = EpisodeRound(calls=(Called("x"),))
    group = [make("dear", units=3, rounds=(wide,)), make("cheap", units=1, rounds=(narrow,)), make("wrong", False)]
    report = audit({"q": group}, PRESETS["paramanager"])
    assert "spending-pays" not in codes(report)
    found = finding(report, "higher-cost-rewarded")
    assert found.level == "warn"
    assert "diversity" in found.seen
    assert "dear (3 units" in found.seen


def test_episodes_of_unknown_price_are_not_called_dearer_for_their_dollars(make: Any) -> None:
    group = [make("a", usd=9, totals={"unpriced": 1}, answered=True), make("b", answered=False), make("c", False)]
    report = audit({"q": group}, reward_of(right=shared.Correct(), answered=shared.Answered()))
    assert "higher-cost-rewarded" not in codes(report)


def test_a_wrong_episode_above_a_right_one_is_found_with_its_share(make: Any) -> None:
    group = [make("dear", units=9), make("cheap", False), make("fine", units=0)]
    harsh = reward_of(right=shared.Correct(), cost=Weighted(Spending("units", 9), 2.0))
    report = audit({"q": group}, harsh)
    found = finding(report, "wrong-above-right")
    assert found.level == "fail"
    assert "in 1 of 2 pairs the wrong episode earns more (1 times the cheaper one)" in found.seen
    group += [make(f"fine{number}", units=0) for number in range(4)]
    assert finding(audit({"q": group}, harsh), "wrong-above-right").level == "warn"


def test_a_price_that_is_not_known_is_a_finding_and_no_crash(make: Any) -> None:
    group = [make("a", totals={"unpriced": 2}, unpriced=("openai/gpt-x",)), make("b", False)]
    report = audit({"q": group}, reward_of(right=shared.Correct(), cost=Spending("usd", 1)))
    assert codes(report) == {"unscored"}
    assert "openai/gpt-x" in report.text()
    assert not report.ok


def test_a_reward_that_charges_nothing_is_noted(healthy: Any) -> None:
    assert finding(audit(healthy, PRESETS["gap"]), "nothing-charged").level == "note"


# -- is there anything to learn? ---------------------------------------------------------------------------------------


def test_all_rewards_equal_is_a_failure(make: Any) -> None:
    groups = {name: [make(f"{name}{n}", False, group=name) for n in range(2)] for name in "ab"}
    report = audit(groups, PRESETS["gap"])
    assert "all-equal" in codes(report, "fail")
    assert "all 4 rewards are 0" in report.text()


def test_many_groups_without_variance_are_a_warning_and_all_of_them_a_failure(make: Any) -> None:
    groups = {name: [make(f"{name}{n}", name == "a", group=name) for n in range(2)] for name in "abc"}
    assert "zero-variance" in codes(audit(groups, PRESETS["gap"]), "fail")
    groups["d"] = [make("d0", group="d"), make("d1", False, group="d")]
    report = audit(groups, PRESETS["gap"])
    assert "zero-variance" in codes(report, "warn")
    assert "3 of 4 groups have equal rewards" in report.text()


def test_rewards_that_hardly_differ_are_a_warning(make: Any) -> None:
    groups = {"q": [make("a", units=1), make("b", units=2)]}
    report = audit(groups, reward_of(right=shared.Correct(), cost=Weighted(Spending("units", 100))))
    assert "homogeneous" in codes(report, "warn")
    assert "zero-variance" not in codes(report)


def test_groups_of_one_are_found(make: Any, healthy: Any) -> None:
    assert "group-of-one" in codes(audit({"q": [make("a")]}, PRESETS["gap"]), "fail")
    assert "group-of-one" in codes(audit({**healthy, "q": [make("x")]}, PRESETS["gap"]), "warn")


def test_candidates_that_differ_and_earn_the_same_are_found(make: Any) -> None:
    """What comes of scoring all candidates on the world of one of them."""
    turns = [(RoleTurn(1, "coder", 0.5, facts={"said": n}),) for n in range(3)]
    groups = {
        name: [make(f"{name}{n}", False, group=name, domain="code", turns=turns[n]) for n in range(3)] for name in "ab"
    }
    groups["b"] = [replace(each, turns=(replace(each.turns[0], team=n / 2),)) for n, each in enumerate(groups["b"])]
    report = audit(groups, PRESETS["at-grpo"])
    assert finding(report, "equal-rewards").groups == ("a",)
    assert "world" in finding(report, "equal-rewards").change


def test_episodes_of_other_groups_and_copies_are_found(make: Any) -> None:
    mixed = {"q": [make("a"), make("b", group="other")]}
    report = audit(mixed, PRESETS["gap"])
    assert codes(report, "fail") == {"mixed-group"}
    twice = {"q": [make("a"), make("a"), make("b", False)]}
    assert "repeated-episode" in codes(audit(twice, PRESETS["gap"]), "warn")


def test_no_episodes_are_a_failure() -> None:
    assert codes(audit({}, PRESETS["gap"]), "fail") == {"empty"}


# -- rows and filters --------------------------------------------------------------------------------------------------

PROMPT = prompt_digest([1, 2, 3])
KEY = GroupKey("a", "coder", 1)


def rows_of(mask: list[int], credit: list[float] | float, prompt: str = PROMPT) -> AuditRow:
    return AuditRow(KEY, prompt, mask, credit)


def test_credit_on_tokens_of_the_environment_is_found(healthy: Any) -> None:
    fine = [rows_of([1, 1, 0], [0, 0.5, 0]), rows_of([1, 0], 0.5), rows_of([0, 0], 0.0)]
    assert "masked-reward" not in codes(audit(healthy, PRESETS["gap"], rows=fine))
    wrong = audit(healthy, PRESETS["gap"], rows=[*fine, rows_of([1, 1, 0], [0, 0, 0.5])])
    assert "row 3 on token 2" in finding(wrong, "masked-reward").seen
    assert finding(wrong, "masked-reward").level == "fail"


def test_credit_on_an_empty_text_is_found(healthy: Any) -> None:
    report = audit(healthy, PRESETS["gap"], rows=[rows_of([0, 0], 0.5)])
    assert finding(report, "nothing-trained").level == "warn"


def test_rows_of_a_group_with_several_prompts_are_found(healthy: Any) -> None:
    rows = [rows_of([1], 0.5), rows_of([1], -0.5, prompt_digest([9]))]
    report = audit(healthy, PRESETS["gap"], rows=rows)
    assert finding(report, "mixed-group").groups == ("a, coder in turn 1",)
    assert not report.ok


def test_a_filter_that_filters_nothing_and_one_that_filters_everything_are_found(make: Any, healthy: Any) -> None:
    assert "filter-idle" in codes(audit(healthy, PRESETS["gap"], filters=Filters(homogeneity=0.01)))
    assert "filter-idle" not in codes(audit(healthy, PRESETS["gap"], filters=Filters()))
    assert "filter-all" in codes(audit(healthy, PRESETS["gap"], filters=Filters(homogeneity=99.0)), "fail")
    some = {**healthy, "d": [make(f"d{n}", group="d") for n in range(2)]}
    assert not codes(audit(some, PRESETS["gap"], filters=Filters(homogeneity=0.01))) & {"filter-idle", "filter-all"}


# -- reports and the command -------------------------------------------------------------------------------------------


def test_findings_stand_in_order_of_gravity_and_have_known_codes(make: Any) -> None:
    group = [make("dear", units=9), make("cheap", False), make("cheap", False)]
    report = audit({"q": group}, reward_of(right=shared.Correct(), cost=Weighted(Spending("units", 9), 2.0)))
    levels = [each.level for each in report.findings]
    assert levels == sorted(levels, key=("fail", "warn", "note").index)
    assert codes(report) <= set(CODES)
    assert json.loads(json.dumps(report.to_json()))["ok"] is False


def write(path: Path, groups: dict[str, list[Episode]]) -> str:
    lines = [json.dumps(episode.to_json()) for group in groups.values() for episode in group]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def test_episodes_are_read_by_group(tmp_path: Path, healthy: Any) -> None:
    assert read_episodes(write(tmp_path / "e.jsonl", healthy)) == healthy


@pytest.mark.parametrize(("line", "message"), [("{", "e.jsonl:1"), ("[]", "a list"), ('{"id": "a"}', "group")])
def test_a_line_that_is_no_episode_is_named(line: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_text(line)
    with pytest.raises(ct.UsageError, match=message):
        read_episodes(tmp_path / "e.jsonl")


def test_the_command_ends_with_1_where_something_failed_unless_it_is_forced(tmp_path: Path, healthy: Any) -> None:
    file = write(tmp_path / "e.jsonl", healthy)
    run = CliRunner().invoke
    fine = run(audit_command, [file, "--reward", "paramanager"])
    assert fine.exit_code == 0
    released = run(audit_command, [file, "--reward", "toolorchestra-as-released", "--json"])
    assert released.exit_code == 1
    assert json.loads(released.output)["findings"][0]["code"] == "spending-pays"
    assert run(audit_command, [file, "--reward", "toolorchestra-as-released", "--force"]).exit_code == 0
    assert run(audit_command, [file, "--reward", "gap"]).exit_code == 0


def test_the_command_takes_a_file_and_filters(tmp_path: Path, healthy: Any) -> None:
    file = write(tmp_path / "e.jsonl", healthy)
    (tmp_path / "r.yaml").write_text("terms: {right: {term: shared/correct}}")
    done = CliRunner().invoke(audit_command, [file, "--reward", str(tmp_path / "r.yaml"), "--homogeneity", "0.01"])
    assert done.exit_code == 0
    assert "filter-idle" in done.output


def test_the_command_refuses_what_it_does_not_know(tmp_path: Path, healthy: Any) -> None:
    file = write(tmp_path / "e.jsonl", healthy)
    done = CliRunner().invoke(audit_command, [file, "--reward", "paramanger"])
    assert done.exit_code == 2
    assert "did you mean 'paramanager'" in done.output


def test_episodes_that_spend_more_of_one_thing_and_less_of_another_are_not_compared(make: Any) -> None:
    wide = EpisodeRound(calls=(Called("x"), Called("y"), Called("z")))
    group = [make("a", units=3, usd=0.1, rounds=(wide,)), make("b", units=1, usd=0.2, rounds=(EpisodeRound(),))]
    assert "higher-cost-rewarded" not in codes(audit({"q": group}, PRESETS["paramanager"]))
    dearer = [replace(group[0], totals=replace(group[0].totals, usd=0.2)), group[1]]
    assert "higher-cost-rewarded" in codes(audit({"q": dearer}, PRESETS["paramanager"]))

"""What the doctor says about models: which one leads, which can and cannot and why, and with `--probe` which answer.

Without `--probe` nobody is asked: keys, packages and programs are looked for. With it, servers on this machine and
those at plain `http://` addresses are asked for the list of their models; services on the web are not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from concertino.core.errors import PoolError
from concertino.core.services import LOCAL_SERVERS, SERVICE_KEYS
from concertino.plugins.finding import Finding
from concertino.plugins.packages import install_provider

from .leaders import Leader, chosen_leader, leaders, listed, services_without_key

if TYPE_CHECKING:
    from concertino.members.specs import ModelSpec
    from concertino.pool.pool import Pool

_NAMED = 8
"""Models that a line names at most."""


@dataclass
class ModelReport:
    """What is known of the models of a pool.

    Attributes:
        leader: the model that leads where nothing else is said, None for none.
        models: all of them.
    """

    leader: str | None = None
    models: list[Leader] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def report_models(pool: Pool, installed: Sequence[str], *, probe: bool = False) -> ModelReport:
    """Look at the models of a pool.

    Args:
        installed: the providers that are installed.
        probe: whether to ask servers.
    """
    report = ModelReport(models=leaders(pool))
    if probe:
        report.findings += _asked(pool, report)
    able = [each.name for each in report.models if not each.why]
    report.findings += _leads(pool, able, report)
    report.findings += (_unable(each) for each in report.models if each.why and each.name != report.leader)
    report.findings += _elsewhere(installed)
    if probe:
        report.findings += _servers_here(pool)
    return report


def _leads(pool: Pool, able: Sequence[str], report: ModelReport) -> Iterator[Finding]:
    try:
        chosen = chosen_leader(pool)
    except PoolError as error:
        yield Finding("error", "leader", str(error), "correct the role 'orchestrator' in the pool file")
        return
    if chosen is not None:
        # What a server said counts, too.
        chosen = next((each for each in report.models if each.name == chosen.name), chosen)
        report.leader = chosen.name
        bound = "bound to the role 'orchestrator'" if "orchestrator" in pool.roles else "the pool's choice"
        if chosen.why:
            yield Finding("error", "leader", f"{chosen.name}, {bound}, cannot lead: {chosen.why}", chosen.step)
        else:
            yield Finding("ok", "leader", f"{chosen.name}, {bound}, can lead")
    elif able:
        text = f"no model is bound to the role 'orchestrator'; {counted_names(able)} can lead"
        yield Finding("ok", "leader", text, "give `concertino run --model NAME`, or bind one: `concertino init`")
    else:
        text = "no model can lead" + ("" if report.models else ": the pool has none")
        step = "set the key of a service, start a model server, or install concertino-toy; `concertino init` asks"
        yield Finding("warning", "leader", text, step)


def _unable(leader: Leader) -> Finding:
    return Finding("warning", f"model {leader.name}", f"cannot lead: {leader.why}", leader.step)


def _elsewhere(installed: Sequence[str]) -> Iterator[Finding]:
    """Services and servers whose models could be named, and what is missing for it."""
    without = [each for each in services_without_key() if each.name in installed]
    if without:
        text = "; ".join(f"{each.name}: {each.why}" for each in without)
        yield Finding("ok", "services without a key", text)
    absent = [name for name in (*SERVICE_KEYS, *LOCAL_SERVERS, "local") if name not in installed]
    if absent:
        steps = dict.fromkeys(install_provider(name).partition(": ")[2].partition(",")[0] for name in absent)
        yield Finding("ok", "not installed", f"models of {', '.join(absent)}", "; ".join(list(steps)[:3]))


def counted_names(names: Sequence[str]) -> str:
    """`a, b and c`; of many the first ones."""
    shown = list(names[:_NAMED])
    if len(names) > _NAMED:
        return f"{', '.join(shown)} and {len(names) - _NAMED} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


# -- asking ------------------------------------------------------------------------------------------------------------


def _asked(pool: Pool, report: ModelReport) -> Iterator[Finding]:
    """Ask the servers behind models; what does not answer cannot lead."""
    answers: dict[str, list[str] | None] = {}
    for place, leader in enumerate(report.models):
        for spec in pool.behind(leader.name):
            if leader.why or not _may_be_asked(spec):
                continue
            if spec.endpoint not in answers:
                answers[spec.endpoint] = listed(spec.endpoint)
            why = _wrong(spec, answers[spec.endpoint])
            if why is not None:
                report.models[place] = Leader(leader.name, *why)
    for address, names in answers.items():
        if names is not None:
            yield Finding("ok", f"server {address}", f"answers{f', with {counted_names(names)}' if names else ''}")


def _may_be_asked(spec: ModelSpec) -> bool:
    return spec.endpoint.startswith("http://")


def _wrong(spec: ModelSpec, names: list[str] | None) -> tuple[str, str] | None:
    if names is None:
        return f"its server {spec.endpoint} does not answer", "start the server, or correct base_url"
    wanted = str((spec.options or {}).get("model", spec.short_name))
    # Ollama calls `llama3.2` also `llama3.2:latest`.
    if names and wanted not in names and f"{wanted}:latest" not in names:
        return f"its server {spec.endpoint} lists no {wanted!r}, but {counted_names(names)}", "name one of these"
    return None


def _servers_here(pool: Pool) -> Iterator[Finding]:
    """Servers at their default addresses that no model of the pool is behind."""
    known = {spec.endpoint for spec in pool.models}
    for provider, address in LOCAL_SERVERS.items():
        if address not in known and (names := listed(address)) is not None:
            example = f"{provider}/{names[0]}" if names else f"{provider}/NAME"
            text = f"answers at {address}{f', with {counted_names(names)}' if names else ''}"
            yield Finding("ok", f"server {provider}", text, f"name a model of it: --model {example}")

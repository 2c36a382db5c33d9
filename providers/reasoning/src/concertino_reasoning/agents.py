"""The agents, each a method with the parameters of the paper that it comes from.

MAS-Orchestra (appendix G.3): `cot`, `self_consistency`, `debate`, `reflexion`. ParaManager (appendix E, F):
`standard_reasoner`, `critical_reviewer`, `ensemble_solver`, `final_answer`. What an orchestrator decides is what the
papers let it decide: the task, the model, the roles of a debate. How many samples or rounds is fixed when an agent is
made, since its cost is known before a call; `self_consistency_agent(samples=9)` makes another.

Cost units: ParaManager's from its table of tools; MAS-Orchestra's from what each agent costs in $ beside `cot` in its
table of inference costs (D.2, mean of both benchmarks, rounded).
"""

from __future__ import annotations

from concertino import AgentSpec, Context, Cost, Sampling, SpecError, agent

from . import prompts
from .methods.chosen import choose, conversation, question_of, task_of
from .methods.debate import hold_debate
from .methods.extraction import extract_from
from .methods.reflexion import CriticLoop, reflect
from .methods.voting import ensemble, poll
from .parameters import MODEL, ROLES, SUBTASK, TASK, TEXT, WANTED, WORK, arguments
from .prompts import block
from .record import write_record

WARM = 0.5
"""The temperature of MAS-Orchestra's agents."""
SAMPLES, ROUNDS, PATHS = 5, 5, 4
"""Samples of self-consistency, rounds of debate and reflexion (MAS-Orchestra), paths of an ensemble (ParaManager)."""
SERVERS_OWN = Sampling()
ONE_STEP, MANY_STEPS = 300.0, 900.0
"""Seconds for one request or several at once, and for several one after another."""


def _at_least(name: str, parameter: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SpecError(f"{name}: {parameter}={value!r}; expected a whole number of at least {least}")


@agent(input_schema=TASK, cost=Cost(units=1), timeout=ONE_STEP, retry_safe=True, models=("default",))
async def cot(subtask: str = "", model: str = "", *, ctx: Context) -> str:
    """Solve a task step by step with one model (chain of thought). Cheap; for tasks that one careful pass can solve."""
    task, solver = task_of(ctx, subtask), choose(ctx, model)
    return str(await solver.solve_once(conversation(prompts.STEPS, task), Sampling(temperature=WARM)))


def self_consistency_agent(samples: int = SAMPLES, temperature: float = WARM) -> AgentSpec:
    """A `self_consistency` with other parameters; it costs one unit a sample.

    Args:
        samples: how many solutions are asked for at once, at least 2.

    Raises:
        SpecError: a parameter out of range.
    """
    _at_least("self_consistency", "samples", samples, 2)
    sampling = Sampling(temperature=temperature)

    @agent(input_schema=TASK, cost=Cost(units=samples), timeout=ONE_STEP, retry_safe=True, models=("default",))
    async def self_consistency(subtask: str = "", model: str = "", *, ctx: Context) -> str:
        """Solve a task several times independently and take the answer that most solutions agree on.
        For tasks with one short answer, such as a number or a choice, where a single pass is often wrong.
        """
        messages = conversation(prompts.STEPS, task_of(ctx, subtask))
        result = await poll(choose(ctx, model), [messages] * samples, sampling)
        return str(result.chosen())

    return self_consistency


def debate_agent(rounds: int = ROUNDS, temperature: float = WARM, units: float = 7) -> AgentSpec:
    """A `debate` with other parameters.

    Args:
        rounds: how often each role speaks, at least 1.
        units: what one debate costs, whatever the number of roles.

    Raises:
        SpecError: a parameter out of range.
    """
    _at_least("debate", "rounds", rounds, 1)
    sampling = Sampling(temperature=temperature)

    @agent(
        input_schema=arguments("roles", roles=ROLES, subtask=SUBTASK, model=MODEL),
        cost=Cost(units=units),
        timeout=MANY_STEPS,
        retry_safe=True,
        models=("default", "moderator"),
    )
    async def debate(roles: list[str], subtask: str = "", model: str = "", *, ctx: Context) -> str:
        """Let several roles solve a task, see each other's solutions and revise theirs; then a moderator decides.
        Expensive and slow; for tasks on which points of view differ, or where mistakes must be found by argument.
        """
        solver, moderator = choose(ctx, model), choose(ctx, model, role="moderator")
        return str(await hold_debate(solver, moderator, task_of(ctx, subtask), roles, rounds, sampling))

    return debate


def reflexion_agent(rounds: int = ROUNDS, temperature: float = WARM, units: float = 2) -> AgentSpec:
    """A `reflexion` with other parameters.

    Args:
        rounds: how often a critic may send the solution back, at least 1.
        units: what one call costs, however early it stops.

    Raises:
        SpecError: a parameter out of range.
    """
    _at_least("reflexion", "rounds", rounds, 1)
    sampling = Sampling(temperature=temperature)

    @agent(input_schema=TASK, cost=Cost(units=units), timeout=MANY_STEPS, retry_safe=True, models=("default", "critic"))
    async def reflexion(subtask: str = "", model: str = "", *, ctx: Context) -> str:
        """Solve a task, have the solution criticised, and solve it again until the critic is certain.
        Slow; for hard tasks in which a mistake can be found by checking.
        """
        task, solver = task_of(ctx, subtask), choose(ctx, model)
        loop = CriticLoop(conversation(prompts.STEPS, task))
        return str(await reflect(solver, choose(ctx, model, role="critic"), task, loop, rounds, sampling))

    return reflexion


@agent(input_schema=TASK, cost=Cost(units=1), timeout=ONE_STEP, retry_safe=True, models=("default",))
async def standard_reasoner(subtask: str = "", model: str = "", *, ctx: Context) -> str:
    """Solve a task by reasoning alone, without tools: logic, mathematics, planning. One request."""
    task, solver = task_of(ctx, subtask), choose(ctx, model)
    return str(await solver.solve_once(conversation(prompts.STANDARD, task), SERVERS_OWN))


@agent(
    input_schema=arguments(subtask=WORK, model=MODEL),
    cost=Cost(units=1),
    timeout=ONE_STEP,
    retry_safe=True,
    models=("default",),
)
async def critical_reviewer(subtask: str = "", model: str = "", *, ctx: Context) -> str:
    """Look for mistakes in the work so far: wrong steps, numbers, facts, calls. It sees the run's whole record."""
    task, solver = task_of(ctx, subtask), choose(ctx, model)
    record = write_record(ctx)
    text = "\n".join(([block("record", record)] if record else []) + [block("task", task)])
    # A review is a text of its own, with no value to look for.
    return str(await solver.solve_once(conversation(prompts.REVIEWER, text), SERVERS_OWN, free=True))


def ensemble_agent(paths: int = PATHS, temperature: float | None = None) -> AgentSpec:
    """An `ensemble_solver` with other parameters; it costs one unit a path.

    Args:
        paths: how many solutions are asked for at once, each by an approach of its own, at least 2.

    Raises:
        SpecError: a parameter out of range.
    """
    _at_least("ensemble_solver", "paths", paths, 2)
    sampling = Sampling(temperature=temperature)

    @agent(
        input_schema=arguments(model=MODEL),
        cost=Cost(units=paths),
        # A tie takes a second request after the first ones.
        timeout=ONE_STEP * 2,
        retry_safe=True,
        models=("default",),
    )
    async def ensemble_solver(model: str = "", *, ctx: Context) -> str:
        """Solve the run's original question along several independent paths and join the results into one answer."""
        question, solver = question_of(ctx), choose(ctx, model)
        approaches = [prompts.APPROACHES[n % len(prompts.APPROACHES)] for n in range(paths)]
        requests = [conversation(f"{prompts.STANDARD}\n{approach}", question) for approach in approaches]
        return str(await ensemble(solver, question, requests, sampling))

    return ensemble_solver


@agent(
    input_schema=arguments(model=MODEL), cost=Cost(units=1), timeout=ONE_STEP, retry_safe=True, models=("summariser",)
)
async def conclude(model: str = "", *, ctx: Context) -> str:
    """Draw the answer to the run's question from everything found so far. It sees the record; it ends nothing."""
    question, solver = question_of(ctx), choose(ctx, model, role="summariser")
    record = write_record(ctx)
    text = "\n".join(([block("record", record)] if record else []) + [block("question", question)])
    solution = await solver.solve_once(conversation(prompts.CONCLUDE, text), SERVERS_OWN)
    return str(solution if record else solution.noting("nothing was found before; this rests on the question alone"))


@agent(
    input_schema=arguments("text", text=TEXT, wanted=WANTED, model=MODEL),
    cost=Cost(units=1),
    timeout=ONE_STEP,
    retry_safe=True,
    models=("default",),
)
async def extract(text: str, wanted: str = "", model: str = "", *, ctx: Context) -> str:
    """Take one value out of a long text, with the passage that states it; says so if the text does not state it."""
    wanted = wanted.strip() or f"the answer to this question: {task_of(ctx, '', 'wanted')}"
    return str(await extract_from(choose(ctx, model), text, wanted))


final_answer = conclude.with_(name="final_answer")
"""`conclude` under the paper's name, for strategies that want an agent of that name. It is not published: a member
called `final_answer` would clash with the call that ends a run of `ParallelRounds`, which refuses such a pool."""

self_consistency = self_consistency_agent()
debate = debate_agent()
reflexion = reflexion_agent()
ensemble_solver = ensemble_agent()

AGENTS: tuple[AgentSpec, ...] = (
    cot,
    self_consistency,
    debate,
    reflexion,
    standard_reasoner,
    critical_reviewer,
    ensemble_solver,
    conclude,
    extract,
)
"""What the distribution publishes, beside the agents of a file."""

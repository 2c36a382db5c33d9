"""Generate questions, check their answers from the text, and grade three solvers."""

from concertino_bench.masbench import check, generate, grade, make_task, measure

task = make_task("depth", 3, index=0, seed=7, rules=False)
print(task.question)
print(task.answers, f"depth {measure(task.question).depth}")

report = check(generate("robustness", 4, 50, seed=7))
print(f"{report.agreed} of {report.rows} answers agree with their text")

(two,) = generate("parallel", 2, 1, seed=7)
for text in (
    f"\\boxed{{{two.answers[0]}}} \\boxed{{{two.answers[1]}}}",
    f"\\boxed{{{two.answers[0]}}}",
    "I do not know.",
):
    graded = grade(two, text)
    print(f"{graded.verdict}: {graded.reason}")

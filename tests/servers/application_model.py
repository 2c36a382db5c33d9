"""Make the tiny model of the application page: it has the name that the few lines ask for, and knows by heart what
a leading model says to them. So the lines run as written on a real server, with OPENAI_BASE_URL alone.

    python tests/servers/application_model.py FOLDER

makes the model in FOLDER. It is taught as `tiny_model` teaches, with another script, and then its logits are scaled:
servers sample as they like where a request does not say how, and a scaled model says the same at any temperature.
`model` does so once for the tree and keeps the result.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import script
import tiny_model
from environment import VENV, exclusive
from launch import _SETTINGS, NotReady, _require
from script import Exchange, call, user
from servers import PLACES

NAME = "gpt-5.4-mini"
SHARPER = 200.0
"""What the logits are multiplied by: the least margin of 0.2 becomes 40."""

Json = script.Json
END = call("final_answer", {})


def _seen(*statuses: str) -> Json:
    """The results of a round, as an orchestrator shows them; their wording does not matter to the model."""
    shown = "\n".join(f'<tool_response>\n{{"status": "{status}"}}\n</tool_response>' for status in statuses)
    return user(shown)


def _said(text: str) -> Json:
    return {"role": "assistant", "content": text}


def _rounds(question: str, *replies: str, answer: str, failed: bool = False) -> list[Exchange]:
    """A run in rounds: replies with calls, the call that ends it, and the answer."""
    messages, exchanges = [user(question)], []
    for number, reply in enumerate((*replies, END)):
        exchanges.append(Exchange(f"{question}-{number}", list(messages), reply))
        messages += [_said(reply), _seen("EXEC_ERR" if failed else "OK")]
    asked = user("Write the final answer to the question now, between <answer> and </answer>.")
    exchanges.append(Exchange(f"{question}-answer", [*messages[:-1], asked], f"<answer>{answer}</answer>"))
    return exchanges


WRONG = '{"city": "Oslo", "celsius": "two"}'
CORRECTED = (
    "Question:\nAnd tomorrow?\n\nAnswer:\n" + WRONG + "\n\nWhat is wrong with it: /celsius\n\nWrite the JSON value now."
)
EXCHANGES = (
    *_rounds(
        "How warm is it there?",
        call("place", {}),
        call("thermometer", {"city": "Oslo"}),
        answer='{"city": "Oslo", "celsius": 4.5}',
    ),
    *_rounds("And tomorrow?", call("thermometer", {"city": "Oslo", "day": "tomorrow"}), answer=WRONG),
    Exchange("corrected", [user(CORRECTED)], '{"city": "Oslo", "celsius": 2.0}'),
    Exchange("this", [user("What is this?")], '<answer>{"city": "a cat", "celsius": 38.5}</answer>'),
    *_rounds(
        "Pay 30, then 300.",
        call("pay", {"amount": 30}) + "\n" + call("pay", {"amount": 300}),
        answer="30 is paid, 300 is not.",
        failed=True,
    ),
    Exchange("data", [user("Give the weather as data.")], '{"city": "Oslo", "celsius": 4.5}'),
    Exchange("list", [user("Give two cities.")], '["Oslo", "Rome"]'),
    Exchange("broken", [user("Give it without the degrees.")], '{"city": "Oslo"}'),
)
"""What the model says. The answer for tomorrow is of a wrong type, and is asked for again."""


def model() -> Path:
    """The folder of the model, made once for the tree and kept.

    Raises:
        Absent: torch or transformers is not in `.venv`.
        NotReady: it could not be made; the message has the reason.
    """
    here = Path(__file__).parent
    sources = ("application_model.py", "template.jinja", "tiny_model.py")
    key = hashlib.sha256(b"".join((here / source).read_bytes() for source in sources)).hexdigest()[:16]
    folder = PLACES / "models" / f"application-{key}"
    if not folder.is_dir():
        _require("torch", "transformers")
        with exclusive("application-model"):
            if not folder.is_dir():  # other tests may have made it meanwhile
                folder.parent.mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
                    _make_in_a_process(Path(temporary, "all", NAME))
                    Path(temporary, "all").rename(folder)
    return folder / NAME


def _make_in_a_process(folder: Path) -> None:
    """Make it in a process of its own: torch stays out of this one, and so does the other script."""
    command = [str(VENV / "bin" / "python"), __file__, str(folder)]
    path = os.pathsep.join(each for each in sys.path if each)
    done = subprocess.run(
        command, env={**os.environ, **_SETTINGS, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise NotReady(f"the model of the application was not made; {command} ended with:\n{done.stderr[-2000:]}")


def _lost_behind_long_prompts(trainer: tiny_model.Trainer) -> Iterator[str]:
    """What the model no longer says behind as much text as an orchestrator's prompt and history have."""
    import torch

    tokens = [token for row in trainer.rows for token in row.head + row.cue + row.reply]
    long = [trainer.rng.choices(tokens, k=length) for length in (1200, 1800, 2400)]
    long.append((tokens * 9)[-2200:])
    for row in trainer.rows:
        for head in long:
            with torch.no_grad():
                logits = trainer.model(input_ids=torch.tensor([head + row.cue + row.reply])).logits[0]
            if logits[-len(row.reply) - 1 : -1].argmax(-1).tolist() != row.reply:
                yield f"{row.name}: another reply behind {len(head)} tokens"


def make(folder: Path) -> None:
    """Teach the model and write it.

    Raises:
        NotExact: no seed gave a model that knows the script.
    """
    script.SCRIPT = EXCHANGES
    tokenizer = tiny_model.make_tokenizer()
    for seed in (1, 2, 3, 4):
        trainer = tiny_model.Trainer(tokenizer, seed)
        trainer.train(450, 6e-3, {})
        if not (differences := [*trainer.differences({}), *_lost_behind_long_prompts(trainer)]):
            break
        sys.stderr.write(f"seed {seed}: {len(differences)} differences, the first {differences[0]}\n")
    else:
        raise tiny_model.NotExact("\n".join(differences))
    trainer.model.model.norm.weight.data *= SHARPER
    trainer.model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]))

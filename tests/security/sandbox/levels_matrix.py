"""Every attack at every level of the sandbox, as root and as an ordinary user: what was reached, and the page's tables.

    python tests/security/sandbox/levels_matrix.py            runs all of it (about five minutes), and prints the table
    python tests/security/sandbox/levels_matrix.py --write    writes the tables of the page, without running anything

Invariant: the tables of the page come from the attacks and from `KNOWN_GAPS`, and the tests let a level reach nothing
that they do not show.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
CODE_TESTS = ROOT / "providers" / "code" / "tests"
sys.path[:0] = [str(Path(__file__).parent), str(CODE_TESTS)]

from attacks import ATTACKS  # noqa: E402
from docker_engine import Unavailable, docker_engine  # noqa: E402
from known_gaps import KNOWN_GAPS  # noqa: E402

LEVELS = tuple(KNOWN_GAPS)
USERS = ("root", "ordinary")
PAGE = ROOT / "docs" / "explanation" / "sandbox-levels.md"
BEGIN, END = "<!-- attacks: begin -->\n", "<!-- attacks: end -->"
# A lack of the machine. Any other refusal of a level is a fault.
_LACKS = ("landlock: ABI", "bwrap is not installed", "unshare", "uid_map")
_SECONDS = 240


class Cell(NamedTuple):
    """One level as one user.

    Attributes:
        lacking: why it could not be run here; empty if it was.
        achieved: what each attack reached, by name.
    """

    lacking: str
    achieved: dict[str, list[str]]


@functools.cache
def measure(level: str, user: str) -> Cell:
    """Run all attacks; once per process for each cell."""
    if user == "root" and os.getuid() != 0:
        return Cell("the tests run as an ordinary user", {})
    if level == "bubblewrap" and not (os.environ.get("CONCERTINO_CODE_BWRAP") or shutil.which("bwrap")):
        return Cell("bwrap is not installed (apt install bubblewrap)", {})
    if level != "docker":
        return _run(level, user, {})
    try:
        with docker_engine() as engine:
            Path(engine.socket).parent.chmod(0o755)
            Path(engine.socket).chmod(0o666)
            there = {"DOCKER_HOST": f"unix://{engine.socket}", "CONCERTINO_CODE_IMAGE": engine.image}
            return _run(level, user, there)
    except Unavailable as error:
        return Cell(str(error), {})


def _run(level: str, user: str, environment: dict[str, str]) -> Cell:
    command = [sys.executable, str(CODE_TESTS / "attack_cell.py"), user, level, "1"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS, env={**os.environ, **environment}, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{level} as {user}: {done.stderr[-2000:]}")
    result = json.loads(done.stdout)
    if result["refused"] and any(lack in result["refused"] for lack in _LACKS):
        return Cell(result["refused"], {})
    return Cell("", {"self-test": [result["refused"]]} if result["refused"] else result["achieved"])


def tables() -> str:
    """The tables of the page: what is held by class of attack, and what is not, with the reason."""
    kinds = Counter(attack.kind for attack in ATTACKS)
    own = {attack.name for attack in ATTACKS}
    lines = [
        f"| Attack | Scripts | {' | '.join(f'`{level}`' for level in LEVELS)} |",
        "|---|---|" + "---|" * len(LEVELS),
    ]
    for kind, count in sorted(kinds.items()):
        reached = [
            sum(attack.kind == kind and attack.name in KNOWN_GAPS[level] for attack in ATTACKS) for level in LEVELS
        ]
        words = ["all held" if not number else f"all but {number}" for number in reached]
        lines.append(f"| {kind} | {count} | {' | '.join(words)} |")
    totals = [len(ATTACKS) - len(KNOWN_GAPS[level].keys() & own) for level in LEVELS]
    lines += [f"| together | {len(ATTACKS)} | {' | '.join(map(str, totals))} |", ""]
    lines += ["| Level | Not held, by design | Attacks |", "|---|---|---|"]
    for level in LEVELS:
        reasons: dict[str, list[str]] = {}
        for name, reason in KNOWN_GAPS[level].items():
            if name in own:
                reasons.setdefault(reason, []).append(name.removeprefix("own_"))
        for reason, names in reasons.items():
            lines.append(f"| `{level}` | {reason} | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join(lines) + "\n"


def written_page() -> str:
    """The page with the tables of today."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    """Print what was reached, cell by cell; or write the page."""
    if "--write" in sys.argv:
        PAGE.write_text(written_page(), encoding="utf-8")
        return
    sys.stdout.write("| Level | User | Held | Not held |\n|---|---|---|---|\n")
    for level in LEVELS:
        for user in USERS:
            cell = measure(level, user)
            names = ", ".join(sorted(cell.achieved))
            held = cell.lacking or f"{len(ATTACKS) - len(cell.achieved)} of {len(ATTACKS)}"
            sys.stdout.write(f"| {level} | {user} | {held} | {names} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()

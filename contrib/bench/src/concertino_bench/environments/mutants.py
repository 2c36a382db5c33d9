"""Mutants of a reference program: copies with one small fault, by which the tests of a tester are measured.

The invariant: a mutant differs from the program in exactly one place of its syntax tree. Some mutants behave as the
program does all the same; a caller that counts must leave those out.
"""

from __future__ import annotations

import ast

_MOST = 10
"""Mutants of one program, spread over its places."""

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Mod: ast.FloorDiv,
    ast.FloorDiv: ast.Mod,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}
_NAMED = {"max": "min", "min": "max", "sum": "len", "sorted": "list", "abs": "int", "set": "list", "len": "max"}


def mutants(program: str) -> list[str]:
    """Up to ten mutants of a program.

    Raises:
        SyntaxError: it is not a program.
    """
    places = sum(1 for node in ast.walk(ast.parse(program)) if _mutated(node) is not None)
    # Evenly spread: `ast.walk` gives the outermost places first, and ten of them would leave the expressions out.
    chosen = sorted({round(number * (places - 1) / (_MOST - 1)) for number in range(_MOST)}) if places else []
    found = []
    for wanted in chosen:
        # Parsed again for each mutant, because the change is made in place.
        tree = ast.parse(program)
        place = -1
        for node in ast.walk(tree):
            change = _mutated(node)
            if change is not None:
                place += 1
                if place == wanted:
                    name, value = change
                    setattr(node, name, value)
                    break
        found.append(ast.unparse(tree) + "\n")
    return found


def _mutated(node: ast.AST) -> tuple[str, object] | None:
    """Which field of a node gets which other value; None if it has no mutant."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        return "ops", [_COMPARED[type(node.ops[0])](), *node.ops[1:]]
    if isinstance(node, ast.BinOp) and type(node.op) in _COUNTED:
        return "op", _COUNTED[type(node.op)]()
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return "value", node.value + 1
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in _NAMED:
        return "id", _NAMED[node.id]
    return None

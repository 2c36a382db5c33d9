"""Foreign text is quoted where it could be misread, reads back, and is left alone everywhere else."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import concertino
import pytest
from concertino.text import Quoting, break_control_tokens, is_control_token, quote_data, quote_foreign, quoting
from concertino.text.control_tokens import FAMILIES, WRITTEN_BY_STRATEGIES
from hypothesis import example, given
from hypothesis import strategies as st
from linear import assert_linear

TOKENS = sorted({token for tokens in FAMILIES.values() for token in tokens})
PIECES = [*TOKENS, "<", "|", "\\", "\n", "Outcome:", "Turn 3", "</answer>", "a[1]", "x"]
LINES = quoting((), ("outcome:", r"turn \d"))
ORDINARY = (
    "def f(a: list[int]) -> dict[str, int]:\n    return {k: v for k, v in a[1:] if k <b or c> d}\n",
    "let y = x <| f |> g; z <$> w <|> v <|>\n",
    "# Head\n\n- [x] done\n- [link](https://example.org/think)\n```python\nprint('<a>')\n```\n| a | b |\n|---|---|\n",
    '<html><body class="x"><p>1 &lt; 2</p><br/><input type="text"></body></html>',
    "<note><to>A</to><from>B</from><message>hi</message><plan/><agent/></note>",
    '{"a": [1, 2, [3]], "b": "<b>bold</b>", "c": null}',
    "if a[0]<s or b>s: x = [ARGS_OF]; y = [Args]; [args]; <str>; <S3>",
    "He wrote: the outcome: fine. In turn 3 of the game, think/act. /thinking /usr/share/think",
    "SELECT a FROM t WHERE x <> y AND z[1] = '|' || '>'",
)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_stays_byte_for_byte(text: str) -> None:
    assert quote_foreign(text) == break_control_tokens(text) == LINES.text(text) == text
    encoded = json.dumps(text, ensure_ascii=False)
    assert Quoting().json(encoded) == encoded


def test_the_source_of_this_sdk_stays_byte_for_byte_but_where_it_speaks_of_marks() -> None:
    files = sorted(Path(concertino.__file__).parent.rglob("*.py"))
    changed = [file.name for file in files if break_control_tokens(text := file.read_text("utf-8")) != text]
    assert len(files) > 200
    # A usage line of click and four modules that name tokens.
    speaking = {"control_tokens.py", "foreign_text.py", "hostile_texts.py", "tool_calls.py", "group.py"}
    assert set(changed) <= speaking


@pytest.mark.parametrize("token", TOKENS)
def test_a_control_token_is_broken_by_one_backslash_behind_its_first_character(token: str) -> None:
    assert quote_foreign(token) == f"{token[0]}\\{token[1:]}"
    if token not in WRITTEN_BY_STRATEGIES:
        assert break_control_tokens(token) == quote_foreign(token)
        assert is_control_token(token)


@pytest.mark.parametrize("token", sorted(WRITTEN_BY_STRATEGIES))
def test_at_the_door_of_a_server_a_tag_of_a_strategy_stays(token: str) -> None:
    assert break_control_tokens(token) == token
    assert not is_control_token(token)


@pytest.mark.parametrize(
    "token", ["<|brand_new_7|>", "<｜neu▁9｜>", "<|later>", "<later|>", "＜|im_end|>", "[|human|]"]
)
def test_a_token_that_is_in_no_list_is_broken_by_its_shape(token: str) -> None:
    assert quote_foreign(token) != token


marked = st.lists(
    st.sampled_from([*TOKENS, *ORDINARY, "<", "|", "\\", "\n", "Outcome:", "Turn 3", "</answer>"]), max_size=6
)


@given(marked.map("".join))
@example("/nothink/nothink")
def test_quoting_only_inserts_backslashes_and_twice_is_once(text: str) -> None:
    for quote in (quote_foreign, break_control_tokens, LINES.text):
        once = quote(text)
        assert quote(once) == once
        kept = iter(once)
        assert all(character in kept for character in text)
        assert len(once) - len(text) == once.count("\\") - text.count("\\")


@given(marked.map("".join) | st.text())
def test_in_json_a_quoted_text_reads_back_as_it_was_and_takes_one_line(text: str) -> None:
    shown = LINES.json(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(shown) == {text: [text]}
    assert len(shown.splitlines()) == 1
    assert not any(token in shown for token in TOKENS if not token.startswith("/"))


BREAKS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")
BLANKS = ("", " ", "\t", "\u00a0", "\u3000", "\u200b", "\ufeff", "\u202e", "\u2003 ")


@pytest.mark.parametrize("blank", BLANKS, ids=ascii)
@pytest.mark.parametrize("line_break", BREAKS, ids=ascii)
def test_a_mark_at_the_begin_of_a_line_is_broken_after_any_break_and_blank(line_break: str, blank: str) -> None:
    assert LINES.text(f"a{line_break}{blank}oUTCOME: x") == f"a{line_break}{blank}\\oUTCOME: x"
    assert LINES.text(f"{blank}Turn 3") == f"{blank}\\Turn 3"


def test_data_is_quoted_at_every_depth_and_left_as_it_is_where_nothing_is() -> None:
    clean = {"a": ["b", {"c": (1, None)}]}
    assert quote_data(clean) is clean
    assert quote_data({"<s>": ["x", {"k": ("</think>",)}]}) == {"<\\s>": ["x", {"k": ["<\\/think>"]}]}


@pytest.mark.parametrize("piece", ["\n", " \n", "<|", "<", "[", "<|a", "[… 1", "\n ", "]<]", "/think", "<<", "Turn \n"])
def test_hostile_texts_are_quoted_in_linear_time(piece: str) -> None:
    text = piece * (300_000 // len(piece))
    assert_linear(lambda: LINES.text(text), len(text))


def test_every_list_of_tokens_names_where_it_comes_from() -> None:
    source = Path(concertino.__file__).parent / "text" / "control_tokens.py"
    text = source.read_text("utf-8")
    assert isinstance(ast.parse(text), ast.Module)
    for family in FAMILIES:
        assert re.search(rf'# .+\n    "{family}": ', text), family

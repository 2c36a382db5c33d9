"""Chat templates of strangers: each that would take too long, or too much memory, ends in one sentence."""

# ruff: noqa: E501 - templates of one line

from __future__ import annotations

import importlib.util
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from concertino import UsageError

pytest.importorskip("jinja2")
transformers_utils = pytest.importorskip("transformers.utils.chat_template_utils")

from concertino_local.codec import bounded_template  # noqa: E402
from concertino_local.codec.bounded_template import TEMPLATE_CHARS, BoundedTemplate, TemplateTooCostly  # noqa: E402

TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What is 2 + 3?"},
    {
        "role": "assistant",
        "content": "",
        "reasoning_content": "I add.",
        "tool_calls": [
            {"type": "function", "id": "c1", "function": {"name": "add", "arguments": {"a": 2, "b": [3, {"c": "é"}]}}}
        ],
    },
    {"role": "tool", "content": "5", "tool_call_id": "c1", "name": "add"},
    {"role": "assistant", "content": "It is 5."},
    {"role": "user", "content": "Thanks."},
]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds.",
            "parameters": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
        },
    }
]
BIG = "{% set s = 'a' * 900000 %}"

ATTACKS = {
    "nested ranges": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "nested ranges that write": "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
    "ranges with a condition": "{% for a in range(99999) %}{% for b in range(99999) if b < 0 %}{% endfor %}{% endfor %}",
    "many plain passes": "{% for a in range(99999) %}{% for b in range(99999) if false %}{% endfor %}{% endfor %}",
    "a macro of loops": (
        "{% macro m() %}{% for a in range(9999) %}{% endfor %}{% endmacro %}{% for b in range(99999) %}{{ m() }}{% endfor %}"
    ),
    "a recursive loop": (
        "{% set l = range(3000)|list %}{% for a in l recursive %}{% if loop.depth < 5 %}{{ loop(l) }}{% endif %}{% endfor %}"
    ),
    "endless recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "recursion that branches": "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "a text times a number": "{{ 'a' * 10000000000 }}",
    "a number times a text": "{{ 10000000000 * 'a' }}",
    "a list times a number": "{% set l = [1] * 10000000000 %}",
    "a text of a constant": "{% set s = 'abc' * (10 ** 12) %}",
    "doubling by ~": "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "doubling by +": "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "doubling a list": "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "doubling by set blocks": (
        "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set x %}{{ n.s }}{{ n.s }}{% endset %}"
        "{% set n.s = x %}{% endfor %}"
    ),
    "doubling by replace": (
        "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s|replace('a', 'aa') %}{% endfor %}"
    ),
    "doubling by the method replace": (
        "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s.replace('a', 'aa') %}{% endfor %}"
    ),
    "doubling by join": (
        "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = [n.s, n.s]|join %}{% endfor %}"
    ),
    "doubling by the method join": (
        "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s.join(['a', 'a', 'a']) %}{% endfor %}"
    ),
    "doubling by format": (
        "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = '%s%s' % (n.s, n.s) %}{% endfor %}"
    ),
    "doubling by the method format": (
        "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = '{0}{0}'.format(n.s) %}{% endfor %}"
    ),
    "doubling by the filter format": (
        "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = '%s%s'|format(n.s, n.s) %}{% endfor %}"
    ),
    "a list in lists, written": (
        "{% set n = namespace(l=['a']) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}"
    ),
    "a list in lists, as JSON": (
        "{% set n = namespace(l=['a']) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l|tojson }}"
    ),
    "a list in lists, joined": (
        "{% set n = namespace(l=['a']) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l|join }}"
    ),
    "a list in lists, as a text": (
        "{% set n = namespace(l=['a']) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l|string }}"
    ),
    "lists in lists, compared": (
        "{% set n = namespace(l=['a'], m=['a']) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}"
        "{% set n.m = [n.m, n.m] %}{% endfor %}{{ n.l == n.m }}"
    ),
    "lists in lists, compared by a test": (
        "{% set n = namespace(l=['a'], m=['a']) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}"
        "{% set n.m = [n.m, n.m] %}{% endfor %}{{ n.l is eq n.m }}"
    ),
    "a tuple in tuples, hashed": (
        "{% set n = namespace(l=('a',)) %}{% for i in range(60) %}{% set n.l = (n.l, n.l) %}{% endfor %}{{ {n.l: 1} }}"
    ),
    "a tuple in tuples, looked up": (
        "{% set n = namespace(l=('a',)) %}{% for i in range(60) %}{% set n.l = (n.l, n.l) %}{% endfor %}{{ {'a': 1}[n.l] }}"
    ),
    "a tuple in tuples, asked for": (
        "{% set n = namespace(l=('a',)) %}{% for i in range(60) %}{% set n.l = (n.l, n.l) %}{% endfor %}{{ {}.get(n.l) }}"
    ),
    "lists in lists, sorted": (
        "{% set n = namespace(l=['a'], m=['a']) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}"
        "{% set n.m = [n.m, n.m] %}{% endfor %}{{ [n.l, n.m]|sort|length }}"
    ),
    "a large text in a list, joined": BIG + "{{ ([s] * 10000)|join }}",
    "a large text between, joined": BIG + "{{ range(9999)|join(s) }}",
    "a large text, mapped": BIG + "{% for t in ([s] * 1000)|map('upper') %}{% endfor %}",
    "slices of a large text, kept": (
        BIG + "{% set n = namespace(l=[]) %}{% for i in range(999) %}{% set n.l = n.l + [s[i:]] %}{% endfor %}"
    ),
    "a large text, split": BIG + "{% set l = s.split('a') %}",
    "a large text, as a list": BIG + "{% set l = s|list %}",
    "a large text, compared": (
        BIG + "{% set t = s[:-1] ~ 'b' %}{% for i in range(99999) %}{% if s in t %}{% endif %}{% endfor %}"
    ),
    "a large text, counted": BIG + "{% for i in range(99999) %}{% if s.count('ab') %}{% endif %}{% endfor %}",
    "a large text, written again and again": BIG + "{% for i in range(999) %}{{ s }}{% endfor %}",
    "a width of format": "{{ '%1000000000d' % 1 }}",
    "a width that is a value": "{{ '%*d' % (1000000000, 1) }}",
    "a precision of format": "{{ '%.1000000000f' % 1.0 }}",
    "a width of the filter format": "{{ '%1000000000d'|format(1) }}",
    "a width of the method format": "{{ '{:1000000000}'.format(1) }}",
    "a width of the method format, a value": "{{ '{:{}}'.format(1, 1000000000) }}",
    "a width of the method format_map": "{{ '{a:1000000000}'.format_map({'a': 1}) }}",
    "a width of strftime": "{{ strftime_now('%1000000000d') }}",
    "a width of center": "{{ 'a'|center(10000000000) }}",
    "a width of ljust": "{{ 'a'.ljust(10000000000) }}",
    "a width of zfill": "{{ 'a'.zfill(10000000000) }}",
    "a width of tabs": "{{ '\t'.expandtabs(10000000000) }}",
    "a width of indent": "{{ 'a\nb'|indent(10000000000) }}",
    "a text of indent": "{% set w = 'a' * 99999 %}{{ ('a\n' * 99999)|indent(w) }}",
    "an indent of JSON": "{{ [1]|tojson(indent=10000000000) }}",
    "many slices": "{{ [1]|slice(10000000000)|list }}",
    "a power": "{{ (9 ** 9999999) > 1 }}",
    "a product that grows": (
        "{% set n = namespace(s=3) %}{% for i in range(99) %}{% set n.s = n.s * n.s %}{% endfor %}"
    ),
    "a sum of lists": "{% set l = [[1] * 999] * 9999 %}{{ l|sum(start=[])|length }}",
    "a translation": "{{ ('a' * 99999).translate({97: 'b' * 99999}) }}",
    "filler text": "{{ lipsum(n=1000000) }}",
    "a template of a megabyte": "a" * 1_000_000,
    "brackets without an end": "{{ " + "(" * 50_000 + " }}",
    "blocks in blocks": "{% if 1 %}" * 5_000,
    "a generation block that doubles": (
        "{% set n = namespace(s='a') %}{% for i in range(99) %}{% set x %}{% generation %}{{ n.s ~ n.s }}"
        "{% endgeneration %}{% endset %}{% set n.s = x %}{% endfor %}"
    ),
}


@pytest.fixture(autouse=True)
def fewer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that each test is quick; `test_the_limit_of_an_installation` has the real limit."""
    monkeypatch.setattr(bounded_template, "STEPS", 200_000)
    monkeypatch.setattr(bounded_template, "CHARS", 2**21)


@pytest.mark.slow
def test_the_limit_of_an_installation_is_reached_in_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    began = time.thread_time()
    with pytest.raises(TemplateTooCostly, match="more than 2,000,000 steps"):
        BoundedTemplate(ATTACKS["nested ranges"]).render(TALK)
    assert time.thread_time() - began < 30


@pytest.mark.parametrize("name", ATTACKS)
def test_a_template_that_costs_too_much_ends_in_bounded_time_and_memory(name: str) -> None:
    began, before = time.thread_time(), memory()
    with pytest.raises(Exception) as caught:
        BoundedTemplate(ATTACKS[name]).render(TALK, tools=TOOLS)
    assert not isinstance(caught.value, MemoryError)
    # Without the limits these take gigabytes, or minutes, or never end.
    assert time.thread_time() - began < 30
    assert memory() - before < 300 * 2**20


def memory() -> int:
    """Bytes that this process has taken at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


PROTECTED = [
    *("nested ranges", "a macro of loops", "a recursive loop", "a text times a number", "doubling by ~"),
    *("doubling by +", "doubling by replace", "a list in lists, written", "lists in lists, compared"),
    *("a tuple in tuples, hashed", "a width of format", "a width of center", "a power", "a large text, split"),
    *("a template of a megabyte", "a large text, compared", "doubling by set blocks", "many slices"),
]


@pytest.mark.parametrize("name", PROTECTED)
def test_the_limit_is_what_ends_it(name: str) -> None:
    with pytest.raises(TemplateTooCostly, match=r"^it (takes|makes|gives|formats|computes|has) "):
        BoundedTemplate(ATTACKS[name]).render(TALK, tools=TOOLS)


@pytest.mark.parametrize("name", ["nested ranges", "a text times a number", "endless recursion"])
def test_the_next_rendering_has_its_limits_anew(name: str) -> None:
    template = BoundedTemplate("{% if tools %}" + ATTACKS[name] + "{% endif %}{{ messages[1].content }}")
    with pytest.raises(Exception):  # noqa: B017 - see above
        template.render(TALK, tools=TOOLS)
    assert template.render(TALK) == "What is 2 + 3?"


@pytest.mark.parametrize(
    "text",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ ''.__class__ }}",
        "{{ namespace(__init__=1) }}",
        "{{ messages.append(1) }}",
        "{{ dict.__call__.__globals__ }}",
        "{{ raise_exception.__globals__ }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ self._TemplateReference__context.environment }}",
        "{{ environment }}",
    ],
)
def test_nothing_leads_out_of_the_sandbox(text: str) -> None:
    try:
        found = BoundedTemplate(text).render(TALK)
    except Exception as error:
        found = str(error)
    assert "<class" not in found
    assert "_Environment" not in found
    assert "0x" not in found


def test_a_codec_says_it_in_one_sentence() -> None:
    from concertino_local.codec.template import ChatTemplate

    class Tokenizer:
        special_tokens_map: dict[str, str] = {}  # noqa: RUF012 - a stand-in

    class Nothing:
        def defuse(self, value: Any) -> Any:
            return value

    vocabulary: Any = Nothing()
    template = ChatTemplate(Tokenizer(), ATTACKS["nested ranges"], {}, vocabulary)
    with pytest.raises(
        UsageError, match=r"^the chat template refused a conversation of user: it takes more than 200,000 steps$"
    ):
        template.render([{"role": "user", "content": "hi"}], opens=True)


# -- ordinary templates ------------------------------------------------------------------------------------------------


def known_templates() -> Iterator[tuple[str, str]]:
    """Those that TRL keeps, and the one that is shipped here."""
    from concertino_local.codec import template

    yield "chatml", template.shipped()
    found = importlib.util.find_spec("trl")
    if found is not None and found.origin is not None:
        for file in sorted(Path(found.origin).with_name("chat_templates").glob("*.jinja")):
            yield file.stem, file.read_text(encoding="utf-8")


KNOWN = dict(known_templates())


def as_transformers(text: str, **values: Any) -> str:
    rendered = transformers_utils.render_jinja_template(conversations=[TALK], chat_template=text, **values)
    return str(rendered[0][0])


@pytest.mark.parametrize("opens", [True, False])
@pytest.mark.parametrize("tools", [None, TOOLS], ids=["no tools", "tools"])
@pytest.mark.parametrize("name", KNOWN)
def test_a_known_template_writes_what_transformers_writes(name: str, tools: Any, opens: bool) -> None:
    values = {"tools": tools, "add_generation_prompt": opens, "bos_token": "<s>", "eos_token": "</s>"}
    try:
        expected = as_transformers(KNOWN[name], **values)
    except Exception as error:
        with pytest.raises(type(error)):
            BoundedTemplate(KNOWN[name]).render(TALK, **values)
        return
    assert BoundedTemplate(KNOWN[name]).render(TALK, **values) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{% for m in messages %}{{ loop.index }}/{{ loop.length }}{% if loop.last %}.{% endif %}{% endfor %}",
        "{% for m in messages if m.role == 'user' %}{{ loop.first }}{{ loop.nextitem }}{% else %}none{% endfor %}",
        "{% for k, v in messages[0].items() %}{{ k ~ '=' ~ v ~ 1 }}{% endfor %}{{ messages[1:]|length }}",
        "{% for m in messages %}{% if loop.index0 > 1 %}{% break %}{% endif %}{% continue %}{% endfor %}",
        "{{ messages|map(attribute='role')|join(', ') }}{{ messages|selectattr('role', 'equalto', 'tool')|list }}",
        "{{ '%s-%05d' % ('a', 3) }}{{ '{:>5}'.format('a') }}{{ 'a'|center(9) }}{{ 2 ** 10 }}{{ 'ab' * 3 }}",
        "{{ tools|tojson(indent=2) }}{{ {'a': 1, 'b': [1, none, true]} }}{{ messages[0]['content'][::-1] }}",
        "{{ undefined_name|default(131072) }}{{ '<think>a</think>b'.split('</think>')[-1].lstrip('\n') }}",
        "{{ namespace(a=1).a }}{{ dict(a=1) }}{{ 3 in [1, 2, 3] }}{{ 1 < 2 < 3 }}{{ 'é' in 'été' }}{{ (1, 2) == (1, 2) }}",
        "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ caller() if caller }}{% endmacro %}{{ m(1) }}{% call m(3) %}x{% endcall %}",
        "{% for m in [1, [2, [3]]] recursive %}{% if m is number %}{{ m }}{% else %}{{ loop(m) }}{% endif %}{% endfor %}",
        "{% generation %}{{ messages[0].content }}{% endgeneration %}  {%- set x %}a{{ 1 }}{% endset %}{{ x|upper }}",
        "{{ messages[2].tool_calls[0].function.arguments|tojson }}{{ messages[2].thinking }}{{ [3, 1, 2]|sort|join }}",
    ],
)
def test_what_templates_use_works_as_in_transformers(text: str) -> None:
    assert BoundedTemplate(text).render(TALK, tools=TOOLS) == as_transformers(text, tools=TOOLS)


def test_a_conversation_of_a_million_characters_is_rendered() -> None:
    talk = [{"role": "user" if number % 2 else "assistant", "content": "word " * 100} for number in range(2_000)]
    text = BoundedTemplate(KNOWN["chatml"]).render(talk, add_generation_prompt=True)
    assert text.count("word") == 200_000


def test_the_longest_template_that_is_run_is_longer_than_those_known() -> None:
    assert max(map(len, KNOWN.values())) * 3 < TEMPLATE_CHARS

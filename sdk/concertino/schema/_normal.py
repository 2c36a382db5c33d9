"""The normal form: every admitted schema, whatever its dialect, rewritten as a small 2020-12 schema.

Back ends see only normal schemas: assertion and applicator keywords, `$ref` only as `#/$defs/<number>`, one entry in
`$defs` per referenced sub-schema, no identifiers, no annotations (but `default` and `examples`, for generated
examples, and descriptions, which no back end reads). So dialects, anchors, percent-encoded pointers and the reach of
`$id` are dealt with once, here, and the two back ends cannot differ about them. `3.0` is thereby an integer in every
dialect, draft 4 included.

`survey` visits every sub-schema, referenced places included, checks its shape and compiles its patterns;
`normalise` then rewrites. Both rely on admission's size limits: the JSON is a tree of at most 32 levels.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from ._automaton import MAX_ALL_STEPS, Matcher
from ._faults import Path, SchemaRefused
from ._formats import FORMATS
from ._keywords import LATEST, SHAPES, TYPES, knows, shape_of, sub_schemas
from ._names import near_names
from ._patterns import PatternRefused

_REFS = ("$ref", "$dynamicRef", "$recursiveRef")
_COPIED = (
    "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum",
    "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "required", "maxProperties",
    "minProperties", "default", "examples",
)  # fmt: skip
_KEPT_SCHEMAS = (
    "properties", "patternProperties", "additionalProperties", "propertyNames", "unevaluatedProperties",
    "unevaluatedItems", "allOf", "anyOf", "oneOf", "not",
)  # fmt: skip
_NORMAL_WORDS = {
    *_COPIED, "properties", "additionalProperties", "items", "anyOf", "allOf", "oneOf", "not", "description", "title",
}  # fmt: skip
"""Keywords that stand as they are in the normal form: the schemas of most tools hold nothing else."""
_TYPE_MEANT = {
    "dict": "object", "float": "number", "double": "number", "int": "integer", "long": "integer", "str": "string",
    "list": "array", "tuple": "array", "bool": "boolean", "none": "null",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class NormalSchema:
    """A schema ready for a back end: the root, what `#/$defs/<key>` stands for, its compiled patterns, its keywords."""

    root: dict[str, Any]
    defs: dict[str, Any]
    matchers: dict[str, Matcher]
    words: frozenset[str]

    def target(self, ref: str) -> Any:
        """The schema a normal `$ref` stands for."""
        return self.defs[ref.rpartition("/")[2]]


@dataclass(slots=True)
class Survey:
    """What a walk over all sub-schemas found."""

    schema: dict[str, Any]
    dialect: int
    anchors: dict[str, Path] = field(default_factory=dict)
    matchers: dict[str, Matcher] = field(default_factory=dict)
    targets: dict[Path, str] = field(default_factory=dict)  # referenced place -> key in `defs`
    refs: dict[tuple[Path, str], Path] = field(default_factory=dict)  # (schema, keyword) -> referenced place
    words: set[str] = field(default_factory=set)  # every keyword that stands anywhere

    def at(self, path: Path) -> Any:
        """What lies at a path of the original schema."""
        found: Any = self.schema
        for step in path:
            found = found[step]
        return found


def survey(schema: dict[str, Any], dialect: int) -> Survey:
    """Check every sub-schema and resolve every reference; raises `SchemaRefused`."""
    found = Survey(schema, dialect)
    seen: set[Path] = set()
    pending: list[Path] = [()]
    refs: list[tuple[Path, str, str]] = []
    while pending or refs:
        if not pending:  # anchors may lie anywhere, so references wait until the walk is over
            path, keyword, text = refs.pop()
            target = _resolved(found, path, keyword, text)
            found.refs[path, keyword] = target
            found.targets.setdefault(target, str(len(found.targets)))
            pending.append(target)
        path = pending.pop()
        if path in seen:
            continue
        seen.add(path)
        part = found.at(path)
        if type(part) is bool:
            continue
        found.words.update(part)
        _check_shapes(part, path, found)
        refs += [(path, keyword, part[keyword]) for keyword in _REFS if knows(keyword, dialect) and keyword in part]
        pending += [path + inner for inner, _ in sub_schemas(part, dialect)]
    return found


def _check_shapes(schema: dict[str, Any], path: Path, found: Survey) -> None:
    beside_ref = "$ref" in schema and found.dialect <= 7
    counted = {"$ref", "definitions"} if beside_ref else schema.keys()
    for keyword, value in schema.items():
        if keyword not in counted or not knows(keyword, found.dialect):
            continue
        if keyword in ("$id", "id", "$anchor", "$dynamicAnchor"):
            _note_identifier(keyword, value, path, found)
            continue
        check, wanted = SHAPES[shape_of(keyword, found.dialect)]
        if not check(value):
            raise SchemaRefused("keyword_shape", (*path, keyword), _shape_hint(keyword, value, wanted, found.dialect))
    if not beside_ref:
        _compile_patterns(schema, path, found)


def _shape_hint(keyword: str, value: Any, wanted: str, dialect: int) -> str:
    text = f"`{keyword}` must be {wanted}, not {_brief(value)}"
    if keyword == "items" and dialect == LATEST and type(value) is list:
        return text + "; use `prefixItems` for a list of schemas, or declare the older `$schema`"
    if keyword == "required" and type(value) is bool:
        return text + "; list the required names beside `properties`"
    if keyword == "type" and type(value) is str:
        meant = _TYPE_MEANT.get(value.lower())
        nearest = [meant] if meant else near_names(value, TYPES, 1)
        return text + (f"; did you mean '{nearest[0]}'?" if nearest else "; leave `type` out if any value will do")
    return text + "; correct the schema"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _note_identifier(keyword: str, value: Any, path: Path, found: Survey) -> None:
    name = value
    if keyword in ("$id", "id"):
        if not path or type(value) is not str:
            return
        if not value.startswith("#"):
            text = f"`{keyword}` {_brief(value)} inside the schema would change what references mean; remove it"
            raise SchemaRefused("embedded_id", (*path, keyword), text)
        name = value[1:]
        if not name or name.startswith("/"):
            return  # a generator's note of the pointer itself
    if type(name) is not str or not name:
        raise SchemaRefused(
            "keyword_shape",
            (*path, keyword),
            f"`{keyword}` must be a name, not {_brief(value)}; correct the schema",
        )
    if found.anchors.setdefault(name, path) != path:
        raise SchemaRefused(
            "duplicate_anchor", (*path, keyword), f"the anchor '{name}' is used twice; rename one of them"
        )


def _compile_patterns(schema: dict[str, Any], path: Path, found: Survey) -> None:
    patterns: list[tuple[Path, str]] = []
    if "pattern" in schema:
        patterns.append((("pattern",), schema["pattern"]))
    patterns += [(("patternProperties", name), name) for name in schema.get("patternProperties", ())]
    for inner, pattern in patterns:
        if pattern in found.matchers:
            continue
        try:
            found.matchers[pattern] = Matcher(pattern)
        except PatternRefused as refusal:
            raise SchemaRefused(refusal.reason, path + inner, f"the pattern {_brief(pattern)} has {refusal}") from None
        if sum(matcher.steps for matcher in found.matchers.values()) > MAX_ALL_STEPS:
            text = "the patterns together unfold too far; use minLength, maxLength or smaller counts"
            raise SchemaRefused("pattern_too_large", path + inner, text)


def _resolved(found: Survey, path: Path, keyword: str, text: str) -> Path:
    where = (*path, keyword)
    own = found.schema.get("$id", found.schema.get("id", ""))
    if type(own) is str and own and not own.startswith("#") and text.startswith(own.rstrip("#") + "#"):
        text = text[len(own.rstrip("#")) :]
    if not text.startswith("#"):
        raise SchemaRefused(
            "remote_ref",
            where,
            f"the reference {_brief(text)} leaves the schema; copy its target into `$defs`",
        )
    fragment = unquote(text[1:])
    if fragment and not fragment.startswith("/"):
        if fragment not in found.anchors:
            raise SchemaRefused(
                "dangling_ref", where, f"no anchor is called '{fragment[:60]}'; define it or correct the name"
            )
        return found.anchors[fragment]
    target = _followed(found.schema, fragment)
    if target is None or type(found.at(target)) not in (dict, bool):
        last = fragment.rpartition("/")[2]
        near = near_names(last, [*found.schema.get("$defs", ()), *found.schema.get("definitions", ())], 1)
        hint = f"did you mean '{near[0]}'?" if near else "define it in `$defs`"
        raise SchemaRefused("dangling_ref", where, f"the reference {_brief(text)} points to no schema; {hint}")
    return target


def _followed(schema: Any, pointer: str) -> Path | None:
    path: list[str | int] = []
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if type(schema) is dict and key in schema:
            path.append(key)
            schema = schema[key]
        elif type(schema) is list and key.isdecimal() and int(key) < len(schema):
            path.append(int(key))
            schema = schema[int(key)]
        else:
            return None
    return tuple(path)


def normalise(found: Survey) -> NormalSchema:
    """Rewrite a surveyed schema in normal form."""
    defs = {key: _rewritten(found, target) for target, key in found.targets.items()}
    plain = found.dialect == LATEST and found.words <= _NORMAL_WORDS
    root = found.schema if plain else _rewritten(found, ())
    words = frozenset(found.words) if plain else _words([root, *defs.values()])
    return NormalSchema(root, defs, found.matchers, words)


def _words(parts: list[Any]) -> frozenset[str]:
    """Every keyword that stands anywhere in some normal schemas."""
    words: set[str] = set()
    while parts:
        part = parts.pop()
        if type(part) is dict:
            words.update(part)
            parts += [member for _, member in sub_schemas(part, LATEST)]
    return frozenset(words)


def _rewritten(found: Survey, path: Path) -> Any:
    old = found.at(path)
    if type(old) is bool:
        return old
    refs = [
        {"$ref": f"#/$defs/{found.targets[found.refs[path, word]]}"} for word in _REFS if (path, word) in found.refs
    ]
    if refs and found.dialect <= 7:
        return refs[0]
    new = {word: old[word] for word in _COPIED if word in old and knows(word, found.dialect)}
    if old.get("format") in FORMATS:
        new["format"] = old["format"]
    for word in _KEPT_SCHEMAS:
        if word in old and knows(word, found.dialect):
            new[word] = _member(found, (*path, word), old[word])
    new.update(_arrays(found, path, old))
    new.update(_conditions(found, path, old))
    if found.dialect == 4:
        _upgrade_bounds(new)
    if refs:
        new.update(refs[0])
        if refs[1:]:
            new["allOf"] = [*new.get("allOf", ()), *refs[1:]]
    return new


def _member(found: Survey, path: Path, value: Any) -> Any:
    if type(value) is list:
        return [_rewritten(found, (*path, index)) for index in range(len(value))]
    if path[-1] in ("properties", "patternProperties"):
        return {name: _rewritten(found, (*path, name)) for name in value}
    return _rewritten(found, path)


def _arrays(found: Survey, path: Path, old: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    listed = "prefixItems" if found.dialect == LATEST else "items"
    if type(old.get(listed)) is list:
        yield "prefixItems", _member(found, (*path, listed), old[listed])
    rest = "additionalItems" if found.dialect < LATEST and type(old.get("items")) is list else "items"
    if rest in old:
        yield "items", _rewritten(found, (*path, rest))
    if "contains" in old and found.dialect >= 6:
        yield "contains", _rewritten(found, (*path, "contains"))
        yield from (
            (word, old[word]) for word in ("minContains", "maxContains") if word in old and found.dialect >= 2019
        )


def _conditions(found: Survey, path: Path, old: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if "if" in old and found.dialect >= 7:
        yield from ((word, _rewritten(found, (*path, word))) for word in ("if", "then", "else") if word in old)
    names = dict(old.get("dependentRequired", {})) if found.dialect >= 2019 else {}
    schemas = old.get("dependentSchemas", {}) if found.dialect >= 2019 else {}
    schemas = {name: _rewritten(found, (*path, "dependentSchemas", name)) for name in schemas}
    for name, needed in old.get("dependencies", {}).items():
        if type(needed) is list:
            names[name] = [*dict.fromkeys([*names.get(name, ()), *needed])]
        else:
            schema = _rewritten(found, (*path, "dependencies", name))
            schemas[name] = {"allOf": [schemas[name], schema]} if name in schemas else schema
    if names:
        yield "dependentRequired", names
    if schemas:
        yield "dependentSchemas", schemas


def _upgrade_bounds(new: dict[str, Any]) -> None:
    """In draft 4, `exclusiveMaximum: true` changes what `maximum` means."""
    for bound, exclusive in (("maximum", "exclusiveMaximum"), ("minimum", "exclusiveMinimum")):
        if new.pop(exclusive, False) and bound in new:
            new[exclusive] = new.pop(bound)

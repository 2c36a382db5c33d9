"""A schema as a document: where its sub-schemas are, what its references point to, and which patterns it uses.

A *dialect* is written as the year or number of its draft: 4, 6, 7, 2019, 2020. `sub_schemas` is the only place that
knows where schemas nest: a `$ref` inside an `enum` or a property called "pattern" is data, not schema. `Document` walks
every sub-schema once, resolves every reference inside the document and refuses those that leave it. `Document.view`
shows a sub-schema of an older dialect in the keywords of 2020-12, so that wording, coercion and examples know one
dialect only. Verdicts do not use the view: the libraries read the older dialects themselves.

Everything here relies on admission's size limits: the JSON is a tree of at most 32 levels.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from .errors import Path, SchemaRefused
from .formats import SAMPLES
from .names import near_names
from .patterns import MAX_ALL_STEPS, Pattern, PatternRefused

DIALECTS = {
    "json-schema.org/draft-04/schema": 4,
    "json-schema.org/draft-06/schema": 6,
    "json-schema.org/draft-07/schema": 7,
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
}
LATEST = 2020
IN_PLACE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
"""Keywords whose sub-schemas apply to the same value as the keyword itself."""
_BY_NAME = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_SINGLE = (
    *("items", "additionalItems", "additionalProperties", "propertyNames", "contains", "not", "if", "then", "else"),
    *("unevaluatedProperties", "unevaluatedItems"),
)
_HOLDERS = {*_BY_NAME, *_LISTED, *_SINGLE}
_IGNORED = {"contentEncoding", "contentMediaType", "contentSchema"}  # annotations, but draft 7 allows to check them
_SINCE = {"contains": 6, "propertyNames": 6, "if": 7, "then": 7, "else": 7, "dependentSchemas": 2019} | {
    "unevaluatedProperties": 2019,
    "unevaluatedItems": 2019,
    "prefixItems": 2020,
}
_IDENTIFIERS = {"id": (4, 4), "$id": (6, 2020), "$anchor": (2019, 2020), "$dynamicAnchor": (2020, 2020)}
_REFERENCES = {"$ref": (4, 2020), "$recursiveRef": (2019, 2019), "$dynamicRef": (2020, 2020)}


def dialect_of(schema: dict[str, Any]) -> int:
    """The dialect that a schema declares, 2020-12 without a declaration; raises `SchemaRefused` for an unknown one."""
    if "$schema" not in schema:
        return LATEST
    declared = schema["$schema"]
    known = str(declared).removesuffix("#").removeprefix("https://").removeprefix("http://")
    if type(declared) is not str or known not in DIALECTS:
        text = f"unknown dialect {str(declared)[:80]!r}; declare draft 4, 6, 7, 2019-09 or 2020-12, or leave it out"
        raise SchemaRefused("unknown_dialect", ("$schema",), text)
    return DIALECTS[known]


def sub_schemas(schema: dict[str, Any], dialect: int) -> Iterator[tuple[Path, Any]]:
    """Every direct sub-schema, with its path inside the schema; what is not shaped like a schema is left out."""
    if "$ref" in schema and dialect <= 7:  # its other keywords do not count, but definitions can be referred to
        schema = {"definitions": schema.get("definitions")}
    for keyword in _HOLDERS & schema.keys():
        value = schema[keyword]
        if _SINCE.get(keyword, 0) > dialect:
            continue
        if keyword in _BY_NAME and type(value) is dict:
            yield from (((keyword, name), member) for name, member in value.items() if type(member) in (dict, bool))
        elif keyword in _LISTED and type(value) is list:
            yield from (((keyword, at), member) for at, member in enumerate(value) if type(member) in (dict, bool))
        elif keyword in _SINGLE and type(value) in (dict, bool):
            yield (keyword,), value


class Document:
    """An admitted schema that may be changed: the copy that a library compiles.

    Attributes:
        root: the schema.
        dialect: the dialect it is written in.
        words: every keyword that stands anywhere.
        patterns: the patterns by their text as given, `places` where each stands first.
        sub_schemas: every sub-schema that is an object, the root first.
        strays: referenced places outside all keywords that hold schemas; no metaschema looks at them.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.dialect = dialect_of(root)
        root.pop("$schema", None)  # a library that meets it again behind a reference may start again without our limits
        self.words: set[str] = set()
        self.patterns: dict[str, Pattern] = {}
        self.places: dict[str, Path] = {}
        self.sub_schemas: list[dict[str, Any]] = []
        self.strays: list[tuple[Path, dict[str, Any]]] = []
        self._id = root.pop("$id", None) if self.dialect > 4 else root.pop("id", None)
        self._anchors: dict[str, Path] = {}
        self._steps = 0
        self._given: dict[str, str] = {}
        # By identity, because dicts cannot be hashed; `root` keeps all of them alive.
        self._targets: dict[int, list[Any]] = {}
        self._survey()

    @property
    def dialect_uri(self) -> str:
        """The `$schema` of the dialect."""
        name = next(name for name, dialect in DIALECTS.items() if dialect == self.dialect)
        return f"http://{name}#" if self.dialect <= 7 else f"https://{name}"

    @property
    def starts(self) -> list[dict[str, Any]]:
        """The root, and every sub-schema that is referred to."""
        found = [self.root, *(target for targets in self._targets.values() for target in targets)]
        return list({id(target): target for target in found if type(target) is dict}.values())

    @property
    def has_references(self) -> bool:
        """Whether any sub-schema refers to another one."""
        return bool(self._targets)

    def targets(self, schema: dict[str, Any]) -> list[Any]:
        """What the references of a sub-schema point to."""
        return self._targets.get(id(schema), [])

    def write_patterns(self, texts: Mapping[str, str]) -> None:
        """Give the document the patterns that an engine reads, by their text as given."""
        for schema in self.sub_schemas:
            if schema.get("pattern") in texts:
                schema["pattern"] = texts[schema["pattern"]]
            if type(schema.get("patternProperties")) is dict:
                new: dict[str, Any] = {}
                for given, member in schema["patternProperties"].items():
                    text = texts.get(given, given)
                    while text in new:  # two patterns may read differently and mean the same
                        text += "(?:)"
                    new[text] = member
                schema["patternProperties"] = new
        self._given = {text: given for given, text in texts.items()}

    def given(self, text: str) -> str:
        """The pattern as given that an engine reads as this text."""
        return self._given.get(text, text)

    def at(self, path: Path) -> Any:
        """What stands at a path of the document; None if nothing does."""
        found: Any = self.root
        for step in path:
            try:
                found = found[step]
            except (KeyError, IndexError, TypeError):
                return None
        return found

    def _survey(self) -> None:
        seen: set[Path] = set()
        pending: list[tuple[Path, Any]] = [((), self.root)]
        references: list[tuple[Path, str, dict[str, Any]]] = []
        while pending or references:
            if not pending:  # anchors may stand anywhere, so references wait until the walk is over
                path, keyword, part = references.pop()
                path = self._resolved((*path, keyword), part, keyword)
                target = self.at(path)
                self._targets.setdefault(id(part), []).append(target)
                if path not in seen and type(target) is dict:
                    self.strays.append((path, target))
                pending.append((path, target))
            path, part = pending.pop()
            if path in seen or type(part) is not dict:
                continue
            seen.add(path)
            self._visit(part, path)
            references += [
                (path, word, part)
                for word, (since, until) in _REFERENCES.items()
                if word in part and since <= self.dialect <= until
            ]
            pending += [((*path, *inner), member) for inner, member in sub_schemas(part, self.dialect)]

    def _visit(self, schema: dict[str, Any], path: Path) -> None:
        """Note what a sub-schema has, and take out what the libraries must not act on."""
        self.sub_schemas.append(schema)
        self.words.update(schema)
        self._note_identifiers(schema, path)
        schema.pop("$schema", None)
        if type(schema.get("format")) is str and schema["format"] not in SAMPLES:
            del schema["format"]
        for word in _IGNORED & schema.keys():
            del schema[word]
        if type(schema.get("items")) is not list:  # it has no meaning there, and `jsonschema` stumbles over it
            schema.pop("additionalItems", None)
        if "$ref" not in schema or self.dialect > 7:
            self._read_patterns(schema, path)

    def _read_patterns(self, schema: dict[str, Any], path: Path) -> None:
        found: list[tuple[Path, str]] = []
        if type(schema.get("pattern")) is str:
            found.append((("pattern",), schema["pattern"]))
        if type(schema.get("patternProperties")) is dict:
            found += [(("patternProperties", name), name) for name in schema["patternProperties"]]
        for inner, text in found:
            if text not in self.patterns:
                try:
                    self.patterns[text] = Pattern.read(text)
                    self.places[text] = path + inner
                except PatternRefused as error:
                    raise SchemaRefused(error.reason, path + inner, f"the pattern {brief(text)} has {error}") from None
                self._steps += self.patterns[text].steps
            if self._steps > MAX_ALL_STEPS:
                hint = "the patterns together unfold too far; use minLength, maxLength or smaller counts"
                raise SchemaRefused("pattern_too_large", path + inner, hint)

    def _note_identifiers(self, schema: dict[str, Any], path: Path) -> None:
        # Up to draft 7, all that stands beside a `$ref` is ignored.
        if "$ref" in schema and self.dialect <= 7:
            return
        for keyword, (since, until) in _IDENTIFIERS.items():
            if keyword not in schema or not since <= self.dialect <= until:
                continue
            value = schema[keyword]
            if keyword in ("$id", "id"):
                if type(value) is not str:
                    continue
                if not value.startswith("#"):
                    text = f"`{keyword}` {brief(value)} inside the schema would change what references mean; remove it"
                    raise SchemaRefused("embedded_id", (*path, keyword), text)
                value = value[1:]
                if not value or value.startswith("/"):  # a generator's note of the pointer itself
                    del schema[keyword]
                    continue
            if type(value) is not str or not value:
                text = f"`{keyword}` must be a name, not {brief(value)}; correct the schema"
                raise SchemaRefused("keyword_shape", (*path, keyword), text)
            if self._anchors.setdefault(value, path) != path:
                text = f"the anchor '{value}' is used twice; rename one of them"
                raise SchemaRefused("duplicate_anchor", (*path, keyword), text)

    def _resolved(self, where: Path, schema: dict[str, Any], keyword: str) -> Path:
        """The path that a reference points to; the reference is rewritten without the document's own address."""
        text = schema[keyword]
        if type(text) is not str:
            raise SchemaRefused("keyword_shape", where, f"`{keyword}` must be text, not {brief(text)}")
        own = self._id.rstrip("#") if type(self._id) is str and not self._id.startswith("#") else ""
        if own and text.startswith(own + "#"):
            text = schema[keyword] = text[len(own) :]
        if not text.startswith("#"):
            hint = f"the reference {brief(text)} leaves the schema; copy its target into `$defs`"
            raise SchemaRefused("remote_ref", where, hint)
        fragment = unquote(text[1:])
        if fragment and not fragment.startswith("/"):
            if fragment not in self._anchors:
                hint = f"no anchor is called '{fragment[:60]}'; define it or correct the name"
                raise SchemaRefused("dangling_ref", where, hint)
            return self._anchors[fragment]
        target = _followed(self.root, fragment)
        if target is None or type(self.at(target)) not in (dict, bool):
            last = fragment.rpartition("/")[2]
            near = near_names(last, [name for word in ("$defs", "definitions") for name in self.root.get(word, ())], 1)
            hint = f"did you mean '{near[0]}'?" if near else "define it in `$defs`"
            raise SchemaRefused("dangling_ref", where, f"the reference {brief(text)} points to no schema; {hint}")
        return target

    def view(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A sub-schema in the keywords of 2020-12; the same object where nothing differs."""
        if self.dialect == LATEST:
            return schema
        if "$ref" in schema and self.dialect <= 7:
            return {}
        new = dict(schema)
        if type(schema.get("items")) is list:
            new["prefixItems"] = new.pop("items")
            if "additionalItems" in schema:
                new["items"] = schema["additionalItems"]
        for name, needed in schema.get("dependencies", {}).items():
            word = "dependentRequired" if type(needed) is list else "dependentSchemas"
            new[word] = {**new.get(word, {}), name: needed}
        for bound in ("maximum", "minimum"):  # in draft 4, `exclusiveMaximum: true` changes what `maximum` means
            exclusive = "exclusive" + bound.capitalize()
            if type(new.get(exclusive)) is bool and new.pop(exclusive) and bound in new:
                new[exclusive] = new.pop(bound)
        return new


def brief(value: Any) -> str:
    """A value for a message about a schema, at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


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

# SPDX-License-Identifier: Apache-2.0
"""YAML as version 1.2 means it: the core schema, on PyYAML's parser; and JSON by its own rules.

PyYAML itself follows 1.1, to which `no` is false, 1:30 a number and 010 eight. Here a plain scalar is null, a
boolean, a number or text by the core schema's own expressions; keys stay text, none may stand twice, `<<` is a
key like any other, and tags are refused.
"""
import json
import re

import yaml

NULL = re.compile(r"null|Null|NULL|~|")
TRUE = re.compile(r"true|True|TRUE")
FALSE = re.compile(r"false|False|FALSE")
DECIMAL = re.compile(r"[-+]?[0-9]+")
OCTAL = re.compile(r"0o[0-7]+")
HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
INFINITE = re.compile(r"[-+]?(\.inf|\.Inf|\.INF)")
NO_NUMBER = re.compile(r"\.nan|\.NaN|\.NAN")


class Refused(Exception):
    """The text is not one document of YAML or JSON without doubled keys and tags."""


def number(text):
    """The number that a plain scalar is; None for text."""
    if DECIMAL.fullmatch(text):
        return int(text)
    if OCTAL.fullmatch(text):
        return int(text[2:], 8)
    if HEXADECIMAL.fullmatch(text):
        return int(text[2:], 16)
    if FLOAT.fullmatch(text):
        return float(text)
    if INFINITE.fullmatch(text):
        return float(text.replace(".", ""))
    if NO_NUMBER.fullmatch(text):
        return float("nan")
    return None


def resolve(text, of_number=lambda text, value: value):
    """What a plain scalar is. of_number has the last word on numbers."""
    if NULL.fullmatch(text):
        return None
    if TRUE.fullmatch(text) or FALSE.fullmatch(text):
        return bool(TRUE.fullmatch(text))
    value = number(text)
    return text if value is None else of_number(text, value)


def unicode(text):
    """The text, unless there is half a character in it, which both readers let pass."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Refused("a surrogate that stands alone")
    return text


class Reader:
    """Makes values of nodes; subclasses may see texts and numbers otherwise."""

    def text(self, text):
        return text

    def number(self, _text, value):
        return value

    def value(self, node, above=()):
        if node in above:
            raise Refused("an alias to what contains it")
        above = (*above, node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, above) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, above)
        plain = resolve(node.value, self.number) if node.style is None else node.value
        return self.text(unicode(plain)) if isinstance(plain, str) else plain

    def mapping(self, node, above):
        members = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value in members:
                raise Refused("a key that is not text, or stands twice")
            members[key.value] = self.value(value, above)
        return members


class NodeLoader(yaml.BaseLoader):
    """Composes nodes that keep their style, and refuses tags."""

    def compose_node(self, parent, index):
        event = self.peek_event()
        if getattr(event, "tag", None) not in (None, "!"):
            raise Refused("a tag")
        return super().compose_node(parent, index)


def load_yaml(text, reader=None):
    """The value of a YAML text. Raises Refused."""
    try:
        node = yaml.compose(text, Loader=NodeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Refused(str(error)) from error
    return None if node is None else (reader or Reader()).value(node)


def load_json(text, reader=None):
    """The value of a JSON text. Raises ValueError for other text, and Refused."""
    reader = reader or Reader()

    def members_of(pairs):
        members = {key: texts_of(value) for key, value in pairs}
        if len(members) < len(pairs):
            raise Refused("a key that stands twice")
        return members

    def texts_of(value):
        if isinstance(value, list):
            return [texts_of(item) for item in value]
        return reader.text(unicode(value)) if isinstance(value, str) else value

    def refuse(constant):
        raise ValueError(constant)

    return texts_of(
        json.loads(
            text,
            object_pairs_hook=members_of,
            parse_int=lambda digits: reader.number(digits, int(digits)),
            parse_float=lambda digits: reader.number(digits, float(digits)),
            parse_constant=refuse,
        )
    )


def load(text, reader=None):
    """The value of a text in JSON, with or without a byte order mark, or else YAML. Raises Refused."""
    try:
        return load_json(text.removeprefix("\ufeff"), reader)
    except ValueError:
        return load_yaml(text, reader)

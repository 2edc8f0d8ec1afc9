# SPDX-License-Identifier: Apache-2.0
"""Readers of YAML 1.2 with the core schema, which uses PyYAML's parser, and of JSON.

PyYAML itself follows YAML 1.1, where `no` is false, 1:30 is a number and 010 is eight. Here a plain scalar is null, a
boolean, a number or a text by the core schema's regular expressions. Keys are always texts, no key may appear twice,
`<<` is a key like any other, and tags are refused. The syntax is checked by libyaml if it is installed: PyYAML's own
parser in Python differs slightly, for example in `{a: b?}`.
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
    """The text is not exactly one document of YAML or JSON, or it has repeated keys or tags."""


def number(text):
    """Returns the number that a plain scalar means, or None for a text."""
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
    """Returns the value of a plain scalar. of_number() may replace a number."""
    if NULL.fullmatch(text):
        return None
    if TRUE.fullmatch(text) or FALSE.fullmatch(text):
        return bool(TRUE.fullmatch(text))
    value = number(text)
    return text if value is None else of_number(text, value)


def unicode(text):
    """Returns the text. Refuses a lone surrogate, which both parsers accept."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Refused("a lone surrogate")
    return text


class Reader:
    """Converts parser events into values. Subclasses may convert texts and numbers differently."""

    def __init__(self):
        self.anchored = {}

    def text(self, text):
        return text

    def number(self, _text, value):
        return value

    def document(self, events):
        """Returns the value of the only document, or None if there is no document."""
        next(events)
        if isinstance(next(events), yaml.StreamEndEvent):
            return None
        value = self.value(next(events), events)
        next(events)
        if not isinstance(next(events), yaml.StreamEndEvent):
            raise Refused("a second document")
        return value

    def value(self, event, events):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchored:
                raise Refused("an alias without an anchor, or to a value that contains it")
            return self.anchored[event.anchor]
        if event.tag not in (None, "!"):
            raise Refused("a tag")
        self.anchored.pop(event.anchor, None)
        if isinstance(event, yaml.SequenceStartEvent):
            value = self.sequence(events)
        elif isinstance(event, yaml.MappingStartEvent):
            value = self.mapping(events)
        else:
            value = self.scalar(event)
        if event.anchor is not None:
            self.anchored[event.anchor] = value
        return value

    def scalar(self, event):
        value = event.value if event.style else resolve(event.value, self.number)
        return self.text(unicode(value)) if isinstance(value, str) else value

    def sequence(self, events):
        items = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(self.value(event, events))
        return items

    def mapping(self, events):
        members = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.tag not in (None, "!") or event.value in members:
                raise Refused("a key that is not a plain text, or appears twice")
            if event.anchor is not None:
                self.anchored[event.anchor] = self.scalar(event)
            members[event.value] = self.value(next(events), events)
        return members


def load_yaml(text, reader=None):
    """Returns the value of a YAML text. Raises Refused."""
    try:
        return (reader or Reader()).document(yaml.parse(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader)))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise Refused(str(error)) from error


def load_json(text, reader=None):
    """Returns the value of a JSON text. Raises ValueError if the text is not JSON, and Refused."""
    reader = reader or Reader()

    def members_of(pairs):
        members = {key: texts_of(value) for key, value in pairs}
        if len(members) < len(pairs):
            raise Refused("a key that appears twice")
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


def decode(data):
    """Returns the text of a file in UTF-8, or in UTF-16 with a byte order mark. Raises Refused."""
    try:
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    except UnicodeDecodeError as error:
        raise Refused(str(error)) from error


def load(data, reader=None):
    """Returns the value of a file in JSON, with or without a byte order mark, or else in YAML. Raises Refused."""
    text = decode(data)
    try:
        return load_json(text.removeprefix("\ufeff"), reader)
    except ValueError:
        return load_yaml(text, reader)

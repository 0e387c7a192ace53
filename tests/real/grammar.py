#!/usr/bin/env python3
"""Asks llama.cpp's server which argument schemas it turns into a grammar, and records its answers.

    tests/real/.venv/bin/python tests/real/grammar.py [NAME...]

Writes `tests/llama_cpp/NAME.json` for each case below: what was sent; the status and the error for a tool with that
schema, `required` and `auto`; the grammar that the server made of it; whether that grammar stays the same when the keyword
in question is taken away, which means that the keyword is ignored; and what hot samples under it look like. The server says
its grammars at verbosity 10. One that dies is started again.
"""

import json
import re
import resource
import subprocess
import sys
import urllib.error
import urllib.request
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "llama_cpp"


def nested(depth: int) -> dict:
    schema = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
ARRAY = {"type": "array", "items": INTEGER}
OBJECT = {"type": "object", "properties": {"a": INTEGER}, "required": ["a"]}
TREE = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/properties/x"}}}}

# name: (schema of the argument x, the keyword in question)
CASES = {
    "string": (STRING, None),
    "integer": (INTEGER, None),
    "number": (NUMBER, None),
    "boolean": ({"type": "boolean"}, None),
    "null": ({"type": "null"}, None),
    "array": (ARRAY, None),
    "object": (OBJECT, None),
    "type-list": ({"type": ["string", "null"]}, "type"),
    "type-missing": ({"description": "Anything."}, None),
    "type-empty-list": ({"type": []}, "type"),
    "schema-empty": ({}, None),
    "schema-true": (True, None),
    "schema-false": (False, None),
    "items-true": ({"type": "array", "items": True}, "items"),
    "items-false": ({"type": "array", "items": False}, "items"),
    "items-missing": ({"type": "array"}, None),
    "items-empty": ({"type": "array", "items": {}}, "items"),
    "property-true": ({"type": "object", "properties": {"a": True}}, "properties"),
    "property-false": ({"type": "object", "properties": {"a": False}}, "properties"),
    "pattern-anchored": (STRING | {"pattern": "^[a-z]{2,4}$"}, "pattern"),
    "pattern-unanchored": (STRING | {"pattern": "[a-z]+"}, "pattern"),
    "pattern-half-anchored": (STRING | {"pattern": "^[a-z]+"}, "pattern"),
    "pattern-empty": (STRING | {"pattern": ""}, "pattern"),
    "pattern-only-anchors": (STRING | {"pattern": "^$"}, "pattern"),
    "pattern-digit": (STRING | {"pattern": "^\\d{4}$"}, "pattern"),
    "pattern-digit-in-brackets": (STRING | {"pattern": "^[\\d]+$"}, "pattern"),
    "pattern-word": (STRING | {"pattern": "^\\w+$"}, "pattern"),
    "pattern-space": (STRING | {"pattern": "^a\\sb$"}, "pattern"),
    "pattern-newline": (STRING | {"pattern": "^a\\nb$"}, "pattern"),
    "pattern-word-boundary": (STRING | {"pattern": "^\\bab\\b$"}, "pattern"),
    "pattern-unicode-class": (STRING | {"pattern": "^\\p{L}+$"}, "pattern"),
    "pattern-unicode-escape": (STRING | {"pattern": "^\\u00e9$"}, "pattern"),
    "pattern-hex-escape": (STRING | {"pattern": "^\\x41$"}, "pattern"),
    "pattern-escaped-dot": (STRING | {"pattern": "^a\\.b$"}, "pattern"),
    "pattern-escaped-slash": (STRING | {"pattern": "^a\\/b$"}, "pattern"),
    "pattern-escaped-dash": (STRING | {"pattern": "^a\\-b$"}, "pattern"),
    "pattern-escaped-dash-in-brackets": (STRING | {"pattern": "^[a\\-z]+$"}, "pattern"),
    "pattern-escaped-dot-in-brackets": (STRING | {"pattern": "^[a\\.z]+$"}, "pattern"),
    "pattern-escaped-bracket-in-brackets": (STRING | {"pattern": "^[a\\]z]+$"}, "pattern"),
    "pattern-escaped-slash-in-brackets": (STRING | {"pattern": "^[a\\/z]+$"}, "pattern"),
    "pattern-word-in-brackets": (STRING | {"pattern": "^[\\w.]+$"}, "pattern"),
    "pattern-escaped-backslash": (STRING | {"pattern": "^a\\\\b$"}, "pattern"),
    "pattern-quote": (STRING | {"pattern": '^"a"$'}, "pattern"),
    "pattern-alternatives": (STRING | {"pattern": "^(ab|cd)$"}, "pattern"),
    "pattern-alternatives-bare": (STRING | {"pattern": "^ab$|^cd$"}, "pattern"),
    "pattern-group-without-capture": (STRING | {"pattern": "^(?:ab)+$"}, "pattern"),
    "pattern-named-group": (STRING | {"pattern": "^(?<a>b)$"}, "pattern"),
    "pattern-lookahead": (STRING | {"pattern": "^(?=a)[a-z]+$"}, "pattern"),
    "pattern-negative-lookahead": (STRING | {"pattern": "^(?!a)[a-z]+$"}, "pattern"),
    "pattern-lazy": (STRING | {"pattern": "^a+?$"}, "pattern"),
    "pattern-dot": (STRING | {"pattern": "^.{1,5}$"}, "pattern"),
    "pattern-non-ascii": (STRING | {"pattern": "^[à-ÿ]+$"}, "pattern"),
    "pattern-huge-repeat": (STRING | {"pattern": "^[a-z]{1,5000}$"}, "pattern"),
    "pattern-nested-repeats": (STRING | {"pattern": "^([a-z]{1,100}-){1,100}$"}, "pattern"),
    "pattern-and-max-length": (STRING | {"pattern": "^[a-z]+$", "maxLength": 3}, "maxLength"),
    "pattern-unclosed-bracket": (STRING | {"pattern": "^[a-z$"}, "pattern"),
    "min-length": (STRING | {"minLength": 3}, "minLength"),
    "max-length": (STRING | {"maxLength": 3}, "maxLength"),
    "max-length-1999": (STRING | {"maxLength": 1999}, "maxLength"),
    "max-length-2000": (STRING | {"maxLength": 2000}, "maxLength"),
    "max-length-2001": (STRING | {"maxLength": 2001}, "maxLength"),
    "max-length-10000": (STRING | {"maxLength": 10000}, "maxLength"),
    "max-length-beyond-int": (STRING | {"maxLength": 3000000000}, "maxLength"),
    "min-length-2001": (STRING | {"minLength": 2001}, "minLength"),
    "max-length-float": (STRING | {"maxLength": 3.0}, "maxLength"),
    "max-length-string": (STRING | {"maxLength": "3"}, "maxLength"),
    "min-length-without-type": ({"minLength": 3}, "minLength"),
    "min-items": (ARRAY | {"minItems": 2}, "minItems"),
    "max-items": (ARRAY | {"maxItems": 2}, "maxItems"),
    "max-items-2001": (ARRAY | {"maxItems": 2001}, "maxItems"),
    "max-items-2002": (ARRAY | {"maxItems": 2002}, "maxItems"),
    "max-items-10000": (ARRAY | {"maxItems": 10000}, "maxItems"),
    "min-items-10000": (ARRAY | {"minItems": 10000}, "minItems"),
    "max-items-of-long-strings": (
        {"type": "array", "items": STRING | {"maxLength": 1000}, "maxItems": 1000}, "maxItems"),
    "max-items-without-items": ({"type": "array", "maxItems": 2}, "maxItems"),
    "unique-items": (ARRAY | {"uniqueItems": True}, "uniqueItems"),
    "contains": (ARRAY | {"contains": {"const": 7}}, "contains"),
    "prefix-items": ({"type": "array", "prefixItems": [STRING, INTEGER]}, "prefixItems"),
    "prefix-items-and-items": (ARRAY | {"prefixItems": [STRING]}, "prefixItems"),
    "items-list": ({"type": "array", "items": [STRING, INTEGER]}, "items"),
    "minimum-integer": (INTEGER | {"minimum": 3}, "minimum"),
    "maximum-integer": (INTEGER | {"maximum": 9}, "maximum"),
    "minimum-negative": (INTEGER | {"minimum": -5, "maximum": 5}, "minimum"),
    "exclusive-minimum-integer": (INTEGER | {"exclusiveMinimum": 3}, "exclusiveMinimum"),
    "exclusive-and-minimum": (INTEGER | {"minimum": 1, "exclusiveMinimum": 5}, "exclusiveMinimum"),
    "minimum-fraction": (INTEGER | {"minimum": 0.5}, "minimum"),
    "minimum-above-maximum": (INTEGER | {"minimum": 9, "maximum": 3}, "minimum"),
    "maximum-beyond-64-bits": (INTEGER | {"maximum": 1e20}, "maximum"),
    "minimum-number": (NUMBER | {"minimum": 3}, "minimum"),
    "maximum-number": (NUMBER | {"maximum": 9}, "maximum"),
    "minimum-without-type": ({"minimum": 3}, "minimum"),
    "multiple-of": (INTEGER | {"multipleOf": 5}, "multipleOf"),
    "enum-strings": (STRING | {"enum": ["a", "b"]}, "enum"),
    "enum-numbers": (NUMBER | {"enum": [1, 2.5]}, "enum"),
    "enum-mixed": ({"enum": ["a", 1, None, True]}, "enum"),
    "enum-empty": (STRING | {"enum": []}, "enum"),
    "enum-objects": ({"enum": [{"a": 1}, [1]]}, "enum"),
    "enum-1000": (STRING | {"enum": [f"value-{i}" for i in range(1000)]}, "enum"),
    "enum-odd-strings": (STRING | {"enum": ['a"b', "c\\d", "e\nf", "é", "\u2028"]}, "enum"),
    "const-string": ({"const": "a"}, "const"),
    "const-number": ({"const": 1}, "const"),
    "const-object": ({"const": {"a": [1, None]}}, "const"),
    "const-and-enum": (STRING | {"const": "a", "enum": ["a", "b"]}, "enum"),
    "format-date": (STRING | {"format": "date"}, "format"),
    "format-time": (STRING | {"format": "time"}, "format"),
    "format-date-time": (STRING | {"format": "date-time"}, "format"),
    "format-uuid": (STRING | {"format": "uuid"}, "format"),
    "format-email": (STRING | {"format": "email"}, "format"),
    "format-uri": (STRING | {"format": "uri"}, "format"),
    "format-unknown": (STRING | {"format": "colour"}, "format"),
    "format-not-a-string": (STRING | {"format": 3}, "format"),
    "format-and-max-length": (STRING | {"format": "date", "maxLength": 3}, "maxLength"),
    "any-of": ({"anyOf": [STRING, INTEGER]}, "anyOf"),
    "any-of-empty": ({"anyOf": []}, "anyOf"),
    "any-of-beside-type": (STRING | {"anyOf": [{"maxLength": 2}, {"pattern": "^a+$"}]}, "type"),
    "any-of-with-true": ({"anyOf": [STRING, True]}, "anyOf"),
    "one-of": ({"oneOf": [STRING, INTEGER]}, "oneOf"),
    "one-of-overlapping": ({"oneOf": [INTEGER, NUMBER]}, "oneOf"),
    "one-of-and-any-of": ({"oneOf": [STRING], "anyOf": [STRING, INTEGER]}, "anyOf"),
    "all-of-objects": ({"allOf": [OBJECT, {"type": "object", "properties": {"b": STRING}}]}, "allOf"),
    "all-of-strings": ({"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 3}]}, "allOf"),
    "all-of-integer": ({"type": "integer", "allOf": [{"minimum": 2}]}, "allOf"),
    "all-of-without-type": ({"allOf": [{"type": "integer"}]}, "allOf"),
    "not": (STRING | {"not": {"const": "a"}}, "not"),
    "not-alone": ({"not": STRING}, "not"),
    "if-then": (OBJECT | {"if": {"properties": {"a": {"const": 1}}}, "then": {"required": ["b"]}}, "if"),
    "ref-local": ({"$ref": "#/$defs/name", "$defs": {"name": STRING}}, None),
    "ref-local-nested-defs": ({"type": "object", "properties": {"a": {"$ref": "#/$defs/name"}},
                               "$defs": {"name": STRING}}, None),
    "ref-deep": ({"type": "object", "$defs": {"name": STRING},
                  "properties": {"a": {"$ref": "#/properties/x/$defs/name"}}}, None),
    "ref-definitions": ({"type": "object", "definitions": {"name": STRING},
                         "properties": {"a": {"$ref": "#/properties/x/definitions/name"}}}, None),
    "ref-missing": ({"$ref": "#/$defs/nothing"}, "$ref"),
    "ref-root": ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "properties"),
    "ref-remote": ({"$ref": "https://example.org/name.json"}, "$ref"),
    "ref-http": ({"$ref": "http://example.org/name.json"}, "$ref"),
    "ref-relative": ({"$ref": "name.json"}, "$ref"),
    "ref-recursive": (TREE, None),
    "ref-to-itself": ({"$ref": "#/properties/x"}, "$ref"),
    "ref-escaped": ({"type": "object", "properties": {"a/b": STRING, "c": {
        "$ref": "#/properties/x/properties/a~1b"}}}, None),
    "ref-with-siblings": ({"$ref": "#/$defs/name", "maxLength": 2, "$defs": {"name": STRING}}, "maxLength"),
    "additional-properties-true": (OBJECT | {"additionalProperties": True}, "additionalProperties"),
    "additional-properties-schema": (OBJECT | {"additionalProperties": INTEGER}, "additionalProperties"),
    "additional-properties-false": (OBJECT | {"additionalProperties": False}, "additionalProperties"),
    "additional-properties-nested": ({"type": "object", "properties": {"o": OBJECT}}, None),
    "additional-properties-odd-names": ({"type": "object", "properties": {"a]b": INTEGER, "a\\c": INTEGER},
                                         "additionalProperties": True}, "additionalProperties"),
    "additional-properties-non-ascii": ({"type": "object", "properties": {"é": INTEGER, "è": INTEGER},
                                         "additionalProperties": True}, "additionalProperties"),
    "additional-properties-prefix": ({"type": "object", "properties": {"ab": INTEGER, "abc": INTEGER},
                                      "additionalProperties": True}, "additionalProperties"),
    "object-without-properties": ({"type": "object"}, None),
    "pattern-properties": ({"type": "object", "patternProperties": {"^a": INTEGER}}, "patternProperties"),
    "pattern-properties-beside": (OBJECT | {"patternProperties": {"^b": INTEGER}}, "patternProperties"),
    "property-names": ({"type": "object", "additionalProperties": INTEGER,
                        "propertyNames": {"pattern": "^[a-z]+$"}}, "propertyNames"),
    "min-properties": ({"type": "object", "additionalProperties": INTEGER, "minProperties": 2}, "minProperties"),
    "dependent-required": (OBJECT | {"dependentRequired": {"a": ["b"]}}, "dependentRequired"),
    "unevaluated-properties": (OBJECT | {"unevaluatedProperties": False}, "unevaluatedProperties"),
    "required-unknown": (OBJECT | {"required": ["a", "zz"]}, None),
    "nullable": (STRING | {"nullable": True}, "nullable"),
    "default": (STRING | {"default": "a"}, "default"),
    "title": (STRING | {"title": "A", "examples": ["a"], "$comment": "c", "deprecated": True}, "title"),
    "type-unknown": ({"type": "strin"}, "type"),
    "type-upper-case": ({"type": "STRING"}, "type"),
    "content-encoding": (STRING | {"contentEncoding": "base64"}, "contentEncoding"),
    "property-named-space": ({"type": "object", "properties": {"a b": INTEGER, "a-b": STRING, "a_b": INTEGER}}, None),
    "property-named-odd": ({"type": "object", "properties": {'a"b': INTEGER, "c\\d": STRING, "é": STRING, "": STRING}}, None),
    "deep-10": (nested(10), None),
    "deep-50": (nested(50), None),
    "properties-100-optional": ({"type": "object", "properties": {f"p{i}": STRING for i in range(100)}}, None),
    "enum-beside-format": (STRING | {"enum": ["a"], "format": "date"}, "format"),
    "type-list-with-enum": ({"type": ["string", "null"], "enum": ["a", None]}, "enum"),
    "type-list-with-max-length": ({"type": ["string", "null"], "maxLength": 3}, "maxLength"),
    "min-length-2000": (STRING | {"minLength": 2000}, "minLength"),
    "min-and-max-length-2001": (STRING | {"minLength": 5, "maxLength": 2001}, "maxLength"),
    "max-length-zero": (STRING | {"maxLength": 0}, "maxLength"),
    "max-length-negative": (STRING | {"maxLength": -1}, "maxLength"),
    "min-above-max-length": (STRING | {"minLength": 5, "maxLength": 3}, "minLength"),
    "min-items-2000": (ARRAY | {"minItems": 2000}, "minItems"),
    "min-items-2001": (ARRAY | {"minItems": 2001}, "minItems"),
    "min-items-2002": (ARRAY | {"minItems": 2002}, "minItems"),
    "max-items-500": (ARRAY | {"maxItems": 500}, "maxItems"),
    "max-items-1000": (ARRAY | {"maxItems": 1000}, "maxItems"),
    "max-items-1001": (ARRAY | {"maxItems": 1001}, "maxItems"),
    "max-items-1002": (ARRAY | {"maxItems": 1002}, "maxItems"),
    "max-items-2000": (ARRAY | {"maxItems": 2000}, "maxItems"),
    "max-items-1998": (ARRAY | {"maxItems": 1998}, "maxItems"),
    "max-items-1999": (ARRAY | {"maxItems": 1999}, "maxItems"),
    "max-items-1500": (ARRAY | {"maxItems": 1500}, "maxItems"),
    "min-items-1-max-items-2000": (ARRAY | {"minItems": 1, "maxItems": 2000}, "maxItems"),
    "max-items-float": (ARRAY | {"maxItems": 2.0}, "maxItems"),
    "min-items-1001": (ARRAY | {"minItems": 1001}, "minItems"),
    "min-items-zero-max-zero": (ARRAY | {"maxItems": 0}, "maxItems"),
    "max-items-of-objects-1001": ({"type": "array", "items": OBJECT, "maxItems": 1001}, "maxItems"),
    "minimum-huge": (INTEGER | {"minimum": 9223372036854775807}, "minimum"),
    "minimum-lowest": (INTEGER | {"minimum": -9223372036854775808, "maximum": 5}, "minimum"),
    "maximum-highest": (INTEGER | {"maximum": 9223372036854775807}, "maximum"),
    "maximum-unsigned": (INTEGER | {"maximum": 18446744073709551615}, "maximum"),
    "minimum-float-beyond": (INTEGER | {"minimum": -1e30}, "minimum"),
    "minimum-15-digits": (INTEGER | {"minimum": 999999999999999}, "minimum"),
    "minimum-16-digits": (INTEGER | {"minimum": 1000000000000000}, "minimum"),
    "minimum-17-digits": (INTEGER | {"minimum": 10000000000000000}, "minimum"),
    "minimum-negative-17-digits": (INTEGER | {"minimum": -10000000000000000}, "minimum"),
    "maximum-17-digits": (INTEGER | {"maximum": 10000000000000000}, "maximum"),
    "maximum-negative-17-digits": (INTEGER | {"maximum": -10000000000000000}, "maximum"),
    "between-17-digits": (INTEGER | {"minimum": 5, "maximum": 10000000000000000}, "maximum"),
    "exclusive-maximum-beyond-64-bits": (INTEGER | {"exclusiveMaximum": 1e20}, "exclusiveMaximum"),
    "minimum-beyond-64-bits": (INTEGER | {"minimum": 1e20}, "minimum"),
    "minimum-and-maximum-beyond": (INTEGER | {"minimum": 5, "maximum": 1e20}, "maximum"),
    "any-of-beside-broken-type": ({"type": "strin", "anyOf": [STRING]}, "type"),
    "any-of-beside-broken-length": (STRING | {"maxLength": "3", "anyOf": [STRING]}, "maxLength"),
    "ref-beside-broken-type": ({"type": "object", "$defs": {"n": STRING}, "properties": {
        "a": {"$ref": "#/properties/x/$defs/n", "type": "strin"}}}, None),
    "enum-beside-broken-pattern": (STRING | {"enum": ["a"], "pattern": "^[a$"}, "pattern"),
    "length-on-integer-broken": (INTEGER | {"maxLength": "3"}, "maxLength"),
    "length-beside-pattern-broken": (STRING | {"pattern": "^a$", "maxLength": "3"}, "maxLength"),
    "pattern-broken-on-integer": (INTEGER | {"pattern": "^[a$"}, "pattern"),
    "items-beside-string": (STRING | {"items": True}, "items"),
    "properties-beside-string": (STRING | {"properties": {"a": True}}, "properties"),
    "properties-in-enum": ({"enum": [1], "properties": {"a": True}}, "properties"),
    "minimum-broken-on-string": (STRING | {"minimum": "3"}, "minimum"),
    "minimum-broken-on-number": (NUMBER | {"minimum": "3"}, "minimum"),
    "minimum-without-type-huge": ({"minimum": 1e300}, "minimum"),
    "min-items-above-max-items": (ARRAY | {"minItems": 5, "maxItems": 3}, "minItems"),
    "min-items-without-items": ({"type": "array", "minItems": 2}, "minItems"),
    "min-length-beside-pattern-huge": (STRING | {"pattern": "^a$", "minLength": 5000}, "minLength"),
    "type-list-with-pattern": ({"type": ["string", "integer"], "pattern": "^[a$"}, "pattern"),
    "pattern-without-type": ({"pattern": "^[a$"}, "pattern"),
    "all-of-array": ({"type": "array", "items": STRING, "allOf": [{"maxItems": 2}]}, "allOf"),
    "all-of-nested-object": ({"type": "object", "properties": {"o": {"type": "object", "allOf": [OBJECT]}}}, None),
    "all-of-nested-required": ({"type": "object", "properties": {"o": {"type": "object", "allOf": [{"required": ["a"]}]}}}, None),
    "pattern-properties-nested": ({"type": "object", "properties": {"o": {"type": "object", "patternProperties": {"^a": INTEGER}}}}, None),
    "if-without-type": ({"if": STRING, "then": {"minLength": 2}}, "if"),
    "open-nested-without-properties": ({"type": "object", "properties": {"o": {"type": "object", "additionalProperties": True}}}, None),
    "minimum-string": (INTEGER | {"minimum": "3"}, "minimum"),
    "exclusive-maximum-integer": (INTEGER | {"exclusiveMaximum": 3}, "exclusiveMaximum"),
    "exclusive-minimum-number": (NUMBER | {"exclusiveMinimum": 3}, "exclusiveMinimum"),
    "maximum-zero-and-minimum": (INTEGER | {"minimum": 0, "maximum": 0}, "minimum"),
    "const-beside-type": (INTEGER | {"const": "a"}, "type"),
    "enum-misfit": (INTEGER | {"enum": ["a"]}, "type"),
    "enum-not-a-list": (STRING | {"enum": "a"}, "enum"),
    "enum-beside-min-length": (STRING | {"enum": ["a"], "minLength": 3}, "minLength"),
    "format-uuid4": (STRING | {"format": "uuid4"}, "format"),
    "format-duration": (STRING | {"format": "duration"}, "format"),
    "format-ipv4": (STRING | {"format": "ipv4"}, "format"),
    "format-on-integer": (INTEGER | {"format": "date"}, "format"),
    "pattern-on-integer": (INTEGER | {"pattern": "^a$"}, "pattern"),
    "pattern-and-format": (STRING | {"pattern": "^a$", "format": "date"}, "format"),
    "pattern-not-a-string": (STRING | {"pattern": 3}, "pattern"),
    "any-of-beside-properties": (OBJECT | {"anyOf": [{"required": ["a"]}]}, "properties"),
    "any-of-beside-description": ({"description": "d", "anyOf": [STRING]}, "description"),
    "any-of-circle": ({"anyOf": [{"$ref": "#/properties/x"}, STRING]}, None),
    "any-of-nested": ({"anyOf": [{"anyOf": [STRING, INTEGER]}, {"type": "null"}]}, "anyOf"),
    "any-of-not-a-list": ({"anyOf": STRING}, "anyOf"),
    "one-of-empty": ({"oneOf": []}, "oneOf"),
    "all-of-empty": ({"allOf": []}, "allOf"),
    "all-of-with-true": ({"allOf": [True]}, "allOf"),
    "all-of-ref": ({"type": "object", "$defs": {"o": OBJECT}, "allOf": [{"$ref": "#/properties/x/$defs/o"}]}, "allOf"),
    "all-of-beside-properties": (OBJECT | {"allOf": [{"properties": {"b": STRING}}]}, "allOf"),
    "all-of-of-any-of": ({"type": "object", "allOf": [{"anyOf": [OBJECT]}]}, "allOf"),
    "all-of-enums": ({"type": "string", "allOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}]}, "allOf"),
    "all-of-optional": ({"type": "object", "allOf": [{"type": "object", "properties": {"b": STRING}}]}, "allOf"),
    "not-true": (STRING | {"not": True}, "not"),
    "if-true": (OBJECT | {"if": True, "then": {"required": ["a"]}}, "if"),
    "contains-true": (ARRAY | {"contains": True}, "contains"),
    "property-names-true": ({"type": "object", "additionalProperties": INTEGER, "propertyNames": True}, "propertyNames"),
    "pattern-properties-true": (OBJECT | {"patternProperties": {"^b": True}}, "patternProperties"),
    "dependent-schemas-true": (OBJECT | {"dependentSchemas": {"a": True}}, "dependentSchemas"),
    "prefix-items-true": ({"type": "array", "prefixItems": [True]}, "prefixItems"),
    "prefix-items-empty": ({"type": "array", "prefixItems": []}, "prefixItems"),
    "defs-true": (STRING | {"$defs": {"a": True}}, "$defs"),
    "defs-unused-broken": (STRING | {"$defs": {"a": {"type": "strin"}}}, "$defs"),
    "ref-in-unused-defs": (STRING | {"$defs": {"a": {"$ref": "#/nowhere"}}}, "$defs"),
    "ref-in-not": (STRING | {"not": {"$ref": "#/nowhere"}}, "not"),
    "ref-not-a-string": ({"$ref": 3}, "$ref"),
    "ref-to-property": ({"type": "object", "properties": {"a": STRING, "b": {"$ref": "#/properties/x/properties/a"}}}, None),
    "ref-to-property-percent": ({"type": "object", "properties": {"a b": STRING, "b": {
        "$ref": "#/properties/x/properties/a%20b"}}}, None),
    "ref-cycle": ({"type": "object", "properties": {"a": {"$ref": "#/properties/x/properties/b"},
                                                     "b": {"$ref": "#/properties/x/properties/a"}}}, None),
    "ref-beside-type": ({"type": "object", "$defs": {"n": STRING}, "properties": {
        "a": {"$ref": "#/properties/x/$defs/n", "maxLength": 2}}}, None),
    "ref-root-with-slash": ({"type": "object", "properties": {"a": {"$ref": "#/"}}}, None),
    "ref-into-list": ({"type": "object", "properties": {"a": {"anyOf": [STRING]}, "b": {
        "$ref": "#/properties/x/properties/a/anyOf/0"}}}, None),
    "additional-properties-string": (OBJECT | {"additionalProperties": "no"}, "additionalProperties"),
    "additional-properties-empty": (OBJECT | {"additionalProperties": {}}, "additionalProperties"),
    "additional-properties-bracket": ({"type": "object", "properties": {"]": INTEGER}, "additionalProperties": True}, None),
    "additional-properties-backslash": ({"type": "object", "properties": {"\\": INTEGER}, "additionalProperties": True}, None),
    "additional-properties-caret": ({"type": "object", "properties": {"^": INTEGER}, "additionalProperties": True}, None),
    "additional-properties-dash": ({"type": "object", "properties": {"-": INTEGER, "a": INTEGER}, "additionalProperties": True}, None),
    "additional-properties-quote": ({"type": "object", "properties": {'"': INTEGER}, "additionalProperties": True}, None),
    "additional-properties-newline": ({"type": "object", "properties": {"\n": INTEGER}, "additionalProperties": True}, None),
    "additional-properties-late-bracket": ({"type": "object", "properties": {"ab]": INTEGER}, "additionalProperties": True}, None),
    "properties-not-an-object": ({"type": "object", "properties": []}, "properties"),
    "properties-empty": ({"type": "object", "properties": {}}, "properties"),
    "properties-without-type": ({"properties": {"a": INTEGER}}, "properties"),
    "items-without-type": ({"items": INTEGER}, "items"),
    "required-without-properties": ({"type": "object", "required": ["a"]}, "required"),
    "required-not-a-list": ({"type": "object", "properties": {"a": INTEGER}, "required": True}, "required"),
    "required-nested-flag": ({"type": "object", "properties": {"a": INTEGER | {"required": True}}}, None),
    "object-nested-without-properties": ({"type": "object", "properties": {"o": {"type": "object"}}}, None),
    "type-list-of-object": ({"type": ["object", "null"], "properties": {"a": INTEGER}}, "properties"),
    "type-list-unknown": ({"type": ["string", "strin"]}, "type"),
    "type-not-a-string": ({"type": 3}, "type"),
    "type-null-value": ({"type": None}, "type"),
    "properties-300": ({"type": "object", "properties": {f"p{i}": STRING for i in range(300)}}, None),
    "properties-300-required": ({"type": "object", "properties": {f"p{i}": STRING for i in range(300)},
                                 "required": [f"p{i}" for i in range(300)]}, None),
    "unknown-keyword": (STRING | {"colour": "red"}, "colour"),
    "unknown-keyword-with-ref": (STRING | {"colour": {"$ref": "#/nowhere"}}, "colour"),
    "min-contains": (ARRAY | {"contains": INTEGER, "minContains": 2}, "minContains"),
    "max-properties": ({"type": "object", "additionalProperties": INTEGER, "maxProperties": 2}, "maxProperties"),
    "unevaluated-items": (ARRAY | {"unevaluatedItems": False}, "unevaluatedItems"),
    "dependent-schemas": (OBJECT | {"dependentSchemas": {"a": {"required": ["b"]}}}, "dependentSchemas"),
}
PATTERNS = ["^*a$", "^a{x}$", "^a{1,2,3}$", "^a{2$", "^(a$", "^a)$", "^a\\$", "^a{2001,}$", "^a{0,2000}$", "^a{0,2001}$",
            "^a{3}$", "^a{,3}$", "^é$", "^☃+$", "^a b$", "^[^a-z]+$", "^[a-z]*$", "^(a|b)*$", "^a|b$", "^a**$", "^a{2}{3}$", "^()$",
            "^(|a)$", "^[]a]$", "^[^]a]$", "^[a-]$", "^a?$", "^(a(b(c)))$", "^(?i)a$", "^(?P<n>a)$", "^a(?#c)b$", "^$a$",
            "^a^b$", "^\\^a$", "^[[:alpha:]]$", "^[a&&b]$", "^{$", "^}$", "^]$", "^a\n$", "^a\"b$", "^[\"a]$", "^a\\\\$",
            "^(\\d)$", "^a\\1$", "^a\\0$", "^\\cA$", "^\\u{1F600}$", "^\\xZZ$", "^\\u12$", "a", "^", "$", "^a\tb$", "^" + "(" * 60 + "a" + ")" * 60 + "$",
            "^(a{1,2000}){1,2000}$", "^(abc){0,1000}$", "^(a|b){0,2000}$", "^[ab]{2001}$", "^\\.{3}$", "^a*?$", "^a??$", "^a{1,2}?$", "^a?*$", "^a++$", "^a+*$", "^a{2}*$", "^a{2}?$", "^(a)+?$", "^(a?)*$", "^[a]+?$", "^aé+$",
            "^(é)+$", "^[é]+$", "^[\\u00e0-\\u00ff]+$", "^[\\x41-\\x5a]+$", "^[ -~]+$", "^[!-/]+$", "^\\x22$", "^\\u0041{2}$", "^a{2,1}$", "^a{1,}$", "^a{ 1,2}$",
            "^a{0}$", "^a{3,2}$", "^a{2,}$", "^()?$", "^(){2}$", "^a{1,2}{1,2}$", "^a{1,5000}$", "^(a{2001})?$", "^|a$", "^a|$", "^(a|)$", "^+a$", "^(+a)$", "^a|*$", "^()*$", "^[a-z]{2000}$", "^(ab|cd){2,3}$", "^é{2}$",
            "^[\\s\\S]*$", "^[^\"]*$", "^(?:a|b)$", "^(?=a)$", "^((a)$", "^[a$", "^[a\\$", "^a\\", "^[$^]$", "^[a^]$", "^[-a]$", "^[a-c-e]$", "^[z-a]$"]
ESCAPED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ "
# What is about the request, not about a schema.
REQUESTS = {
    "many-tools": {"tools": 200},
    "tool-name-odd": {"name": "a.b/c d"},
    "tool-name-long": {"name": "n" * 200},
    "tool-name-same-rule": {"name": "root"},
}


class Server:
    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.child = subprocess.Popen(
            [sys.executable, HERE / "serve.py", "--verbosity", "10", "--template", "short.jinja"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            # A schema may make the server eat memory until the machine stops.
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)))
        ready = next(line for line in self.child.stdout if line.startswith("READY "))
        self.base = ready.split()[1].removesuffix("/v1")

    def ask(self, path: str, body: dict | None) -> tuple[int, dict]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except (OSError, ValueError) as error:
            self.child.kill()
            self.child.wait()
            self.start()
            return 0, {"error": {"message": f"no answer: {type(error).__name__}"}}

    def stop(self) -> None:
        self.child.stdin.close()
        self.child.wait()


def parameters_of(schema: dict | bool) -> dict:
    """As the compiler emits it for one required argument x."""
    if isinstance(schema, dict) and schema.get("type") == "object":
        schema = schema | {key: value for key, value in [("required", []), ("additionalProperties", False)]
                           if key not in schema}
    return {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}


def tool(parameters: dict, name: str = "probe") -> dict:
    return {"type": "function", "function": {"name": name, "description": "Call this.", "parameters": parameters}}


def error_of(answer: dict) -> str | None:
    error = answer.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return None if message is None else message if len(message) < 300 else message[:300] + "…"


def rules_of(grammar: str) -> dict:
    """The rules that hold the argument, by name."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.split("\n") if " ::= " in line)
    ours = {}
    pending = ["tool-0-schema"]
    while pending:
        name = pending.pop()
        if name in rules and name not in ours:
            ours[name] = rules[name]
            pending += re.findall(r"[a-zA-Z][a-zA-Z0-9-]*", re.sub(r'"(\\.|[^"\\])*"|\[(\\.|[^\]\\])*\]', " ", rules[name]))
    return ours


def meaning_of(rules: dict) -> dict:
    """The rules without those that only give another one a second name, so that equal ones compare equal."""
    aliases = {name: rule for name, rule in rules.items() if rule in rules}
    def resolve(text: str) -> str:
        for _ in range(9):
            text = re.sub(r"[a-zA-Z][a-zA-Z0-9-]*", lambda found: aliases.get(found[0], found[0]), text)
        return text
    return {name: resolve(rule) for name, rule in rules.items() if name not in aliases}


def ask_as_tool(server: Server, tools: list, choice: str) -> tuple[dict, dict]:
    status, answer = server.ask("/v1/chat/completions", {
        "messages": [{"role": "user", "content": "Call it."}], "tools": tools, "tool_choice": choice,
        "max_tokens": 1, "temperature": 0})
    settings = answer.get("__verbose", {}).get("generation_settings", {})
    return {"status": status, "error": error_of(answer)}, rules_of(settings.get("grammar", ""))


def sample(server: Server, rules: dict, count: int) -> list:
    """A few hot samples under the rules of the argument alone."""
    grammar = "\n".join([f"{name} ::= {rule}" for name, rule in rules.items()] + ["root ::= tool-0-schema"])
    found = []
    for seed in range(count):
        status, answer = server.ask("/completion", {
            "prompt": "Random JSON:\n", "grammar": grammar, "n_predict": 24, "temperature": 1.5, "seed": seed})
        found.append(answer.get("content") if status == 200 else f"{status}: {error_of(answer)}")
    return found


def probe(server: Server, schema: dict | bool, keyword: str | None) -> dict:
    parameters = parameters_of(schema)
    required, rules = ask_as_tool(server, [tool(parameters)], "required")
    auto, _ = ask_as_tool(server, [tool(parameters)], "auto")
    record = {"argument": schema, "keyword": keyword, "parameters": parameters, "required": required, "auto": auto}
    if rules:
        shown = "; ".join(f"{name} ::= {rule}" for name, rule in rules.items() if name.startswith("tool-0-schema-x"))
        record["grammar"] = shown if len(shown) < 400 else shown[:400] + "…"
        record["samples"] = sample(server, rules, 2)
        if keyword and isinstance(schema, dict):
            rest = {key: value for key, value in schema.items() if key != keyword}
            _, bare = ask_as_tool(server, [tool(parameters_of(rest))], "required")
            if bare:
                record["ignored"] = meaning_of(bare) == meaning_of(rules)
    return record


def record_patterns(server: Server, build: str) -> None:
    """Many patterns at once: what each becomes, `string` where it is ignored."""
    path = DATA / "patterns.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    # Asked once and for all of a build, unless the machine was only too busy to answer.
    known = known["patterns"] if known.get("server") == build else {}
    found = {}
    for pattern in PATTERNS + [form % character for character in ESCAPED for form in ("^a\\%sb$", "^[a\\%s]+$")]:
        if pattern in known and not known[pattern].get("error", "").startswith("no answer"):
            found[pattern] = known[pattern]
            continue
        answer, rules = ask_as_tool(server, [tool(parameters_of(STRING | {"pattern": pattern}))], "required")
        rule = rules.get("tool-0-schema-x", "") or ("string" if rules else None)
        found[pattern] = {"rule": rule, "sample": sample(server, rules, 1)[0]} if answer["status"] == 200 else {"error": answer["error"]}
    record = {"server": build, "patterns": found}
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    print("patterns", len(found), flush=True)


def main() -> None:
    server = Server()
    _, props = server.ask("/props", None)
    build = f"{props.get('build_info')} (xllamacpp {version('xllamacpp')})"
    DATA.mkdir(exist_ok=True)
    wanted = sys.argv[1:]
    for name, (schema, keyword) in CASES.items():
        if wanted and name not in wanted:
            continue
        record = {"server": build} | probe(server, schema, keyword)
        (DATA / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        print(name, record["required"], record["auto"]["status"], record.get("ignored"), flush=True)
    for name, request in REQUESTS.items():
        if wanted and name not in wanted:
            continue
        tools = [tool(parameters_of(STRING), request.get("name", f"probe_{index}"))
                 for index in range(request.get("tools", 1))]
        record = {"server": build, "request": request, "required": ask_as_tool(server, tools, "required")[0],
                  "auto": ask_as_tool(server, tools, "auto")[0]}
        (DATA / f"{name}.json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        print(name, record["required"], flush=True)
    if not wanted or "patterns" in wanted:
        record_patterns(server, build)
    server.stop()


if __name__ == "__main__":
    main()

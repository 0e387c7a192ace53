"""Validates COUNT times with jsonschema. Arguments: validate|parse COUNT SCHEMA ARGUMENTS."""

import json
import sys

from jsonschema import Draft202012Validator

job, count, schema, text = sys.argv[1], int(sys.argv[2]), open(sys.argv[3]).read(), open(sys.argv[4]).read()
validator = Draft202012Validator(json.loads(schema))
parsed = json.loads(text)
for _ in range(count):
    assert validator.is_valid(json.loads(text) if job == "parse" else parsed)

"""Validates COUNT times with a pydantic model of `schema.json`. Arguments: validate|parse COUNT SCHEMA ARGUMENTS."""

import json
import sys
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Place(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    latitude: Annotated[float, Field(ge=-90, le=90)] | None = None
    longitude: Annotated[float, Field(ge=-180, le=180)] | None = None


class Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    query: Annotated[str, Field(min_length=1)]
    limit: Annotated[int, Field(ge=1, le=100)] | None = None
    order: Literal["newest", "oldest", "relevance"] | None = None
    tags: Annotated[list[str], Field(max_length=16)] | None = None
    place: Place | None = None


job, count, text = sys.argv[1], int(sys.argv[2]), open(sys.argv[4]).read()
parsed = json.loads(text)
for _ in range(count):
    if job == "parse":
        Arguments.model_validate_json(text)
    else:
        Arguments.model_validate(parsed)

"""Parses and validates a text COUNT times with BAML. Arguments: parse COUNT SCHEMA ARGUMENTS.

BAML has types of its own in place of JSON Schema, and repairs texts that are not JSON.
"""

import sys

from baml_py import BamlCtxManager, BamlRuntime
from pydantic import BaseModel

TYPES = """
class Place {
  name string
  latitude float? @assert({{ this >= -90 and this <= 90 }})
  longitude float? @assert({{ this >= -180 and this <= 180 }})
}
class Arguments {
  query string @assert({{ this|length >= 1 }})
  limit int? @assert({{ this >= 1 and this <= 100 }})
  order ("newest" | "oldest" | "relevance")?
  tags string[]? @assert({{ this|length <= 16 }})
  place Place?
}
client<llm> None {
  provider openai
  options { model none api_key none }
}
function Search() -> Arguments {
  client None
  prompt #"{{ ctx.output_format }}"#
}
"""


class Place(BaseModel):
    name: str
    latitude: float | None = None
    longitude: float | None = None


class Arguments(BaseModel):
    query: str
    limit: int | None = None
    order: str | None = None
    tags: list[str] | None = None
    place: Place | None = None


count, text = int(sys.argv[2]), open(sys.argv[4]).read()
runtime = BamlRuntime.from_files("baml_src", {"types.baml": TYPES}, {})
types = sys.modules[__name__]
context = BamlCtxManager(runtime).get()
for _ in range(count):
    parsed = runtime.parse_llm_response("Search", text, types, types, types, False, context, None, None, {})
    assert parsed.query

"""Prints one streamed reply with the openai package. Arguments: URL PROMPT."""

import sys

from openai import OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="none")
stream = client.chat.completions.create(
    model="stub", messages=[{"role": "user", "content": sys.argv[2]}], stream=True
)
for chunk in stream:
    if chunk.choices and chunk.choices[0].delta.content:
        sys.stdout.write(chunk.choices[0].delta.content)
        sys.stdout.flush()

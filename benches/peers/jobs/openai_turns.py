"""Holds a conversation of TURNS turns with a tool call in each, with the openai package. Arguments: URL TURNS."""

import json
import sys

from openai import OpenAI

client = OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0)
parameters = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
tools = [{"type": "function", "function": {"name": "get_weather", "description": "The weather.", "parameters": parameters}}]
messages = [{"role": "user", "content": sys.argv[2]}]
while True:
    stream = client.chat.completions.create(model="stub", messages=messages, tools=tools, stream=True)
    calls = [call for chunk in stream if chunk.choices for call in chunk.choices[0].delta.tool_calls or []]
    if not calls:
        break
    entries = [call.model_dump(include={"id", "function", "type"}) | {"type": "function"} for call in calls]
    messages.append({"role": "assistant", "content": "", "tool_calls": entries})
    for call in calls:
        location = json.loads(call.function.arguments)["location"]
        content = json.dumps({"location": location, "temperature": 21})
        messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

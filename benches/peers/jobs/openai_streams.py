"""Reads COUNT streams of 50 tokens a second at once with the openai package. Arguments: URL COUNT SECONDS."""

import asyncio
import sys

from openai import AsyncOpenAI


async def read(client, number):
    messages = [{"role": "user", "content": f"stream {number} {sys.argv[3]}"}]
    stream = await client.chat.completions.create(model="stub", messages=messages, stream=True)
    async for chunk in stream:
        chunk.choices[0].delta.content if chunk.choices else None


async def main():
    client = AsyncOpenAI(base_url=sys.argv[1], api_key="none", max_retries=0, timeout=600)
    await asyncio.gather(*(read(client, number) for number in range(int(sys.argv[2]))))


asyncio.run(main())

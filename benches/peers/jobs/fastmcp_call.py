"""Calls a tool COUNT times through FastMCP's client in memory. Argument: COUNT."""

import asyncio
import sys

from fastmcp import Client, FastMCP

server = FastMCP("peer")


@server.tool
def add(a: int, b: int) -> dict:
    """Adds two numbers."""
    return {"sum": a + b}


async def main():
    async with Client(server) as client:
        for _ in range(int(sys.argv[1])):
            await client.call_tool("add", {"a": 1, "b": 2})


asyncio.run(main())

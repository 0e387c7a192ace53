"""The tool `add` of FastMCP. Argument: a port for streamable HTTP; without it, the server uses stdin and stdout."""

import sys

from fastmcp import FastMCP

server = FastMCP("peer")


@server.tool
def add(a: int, b: int) -> dict:
    """Adds two numbers."""
    return {"sum": a + b}


if len(sys.argv) > 1:
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="critical")
else:
    server.run(show_banner=False)

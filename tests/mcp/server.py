"""A server of FastMCP: server.py [PORT]. With a port, it serves HTTP and requires the bearer token "secret"."""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier
from fastmcp.utilities.types import Image

is_http = len(sys.argv) > 1
auth = StaticTokenVerifier({"secret": {"client_id": "test", "scopes": []}}) if is_http else None
server = FastMCP("test", auth=auth)


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool
def fail() -> str:
    """Fail."""
    raise ValueError("no luck")


@server.tool
def picture() -> Image:
    """Return a picture."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


if is_http:
    server.run(transport="http", port=int(sys.argv[1]), show_banner=False, log_level="error")
else:
    server.run(show_banner=False, log_level="error")

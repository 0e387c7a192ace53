"""Uses a server with three clients and prints what they see: clients.py CLIENT URL PROJECT, or
clients.py CLIENT PROGRAM ARGUMENT... PROJECT for a server on stdin and stdout. A URL needs the bearer token "secret"."""

import asyncio
import json
import pathlib
import sys
from contextlib import asynccontextmanager

import httpx2
import mcp
import mcp.types
from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PROGRAM, *ARGUMENTS = sys.argv[2:]
PROJECT = pathlib.Path(ARGUMENTS[-1])
IS_HTTP = PROGRAM.startswith("http")
ANSWERS = iter(["accept", "decline"])


async def elicit(_context, params):
    print("asked:", params.message)
    return mcp.types.ElicitResult(action=next(ANSWERS), content={})


async def elicit_fast(message, _type, _params, _context):
    print("asked:", message)
    return mcp.types.ElicitResult(action=next(ANSWERS), content={})


changed = asyncio.Event()


async def on_message(message):
    if isinstance(getattr(message, "root", message), mcp.types.ToolListChangedNotification):
        changed.set()


async def report(progress, total, message):
    print("progress:", progress, total, message)


async def log(params):
    print("log:", params.logger, params.level, params.data)


async def log_fast(message):
    await log(message)


def transport():
    if IS_HTTP:
        http = httpx2.AsyncClient(headers={"Authorization": "Bearer secret"}, timeout=60)
        return streamable_http_client(PROGRAM, http_client=http)
    return stdio_client(StdioServerParameters(command=PROGRAM, args=ARGUMENTS))


@asynccontextmanager
async def session():
    async with transport() as streams:
        async with ClientSession(
                *streams, elicitation_callback=elicit, message_handler=on_message, logging_callback=log) as client:
            await client.initialize()
            yield client, lambda name, arguments: client.call_tool(name, arguments, progress_callback=report)


@asynccontextmanager
async def client():
    async with Client(transport(), elicitation_callback=elicit, logging_callback=log, log_level="info") as client:
        yield client, lambda name, arguments: client.call_tool(name, arguments, progress_callback=report)


@asynccontextmanager
async def fastmcp():
    # Without `subscriptions/listen`, this client hears of changes in older versions only.
    if IS_HTTP:
        to = StreamableHttpTransport(PROGRAM, auth="secret")
    else:
        to = StdioTransport(PROGRAM, ARGUMENTS)
    connection = FastClient(
        to, mode="legacy", elicitation_handler=elicit_fast, message_handler=on_message, log_handler=log_fast)
    async with connection as client:
        yield client, lambda name, arguments: client.call_tool(
            name, arguments, progress_handler=report, raise_on_error=False)


CALLS = [
    ("count", {"text": "äöü"}),
    ("count", {"txt": "a"}),
    ("broken", {}),
    ("careful", {"path": "a"}),
    ("careful", {"path": "b"}),
    ("missing", {}),
]


async def main():
    async with {"session": session, "client": client, "fastmcp": fastmcp}[sys.argv[1]]() as (connected, call):
        tools = await connected.list_tools()
        print("tools:", *sorted(tool.name for tool in getattr(tools, "tools", tools)))
        for name, arguments in CALLS:
            try:
                result = await call(name, arguments)
            except Exception as error:
                print(f"{name}: {error}")
                continue
            status = "failed: " if result.is_error else ""
            print(f"{name}: {status}{result.content[0].text}")
            if result.structured_content is not None:
                print("structured:", json.dumps(result.structured_content))

        if sys.argv[1] == "client":
            async with connected.listen(tools_list_changed=True) as events:
                change_script()
                print(await anext(aiter(events)))
        else:
            change_script()
            await changed.wait()
            print("ToolsListChanged()")
        result = await call("count", {"text": "ab"})
        print("count:", json.dumps(result.structured_content))


def change_script():
    saved = PROJECT / "saved.lua"
    saved.write_text("return function(text) return { length = #text } end\n")
    saved.rename(PROJECT / "scripts" / "count.lua")


asyncio.run(main())

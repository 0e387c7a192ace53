"""Uses a server over stdio with three clients and prints what they see: clients.py CLIENT PROGRAM ARGUMENT... PROJECT"""

import asyncio
import pathlib
import sys
from contextlib import asynccontextmanager

import mcp
import mcp.types
from fastmcp import Client as FastClient
from fastmcp.client.transports import StdioTransport
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

PROGRAM, *ARGUMENTS = sys.argv[2:]
PROJECT = pathlib.Path(ARGUMENTS[-1])
SERVER = StdioServerParameters(command=PROGRAM, args=ARGUMENTS)
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


@asynccontextmanager
async def session():
    async with stdio_client(SERVER) as streams:
        async with ClientSession(*streams, elicitation_callback=elicit, message_handler=on_message) as client:
            await client.initialize()
            yield client, lambda name, arguments: client.call_tool(name, arguments, progress_callback=report)


@asynccontextmanager
async def client():
    async with Client(SERVER, elicitation_callback=elicit) as client:
        yield client, lambda name, arguments: client.call_tool(name, arguments, progress_callback=report)


@asynccontextmanager
async def fastmcp():
    # Without `subscriptions/listen`, this client hears of changes in older versions only.
    connection = FastClient(
        StdioTransport(PROGRAM, ARGUMENTS), mode="legacy", elicitation_handler=elicit_fast, message_handler=on_message)
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


        if sys.argv[1] == "client":
            async with connected.listen(tools_list_changed=True) as events:
                change_script()
                print(await anext(aiter(events)))
        else:
            change_script()
            await changed.wait()
            print("ToolsListChanged()")
        result = await call("count", {"text": "ab"})
        print(f"count: {result.content[0].text}")


def change_script():
    saved = PROJECT / "saved.lua"
    saved.write_text("return function(text) return #text end\n")
    saved.rename(PROJECT / "scripts" / "count.lua")


asyncio.run(main())

"""A server on stdin and stdout that answers with the results in the file `server.json`: `initialize` holds members of the
handshake, `list` the results of `tools/list`, one after the other, of which the last repeats, and `call` the result of
every call."""

import json
import sys

with open("server.json") as file:
    RESULTS = json.load(file)


def result_of(message):
    if message["method"] == "initialize":
        version = message["params"]["protocolVersion"]
        server = {"name": "played", "version": "1"}
        answer = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        return {**answer, **RESULTS["initialize"]}
    if message["method"] == "tools/list":
        pages = RESULTS["list"]
        return pages.pop(0) if len(pages) > 1 else pages[0]
    return RESULTS["call"] if message["method"] == "tools/call" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = result_of(message)
    answer = {"error": {"code": -32601, "message": "unknown method"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)

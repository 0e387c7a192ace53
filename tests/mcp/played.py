"""A server on stdin and stdout that answers with the results in the file `server.json`, or in that of its argument:
`initialize` holds members of the handshake, `list` the results of `tools/list`, one after the other, of which the last
repeats, and `call` the result of every call, or `environment` or `name`: then its text is the names of the environment
variables, or the name of the called tool. Instead of `call`, `answer` holds the members of the answer to a call, `line` this
answer as a text with `ID`, and `size` the size of its text. `log` is printed before each answer. With `changed`, a change of
the tools is announced before the answer to a call. The file `received` counts the received lines."""

import json
import os
import sys

with open(sys.argv[1] if len(sys.argv) > 1 else "server.json") as file:
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
    if message["method"] != "tools/call":
        return None
    texts = {"environment": "".join(f"{name} " for name in os.environ), "name": message["params"]["name"]}
    if isinstance(RESULTS["call"], str) and RESULTS["call"] in texts:
        return {"content": [{"type": "text", "text": texts[RESULTS["call"]]}]}
    return RESULTS["call"]


received = 0
for line in sys.stdin:
    received += 1
    with open("received", "w") as file:
        file.write(str(received))
    message = json.loads(line)
    if "log" in RESULTS:
        print(RESULTS["log"], flush=True)
    if "id" not in message or "method" not in message:
        continue
    if message["method"] == "tools/call" and "changed" in RESULTS:
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)
    if message["method"] == "tools/call" and "call" not in RESULTS:
        if "size" in RESULTS:
            answer = {"result": {"content": [{"type": "text", "text": "x" * RESULTS["size"]}]}}
        else:
            answer = RESULTS.get("answer")
        id = {} if answer and "id" in answer else {"id": message["id"]}
        whole = json.dumps({"jsonrpc": "2.0", **id, **answer}) if answer else RESULTS["line"]
        if RESULTS.get("id") == "last":
            whole = json.dumps({**answer, "jsonrpc": "2.0", **id})
        print(whole.replace("ID", str(message["id"])), flush=True)
        continue
    result = result_of(message)
    answer = {"error": {"code": -32601, "message": "unknown method"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)

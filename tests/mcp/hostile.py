"""A server on stdin and stdout with a tool that misbehaves: hostile.py BEHAVIOUR. Writes its process ID and that of a
child to the file `pids`."""

import json
import os
import subprocess
import sys
import time

BEHAVIOUR = sys.argv[1]
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
# Each definition refers to the next one ten times, so there are a million million paths.
LEVELS = {f"d{level}": {"anyOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 10} for level in range(12)}
COSTLY = {"type": "object", "properties": {"n": {"$ref": "#/$defs/d0"}}, "$defs": {**LEVELS, "d12": {"type": "string"}}}
calls = []
TOOL = {"name": "act", "description": "Act.", "inputSchema": {"type": "object"}}


def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tools():
    if BEHAVIOUR == "lies":
        wrong = {"type": "object", "properties": {"x": {"type": "no-type"}}}
        return [
            TOOL,
            {**TOOL, "name": "broken", "inputSchema": wrong},
            {**TOOL, "outputSchema": NUMBER},
            {**TOOL, "name": "dots.and spaces"},
            {**TOOL, "name": "x" * 100},
        ]
    if BEHAVIOUR == "costs":
        return [{**TOOL, "name": "costly", "inputSchema": COSTLY}, {**TOOL, "outputSchema": COSTLY}]
    return [TOOL, {**TOOL, "name": "more"}] if BEHAVIOUR == "grows" and calls else [TOOL]


def call(id):
    ok = {"content": [{"type": "text", "text": "acted"}]}
    calls.append(id)
    if BEHAVIOUR == "dies" and not os.path.exists("died"):
        open("died", "w").close()
        print("out of luck", file=sys.stderr, flush=True)
        os._exit(3)
    elif BEHAVIOUR == "hangs":
        return
    elif BEHAVIOUR == "costs":
        ok = {"content": [], "structuredContent": {"n": 5}}
    elif BEHAVIOUR == "lies":
        ok = {"content": [], "structuredContent": {"n": "three"}}
    elif BEHAVIOUR == "grows" and len(calls) == 1:
        # The call ends after the tools were listed again.
        return send(method="notifications/tools/list_changed")
    elif BEHAVIOUR == "refuses":
        return send(id=id, error={"code": -32602, "message": "not today"})
    elif BEHAVIOUR == "leaks":
        ok = {"content": [{"type": "text", "text": os.environ["H_TOKEN"]}]}
    elif BEHAVIOUR == "fails":
        ok = {"content": [{"type": "text", "text": "disk full"}], "isError": True}
    elif BEHAVIOUR == "floods":
        for _ in range(20000):
            send(method="notifications/tools/list_changed")
            send(method="notifications/message", params={"level": "info", "data": "x" * 1000})
        print("not JSON\n[]\n{}\n\xff", flush=True)
        send(id=987654, result=ok)
        sys.stdout.write("x" * (100 << 20) + "\n")
    send(id=id, result=ok)


child = subprocess.Popen(["sleep", "1000"])
with open("pids", "a") as pids:
    pids.write(f"{os.getpid()}\n{child.pid}\n")
if BEHAVIOUR == "exits":
    print("no configuration", file=sys.stderr, flush=True)
    sys.exit(7)
if BEHAVIOUR in ("starts-late", "starts-late-modern"):
    # Longer than clients wait for an answer to `server/discover`.
    time.sleep(11)
for line in sys.stdin:
    if BEHAVIOUR == "silent":
        continue
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if BEHAVIOUR == "starts-late-modern" and method in ("server/discover", "initialize"):
        # A server whose connection speaks the protocol of 2026-07-28 refuses the older handshake.
        if method == "initialize":
            send(id=id, error={"code": -32022, "message": "the initialize handshake is not accepted"})
            continue
        found = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
        send(id=id, result={**found, "ttlMs": 0, "cacheScope": "private"})
    elif method == "initialize":
        server = {"name": "hostile", "version": "1"}
        version = message["params"]["protocolVersion"]
        send(id=id, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server})
    elif method == "tools/list":
        send(id=id, result={"tools": tools()})
        if BEHAVIOUR == "grows" and calls:
            time.sleep(0.5)
            send(id=calls[0], result={"content": [{"type": "text", "text": "acted"}]})
    elif method == "tools/call":
        call(id)
    elif method == "notifications/cancelled":
        open("canceled", "w").close()
    elif id is not None:
        send(id=id, error={"code": -32601, "message": f"no {method}"})
if BEHAVIOUR == "hangs":
    # Ignores the end of its input.
    time.sleep(1000)

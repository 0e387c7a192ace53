"""Saves a file COUNT times, and waits after each save until a server uses it. Arguments: KIND COUNT FILE COMMAND…

The file contains the text `0000`, which each save replaces by a number, and which the server returns. An `mcp` server is
called over stdin and stdout, an `http` server at the port in `PORT`.
"""

import json
import os
import socket
import subprocess
import sys
import time

PAUSE = 0.02
# Seconds before a save. uvicorn starts to watch 0.25 s after its first start. Python uses the old bytecode of a file that is
# saved twice in a second with the same size.
REST = 1

kind, count, path, command = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
command = [part.replace("PORT", str(port)) for part in command]
with open(path) as file:
    template = file.read()
pipe = subprocess.PIPE if kind == "mcp" else subprocess.DEVNULL
server = subprocess.Popen(
    command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env={**os.environ, "PORT": str(port)}
)


def send(method, parameters, **members):
    message = {"jsonrpc": "2.0", "method": method, "params": parameters, **members}
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()


def call_mcp():
    send("tools/call", {"name": "tool_0", "arguments": {"query": "x"}}, id=2)
    # Notifications precede the response.
    while '"id":2' not in (line := server.stdout.readline()):
        assert line, "the server has ended"
    return line


def call_http():
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return "".join(iter(lambda: connection.recv(4096).decode(), ""))
    except OSError:
        return ""


def wait_for(text, call):
    until = time.monotonic() + 60
    while text not in call():
        assert server.poll() is None and time.monotonic() < until, "the server does not use the file"
        time.sleep(PAUSE)


call = call_mcp if kind == "mcp" else call_http
try:
    if kind == "mcp":
        client = {"name": "peer", "version": "1"}
        send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}, id=1)
        send("notifications/initialized", {})
    wait_for("0000", call)
    for number in range(count):
        version = f"{1000 + number}"
        time.sleep(REST)
        with open(path, "w") as file:
            file.write(template.replace("0000", version))
        wait_for(version, call)
finally:
    with open(path, "w") as file:
        file.write(template)
    server.terminate()
    server.wait()

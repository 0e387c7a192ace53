"""Calls the tool `add` of an MCP server, and prints the CPU time of the server in seconds. Arguments: KIND COUNT OPEN COMMAND…

A `stdio` server is called over stdin and stdout, with OPEN calls at the same time. An `http` server is called at the port
that replaces `PORT`, over one kept connection, with one call at a time.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import time

kind, count, most_open, command = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "peer", "version": "1"}}
CALL = {"name": "add", "arguments": {"a": 1, "b": 2}}


def message(method, parameters, **members):
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": parameters, **members}).encode()


def call_stdio():
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0)
    answers = open(server.stdout.fileno(), "rb", closefd=False)

    def send(line):
        server.stdin.write(line + b"\n")

    def receive():
        line = answers.readline()
        assert b'"result"' in line, line

    send(message("initialize", CLIENT, id=0))
    receive()
    send(message("notifications/initialized", {}))
    sent = 0
    for received in range(count):
        while sent < min(received + most_open, count):
            sent += 1
            send(message("tools/call", CALL, id=sent))
        receive()
    server.stdin.close()
    return server


def call_http():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = [part.replace("PORT", str(port)) for part in command]
    server = subprocess.Popen(started, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while True:
        try:
            connection.connect()
            break
        except OSError:
            assert server.poll() is None, "the server has ended"
            time.sleep(0.02)
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def post(body):
        connection.request("POST", "/mcp", body, headers)
        reply = connection.getresponse()
        return reply.headers, reply.read()

    session, _ = post(message("initialize", CLIENT, id=0))
    headers |= {"Mcp-Session-Id": session["mcp-session-id"], "MCP-Protocol-Version": CLIENT["protocolVersion"]}
    post(message("notifications/initialized", {}))
    for number in range(1, count + 1):
        _, body = post(message("tools/call", CALL, id=number))
        assert b'"result"' in body, body
    server.terminate()
    return server


# While the server is referenced, nothing else waits for it.
server = call_stdio() if kind == "stdio" else call_http()
_, _, usage = os.wait4(server.pid, 0)
print(usage.ru_utime + usage.ru_stime)

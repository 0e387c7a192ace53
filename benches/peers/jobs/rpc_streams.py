"""Reads COUNT streams at once through `deftool rpc`, and prints its CPU time in seconds. Arguments: DEFTOOL URL COUNT SECONDS."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

deftool, url, count, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]

with tempfile.TemporaryDirectory() as project:
    Path(project, "specs").mkdir()
    Path(project, "specs/peer.eld").write_text(f'(defworker :name "peer" :model "stub" :slots {max(count, 1)})\n')
    command = [deftool, "rpc", "--endpoint", url, "-C", project]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(number, method, parameters):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()

    for number in range(count):
        send(number, "submit", {"prompt": f"stream {number} {seconds}"})
    ended = 0
    while ended < count:
        line = server.stdout.readline()
        # Events are notifications, and need not be parsed.
        if b'"id":' not in line[:40]:
            continue
        reply = json.loads(line)
        assert "error" not in reply, reply
        if reply["id"] < count:
            send(count + reply["id"], "events", {"request_id": reply["result"]["request_id"]})
        else:
            ended += 1
    server.stdin.close()
    _, _, usage = os.wait4(server.pid, 0)
print(usage.ru_utime + usage.ru_stime)

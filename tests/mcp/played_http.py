"""A Streamable HTTP server on a free port, whose URL it prints. The file `server.json` holds `call`, the HTTP response to each
`tools/call` (`status`, `body`, `type`, or `size`: a result of so many bytes), and optionally `sessions`: after so many calls
of a session, its requests get `gone` until the client initialises again. `sse` sends the body as an event, and with `changed`
before it one that announces a change of the tools, which are then more. `redirect` answers requests for `/mcp` with a `status`
and a `location`, or only those of its `method`. `token` is required."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

with open("server.json") as file:
    PLAYED = json.load(file)
STATE = {"session": 0, "calls": 0}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json", session=None):
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        if PLAYED.get("sse") and session is None and status == 200:
            kind, data = "text/event-stream", b"data: " + data + b"\n\n"
            if STATE["calls"] and "changed" in PLAYED:
                changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
                data = b"data: " + json.dumps(changed).encode() + b"\n\n" + data
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.answer(405, "")

    do_DELETE = do_GET

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, id = message.get("method"), message.get("id")
        redirect = PLAYED.get("redirect")
        if redirect and self.path == "/mcp" and redirect.get("method", method) == method:
            self.send_response(redirect["status"])
            self.send_header("Location", redirect["location"])
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if "token" in PLAYED and self.headers["Authorization"] != f"Bearer {PLAYED['token']}":
            return self.answer(401, "no token")
        if id is None:
            return self.answer(202, "")
        result = {"jsonrpc": "2.0", "id": id}
        if method == "initialize":
            STATE.update(session=STATE["session"] + 1, calls=0)
            info = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
            return self.answer(200, {**result, "result": info}, session=f"s{STATE['session']}" if "sessions" in PLAYED else "")
        if method == "tools/list":
            names = ["ping", "more"] if STATE["calls"] and "changed" in PLAYED else ["ping"]
            tools = [{"name": name, "description": "Ping.", "inputSchema": {"type": "object"}} for name in names]
            return self.answer(200, {**result, "result": {"tools": tools}})
        if method != "tools/call":
            return self.answer(200, {**result, "error": {"code": -32601, "message": "unknown method"}})
        STATE["calls"] += 1
        if "sessions" in PLAYED and STATE["calls"] > PLAYED["sessions"]:
            return self.answer(PLAYED["gone"]["status"], PLAYED["gone"]["body"])
        call = PLAYED["call"]
        if "size" in call:
            content = [{"type": "text", "text": "x" * call["size"]}]
            return self.answer(200, {**result, "result": {"content": content}})
        body = call["body"]
        if isinstance(body, dict) and "jsonrpc" not in body:
            body = {**result, **body}
        self.answer(call["status"], body, call.get("type", "application/json"))


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
server.serve_forever()

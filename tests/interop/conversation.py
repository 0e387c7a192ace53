"""A conversation of three turns between deftool and a scripted model, whose server accepts what a reader can read."""

import json
import os
import pathlib
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SYSTEM = "You keep the ledger of a museum."
TOOLS = """
(deftool :name "find_place" :description "Find something." :args ((:name "place" :type string :description "Where.")))
(deftool :name "take_note" :description "Note something." :args ((:name "topic" :type string :description "What.")))
(deftool :name "try_luck" :description "Fail." :args ((:name "stake" :type string :description "How much.")))
(defexit :name "task_complete" :description "End." :args ((:name "summary" :type string :description "Text.")))
"""
NOTE = 'a string\nof "two" lines'
SCRIPTS = {
    "find_place": 'return function(place) return { found = "an object" } end\n',
    "take_note": f"return function(topic) return {json.dumps(NOTE)} end\n",
    "try_luck": 'return function(stake) error("an error", 0) end\n',
}
PROMPTS = ["Find both.", "Once more.", "Thank you."]


@dataclass
class Reply:
    text: str
    thought: str = ""
    calls: list = field(default_factory=list)


# Parallel calls with an error, a call without text, a signal beside the answer, and parallel calls in the next turn.
REPLIES = [
    Reply("Let me see.", "First thought.", [("find_place", "Ulm"), ("try_luck", "Bonn")]),
    Reply("", "Second thought.", [("take_note", "Kiel")]),
    Reply("All found.", "", [("task_complete", "Jena")]),
    Reply("", "Third thought.", [("find_place", "Trier"), ("take_note", "Worms")]),
    Reply("Found again."),
    Reply("Goodbye."),
]
ARGUMENT = {"find_place": "place", "take_note": "topic", "try_luck": "stake", "task_complete": "summary"}


class Refused(Exception):
    """A reader refuses a request. `body`: the error that its server sends."""

    def __init__(self, message, body=None):
        super().__init__(message)
        self.body = body or {"error": {"message": message, "type": "BadRequestError", "code": 400}}


@dataclass
class Reader:
    """`read` returns what the model reads of a request, or raises `Refused`."""

    name: str
    read: object
    api: str = "chat"
    # The form of call ids: Kimi's, or nine characters as Mistral's servers send them.
    has_short_ids: bool = False
    # The member that carries thoughts: `reasoning_content`, `reasoning` or `parts` of the content. Empty: no thoughts.
    thoughts: str = "reasoning_content"

    def encode(self, index):
        """Encodes the reply with this index as an event stream."""
        reply = REPLIES[min(index, len(REPLIES) - 1)]
        before = sum(len(reply.calls) for reply in REPLIES[:index])
        ids = [
            f"call{before + at:05}" if self.has_short_ids else f"functions.{name}:{before + at}"
            for at, (name, _) in enumerate(reply.calls)
        ]
        calls = [(id, name, json.dumps({ARGUMENT[name]: value})) for id, (name, value) in zip(ids, reply.calls)]
        streams = {"chat": chat_stream, "responses": responses_stream, "messages": messages_stream}
        return streams[self.api](self, reply, calls)


def chat_stream(reader, reply, calls):
    deltas = [{"role": "assistant", "content": None if calls else ""}]
    if reply.thought and reader.thoughts == "parts":
        deltas.append(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": reply.thought}], "closed": True}]}
        )
    elif reply.thought and reader.thoughts:
        deltas.append({reader.thoughts: reply.thought})
    if reply.text:
        deltas.append({"content": reply.text})
    for index, (id, name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": arguments}
        deltas.append({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"})
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [json.dumps({**head, "choices": [choice]}) for choice in choices]
    return "".join(f"data: {chunk}\n\n" for chunk in [*chunks, "[DONE]"])


def responses_stream(reader, reply, calls):
    number, items = REPLIES.index(reply), []
    if reply.thought and reader.thoughts:
        summary = [{"type": "summary_text", "text": reply.thought}]
        items.append(
            {"id": f"rs_{number}", "type": "reasoning", "summary": summary, "encrypted_content": reply.thought}
        )
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": content}
        items.append({**message, "status": "completed"})
    for id, name, arguments in calls:
        call = {"id": f"fc_{id}", "type": "function_call", "call_id": id, "name": name, "arguments": arguments}
        items.append({**call, "status": "completed"})
    response = {"id": "r", "object": "response", "model": "m", "status": "completed", "output": items}
    events = [{"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}]
    for index, item in enumerate(items):
        at = {"output_index": index, "item_id": item["id"]}
        empty = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {}}[item["type"]]
        events.append({"type": "response.output_item.added", "output_index": index, "item": {**item, **empty}})
        if item["type"] == "message":
            events.append({"type": "response.output_text.delta", **at, "content_index": 0, "delta": reply.text})
        elif item["type"] == "function_call":
            events.append({"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": response})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def messages_stream(reader, reply, calls):
    blocks = []
    if reply.thought and reader.thoughts:
        blocks.append({"type": "thinking", "thinking": reply.thought, "signature": "c2ln"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    blocks += [{"type": "tool_use", "id": id, "name": name, "input": json.loads(input)} for id, name, input in calls]
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events = [{"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}]
    for index, block in enumerate(blocks):
        empty = {"thinking": {"thinking": "", "signature": ""}, "text": {"text": ""}, "tool_use": {"input": {}}}
        deltas = {
            "thinking": lambda: [("thinking", block["thinking"]), ("signature", block["signature"])],
            "text": lambda: [("text", block["text"])],
            "tool_use": lambda: [("input_json", json.dumps(block["input"]))],
        }[block["type"]]()
        start = {**block, **empty[block["type"]]}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        for kind, piece in deltas:
            delta = {"type": f"{kind}_delta", "partial_json" if kind == "input_json" else kind: piece}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    events += [{"type": "message_delta", "delta": stop, "usage": usage}, {"type": "message_stop"}]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


@dataclass
class Outcome:
    """`accepted`: each accepted body, and what the model read of it. `refusals`: the messages of the other requests."""

    accepted: list = field(default_factory=list)
    refusals: list = field(default_factory=list)
    output: str = ""


def handler(reader, outcome):
    class Handler(BaseHTTPRequestHandler):
        def answer(self, status, content_type, body):
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def do_GET(self):
            is_found = self.path.endswith("/models")
            models = {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": "reader"}]}
            self.answer(
                200 if is_found else 404, "application/json", json.dumps(models if is_found else {"error": "not found"})
            )

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                text = reader.read(body)
            except Refused as refused:
                outcome.refusals.append(str(refused))
                return self.answer(400, "application/json", json.dumps(refused.body))
            index = len(outcome.accepted)
            outcome.accepted.append((body, text))
            self.answer(200, "text/event-stream", reader.encode(index))

        def log_message(self, *_):
            pass

    return Handler


def deftool(*arguments, cwd, stdin=""):
    environment = {**os.environ, "XDG_STATE_HOME": f"{cwd}/state", "NO_COLOR": "1"}
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        environment.pop(name, None)
    command = [os.environ["DEFTOOL"], *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, input=stdin, text=True, capture_output=True, timeout=120)


def project(folder, api="chat"):
    """Creates the project of `deftool init` with these tools, and a system message for its worker."""
    deftool("init", ".", cwd=folder)
    for path in [*folder.glob("specs/tools.eld"), *folder.glob("scripts/*")]:
        path.unlink()
    (folder / "specs/tools.eld").write_text(TOOLS)
    for name, script in SCRIPTS.items():
        (folder / f"scripts/{name}.lua").write_text(script)
    worker = folder / "specs/worker.eld"
    more = f'(defworker\n :system "{SYSTEM}"' + ("" if api == "chat" else f"\n :api {api}")
    worker.write_text(worker.read_text().replace("(defworker", more, 1))


def converse(reader):
    """Has the conversation, and returns its outcome."""
    outcome = Outcome()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(reader, outcome))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        project(folder, reader.api)
        endpoint = f"http://127.0.0.1:{server.server_port}/v1"
        ended = deftool("chat", "--endpoint", endpoint, cwd=folder, stdin="\n".join(PROMPTS) + "\n")
    server.shutdown()
    outcome.output = ended.stdout + ended.stderr
    return outcome

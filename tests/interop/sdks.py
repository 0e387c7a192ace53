"""Reads replies of the stub over the Messages API, with and without faults, with the SDKs of Anthropic and with deftool.

Compares the table of what they read with sdks.md. `--update` writes sdks.md and its copy in docs/faults.md.
"""

import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import anthropic
from conversation import deftool

HERE = pathlib.Path(__file__).parent
EXPECTED = HERE / "sdks.md"
PAGE = HERE.parents[1] / "docs/faults.md"
HEAD = "| reply | Python SDK | TypeScript SDK | deftool |\n|---|---|---|---|\n"
SCENARIO = HERE / "sdks.eld"
# Faults of connections do not depend on the API, and these three are large.
SKIPPED = {"arguments-bomb", "calls-too-many", "json-bomb"}
GROUPS = {"Tool calls", "Finish, role, content, token counts", "Messages API", "Event streams", "HTTP"}
TEXTS = [
    "This is a generated reply of the stub server. It is long enough to be cut in half.",
    "Let me look. ",
    *["It is calm.", "It is", "All is calm."],
]
LOOK = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"], "additionalProperties": False}
TOOLS = [
    {"name": "look", "description": "Look.", "input_schema": LOOK},
    {"name": "now", "description": "Now.", "input_schema": {"type": "object", "properties": {}}},
]
# After an exit tool deftool sends no results, so that it reads one reply.
SPEC = '({form} :name "look" :description "Look." :args ((:name "at" :type string :description "Where.")))\n'
SPEC += '({form} :name "now" :description "Now." :args ())\n'
# The time for one reply, in seconds.
LIMIT = 10


class Stub:
    """A running stub. `address`: without `/v1`."""

    def __init__(self, *arguments):
        command = [os.environ["DEFTOOL"], "stub", "--quiet", "--until-stdin-closes", *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().removeprefix("READY ").strip().removesuffix("/v1")

    def __enter__(self):
        return self.address

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def read_in_python(address, model, follow):
    """Reads a reply with the Python SDK, and those after the results of its calls."""
    client = anthropic.Anthropic(base_url=address, api_key="none", max_retries=0, timeout=LIMIT)
    result = {"contents": [], "stop": None}

    def keep(at, message):
        result["contents"][at:] = [[block.to_dict(warnings=False) for block in message.content]]
        result["stop"] = message.stop_reason

    def read():
        messages = [{"role": "user", "content": "How is the sea?"}]
        for at in range(9):
            request = {"model": model, "max_tokens": 1000, "tools": TOOLS, "messages": messages}
            if model == "whole":
                keep(at, client.messages.create(**request))
            else:
                with client.messages.stream(**request) as stream:
                    for _ in stream:
                        keep(at, stream.current_message_snapshot)
                    keep(at, stream.get_final_message())
            content = result["contents"][at]
            calls = [block["id"] for block in content if block["type"] == "tool_use"] if follow else []
            if not calls:
                return
            results = [{"type": "tool_result", "tool_use_id": id, "content": "calm"} for id in calls]
            messages += [{"role": "assistant", "content": content}, {"role": "user", "content": results}]

    def catch():
        try:
            read()
        except Exception as error:
            result["error"] = f"error {type(error).__name__}"

    thread = threading.Thread(target=catch, daemon=True)
    thread.start()
    thread.join(LIMIT)
    return {"error": "no end", **result} if thread.is_alive() else result


def read_in_typescript(address, models, follow):
    options = {"address": address, "models": models, "tools": TOOLS, "follow": follow, "limit": LIMIT * 1000}
    command = ["node", HERE / "sdks.mjs", json.dumps(options)]
    return json.loads(subprocess.run(command, cwd=HERE, text=True, capture_output=True, check=True).stdout)


def read_in_deftool(address, model, follow):
    with tempfile.TemporaryDirectory() as folder:
        project = pathlib.Path(folder)
        for name in ("specs", "scripts"):
            (project / name).mkdir()
        (project / "specs/tools.eld").write_text(SPEC.format(form="deftool" if follow else "defexit"))
        (project / "specs/worker.eld").write_text('(defworker :name "sdk" :api messages)')
        for name, arguments in [("look", "at"), ("now", "")] if follow else []:
            (project / f"scripts/{name}.lua").write_text(f'return function({arguments}) return "calm" end\n')
        command = ["run", "How is the sea?", "--json", "--endpoint", f"{address}/v1", "--model", model]
        try:
            ended = deftool(*command, cwd=folder)
        except subprocess.TimeoutExpired:
            return {"contents": [], "error": "no end"}
    events = [json.loads(line) for line in ended.stdout.splitlines()]
    if not events:
        return {"contents": [], "error": ended.stderr.strip()}
    blocks = []
    for event in events:
        kind, last = event["type"], blocks[-1] if blocks else {}
        if kind in ("text", "reasoning"):
            kind, member = ("text", "text") if kind == "text" else ("thinking", "thinking")
            if last.get("type") == kind:
                last[member] += event["text"]
            else:
                blocks.append({"type": kind, member: event["text"]})
        elif kind in ("tool_call", "signal"):
            name = event.get("name") or event["tool_name"]
            blocks.append({"type": "tool_use", "name": name, "input": event["arguments"]})
    finished = events[-1]
    failure = finished.get("kind") or finished.get("fail_reason")
    error = {"error": f"error {failure}"} if failure else {}
    return {"contents": [blocks], "stop": finished.get("finish_reason"), **error}


def cell(result):
    """Describes a result in a few words."""
    parts = []
    for block in (block for content in result["contents"] for block in content):
        part = word(block)
        count, last = parts[-1] if parts else (0, "")
        if part and part == last:
            parts[-1] = (count + 1, part)
        elif part:
            parts.append((1, part))
    words = [f"{count} {part}s" if part == "call" and count > 1 else part for count, part in parts]
    end = result.get("error") or str(result["stop"] or "no stop reason")
    return ", ".join([*words, end]).replace("|", "/")


def word(block):
    kind = block.get("type")
    if kind == "text":
        text = block.get("text") or ""
        is_part = any(whole.startswith(text) for whole in TEXTS)
        return "text" if text in TEXTS else "" if not text else "a part of the text" if is_part else "another text"
    if kind == "tool_use":
        input, wanted = block.get("input"), {"look": {"at"}, "now": set()}.get(block.get("name"))
        is_valid = isinstance(input, dict) and set(input) == wanted
        return "call" if is_valid else f"call with `{json.dumps(input)}`"[:60]
    return {"thinking": "thought", "redacted_thinking": "redacted thought"}.get(kind, f"`{kind}`")


def scenarios():
    return re.findall(r':model "(\w+)"(?! :last-role tool)', SCENARIO.read_text())


def faults():
    groups = json.loads(deftool("stub", "--list", "--json", cwd=HERE).stdout)
    members = (fault for group in groups if group["title"] in GROUPS for fault in group["members"])
    return [fault["name"] for fault in members if "messages" in fault["apis"] and fault["name"] not in SKIPPED]


def measure(arguments, models, follow):
    """Returns the cells of each model."""
    with Stub(*arguments) as address, ThreadPoolExecutor(8) as pool:
        in_python = list(pool.map(lambda model: read_in_python(address, model, follow), models))
        in_typescript = read_in_typescript(address, models, follow)
        in_deftool = list(pool.map(lambda model: read_in_deftool(address, model, follow), models))
    return [tuple(map(cell, results)) for results in zip(in_python, in_typescript, in_deftool)]


def page():
    """Returns the table, with one line for faults with equal cells."""
    names = scenarios()
    rows = [(f"scenario `{name}`", cells) for name, cells in zip(names, measure([SCENARIO], names, True))]
    groups = {}
    for name, cells in zip(faults(), measure([], faults(), False)):
        groups.setdefault(cells, []).append(f"`{name}`")
    rows += [(", ".join(names), cells) for cells, names in sorted(groups.items(), key=lambda group: -len(group[1]))]
    return HEAD + "".join(f"| {name} | {' | '.join(cells)} |\n" for name, cells in rows)


def main():
    # The SDK warns of values with a wrong type.
    warnings.simplefilter("ignore")
    table = page()
    if "--update" in sys.argv:
        EXPECTED.write_text(table)
        before = PAGE.read_text().split(HEAD)[0]
        PAGE.write_text(before + table)
    elif table != EXPECTED.read_text():
        lines = difflib.unified_diff(EXPECTED.read_text().splitlines(), table.splitlines(), "sdks.md", "read", lineterm="")
        print("\n".join(lines))
        sys.exit("the table differs from tests/interop/sdks.md; `tests/interop/run --update` updates it")
    print(f"the SDKs read {len(scenarios())} scenarios and {len(faults())} faults, as expected")


main()

#!/usr/bin/env python3
"""Asks llama.cpp's server which argument schemas and patterns it can convert to a grammar, and records its responses.

    tests/real/.venv/bin/python tests/real/grammar.py [NAME...]

Updates `tests/llama_cpp.json`: for each schema the error, or whether the grammar is the same without the keyword
(`ignored`); for each pattern the error, whether any string is allowed (`ignored`), or a sample. To add a case, add its
`argument` and `keyword`, or its pattern. The server prints its grammars at verbosity 10. A server that ends is started
again.
"""

import json
import re
import resource
import subprocess
import sys
import urllib.error
import urllib.request
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = HERE.parent / "llama_cpp.json"
STRING = {"type": "string"}


class Server:
    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self.child = subprocess.Popen(
            [sys.executable, HERE / "serve.py", "--verbosity", "10", "--template", "short.jinja"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
            # A schema may make the server eat memory until the machine stops.
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30)))
        ready = next(line for line in self.child.stdout if line.startswith("READY "))
        self.base = ready.split()[1].removesuffix("/v1")

    def ask(self, path: str, body: dict | None) -> tuple[int, dict]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except (OSError, ValueError) as error:
            self.child.kill()
            self.child.wait()
            self.start()
            return 0, {"error": {"message": f"no answer: {type(error).__name__}"}}

    def stop(self) -> None:
        self.child.stdin.close()
        self.child.wait()


def parameters_of(schema: dict | bool) -> dict:
    """As the compiler emits it for one required argument x."""
    if isinstance(schema, dict) and schema.get("type") == "object":
        schema = schema | {key: value for key, value in [("required", []), ("additionalProperties", False)]
                           if key not in schema}
    return {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}


def tool(parameters: dict, name: str = "probe") -> dict:
    return {"type": "function", "function": {"name": name, "description": "Call this.", "parameters": parameters}}


def error_of(answer: dict) -> str:
    """The last line of the error message."""
    error = answer.get("error")
    message = str(error.get("message") if isinstance(error, dict) else error).split("\n")[-1]
    return message if len(message) < 300 else message[:300] + "…"


def rules_of(grammar: str) -> dict:
    """The rules that hold the argument, by name."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.split("\n") if " ::= " in line)
    ours = {}
    pending = ["tool-0-schema"]
    while pending:
        name = pending.pop()
        if name in rules and name not in ours:
            ours[name] = rules[name]
            pending += re.findall(r"[a-zA-Z][a-zA-Z0-9-]*", re.sub(r'"(\\.|[^"\\])*"|\[(\\.|[^\]\\])*\]', " ", rules[name]))
    return ours


def meaning_of(rules: dict) -> dict:
    """The rules without those that only give another one a second name, so that equal ones compare equal."""
    aliases = {name: rule for name, rule in rules.items() if rule in rules}
    def resolve(text: str) -> str:
        for _ in range(9):
            text = re.sub(r"[a-zA-Z][a-zA-Z0-9-]*", lambda found: aliases.get(found[0], found[0]), text)
        return text
    return {name: resolve(rule) for name, rule in rules.items() if name not in aliases}


def ask_as_tool(server: Server, tools: list) -> tuple[str | None, dict]:
    status, answer = server.ask("/v1/chat/completions", {
        "messages": [{"role": "user", "content": "Call it."}], "tools": tools, "tool_choice": "required",
        "max_tokens": 1, "temperature": 0})
    settings = answer.get("__verbose", {}).get("generation_settings", {})
    return error_of(answer) if status != 200 else None, rules_of(settings.get("grammar", ""))


def sample(server: Server, rules: dict) -> str:
    """A random sample that the rules allow."""
    grammar = "\n".join([f"{name} ::= {rule}" for name, rule in rules.items()] + ["root ::= tool-0-schema"])
    status, answer = server.ask("/completion", {
        "prompt": "Random JSON:\n", "grammar": grammar, "n_predict": 24, "temperature": 1.5, "seed": 0})
    return answer.get("content") if status == 200 else f"{status}: {error_of(answer)}"


def record_schema(server: Server, row: dict) -> dict:
    schema, keyword = row["argument"], row.get("keyword")
    row = {key: row[key] for key in ("argument", "keyword") if key in row}
    error, rules = ask_as_tool(server, [tool(parameters_of(schema))])
    if error:
        return row | {"error": error}
    if keyword:
        rest = {key: value for key, value in schema.items() if key != keyword}
        _, bare = ask_as_tool(server, [tool(parameters_of(rest))])
        if bare:
            row["ignored"] = meaning_of(bare) == meaning_of(rules)
    return row


def record_pattern(server: Server, pattern: str) -> dict:
    error, rules = ask_as_tool(server, [tool(parameters_of(STRING | {"pattern": pattern}))])
    if error:
        return {"error": error}
    if rules.get("tool-0-schema-x") in (None, "", "string"):
        return {"ignored": True}
    return {"sample": sample(server, rules)}


def record_request(server: Server, row: dict) -> dict:
    row = {key: row[key] for key in ("tools", "name") if key in row}
    tools = [tool(parameters_of(STRING), row.get("name", f"probe_{index}")) for index in range(row.get("tools", 1))]
    error, _ = ask_as_tool(server, tools)
    return row | ({"error": error} if error else {})


def write(table: dict) -> None:
    def shown(value: object) -> str:
        return json.dumps(value, ensure_ascii=False)

    sections = [f' "server": {shown(table["server"])}']
    for section in ("schemas", "patterns", "requests"):
        rows = ",\n".join(f"  {shown(name)}: {shown(row)}" for name, row in table[section].items())
        sections.append(f' "{section}": {{\n{rows}\n }}')
    TABLE.write_text("{\n" + ",\n".join(sections) + "\n}\n")


def main() -> None:
    table = json.loads(TABLE.read_text())
    wanted = sys.argv[1:]
    server = Server()
    _, props = server.ask("/props", None)
    table["server"] = f"{props.get('build_info')} (xllamacpp {version('xllamacpp')})"
    ask = {
        "schemas": lambda name, row: record_schema(server, row),
        "patterns": lambda name, row: record_pattern(server, name),
        "requests": lambda name, row: record_request(server, row),
    }
    for section, record in ask.items():
        for name, row in table[section].items():
            if not wanted or name in wanted:
                table[section][name] = record(name, row)
                print(name, table[section][name].get("error"), flush=True)
    write(table)
    server.stop()


if __name__ == "__main__":
    main()

"""Measures what each reader reads of a conversation, and compares the table with expected.md."""

import copy
import difflib
import json
import os
import pathlib
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from anthropic.types import ToolParam
from conversation import NOTE, PROMPTS, REPLIES, SYSTEM, Refused, converse, deftool, project
from readers import readers, plain
from pydantic import TypeAdapter

EXPECTED = pathlib.Path(__file__).parent / "expected.md"
COLUMNS = ["accepted", "system", "budget", "names", "arguments", "ids", "results", "thoughts"]
# From the texts of deftool's default worker.
BIOS, BUDGET = "Exit tools are one-way signals", "iterations left"
CALLS = [call for reply in REPLIES for call in reply.calls if call[0] != "task_complete"]


def measure(reader):
    """Returns the cells of a reader, and the outcome of its conversation."""
    outcome = converse(reader)
    is_complete = len(outcome.accepted) == len(REPLIES)
    if not is_complete:
        errors = [line for line in outcome.output.splitlines() if line.startswith("error")]
        return [f"no: {cell((outcome.refusals or errors)[-1])}"], outcome
    (_, first), (body, last) = outcome.accepted[0], outcome.accepted[-1]

    def count(text):
        return last.count(text) - first.count(text)

    cells = ["after a retry" if outcome.refusals else "yes"]
    cells.append(some((BIOS in last) + (SYSTEM in last), 2))
    cells.append(some(sum(BUDGET in text for _, text in outcome.accepted), len(outcome.accepted)))
    cells.append(names(reader, body, count))
    cells.append(some(sum(count(value) > 0 for _, value in CALLS), len(CALLS)))
    cells.append(ids(reader, body, last))
    cells.append(results(count))
    cells.append(thoughts(reader, *outcome.accepted[2]))
    return cells, outcome


def cell(message):
    """Returns the first line of a message, for a table."""
    return message.strip().split("\n")[0][:70].replace("|", "/")


def some(shown, total):
    return "yes" if shown >= total else "some" if shown else "no"


def names(reader, body, count):
    """Reports whether the text has the name of each call."""
    renamed = copy.deepcopy(body)
    items = renamed.get("input") or [
        call for message in renamed["messages"] for call in message.get("tool_calls") or blocks(message)
    ]
    calls = [item.get("function", item) for item in items if "name" in item.get("function", item)]
    for index, call in enumerate(calls):
        call["name"] = f"other_tool_{index}"
    text = again(reader, renamed)
    if text is None or not calls:
        return some(sum(count(name) > 0 for name, _ in CALLS), len(CALLS))
    return some(sum(f"other_tool_{index}" in text for index in range(len(CALLS))), len(CALLS))


def blocks(message):
    """Returns the calls of a message of the Messages API."""
    content = message["content"]
    return [block for block in content if block["type"] == "tool_use"] if isinstance(content, list) else []


def ids(reader, body, text):
    """Reports whether the text has the ids of the calls, and whether they are those of the server."""
    sent = set(re.findall(r'"(?:id|call_id)": "([^"]+)"', json.dumps(body.get("messages") or body.get("input"))))
    server = set(re.findall(r"(?:functions\.\w+:\d+|call\d{5})", " ".join(map(reader.encode, range(len(REPLIES))))))
    if sent & server and all(id in text for id in sent & server):
        return "as sent"
    changed = json.dumps(body)
    for index, id in enumerate(sorted(sent)):
        changed = changed.replace(f'"{id}"', f'"other{index:04}"')
    other = again(reader, json.loads(changed))
    return "" if other in (None, text) else "changed"


def results(count):
    """Reports how the text has the results: all of them, and strings as they are."""
    markers = {"an object": 2, "an error": 1, "a string": 2}
    shown = sum(count(marker) >= total for marker, total in markers.items())
    if shown < len(markers):
        return some(shown, len(markers))
    return "as text" if count(NOTE) >= 2 else "quoted" if count(json.dumps(NOTE)[1:-1]) >= 2 else "quoted twice"


def thoughts(reader, body, text):
    """Reports whether the text of the tool loop has the thoughts, if the reader would show them."""
    wanted = [reply.thought for reply in REPLIES[:2]]
    shown = sum(thought in text for thought in wanted)
    if reader.api != "chat" or not reader.thoughts:
        return some(shown, len(wanted)) if reader.thoughts else ""
    full = copy.deepcopy(body)
    answers = [message for message in full.get("messages", []) if message["role"] == "assistant"]
    for message, thought in zip(answers, wanted):
        message.update(reasoning=thought, reasoning_content=thought)
    possible = again(reader, full) or ""
    if shown >= sum(thought in possible for thought in wanted):
        return "yes" if shown else ""
    return some(shown, len(wanted))


def again(reader, body):
    try:
        return reader.read(body)
    except Refused:
        return None


def anthropic_tools():
    """Returns the row of the tool definitions for Anthropic."""
    with tempfile.TemporaryDirectory() as folder:
        project(pathlib.Path(folder))
        tools = json.loads(deftool("compile", "--target", "anthropic", cwd=folder).stdout)
    typed = plain(TypeAdapter(list[ToolParam]).validate_python(tools))
    return ["yes" if typed == tools else "no: unknown members"]


def page(rows):
    """Returns the table, with one line for readers with equal cells."""
    groups = {}
    for name, cells in rows:
        groups.setdefault(tuple(cells), []).append(name)
    lines = ["| " + " | ".join(["read by", *COLUMNS]) + " |", "|" + "---|" * (len(COLUMNS) + 1)]
    for cells, names in sorted(groups.items(), key=lambda group: (-len(group[1]), group)):
        padded = [*cells, *[""] * (len(COLUMNS) - len(cells))]
        lines.append("| " + " | ".join([by_source(names), *padded]) + " |")
    return "\n".join(lines) + "\n"


def by_source(names):
    sources = {}
    for name in names:
        source, _, rest = name.partition("/")
        sources.setdefault(source, []).append(rest)
    return "; ".join(f"{source}: {', '.join(rest)}" if any(rest) else source for source, rest in sources.items())


def main():
    only = [name for name in sys.argv[1:] if name != "--update"]
    chosen = [reader for reader in readers() if not only or any(name.lower() in reader.name.lower() for name in only)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        measured = list(pool.map(measure, chosen))
    rows = [(reader.name, cells) for reader, (cells, _) in zip(chosen, measured)]
    if only:
        for (name, cells), (_, outcome) in zip(rows, measured):
            body, text = outcome.accepted[-1] if outcome.accepted else ({}, "")
            shown = json.dumps(body.get("messages") or body.get("input"), indent=1, ensure_ascii=False)
            print(f"## {name}: {cells}\nrefusals: {outcome.refusals}\n{shown}\n---\n{text}\n---\n{outcome.output}")
        return
    table = page([*rows, ("anthropic SDK/tools", anthropic_tools())])
    expected = EXPECTED.read_text() if EXPECTED.exists() else ""
    if "--update" in sys.argv:
        EXPECTED.write_text(table)
    elif table != expected:
        print(
            "\n".join(
                difflib.unified_diff(expected.splitlines(), table.splitlines(), "expected.md", "measured", lineterm="")
            )
        )
        sys.exit("the table differs from tests/interop/expected.md; `tests/interop/run --update` updates it")
    print(f"{len(rows)} readers read {len(PROMPTS)} turns each, as expected")


main()

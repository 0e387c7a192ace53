"""Compares the judge of `deftool eval` with the checker of the Berkeley Function Calling Leaderboard.

Each of its answer sets becomes an ask, and its functions become tools. Replies made from the answers, some of them
damaged, are judged by both. The table of the verdicts is compared with bfcl.md; `--update` writes it.
"""

import copy
import difflib
import importlib.metadata
import json
import pathlib
import subprocess
import sys
import types
from collections import Counter, defaultdict

# The table of models imports the clients of all vendors. The checker only reads this of it.
models = types.ModuleType("bfcl_eval.constants.model_config")
models.MODEL_CONFIG_MAPPING = {"any": types.SimpleNamespace(underscore_to_dot=False)}
sys.modules[models.__name__] = models

import bfcl_eval
from bfcl_eval.constants.enums import Language
from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

DATA = pathlib.Path(bfcl_eval.__file__).parent / "data"
EXPECTED = pathlib.Path(__file__).parent / "bfcl.md"
CATEGORIES = [
    "simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple",
]  # fmt: skip
LANGUAGES = {"simple_java": Language.JAVA, "simple_javascript": Language.JAVASCRIPT}
OTHER = "another_tool"
UPPER_CASE = "a text in upper case"
HEAD = "| reply | replies | both accept | both reject | only deftool accepts | only BFCL accepts |\n|---|---|---|---|---|---|\n"


def schema(function_schema):
    """Converts a schema of BFCL to JSON Schema."""
    kept = {key: value for key, value in function_schema.items() if key in ("enum", "required", "default")}
    word = function_schema.get("type")
    if word and word.lower() != "any":
        kept["type"] = GORILLA_TO_OPENAPI.get(word, word.lower())
    if "properties" in function_schema:
        kept["properties"] = {name: schema(inner) for name, inner in function_schema["properties"].items()}
    if "items" in function_schema:
        kept["items"] = schema(function_schema["items"])
    return kept


def definition(function):
    return {"type": "function", "function": {"name": function["name"], "parameters": schema(function["parameters"])}}


def kind(details):
    """Returns how BFCL compares the values of an argument."""
    if details.get("type") in ("dict", "HashMap"):
        return "dict"
    if details.get("type") in ("array", "tuple") and details.get("items", {}).get("type") == "dict":
        return "dicts"
    return "text" if details.get("type") in ("string", "String") else "value"


def pattern(alternatives, details):
    """Converts a list of alternatives, in which "" stands for an absent argument."""
    form = kind(details)
    # An empty text is also a value.
    chosen = [one for one in alternatives if one != "" or form == "text"]
    chosen = [value_pattern(one, form) for one in chosen]
    found = chosen[0] if len(chosen) == 1 else {"$any": chosen}
    return {"$optional": found} if "" in alternatives else found


def value_pattern(value, form):
    if form == "dict" and isinstance(value, dict):
        return {name: pattern(inner, {}) for name, inner in value.items()}
    if form == "dicts" and isinstance(value, list):
        return [value_pattern(one, "dict") for one in value]
    return value


def first_value(value, form):
    if form == "dict" and isinstance(value, dict):
        return {name: inner[0] for name, inner in value.items() if inner and inner[0] != ""}
    if form == "dicts" and isinstance(value, list):
        return [first_value(one, "dict") for one in value]
    return value


class AnswerSet:
    """The calls that BFCL accepts for one prompt."""

    def __init__(self, category, functions, answers):
        self.category, self.functions = category, {function["name"]: function for function in functions}
        self.answers = [next(iter(answer.items())) for answer in answers]
        self.language = LANGUAGES.get(category, Language.PYTHON)

    def details(self, tool, name):
        return self.functions[tool]["parameters"]["properties"].get(name, {})

    def ask(self):
        calls = []
        for tool, answer in self.answers:
            # "" as the only alternative: the argument must be absent.
            stated = {name: found for name, found in answer.items() if found != [""]}
            arguments = {name: pattern(found, self.details(tool, name)) for name, found in stated.items()}
            calls.append({"tool": tool, "arguments": arguments})
        return {"calls": calls}

    def reply(self, choose):
        """Returns a call for each answer, with the alternative that `choose` returns for each argument."""
        calls = []
        for tool, answer in self.answers:
            chosen = {name: choose(found) for name, found in answer.items()}
            arguments = {
                name: first_value(found, kind(self.details(tool, name)))
                for name, found in chosen.items()
                if found != ""
            }
            calls.append({"tool": tool, "arguments": arguments})
        return calls

    def replies(self):
        """Returns replies with their names."""
        first = self.reply(lambda found: found[0] if found else "")
        yield "first alternatives", first
        yield "no optional argument", self.reply(lambda found: "" if "" in found or not found else found[0])
        yield "all arguments", self.reply(lambda found: next((one for one in found if one != ""), ""))
        if len(first) > 1:
            yield "calls in reverse order", first[::-1]
        yield "a call less", first[:-1]
        yield "a call more", [*first, first[-1]]
        yield "another tool", [*first[:-1], {**first[-1], "tool": OTHER}]
        changed = copy.deepcopy(first)
        changed[-1]["arguments"]["another_argument"] = 1
        yield "an unknown argument more", changed
        tool, answer = self.answers[-1]
        for name, value in first[-1]["arguments"].items():
            damaged = copy.deepcopy(first)
            del damaged[-1]["arguments"][name]
            if "" not in answer[name]:
                yield "an argument less", damaged
            other = self.changed(value)
            if other is not None and other not in answer[name]:
                damaged = copy.deepcopy(first)
                damaged[-1]["arguments"][name] = other
                yield "a changed value", damaged
            if kind(self.details(tool, name)) == "text" and isinstance(value, str) and value.upper() != value:
                damaged = copy.deepcopy(first)
                damaged[-1]["arguments"][name] = value.upper()
                yield UPPER_CASE, damaged

    @staticmethod
    def changed(value):
        """Returns a value of the same type that no answer has."""
        match value:
            case bool():
                return not value
            case int() | float():
                return value + 7919
            case str():
                return value + " and more"
            case [head, *_]:
                return [*value, head]
            case _:
                return None

    def checked(self, reply):
        """Returns the verdict of BFCL."""
        calls = []
        for call in reply:
            arguments = {
                name: encode(value, self.details(call["tool"], name), self.language)
                for name, value in call["arguments"].items()
            } if call["tool"] in self.functions else call["arguments"]  # fmt: skip
            calls.append({call["tool"]: arguments})
        answers = [{tool: answer} for tool, answer in self.answers]
        functions = list(self.functions.values())
        return ast_checker(functions, calls, answers, self.language, self.category, "any")


def encode(value, details, language):
    """Writes a value as source code, which BFCL expects for Java and JavaScript."""
    if language == Language.PYTHON:
        return value
    word, item = details.get("type"), details.get("items", {}).get("type")
    if language == Language.JAVA:
        match value:
            case list():
                items = ", ".join(
                    java(one, None if word == "ArrayList" and item == "String" else item) for one in value
                )
                if word == "ArrayList":
                    return f"new ArrayList<Object>(Arrays.asList({items}))" if value else "new ArrayList<Object>()"
                return f"new Object[]{{{items}}}"
            case dict():
                puts = " ".join(f'put("{name}", {java(one, None)});' for name, one in value.items())
                return f"new HashMap<String, Object>() {{{{ {puts} }}}}"
            case _:
                return java(value, word)
    if isinstance(value, str):
        return value
    return f"{value}n" if word == "Bigint" else json.dumps(value)


def java(value, word):
    match value:
        case bool():
            return json.dumps(value)
        case str():
            return json.dumps(value) if word is None else value
        case _:
            return f"{value}{ {'long': 'L', 'float': 'f'}.get(word, '') }"


def answer_sets():
    for category in CATEGORIES:
        name = f"BFCL_v4_{category}.json"
        prompts = {}
        for line in (DATA / name).read_text().splitlines():
            prompt = json.loads(line)
            prompts[prompt["id"]] = prompt
        for line in (DATA / "possible_answer" / name).read_text().splitlines():
            answer = json.loads(line)
            yield answer["id"], AnswerSet(category, prompts[answer["id"]]["function"], answer["ground_truth"])


def judged(sets):
    """Returns the verdicts of deftool, a list for each answer set."""
    lines = []
    for _, answers, replies in sets:
        tools = [definition(function) for function in answers.functions.values()]
        lines.append(json.dumps({"tools": tools, "ask": answers.ask(), "replies": [reply for _, reply in replies]}))
    judge = pathlib.Path(__file__).parents[2] / "target/debug/examples/judge"
    output = subprocess.run([judge], input="\n".join(lines), capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def is_accepted(verdict):
    return verdict["choice"] and verdict["validity"] and verdict["arguments"]


# What the checker of BFCL reports when it rejects a reply that deftool accepts.
REJECTED = {
    "missing_optional": "BFCL rejects that an argument is absent whose default is an alternative",
    "unexpected_param": "BFCL rejects an argument of the answer that the function does not declare, although its schema allows it",
    "value_error:list/tuple": "BFCL reads the items of a Java array as texts",
    "value_error:string": "BFCL pairs calls in order, and finds no pair for the last one",
}
# What deftool reports when it rejects a reply that BFCL accepts.
INVALID = {
    "is not one of": "deftool rejects a value of the answer that is not in the `enum` of the function",
    "is not of type": "deftool rejects a value of the answer that has another type than the function declares",
}


def reason(verdict, checked):
    """Returns in words why the verdicts differ."""
    if is_accepted(verdict):
        entries = [entry for entry in checked["error"] if isinstance(entry, dict)]
        errors = [checked["error_type"], *(one["sub_error_type"] for entry in entries for one in entry.values())]
        known = [words for error, words in REJECTED.items() if any(one.endswith(error) for one in errors)]
        return known[0] if known else f"only deftool accepts: {errors}"
    problems = " ".join(verdict["problems"])
    known = [words for text, words in INVALID.items() if text in problems]
    only_invalid = verdict["choice"] and verdict["arguments"]
    return known[0] if known and only_invalid else f"only BFCL accepts: {problems}"


def page(rows, reasons, agreeing, total):
    lines = [
        f"# The judge of `deftool eval` and BFCL {bfcl_eval_version()}\n",
        f"Both give the same verdict on all replies to {agreeing} of {total} answer sets, apart from those in upper case:",
        "BFCL ignores case and punctuation, deftool does not.\n",
        HEAD.rstrip(),
    ]
    for name, counts in rows.items():
        cells = [counts[True, True], counts[False, False], counts[True, False], counts[False, True]]
        lines.append(f"| {name} | {' | '.join(str(count) for count in [sum(cells), *cells])} |")
    lines += ["\n| difference | replies | answer sets | examples |", "|---|---|---|---|"]
    for words, ids in sorted(reasons.items()):
        unique = sorted(set(ids))
        lines.append(f"| {words} | {len(ids)} | {len(unique)} | {', '.join(unique[:3])} |")
    return "\n".join(lines) + "\n"


def bfcl_eval_version():
    return importlib.metadata.version("bfcl-eval")


def main():
    sets = [(name, answers, list(answers.replies())) for name, answers in answer_sets()]
    rows, reasons, agreeing = defaultdict(Counter), defaultdict(list), 0
    for (set_name, answers, replies), verdicts in zip(sets, judged(sets), strict=True):
        differences = 0
        for (name, reply), verdict in zip(replies, verdicts, strict=True):
            checked = answers.checked(reply)
            rows[name][is_accepted(verdict), checked["valid"]] += 1
            if is_accepted(verdict) != checked["valid"] and name != UPPER_CASE:
                reasons[reason(verdict, checked)].append(set_name)
                differences += 1
        agreeing += differences == 0
    table = page(rows, reasons, agreeing, len(sets))
    expected = EXPECTED.read_text() if EXPECTED.exists() else ""
    if "--update" in sys.argv:
        EXPECTED.write_text(table)
    elif table != expected:
        lines = difflib.unified_diff(expected.splitlines(), table.splitlines(), "bfcl.md", "measured", lineterm="")
        print("\n".join(lines))
        sys.exit("the table differs from tests/interop/bfcl.md; `tests/interop/run --update` updates it")
    print(f"the judge and BFCL agree about {agreeing} of {len(sets)} answer sets; bfcl.md lists the differences")


if __name__ == "__main__":
    main()

"""The readers: chat templates, the validators and encoders of vendors, and the types of their SDKs."""

import copy
import datetime
import importlib.util
import json
import pathlib

import jinja2
import jinja2.ext
import anthropic.types.message_create_params as messages_params
import openai.types.chat.completion_create_params as chat_params
import openai.types.responses.response_create_params as responses_params
import openai_harmony as harmony
from conversation import Reader, Refused
from jinja2.sandbox import SandboxedEnvironment
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.validator import ValidationMode, get_validator
from mistral_common.tokens.tokenizers.base import TokenizerVersion
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
from pydantic import TypeAdapter

# How llama.cpp reports an exception of a template.
LLAMA_CPP_ERROR = """Unable to generate parser for this template. Automatic parser generation failed:\x20
------------
While executing CallExpression at line 1, column 1 in source:
...
Error: Jinja Exception: """
BUILT = pathlib.Path(__file__).parent / "built"


class Generation(jinja2.ext.Extension):
    """The tag `generation`, which marks what the model wrote."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


class Raised(Exception):
    """A template raises an exception."""


def raise_exception(message):
    raise Raised(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    options = {"indent": indent, "separators": separators, "sort_keys": sort_keys}
    # The filters of Jinja return generators.
    return json.dumps(value, ensure_ascii=ensure_ascii, default=list, **options)


def environment():
    """Returns an engine for templates as servers set it up."""
    made = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, Generation])
    made.filters.update(tojson=to_json, fromjson=json.loads)
    made.globals.update(raise_exception=raise_exception, strftime_now=datetime.datetime.now().strftime)
    return made


def messages_for_template(body, members, has_objects):
    """Converts messages as vLLM and llama.cpp do: arguments to objects, null to a text, thoughts to each name.

    `members`: those in which the server reads thoughts.
    """
    messages = copy.deepcopy(body["messages"])
    for message in messages:
        message["content"] = message.get("content") or ""
        thoughts = next(filter(None, map(message.get, members)), None)
        if thoughts:
            message.update(reasoning_content=thoughts, reasoning=thoughts, thinking=thoughts)
        for call in message.get("tool_calls") or [] if has_objects else []:
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return messages


def template_reader(path):
    source = path.read_text()
    template = environment().from_string(source)
    is_llama_cpp = path.parent.name == "llama.cpp"
    members = ["reasoning_content"] if is_llama_cpp else ["reasoning", "reasoning_content"]
    has_one_thought = "both content and thinking" in source

    def render(body, has_objects):
        messages = messages_for_template(body, members, has_objects)
        for message in messages if has_one_thought else []:
            if message.get("thinking") and message.get("tool_calls"):
                message["content"] = ""
        tools = body.get("tools")
        more = {"functions": to_json(tools), "datetime": "now", "bos_token": "<bos>", "eos_token": "<eos>"}
        return template.render(
            messages=messages,
            tools=tools,
            add_generation_prompt=True,
            enable_thinking=True,
            thinking=True,
            thinking_mode="enabled",
            **more,
        )

    def read(body):
        try:
            return render(body, True)
        except Raised as raised:
            message = str(raised)
        except Exception as error:
            try:
                return render(body, False)
            except Exception:
                message = f"{type(error).__name__}: {error}"
        if is_llama_cpp:
            error = {"code": 400, "message": LLAMA_CPP_ERROR + message, "type": "invalid_request_error"}
            raise Refused(message, {"error": error})
        raise Refused(message)

    name = path.stem.removeprefix("tool_chat_template_")
    source_name = "llama.cpp" if is_llama_cpp else "vLLM"
    has_short_ids = "IDs should be alphanumeric" in source
    return Reader(f"{source_name}/{name}", read, has_short_ids=has_short_ids, thoughts=members[0])


def leaves(value):
    """Returns all strings inside of a value, one after the other."""
    if isinstance(value, str):
        return value + "\n"
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return "".join(map(leaves, values))


def mistral_reader(version, tokenizer=None):
    validator = get_validator(TokenizerVersion(version), mode=ValidationMode.serving)

    def read(body):
        messages = copy.deepcopy(body["messages"])
        for part in (part for message in messages for part in message["content"] or [] if isinstance(part, dict)):
            if part["type"] == "thinking":
                # The API has a list of texts, and this package one text.
                part["thinking"] = leaves([text["text"] for text in part["thinking"]])
        try:
            request = ChatCompletionRequest.from_openai(messages=messages, tools=body.get("tools"), model="m")
            validator.validate_request(copy.deepcopy(request))
            if tokenizer:
                return tokenizer.encode_chat_completion(request).text.replace("▁", " ").replace("<0x0A>", "\n")
        except Exception as error:
            body = {
                "object": "error",
                "message": str(error),
                "type": "invalid_request_error",
                "param": None,
                "code": "3230",
            }
            raise Refused(str(error), body) from error
        return leaves(request.model_dump()["messages"])

    thoughts = "parts" if version in ("v13", "v15") else ""
    return Reader(f"mistral-common/{version}", read, has_short_ids=True, thoughts=thoughts)


def deepseek_reader(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    encoder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(encoder)

    def read(body):
        messages = copy.deepcopy(body["messages"])
        if messages[0]["role"] != "system" or path.stem == "deepseek_v32_encoding":
            messages.insert(0, {"role": "system"})
        messages[0]["tools"] = body.get("tools", [])
        for message in messages:
            # Before encoding, vLLM copies the one name to the other.
            message["reasoning"] = message["reasoning_content"] = message.get("reasoning_content") or ""
        options = {"drop_thinking": messages[-1]["role"] == "user"} if path.stem == "deepseek_v32_encoding" else {}
        try:
            return encoder.encode_messages(messages, thinking_mode="thinking", **options)
        except Exception as error:
            raise Refused(str(error)) from error

    return Reader("DeepSeek/" + path.stem.removeprefix("deepseek_").removesuffix("_encoding"), read)


def harmony_reader():
    encoding = harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
    made, role = harmony.Message.from_role_and_content, harmony.Role

    def convert(message, names):
        text = message.get("content") or ""
        if message["role"] == "tool":
            author = harmony.Author.new(role.TOOL, f"functions.{names[message['tool_call_id']]}")
            yield (
                harmony.Message.from_author_and_content(author, text)
                .with_channel("commentary")
                .with_recipient("assistant")
            )
            return
        if message["role"] != "assistant":
            yield made(role.DEVELOPER if message["role"] == "system" else role.USER, text)
            return
        if message.get("reasoning"):
            yield made(role.ASSISTANT, message["reasoning"]).with_channel("analysis")
        calls = message.get("tool_calls") or []
        if text:
            yield made(role.ASSISTANT, text).with_channel("commentary" if calls else "final")
        for call in calls:
            names[call["id"]] = call["function"]["name"]
            called = made(role.ASSISTANT, call["function"]["arguments"]).with_channel("commentary")
            yield called.with_recipient(f"functions.{call['function']['name']}").with_content_type("json")

    def read(body):
        names = {}
        try:
            messages = [part for message in body["messages"] for part in convert(message, names)]
            conversation = harmony.Conversation.from_messages(messages)
            return encoding.decode_utf8(encoding.render_conversation_for_completion(conversation, role.ASSISTANT))
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {error}") from error

    return Reader("openai-harmony", read, thoughts="reasoning")


def plain(value):
    """Resolves what pydantic reads lazily."""
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    return value if value is None or isinstance(value, (str, int, float)) else [plain(item) for item in value]


def typed_reader(name, api, params, conversation):
    """A reader that accepts bodies of the SDK's type without other members."""
    adapter = TypeAdapter(params)

    def read(body):
        if api == "messages":
            # The SDK has the types of version 2026-10-21 of the API. Version 2023-06-01, which deftool requests, has more.
            body = {name: value for name, value in body.items() if name not in ("temperature", "top_k", "top_p")}
        try:
            typed = plain(adapter.validate_python(body))
        except Exception as error:
            raise Refused(str(error)) from error
        if typed != body:
            raise Refused(f"unknown members: {difference(body, typed)}")
        return leaves([body.get("system"), body[conversation]])

    is_messages = api == "messages"
    return Reader(name, read, api=api, has_short_ids=is_messages, thoughts="" if api == "chat" else "reasoning")


def difference(body, typed):
    """Names the members that the type does not have."""
    if isinstance(body, dict) and isinstance(typed, dict):
        lost = [key for key in body if key not in typed]
        return ", ".join(lost) or next(difference(body[key], typed[key]) for key in body if body[key] != typed[key])
    if isinstance(body, list):
        return next(difference(one, other) for one, other in zip(body, typed) if one != other)
    return f"{body!r} is read as {typed!r}"


def readers():
    for folder in ("llama.cpp", "vllm"):
        yield from map(template_reader, sorted((BUILT / folder).glob("*.jinja")))
    yield from map(deepseek_reader, sorted((BUILT / "encoders").glob("*.py")))
    yield harmony_reader()
    tokenizers = {"v3": MistralTokenizer.v3(), "v7": MistralTokenizer.v7()}
    for version in ("v3", "v7", "v11", "v13", "v15"):
        yield mistral_reader(version, tokenizers.get(version))
    yield typed_reader("openai SDK/chat completions", "chat", chat_params.CompletionCreateParamsStreaming, "messages")
    yield typed_reader("openai SDK/responses", "responses", responses_params.ResponseCreateParamsStreaming, "input")
    yield typed_reader("anthropic SDK/messages", "messages", messages_params.MessageCreateParamsStreaming, "messages")

//! The keys of the language, with their values and documentation.
//!
//! Lowering takes the known keys from these tables, and editors take completions and documentation from them.

mod ask;
mod dialect;
mod key;

use std::sync::LazyLock;

pub use self::ask::{PATTERNS, PatternDoc};
use self::key::key_of;
pub use self::key::{Key, KeyValue, Plist};
use super::ToolKind;
use super::keywords::{self, TYPES, ValueKind};
use super::rules::unknown_format::FORMATS;

/// A top-level form of a spec file.
#[derive(Debug, Clone, Copy)]
pub struct FormDoc {
    /// The head.
    pub head: &'static str,
    /// The plist after the head.
    pub plist: Plist,
    /// The documentation: one sentence.
    pub doc: &'static str,
}

/// The forms of the language. [`super::ToolForms::plist_of_form`] also accepts the forms of Emacs packages.
pub const FORMS: [FormDoc; 7] = [
    FormDoc { head: "deftool", plist: Plist::Tool, doc: "A tool, implemented by a Lua script or a program." },
    FormDoc {
        head: "defexit",
        plist: Plist::Exit,
        doc: "An exit tool: a one-way signal that is recorded and never executed.",
    },
    FormDoc { head: "defworker", plist: Plist::Worker, doc: "A model server and the loop around it." },
    FormDoc { head: "defmcp", plist: Plist::Mcp, doc: "An MCP server whose tools workers use." },
    FormDoc {
        head: "defdialect",
        plist: Plist::Dialect,
        doc: "What a model server does, as tables: a preview.",
    },
    FormDoc {
        head: "defask",
        plist: Plist::ProjectAsk,
        doc: "A prompt with the calls that a model should make: a preview.",
    },
    FormDoc {
        head: "defproject",
        plist: Plist::Project,
        doc: "Findings to silence in the project, findings to raise to errors, heads of tool forms, and preview features.",
    },
];

/// Returns the keys of a plist, in the order of the documentation.
pub fn keys(plist: Plist) -> &'static [Key] {
    match plist {
        Plist::Tool | Plist::Exit => &TOOL,
        Plist::Worker => &WORKER,
        Plist::Mcp => &MCP,
        Plist::Dialect => &dialect::DIALECT,
        Plist::Probe => &dialect::PROBE,
        Plist::Feature => &dialect::FEATURE,
        Plist::ErrorRow => &dialect::ERROR,
        Plist::Example => &dialect::EXAMPLE,
        Plist::Finish => &dialect::FINISH,
        Plist::Delay => &dialect::DELAY,
        Plist::Model => &dialect::MODEL,
        Plist::ImageLimits => &dialect::IMAGE_LIMITS,
        Plist::Project => &PROJECT,
        Plist::Argument => &ARGUMENT,
        Plist::Schema => ARGUMENT.get(2..).unwrap_or_default(),
        Plist::Permissions => &PERMISSIONS,
        Plist::Server => &SERVER,
        Plist::Override => &OVERRIDE,
        Plist::ToolForm => &TOOL_FORM,
        Plist::ProjectAsk => &ask::PROJECT_ASK,
        Plist::Ask => &ask::ASK,
        Plist::ExpectedCall => &ask::EXPECTED_CALL,
        Plist::PastCall => &ask::PAST_CALL,
    }
}

/// Returns the key of `plist` called `name`, which has no colon.
pub fn key(plist: Plist, name: &str) -> Option<&'static Key> {
    keys(plist).iter().find(|key| key.name == name)
}

/// Returns the words that the key `name` of `plist` takes; they are the names by which their enums are deserialized.
pub(super) fn words(plist: Plist, name: &str) -> &'static [&'static str] {
    match key(plist, name).map(|key| key.value) {
        Some(KeyValue::Words(words) | KeyValue::WordList(words)) => words,
        _ => &[],
    }
}

const NAME: &str = "The name that the model uses: 1 to 64 of `A-Z a-z 0-9 _ -`.";

const TOOL: [Key; 25] = [
    key_of("name", KeyValue::Text, NAME),
    key_of("description", KeyValue::Text, "What the tool does and when to use it, for the model."),
    key_of("args", KeyValue::Plists(Plist::Argument), "The arguments, as a list of plists, or nil."),
    key_of("async", KeyValue::Flag, "`t`: the script's first parameter is a callback that takes the result."),
    key_of("confirm", KeyValue::Confirm, "`t` or `(:when CONDITION…)`: ask the user before a call."),
    key_of(
        "include",
        KeyValue::Flag,
        "What gptel shows of a call in the conversation: the call and its result (`t`), the call, or nothing (`nil`).",
    ),
    key_of("category", KeyValue::Text, "The group in which gptel shows the tool."),
    key_of("function", KeyValue::Any, "Emacs Lisp, ignored."),
    key_of(
        "script",
        KeyValue::Script,
        "The path of the script inside the project. Default: `scripts/NAME.lua`.",
    ),
    key_of(
        "command",
        KeyValue::List,
        "A program and its arguments, in place of a script: `[\"rg\" \"--\" \"{pattern}\" \"{path?}\"]`.",
    ),
    key_of(
        "stdin",
        KeyValue::Any,
        "The input of `:command`: `json` for all arguments as a JSON object, or a string with placeholders.",
    ),
    key_of(
        "dash",
        KeyValue::Flag,
        "`t`: values in `:command` may begin with `-`, also where they could be options.",
    ),
    key_of(
        "cwd",
        KeyValue::Text,
        "The working directory of `:command`, relative to the project, absolute, or in `~`. Default: the project.",
    ),
    key_of(
        "ok-codes",
        KeyValue::Any,
        "The exit codes of `:command` that are successes, such as `[0 1]` for `grep`. Default: `[0]`.",
    ),
    key_of("timeout", KeyValue::Quantity, "The time limit of a call, such as `\"5s\"`."),
    key_of("memory", KeyValue::Quantity, "The memory limit of a call, such as `\"64MiB\"`."),
    key_of(
        "max-result",
        KeyValue::Quantity,
        "The size of a result for the model, such as `\"64KiB\"`. A longer one is cut. Default: the worker's.",
    ),
    key_of(
        "allow",
        KeyValue::Plist(Plist::Permissions),
        "The permissions of the script. Everything else is denied.",
    ),
    key_of(
        "base",
        KeyValue::Words(&["project"]),
        "`project`: in your own project, relative paths belong to the current project or folder. Default: to the project of the spec.",
    ),
    key_of(
        "effect",
        KeyValue::Words(&["pure", "keyed", "once"]),
        "`pure`: may run again. `keyed`: runs once per call id. `once`: is never repeated if in doubt (default).",
    ),
    key_of(
        "returns",
        KeyValue::Plist(Plist::Schema),
        "The JSON Schema of the results. A result that violates it is an error.",
    ),
    key_of("accepts", KeyValue::Calls, "A vector of example arguments that the schema must accept."),
    key_of("rejects", KeyValue::Calls, "A vector of example arguments that the schema must reject."),
    key_of(
        "asks",
        KeyValue::Entries(Plist::Ask),
        "Prompts with the call that a model should make, such as `[(\"Is it warm in Oslo?\" :call (:city \"Oslo\"))]`: a preview.",
    ),
    key_of(
        "targets",
        KeyValue::Named(Plist::Override),
        "Overrides for an API, such as `(:gemini (:description \"…\"))`.",
    ),
];

const OVERRIDE: [Key; 1] =
    [key_of("description", KeyValue::Text, "Replaces the description of the tool for this target.")];

const PERMISSIONS: [Key; 5] = [
    key_of(
        "net",
        KeyValue::List,
        "Hosts that `http` may reach, such as `\"api.example.org\"` or `\"localhost:8080\"`.",
    ),
    key_of(
        "read",
        KeyValue::List,
        "Folders and files that `fs` may read, relative to the project, absolute, or in `~`.",
    ),
    key_of(
        "write",
        KeyValue::List,
        "Folders and files that `fs` may write, relative to the project, absolute, or in `~`.",
    ),
    key_of(
        "run",
        KeyValue::List,
        "Programs that `process.run` may start. Includes the program of `:command`.",
    ),
    key_of("env", KeyValue::List, "Environment variables that `env.get` may read and programs get."),
];

const REPORT: &[&str] = &["fail", "report"];

const WORKER: [Key; 34] = [
    key_of("name", KeyValue::Text, "The name for `--worker`, also sent to the model."),
    key_of(
        "default",
        KeyValue::Flag,
        "`t`: used where no worker is named. Default: the worker named `default`, or the only one.",
    ),
    key_of("endpoint", KeyValue::Text, "The base URL of the server, with `/v1`."),
    key_of("model", KeyValue::Text, "The name of the model. Default: the first model of the server."),
    key_of(
        "api-key-env",
        KeyValue::Text,
        "The environment variable that holds the API key. Default: `OPENAI_API_KEY`.",
    ),
    key_of(
        "dialect",
        KeyValue::Dialect,
        "The server software or vendor, or a `defdialect` of the project. Default: `auto`, which detects it.",
    ),
    key_of(
        "api",
        KeyValue::Words(&["chat-completions", "responses", "messages"]),
        "The server API: `/v1/chat/completions`, `/v1/responses` or `/v1/messages`. Default: `chat-completions`; \
         `messages` for `api.anthropic.com`.",
    ),
    key_of("slots", KeyValue::Number, "The number of concurrent requests. Default: 1."),
    key_of(
        "tools",
        KeyValue::Tools(ToolKind::Normal),
        "The tools, MCP servers and tools of MCP servers that it uses. Default: all tools of the project.",
    ),
    key_of(
        "exit-tools",
        KeyValue::Tools(ToolKind::Exit),
        "The exit tools that it uses. Default: all of the project.",
    ),
    key_of(
        "tool-budget",
        KeyValue::Number,
        "The tool budget of a request, in units of `:budget-unit`. Default: 8.",
    ),
    key_of(
        "budget-unit",
        KeyValue::Words(&["iteration", "call"]),
        "What uses one unit of the budget: a reply with calls, or each call. Default: `iteration`.",
    ),
    key_of(
        "fallback",
        KeyValue::Words(&["auto", "on", "off"]),
        "Calls written as text: `auto` reads marked forms, `on` also plain JSON, with the tools in the prompt, `off` none. \
         Default: `auto`.",
    ),
    key_of(
        "params",
        KeyValue::Any,
        "Members of the request body, such as `(:temperature 0 :max-tokens 400)`.",
    ),
    key_of("system", KeyValue::Text, "The system message."),
    key_of(
        "system-messages",
        KeyValue::Words(&["separate", "combined"]),
        "Whether the engine and the caller have two system messages or one. Default: `combined`.",
    ),
    key_of("bios", KeyValue::Text, "A file with the engine's own system message, or nil for none."),
    key_of(
        "bios-budget",
        KeyValue::Words(&["result", "head", "tail"]),
        "Whether time and budget are sent in the last result or user message, or in the first or a last system \
         message. Default: `result`.",
    ),
    key_of(
        "on-invalid-arguments",
        KeyValue::Words(REPORT),
        "Whether a call that cannot be made ends the request or is reported to the model. Default: `fail`; `report` in `chat` and `acp`.",
    ),
    key_of(
        "on-tool-error",
        KeyValue::Words(REPORT),
        "Whether an error of a tool ends the request or is reported to the model. Default: `fail`; `report` in `chat` and `acp`.",
    ),
    key_of(
        "string-results",
        KeyValue::Words(&["json", "raw"]),
        "Whether a result of a script that is a string is sent as JSON or as it is. Default: `json`.",
    ),
    key_of(
        "max-result",
        KeyValue::Quantity,
        "The size of a result for the model. A longer one is cut. The tool's own `:max-result` takes precedence. \
         Default: 64 KiB.",
    ),
    key_of(
        "final-turn",
        KeyValue::Flag,
        "`t`: after the budget is spent, the model gets one more turn with exit tools only.",
    ),
    key_of("parallel", KeyValue::Flag, "`t`: the calls of a reply run concurrently."),
    key_of("connect", KeyValue::Quantity, "The time limit for the connection. Default: 3 s."),
    key_of(
        "headers",
        KeyValue::Quantity,
        "The time limit for the response headers. Default: `:first-token`.",
    ),
    key_of(
        "first-token",
        KeyValue::Quantity,
        "The longest time until the first token. Default: 10 min; 30 min for a server on this machine.",
    ),
    key_of(
        "stall",
        KeyValue::Quantity,
        "The longest time without data after the first token. Default: 5 min.",
    ),
    key_of(
        "tool",
        KeyValue::Quantity,
        "The time limit of a tool call. The tool's own `:timeout` takes precedence. Default: 30 s.",
    ),
    key_of("total", KeyValue::Quantity, "The time limit of a request. Default: none."),
    key_of(
        "keep-results",
        KeyValue::Number,
        "The maximum number of results kept until they are released. Default: 1000.",
    ),
    key_of("server", KeyValue::Plist(Plist::Server), "A server that the worker starts and supervises."),
    key_of("description", KeyValue::Text, "A description for people."),
    key_of("category", KeyValue::Text, "A group for people."),
];

const SERVER: [Key; 4] = [
    key_of("command", KeyValue::List, "The program and its arguments. `{port}` stands for the port."),
    key_of("env", KeyValue::Any, "Additional environment variables, such as `(:NAME \"value\")`."),
    key_of("cwd", KeyValue::Text, "The working directory, relative to the project, absolute, or in `~`."),
    key_of("port", KeyValue::Number, "The port. Default: a free port at each start."),
];

const MCP: [Key; 10] = [
    key_of("name", KeyValue::Text, "The name of the server. Its tools are called `NAME__TOOL`."),
    key_of("description", KeyValue::Text, "A description for people."),
    key_of("command", KeyValue::List, "The program and its arguments. Requires trust."),
    key_of("url", KeyValue::Text, "The URL of a running server. Requires trust."),
    key_of("env", KeyValue::List, "The environment variables that are passed to the program."),
    key_of("token-env", KeyValue::Text, "The environment variable with the bearer token for the URL."),
    key_of(
        "header-env",
        KeyValue::Any,
        "Headers for the URL, each with the environment variable that holds its value: `(:X-Api-Key \"API_KEY\")`.",
    ),
    key_of(
        "tools",
        KeyValue::List,
        "The tools to use, by the names that the server gives them. Default: all.",
    ),
    key_of("confirm", KeyValue::Flag, "`t`: ask the user before each call."),
    key_of("timeout", KeyValue::Quantity, "The time limit of a call, such as `\"30s\"`."),
];

const PROJECT: [Key; 4] = [
    key_of("allow", KeyValue::Rules, "The rules that are silenced in the project."),
    key_of("deny", KeyValue::Rules, "The rules whose findings `check` reports as errors."),
    key_of(
        "tool-forms",
        KeyValue::Any,
        "Your functions and macros that take the keys of a tool: forms with these heads in Emacs Lisp are read like \
         `gptel-make-tool`. `(NAME :skip 1)`: one argument comes before the keys.",
    ),
    key_of(
        "preview",
        KeyValue::Previews,
        "The preview features that the project uses. They may change or leave in any version.",
    ),
];

const TOOL_FORM: [Key; 1] = [key_of("skip", KeyValue::Number, "The number of arguments before the keys.")];

/// The keys of an argument: those of gptel, then all keywords.
static ARGUMENT: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let own = [
        key_of("name", KeyValue::Text, "The name of the argument, which is also a parameter of the script."),
        key_of("optional", KeyValue::Flag, "`t`: the model may omit the argument."),
    ];
    let keyword = |keyword: &keywords::Keyword| {
        let value = match (keyword.name, keyword.value_kind) {
            ("type", _) => KeyValue::Type,
            ("format", _) => KeyValue::Strings(&FORMATS),
            (_, ValueKind::Schema) => KeyValue::Plist(Plist::Schema),
            (_, ValueKind::Schemas) => KeyValue::VectorOf(Plist::Schema),
            (_, ValueKind::Named) => KeyValue::Named(Plist::Schema),
            (_, ValueKind::Text) => KeyValue::Text,
            (_, ValueKind::Flag) => KeyValue::JsonFlag,
            (_, ValueKind::Count | ValueKind::Number | ValueKind::Positive) => KeyValue::Number,
            (_, ValueKind::Vector | ValueKind::Own | ValueKind::Any) => KeyValue::Any,
        };
        key_of(keyword.name, value, keyword.doc)
    };
    own.into_iter().chain(keywords::TABLE.iter().map(keyword)).collect()
});

/// The types that a schema may name.
pub fn types() -> &'static [&'static str] {
    &TYPES
}

//! Conversion from tools to constants, in the form of a spec.
//!
//! Lowering the form returns the same tool. Spans are kept, so that findings for a form that was not made from a spec
//! point to its original source.

use serde_json::Value;

use super::json::{Json, JsonKind, Member};
use super::keywords::{self, TYPES, ValueKind};
use super::{
    Argument, Ask, CommandInput, Confirm, Effect, ExpectedCall, ExpectedReply, Include, PastCall, Pattern,
    PatternKind, SampleCall, Template, Tool, ToolCommand, ToolKind,
};
use crate::syntax::{Datum, DatumKind, Number};
use crate::text::{Span, Spanned};

/// Builds `(deftool :name … :description … :args (…) …)`, or `(defexit …)`.
pub fn form_of_tool(tool: &Tool) -> Datum {
    let head = match tool.kind {
        ToolKind::Normal => "deftool",
        ToolKind::Exit => "defexit",
    };
    let mut form = vec![symbol(head, tool.span)];
    let mut entry = |key: &str, value: Datum| form.extend([keyword(key, value.span), value]);
    entry("name", string(&tool.name));
    // A missing description is sent as an empty one.
    if !tool.description.value.is_empty() {
        entry("description", string(&tool.description));
    }
    if !tool.arguments.is_empty() {
        entry("args", list(tool.arguments.iter().map(plist_of_argument).collect(), tool.span));
    }
    let flag = || symbol("t", tool.span);
    let unplaced = |text: String| string(&Spanned::new(text, tool.span));
    if tool.is_async {
        entry("async", flag());
    }
    if let Some(category) = &tool.category {
        entry("category", string(category));
    }
    match &tool.confirm {
        Confirm::Never => {}
        Confirm::Always => entry("confirm", flag()),
        Confirm::When(conditions) => {
            let when = std::iter::once(keyword("when", tool.span));
            entry("confirm", list(when.chain(conditions.iter().map(datum_of_json)).collect(), tool.span));
        }
    }
    if let Some(include) = tool.include {
        entry("include", datum_of_include(include, tool.span));
    }
    if let Some(script) = &tool.script {
        entry("script", string(script));
    }
    if let Some(command) = &tool.command {
        for (key, value) in command_entries(command) {
            entry(key, value);
        }
    }
    if let Some(timeout) = tool.timeout {
        entry("timeout", unplaced(format!("{}ms", timeout.as_secs_f64() * 1000.0)));
    }
    if let Some(memory) = tool.memory {
        entry("memory", unplaced(format!("{memory}B")));
    }
    if let Some(size) = tool.max_result {
        entry("max-result", unplaced(format!("{size}B")));
    }
    let allow = &tool.permissions;
    // The program of a command is granted implicitly.
    let program = tool.command.as_ref().map(ToolCommand::program);
    let run = allow.run.iter().filter(|name| Some(name.as_str()) != program).cloned().collect();
    let grants = [
        ("net", &allow.net),
        ("read", &allow.read),
        ("write", &allow.write),
        ("run", &run),
        ("env", &allow.env),
    ];
    let mut granted = Vec::new();
    for (key, names) in grants.into_iter().filter(|(_, names)| !names.is_empty()) {
        let names = names.iter().map(|name| unplaced(name.clone())).collect();
        granted.extend([keyword(key, tool.span), datum(DatumKind::Vector(names), tool.span)]);
    }
    if !granted.is_empty() {
        entry("allow", list(granted, tool.span));
    }
    match tool.effect {
        Effect::Pure => entry("effect", symbol("pure", tool.span)),
        Effect::Keyed => entry("effect", symbol("keyed", tool.span)),
        Effect::Once => {}
    }
    if let Some(returns) = &tool.returns {
        entry("returns", datum_of_schema(returns));
    }
    let accepts: Vec<Datum> = tool.accepts.iter().map(datum_of_sample).collect();
    let rejects: Vec<Datum> = tool.rejects.iter().map(datum_of_json).collect();
    let asks: Vec<Datum> = tool.asks.iter().map(datum_of_ask).collect();
    for (key, examples) in [("accepts", accepts), ("rejects", rejects), ("asks", asks)] {
        if !examples.is_empty() {
            entry(key, datum(DatumKind::Vector(examples), tool.span));
        }
    }
    let mut overrides = Vec::new();
    for one in &tool.overrides {
        let described =
            one.description.iter().flat_map(|text| [keyword("description", text.span), string(text)]);
        let plist = list(described.collect(), one.target.span);
        overrides.extend([keyword(&one.target.value, one.target.span), plist]);
    }
    if !overrides.is_empty() {
        entry("targets", list(overrides, tool.span));
    }
    list(form, tool.span)
}

/// Returns the keys of a command with their values.
fn command_entries(command: &ToolCommand) -> Vec<(&'static str, Datum)> {
    let text =
        |template: &Spanned<Template>| datum(DatumKind::String(template.value.to_string()), template.span);
    let words = command.words.iter().map(text).collect();
    let input = command.stdin.as_ref().map(|input| match input {
        CommandInput::Json => symbol("json", command.span),
        CommandInput::Text(template) => text(template),
    });
    let dash = command.allows_dash.then(|| symbol("t", command.span));
    let vector = datum(DatumKind::Vector(words), command.span);
    let cwd = command.cwd.as_ref().map(|folder| datum(DatumKind::String(folder.clone()), command.span));
    let code = |code: &u8| datum(DatumKind::Number(Number::Integer((*code).into())), command.span);
    let codes: Vec<Datum> = command.ok_codes.iter().map(code).collect();
    let codes = (!codes.is_empty()).then(|| datum(DatumKind::Vector(codes), command.span));
    let optional = [("stdin", input), ("dash", dash), ("cwd", cwd), ("ok-codes", codes)];
    let optional = optional.into_iter().filter_map(|(key, value)| Some((key, value?)));
    std::iter::once(("command", vector)).chain(optional).collect()
}

fn datum_of_sample(sample: &SampleCall) -> Datum {
    let SampleCall { arguments, returns } = sample;
    let Some(returns) = returns else { return datum_of_json(arguments) };
    let span = arguments.span;
    let (arguments, returns) = (datum_of_json(arguments), datum_of_json(returns));
    list(vec![keyword("args", span), arguments, keyword("returns", returns.span), returns], span)
}

/// Builds `(defask :prompt … :calls [(TOOL :call …) …])`, or `:call none` without calls. The arguments are objects.
pub fn form_of_calls(prompt: &str, calls: &[(&str, &Value)]) -> Datum {
    let span = Span::default();
    let text = |text: &str| string(&Spanned::new(text.to_owned(), span));
    let call = |(tool, arguments): &(&str, &Value)| {
        let arguments = match datum_of_json(&Json::from(Value::clone(arguments))) {
            // A call without arguments.
            nil if nil.is_nil() => symbol("t", span),
            arguments => arguments,
        };
        list(vec![text(tool), keyword("call", span), arguments], span)
    };
    let mut form = vec![symbol("defask", span), keyword("prompt", span), text(prompt)];
    if calls.is_empty() {
        form.extend([keyword("call", span), symbol("none", span)]);
    } else {
        let calls = calls.iter().map(call).collect();
        form.extend([keyword("calls", span), datum(DatumKind::Vector(calls), span)]);
    }
    list(form, span)
}

/// Builds `("prompt" :call …)`.
fn datum_of_ask(ask: &Ask) -> Datum {
    let mut items = vec![string(&ask.prompt), keyword("call", ask.span)];
    match &ask.expected {
        ExpectedReply::NoCall | ExpectedReply::NoCallOf(_) => items.push(list(Vec::new(), ask.span)),
        // An ask of a tool has one call.
        ExpectedReply::Calls { calls, .. } => {
            for ExpectedCall { arguments, ignored, .. } in calls.iter().take(1) {
                items.push(arguments.as_ref().map_or_else(|| symbol("t", ask.span), datum_of_pattern));
                if !ignored.is_empty() {
                    let names = ignored.iter().map(string).collect();
                    items.extend([keyword("ignore", ask.span), list(names, ask.span)]);
                }
            }
        }
    }
    if !ask.history.is_empty() {
        let calls = ask.history.iter().map(datum_of_past_call).collect();
        items.extend([keyword("history", ask.span), datum(DatumKind::Vector(calls), ask.span)]);
    }
    list(items, ask.span)
}

fn datum_of_past_call(call: &PastCall) -> Datum {
    let PastCall { tool, arguments, result } = call;
    let (arguments, result) = (datum_of_json(arguments), datum_of_json(result));
    let span = arguments.span;
    list(
        vec![string(tool), keyword("call", span), arguments, keyword("result", result.span), result],
        tool.span.to(span),
    )
}

fn datum_of_pattern(pattern: &Pattern) -> Datum {
    let span = pattern.span;
    let form = |head: &str, values: Vec<Datum>| {
        list(std::iter::once(symbol(head, span)).chain(values).collect(), span)
    };
    match &pattern.kind {
        PatternKind::Scalar(json) => datum_of_json(json),
        PatternKind::Array(items) => {
            datum(DatumKind::Vector(items.iter().map(datum_of_pattern).collect()), span)
        }
        PatternKind::Object(members) => list(
            members
                .iter()
                .flat_map(|(key, value)| [keyword(&key.value, key.span), datum_of_pattern(value)])
                .collect(),
            span,
        ),
        PatternKind::Any(values) => form("any", values.iter().map(datum_of_pattern).collect()),
        PatternKind::Optional(value) => form("optional", vec![datum_of_pattern(value)]),
        PatternKind::Schema(Json { kind: JsonKind::Object(members), .. }) => {
            form("schema", schema_entries(members))
        }
        PatternKind::Schema(json) => form("schema", vec![datum_of_json(json)]),
    }
}

/// Builds `(:name "…" :type … …)`.
pub(crate) fn plist_of_argument(argument: &Argument) -> Datum {
    let name = &argument.name;
    let mut plist = vec![keyword("name", name.span), string(name)];
    plist.extend(schema_entries(&argument.schema));
    if argument.optional {
        plist.extend([keyword("optional", name.span), symbol("t", name.span)]);
    }
    list(plist, argument.span)
}

/// Converts a JSON value to data. nil is the empty object, `[]` the empty array.
pub(crate) fn datum_of_json(json: &Json) -> Datum {
    let kind = match &json.kind {
        JsonKind::Null => DatumKind::Keyword(String::from(":null")),
        JsonKind::Bool(true) => DatumKind::Symbol(String::from("t")),
        JsonKind::Bool(false) => DatumKind::Keyword(String::from(":json-false")),
        JsonKind::String(text) => DatumKind::String(text.clone()),
        JsonKind::Number(number) => DatumKind::Number(match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => Number::Integer(value),
            (None, Some(value)) => Number::Unsigned(value),
            (None, None) => Number::Float(number.as_f64().unwrap_or_default()),
        }),
        JsonKind::Array(items) => DatumKind::Vector(items.iter().map(datum_of_json).collect()),
        JsonKind::Object(members) => DatumKind::List(
            members
                .iter()
                .flat_map(|member| [keyword(&member.key, member.key_span), datum_of_json(&member.value)])
                .collect(),
        ),
    };
    datum(kind, json.span)
}

pub(crate) fn datum_of_schema(json: &Json) -> Datum {
    match &json.kind {
        JsonKind::Object(members) => list(schema_entries(members), json.span),
        _ => datum_of_json(json),
    }
}

fn schema_entries(members: &[Member]) -> Vec<Datum> {
    let value = |member: &Member| {
        let json = &member.value;
        let value_kind = keywords::value_kind(&member.key);
        match &json.kind {
            _ if member.key == "type" => datum_of_type(json),
            JsonKind::Object(_) if value_kind == ValueKind::Schema => datum_of_schema(json),
            JsonKind::Object(named) if value_kind == ValueKind::Named => list(
                named
                    .iter()
                    .flat_map(|one| [keyword(&one.key, one.key_span), datum_of_schema(&one.value)])
                    .collect(),
                json.span,
            ),
            JsonKind::Array(schemas) if matches!(value_kind, ValueKind::Schema | ValueKind::Schemas) => {
                datum(DatumKind::Vector(schemas.iter().map(datum_of_schema).collect()), json.span)
            }
            _ => datum_of_json(json),
        }
    };
    members.iter().flat_map(|member| [keyword(&member.key, member.key_span), value(member)]).collect()
}

/// Writes a type as a symbol. An unknown type stays a string, and so do several types in a vector, where Emacs cannot
/// send symbols.
fn datum_of_type(json: &Json) -> Datum {
    match json.as_str().filter(|word| TYPES.contains(word)) {
        Some(word) => symbol(word, json.span),
        None => datum_of_json(json),
    }
}

/// Returns the value of `:include`, without a quote.
pub(crate) fn datum_of_include(include: Include, span: Span) -> Datum {
    match include {
        Include::Everything => symbol("t", span),
        Include::Call => symbol("call", span),
        Include::Nothing => symbol("nil", span),
    }
}

pub(crate) fn list(items: Vec<Datum>, span: Span) -> Datum {
    datum(DatumKind::List(items), span)
}

pub(crate) fn symbol(name: &str, span: Span) -> Datum {
    datum(DatumKind::Symbol(name.to_owned()), span)
}

/// `key` has no colon.
pub(crate) fn keyword(key: &str, span: Span) -> Datum {
    datum(DatumKind::Keyword(format!(":{key}")), span)
}

pub(crate) fn string(text: &Spanned<String>) -> Datum {
    datum(DatumKind::String(text.value.clone()), text.span)
}

fn datum(kind: DatumKind, span: Span) -> Datum {
    Datum { span, kind }
}

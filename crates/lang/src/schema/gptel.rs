//! Exports tools as Emacs Lisp for gptel.
//!
//! Emits `(gptel-make-tool …)` with the keys that gptel supports. Functions in Emacs Lisp are copied. Without one,
//! `:function` calls the script through the Emacs package `deftool-gptel`. It takes the callback and then the arguments in
//! the order in which gptel passes them. Keys specific to deftool (`:script`, `:allow`, `:effect` …) are omitted, because
//! gptel rejects unknown keys; `deftool-gptel` applies them. An exit tool becomes a normal tool whose function is a
//! placeholder.
//!
//! Source: the docstring of `gptel-make-tool`, gptel of August 2026.

use std::collections::HashSet;

use crate::spec::form::{datum_of_include, keyword, list, plist_of_argument, string, symbol};
use crate::spec::{Argument, Confirm, Effect, Include, Origin, Permissions, Tool, ToolKind};
use crate::syntax::{Datum, DatumKind, write};
use crate::text::{SourceId, Span, Spanned};

/// Returns an Emacs Lisp file that defines `tools`, in order. `text_of` returns the text of a source.
pub fn emit_gptel<'t>(
    tools: impl IntoIterator<Item = &'t Tool>,
    text_of: impl Fn(SourceId) -> &'t str,
) -> String {
    let mut forms = String::new();
    let mut requires_package = false;
    for tool in tools {
        let code = |span: Option<Span>| lisp_code(tool, span?, text_of(tool.source));
        let function = code(tool.function);
        let calls_script = function.is_none() && tool.kind == ToolKind::Normal;
        requires_package |= calls_script;
        let confirm = match &tool.confirm {
            Confirm::When(_) if calls_script => {
                Some(call_of_package(tool, "confirm", "deftool-gptel-needs-approval", None))
            }
            _ => code(tool.confirm_function),
        };
        // gptel catches errors of synchronous functions only.
        let is_async = calls_script || (tool.is_async && function.is_some());
        let function = function.unwrap_or_else(|| match tool.kind {
            ToolKind::Normal => call_of_package(tool, "function", "deftool-gptel-call", Some("callback")),
            ToolKind::Exit => placeholder(tool),
        });
        let mut form = write(&form_of(tool, is_async, confirm.is_some()));
        // `:function` comes before every text that may contain the placeholder, `:confirm` after it.
        if let Some(at) = form.find(CODE) {
            form.replace_range(at..at + CODE.len(), &function);
        }
        if let (Some(code), Some(at)) = (confirm, form.rfind(CODE)) {
            form.replace_range(at..at + CODE.len(), &code);
        }
        forms.push('\n');
        forms.push_str(&form);
        forms.push('\n');
    }
    let require = if requires_package { "\n(require 'deftool-gptel)\n" } else { "" };
    format!(";; -*- lexical-binding: t; coding: utf-8-unix; -*-\n{require}{forms}")
}

/// Maximum width of a line with code.
const WIDTH: usize = 100;

/// A placeholder for code, which [`write`] cannot write. A tool cannot have this name.
const CODE: &str = "deftool/code";

fn form_of(tool: &Tool, is_async: bool, has_confirm: bool) -> Datum {
    let span = tool.span;
    let mut form = vec![symbol("gptel-make-tool", span)];
    let mut entry = |key: &str, value: Datum| form.extend([keyword(key, span), value]);
    entry("name", string(&tool.name));
    entry("function", symbol(CODE, span));
    if tool.origin == Origin::Spec || !tool.lacks_description() {
        entry("description", string(&tool.description));
    }
    if !tool.arguments.is_empty() {
        let quoted =
            |argument| Datum { span, kind: DatumKind::Quoted(Box::new(plist_of_argument(argument))) };
        let call = [symbol("list", span)].into_iter().chain(tool.arguments.iter().map(quoted));
        entry("args", list(call.collect(), span));
    }
    if let Some(category) = &tool.category {
        entry("category", string(category));
    }
    if is_async {
        entry("async", symbol("t", span));
    }
    match &tool.confirm {
        Confirm::Never => {}
        Confirm::Always | Confirm::When(_) if has_confirm => entry("confirm", symbol(CODE, span)),
        Confirm::Always | Confirm::When(_) => entry("confirm", symbol("t", span)),
    }
    match tool.include {
        None => {}
        Some(Include::Call) => {
            let call = Box::new(datum_of_include(Include::Call, span));
            entry("include", Datum { span, kind: DatumKind::Quoted(call) });
        }
        Some(include) => entry("include", datum_of_include(include, span)),
    }
    list(form, span)
}

/// Returns a phrase for each property of a tool that gptel cannot represent.
pub fn lost_in_gptel(tool: &Tool) -> Vec<String> {
    let mut lost = Vec::new();
    if tool.kind == ToolKind::Exit {
        lost.push(String::from("a normal tool, not an exit tool"));
    }
    let has_code = tool.function.is_some_and(|span| !is_generated(tool, span));
    if !has_code && tool.kind == ToolKind::Exit {
        lost.push(String::from("`:function` is a placeholder"));
    }
    // `deftool-gptel` applies the keys of a script.
    let is_lost = |is_set: bool| is_set && (has_code || tool.kind == ToolKind::Exit);
    if is_lost(!tool.confirm.conditions().is_empty()) {
        lost.push(String::from("`:confirm` applies to every call, because gptel has no conditions"));
    }
    let keys = [
        ("script", is_lost(tool.script.is_some())),
        ("command", is_lost(tool.command.is_some())),
        ("timeout", is_lost(tool.timeout.is_some())),
        ("memory", is_lost(tool.memory.is_some())),
        ("max-result", tool.max_result.is_some()),
        ("allow", is_lost(tool.permissions != Permissions::default())),
        ("effect", is_lost(tool.effect != Effect::default())),
        ("returns", is_lost(tool.returns.is_some())),
        ("accepts", is_lost(!tool.accepts.is_empty())),
        ("rejects", is_lost(!tool.rejects.is_empty())),
        ("asks", is_lost(!tool.asks.is_empty())),
        ("targets", !tool.overrides.is_empty()),
    ];
    let keys: Vec<String> =
        keys.iter().filter(|(_, is_set)| *is_set).map(|(key, _)| format!("`:{key}`")).collect();
    if !keys.is_empty() {
        lost.push(format!("without {}", keys.join(", ")));
    }
    lost
}

/// Returns the code at `span` as an expression. Where Emacs does not evaluate the form, a symbol is the name of a
/// function.
fn lisp_code(tool: &Tool, span: Span, text: &str) -> Option<String> {
    let code = span.of(text);
    let is_name = !code.starts_with(['(', '#', '\'', '`', '"']);
    let is_quoted = tool.origin == Origin::Spec;
    let prefix = if is_name && is_quoted && !matches!(code, "t" | "nil") { "#'" } else { "" };
    (!code.is_empty() && !is_generated(tool, span)).then(|| format!("{prefix}{code}"))
}

/// Whether the tool has no code of its own, but a macro that creates it.
fn is_generated(tool: &Tool, span: Span) -> bool {
    span.start == tool.span.start
}

/// Returns `(lambda (callback a &optional b) (FUNCTION callback "TOOL" "a" a "b" b))`, as the value of `key`.
fn call_of_package(tool: &Tool, key: &str, function: &str, callback: Option<&str>) -> String {
    let span = tool.span;
    let (parameters, names) = parameters(tool, callback);
    let mut call: Vec<Datum> =
        [Some(function), callback].into_iter().flatten().map(|name| symbol(name, span)).collect();
    call.push(string(&tool.name));
    for (argument, name) in tool.arguments.iter().zip(names) {
        call.extend([string(&argument.name), symbol(&name, span)]);
    }
    lambda(key, &parameters, &list(call, span))
}

/// Returns `(lambda (a &optional b) (error "…"))`.
fn placeholder(tool: &Tool) -> String {
    let span = tool.span;
    let message = format!("{} has no function in Emacs Lisp yet", tool.name.value);
    let error = list(vec![symbol("error", span), string(&Spanned::new(message, span))], span);
    lambda("function", &parameters(tool, None).0, &error)
}

/// Returns a function as the value of `key`. A long body has its own line: the formatter does not change code.
fn lambda(key: &str, parameters: &Datum, body: &Datum) -> String {
    let column = key.len() + 3;
    let line = format!("(lambda {} {})", write(parameters), write(body));
    if column + line.chars().count() <= WIDTH {
        return line;
    }
    format!("(lambda {}\n{:indent$}{})", write(parameters), "", write(body), indent = column + 2)
}

/// Returns the parameter list of a function of the tool, and the variable of each argument.
fn parameters(tool: &Tool, callback: Option<&str>) -> (Datum, Vec<String>) {
    let span = tool.span;
    let required = tool.arguments.iter().rposition(|argument| !argument.optional).map_or(0, |last| last + 1);
    let mut taken = HashSet::from([String::from("callback")]);
    let mut parameters: Vec<Datum> = callback.iter().map(|name| symbol(name, span)).collect();
    let mut names = Vec::new();
    for (index, argument) in tool.arguments.iter().enumerate() {
        if index == required {
            parameters.push(symbol("&optional", span));
        }
        let name = parameter_name(argument, index, &taken);
        parameters.push(symbol(&name, span));
        taken.insert(name.clone());
        names.push(name);
    }
    (list(parameters, span), names)
}

/// Returns the argument's name, or a generated name if Lisp cannot use it as a variable.
fn parameter_name(argument: &Argument, index: usize, taken: &HashSet<String>) -> String {
    let name = &argument.name.value;
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if is_plain && !matches!(name.as_str(), "t" | "nil" | "pi") && !taken.contains(name) {
        return name.clone();
    }
    let mut name = format!("argument-{}", index + 1);
    while taken.contains(&name) {
        name.push('-');
    }
    name
}

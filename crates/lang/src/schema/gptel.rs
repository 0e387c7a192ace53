//! Exports tools as Emacs Lisp for gptel.
//!
//! Emits `(gptel-make-tool …)` with the keys that gptel supports. Functions in Emacs Lisp are copied. Without one,
//! `:function` is a stub that takes the arguments in the order in which gptel passes them; an asynchronous tool takes the
//! callback first. Keys specific to deftool (`:script`, `:allow`, `:effect` …) are omitted, because gptel rejects unknown
//! keys. An exit tool becomes a normal tool.
//!
//! Source: the docstring of `gptel-make-tool`, gptel 0.9.8.

use std::collections::HashSet;

use crate::spec::form::{keyword, list, plist_of_argument, string, symbol};
use crate::spec::{Argument, Effect, Origin, Permissions, Tool, ToolKind};
use crate::syntax::{Datum, DatumKind, write};
use crate::text::{SourceId, Span, Spanned};

/// Returns an Emacs Lisp file that defines `tools`, in order. `text_of` returns the text of a source.
pub fn emit_gptel<'t>(
    tools: impl IntoIterator<Item = &'t Tool>,
    text_of: impl Fn(SourceId) -> &'t str,
) -> String {
    let mut file = String::from(";; -*- lexical-binding: t; coding: utf-8-unix; -*-\n");
    for tool in tools {
        let code = |span: Option<Span>| lisp_code(tool, span?, text_of(tool.source));
        let (function, confirm) = (code(tool.function), code(tool.confirm_function));
        let mut form = write(&form_of(tool, function.is_some(), confirm.is_some()));
        // `:function` comes before every text that may contain the placeholder, `:confirm` after it.
        if let (Some(code), Some(at)) = (function, form.find(CODE)) {
            form.replace_range(at..at + CODE.len(), &code);
        }
        if let (Some(code), Some(at)) = (confirm, form.rfind(CODE)) {
            form.replace_range(at..at + CODE.len(), &code);
        }
        file.push('\n');
        file.push_str(&form);
        file.push('\n');
    }
    file
}

/// A placeholder for code, which [`write`] cannot write. A tool cannot have this name.
const CODE: &str = "deftool/code";

fn form_of(tool: &Tool, has_function: bool, has_confirm: bool) -> Datum {
    let span = tool.span;
    let mut form = vec![symbol("gptel-make-tool", span)];
    let mut entry = |key: &str, value: Datum| form.extend([keyword(key, span), value]);
    entry("name", string(&tool.name));
    entry("function", if has_function { symbol(CODE, span) } else { stub(tool) });
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
    if tool.is_async {
        entry("async", symbol("t", span));
    }
    if tool.confirm.is_set() {
        let word = if has_confirm { CODE } else { "t" };
        entry("confirm", symbol(word, span));
    }
    if tool.include {
        entry("include", symbol("t", span));
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
    if !has_code {
        lost.push(String::from("`:function` is a placeholder"));
    }
    if !tool.confirm.conditions().is_empty() {
        lost.push(String::from("`:confirm` applies to every call, because gptel has no conditions"));
    }
    let keys = [
        ("script", tool.script.is_some()),
        ("timeout", tool.timeout.is_some()),
        ("memory", tool.memory.is_some()),
        ("allow", tool.permissions != Permissions::default()),
        ("effect", tool.effect != Effect::default()),
        ("returns", tool.returns.is_some()),
        ("accepts", !tool.accepts.is_empty()),
        ("rejects", !tool.rejects.is_empty()),
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

/// Returns `(lambda (callback first &optional second) (error "…"))`.
fn stub(tool: &Tool) -> Datum {
    let span = tool.span;
    let required = tool.arguments.iter().rposition(|argument| !argument.optional).map_or(0, |last| last + 1);
    let mut taken = HashSet::from([String::from("callback")]);
    let mut parameters: Vec<Datum> = Vec::new();
    if tool.is_async {
        parameters.push(symbol("callback", span));
    }
    for (index, argument) in tool.arguments.iter().enumerate() {
        if index == required {
            parameters.push(symbol("&optional", span));
        }
        let name = parameter_name(argument, index, &taken);
        parameters.push(symbol(&name, span));
        taken.insert(name);
    }
    let message = format!("{} has no function in Emacs Lisp yet", tool.name.value);
    let error = list(vec![symbol("error", span), string(&Spanned::new(message, span))], span);
    list(vec![symbol("lambda", span), list(parameters, span), error], span)
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

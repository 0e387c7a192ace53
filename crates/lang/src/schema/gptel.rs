//! Exports tools as Emacs Lisp for gptel.
//!
//! Emits `(gptel-make-tool …)` with the keys that gptel supports. `:function` is a stub that takes the arguments in the
//! order in which gptel passes them; an asynchronous tool takes the callback first. Keys specific to deftool
//! (`:script`, `:allow`, `:effect` …) are omitted, because gptel rejects unknown keys. An exit tool becomes a normal
//! tool.
//!
//! Source: the docstring of `gptel-make-tool`, gptel 0.9.8.

use std::collections::HashSet;

use crate::spec::form::{keyword, list, plist_of_argument, string, symbol};
use crate::spec::{Argument, Tool};
use crate::syntax::{Datum, DatumKind, write};
use crate::text::Spanned;

/// Returns an Emacs Lisp file that defines `tools`, in order.
pub fn emit_gptel<'t>(tools: impl IntoIterator<Item = &'t Tool>) -> String {
    let mut file = String::from(";; -*- lexical-binding: t; coding: utf-8-unix; -*-\n");
    for tool in tools {
        file.push('\n');
        file.push_str(&write(&form_of(tool)));
        file.push('\n');
    }
    file
}

fn form_of(tool: &Tool) -> Datum {
    let span = tool.span;
    let mut form = vec![symbol("gptel-make-tool", span)];
    let mut entry = |key: &str, value: Datum| form.extend([keyword(key, span), value]);
    entry("name", string(&tool.name));
    entry("function", stub(tool));
    entry("description", string(&tool.description));
    if !tool.arguments.is_empty() {
        let quoted =
            |argument| Datum { span, kind: DatumKind::Quoted(Box::new(plist_of_argument(argument))) };
        let call = [symbol("list", span)].into_iter().chain(tool.arguments.iter().map(quoted));
        entry("args", list(call.collect(), span));
    }
    if let Some(category) = &tool.category {
        entry("category", string(category));
    }
    for (key, is_set) in
        [("async", tool.is_async), ("confirm", tool.confirm.is_set()), ("include", tool.include)]
    {
        if is_set {
            entry(key, symbol("t", span));
        }
    }
    list(form, span)
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

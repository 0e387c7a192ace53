//! Reads the calls of a malformed form as far as possible.
//!
//! The name of a malformed call matters: an exit call never changes the result of its reply, so a malformed one is
//! recorded with the text of its arguments.

use super::decode::{DecodedForm, decode, plain_name};
use super::grammar::{Capture, Captured};
use super::machine::Machine;
use super::model::{TextArguments, TextCall};
use crate::RawArguments;
use crate::call_keys::{ARGUMENT_KEYS, NAME_KEYS};

/// Returns the calls in `text`, a form that `machine` could not match or decode: first the complete calls, then the
/// malformed call with `error`. Empty if the name of the malformed call cannot be read.
pub(super) fn broken_calls(text: &str, machine: &Machine, error: &str, truncated: bool) -> Vec<TextCall> {
    let form = machine.family.form();
    let text = form.closes.iter().find_map(|close| text.strip_suffix(close)).unwrap_or(text);
    let (mut calls, at) = match decode(text, &machine.captures, form.marked) {
        DecodedForm::Calls(calls) => (calls, machine.unread(text)),
        DecodedForm::Unreadable { calls, at, .. } => (calls, Some(at)),
        DecodedForm::Ordinary => (Vec::new(), machine.unread(text)),
    };
    let malformed = |written: &str| {
        let text = written.trim().to_owned();
        TextArguments::Json(RawArguments::Malformed { text, error: error.to_owned(), truncated })
    };
    // The text after the name of a call that has a tag for each argument.
    let is_name = |captured: &&Captured| matches!(captured.what, Capture::Name | Capture::Recipient);
    let after_name = machine.captures.iter().rfind(is_name).and_then(|name| text.get(name.end..));
    let after_name = after_name.unwrap_or_default().trim_start_matches(['"', '>']);
    let Some(Captured { what, start, end }) = at.filter(|at| at.what != Capture::Nothing) else {
        // The error is between two tokens: the last call is not closed.
        if let Some(TextCall { arguments: arguments @ TextArguments::Members(_), .. }) = calls.last_mut() {
            *arguments = malformed(after_name);
        }
        return calls;
    };
    let written = text.get(start..end.min(text.len())).unwrap_or_default();
    let read = match what {
        Capture::Object => object_call(written),
        Capture::Keyed => keyed_call(written).or_else(|| object_call(written)),
        Capture::Python => python_call(written),
        Capture::Arguments
        | Capture::Braces
        | Capture::Options
        | Capture::Tags
        | Capture::Key
        | Capture::IsString
        | Capture::Value => {
            let Some(call) = calls.last_mut() else { return Vec::new() };
            let is_tag = matches!(what, Capture::Key | Capture::IsString | Capture::Value);
            call.arguments = malformed(if is_tag { after_name } else { written });
            return calls;
        }
        Capture::Nothing | Capture::Name | Capture::Recipient | Capture::Rename => None,
    };
    let Some((name, arguments)) = read else { return Vec::new() };
    calls.push(TextCall {
        name: plain_name(name.trim()),
        arguments: malformed(arguments),
        bare: false,
        span: (start, text.len()),
        repairs: Vec::new(),
    });
    calls
}

/// Returns a call whose form is unknown. `written`: the text after its name.
pub(crate) fn unreadable_call(name: &str, written: &str) -> TextCall {
    let (text, error) = (written.to_owned(), String::from("the form of the call is unknown"));
    let arguments = TextArguments::Json(RawArguments::Malformed { text, error, truncated: false });
    TextCall { name: plain_name(name), arguments, bare: false, span: (0, 0), repairs: Vec::new() }
}

/// Returns the name and the arguments of `{"name": "…", "arguments": …`, regardless of the error. A name after
/// the arguments is ignored, because it may be one of the arguments.
fn object_call(text: &str) -> Option<(&str, &str)> {
    let (head, arguments) = ARGUMENT_KEYS
        .iter()
        .filter_map(|key| after_key(text, key))
        .min_by_key(|(head, _)| head.len())
        .unwrap_or((text, ""));
    let mut names = NAME_KEYS.iter().filter_map(|key| after_key(head, key));
    names.find_map(|(_, value)| Some((value.strip_prefix('"')?.split_once('"')?.0, arguments)))
}

/// Returns the name and the arguments of `{"name": {…`. The text may end after the name.
fn keyed_call(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.strip_prefix('{')?.trim_start().strip_prefix('"')?.split_once('"')?;
    let rest = rest.trim_start();
    let arguments = rest.strip_prefix(':').unwrap_or(rest).trim_start();
    (arguments.is_empty() || arguments.starts_with('{')).then_some((name, arguments))
}

/// Returns the name and the arguments of `name(…`, also inside `print(…`.
fn python_call(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("print").and_then(|rest| rest.trim_start().strip_prefix('('));
    let call = inner.and_then(|inner| inner.split_once('(')).or_else(|| text.split_once('('));
    call.map(|(name, arguments)| (name.strip_suffix(".call").unwrap_or(name), arguments))
}

/// Splits the text at the first `"key":`.
fn after_key<'t>(text: &'t str, key: &str) -> Option<(&'t str, &'t str)> {
    let quoted = format!("\"{key}\"");
    text.match_indices(&quoted).find_map(|(at, found)| {
        let value = text.get(at + found.len()..)?.trim_start().strip_prefix(':')?;
        Some((text.get(..at)?, value.trim_start()))
    })
}

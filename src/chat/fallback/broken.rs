//! The calls of a candidate that does not parse, as far as they can be read.
//!
//! An exit call never changes what becomes of its reply, so the name of a broken call matters: what is broken may be an
//! exit call, which is recorded with the text of its arguments.

use super::decode::{ARGUMENT_KEYS, Decoded, NAME_KEYS, decode, plain_name};
use super::grammar::{Capture, Captured};
use super::machine::Machine;
use super::{TextArguments, TextCall};
use crate::chat::RawArguments;

/// The calls in `text`, a form that `machine` could not follow to its end or could not decode: whole ones, then the broken
/// one with `error`. Empty if the name of the broken one cannot be read.
pub(super) fn broken_calls(text: &str, machine: &Machine, error: &str, truncated: bool) -> Vec<TextCall> {
    let form = machine.family.form();
    let text = form.closes.iter().find_map(|close| text.strip_suffix(close)).unwrap_or(text);
    let (mut calls, at) = match decode(text, &machine.captures, form.marked) {
        Decoded::Calls(calls) => (calls, machine.unread(text)),
        Decoded::Unreadable { calls, at, .. } => (calls, Some(at)),
        Decoded::Ordinary => (Vec::new(), machine.unread(text)),
    };
    let malformed = |written: &str| {
        let text = written.trim().to_owned();
        TextArguments::Json(RawArguments::Malformed { text, error: error.to_owned(), truncated })
    };
    let Some(Captured { what, start, end }) = at else {
        // Between two tokens: the last call is not closed.
        if let Some(TextCall { arguments: arguments @ TextArguments::Members(_), span, .. }) =
            calls.last_mut()
        {
            *arguments = malformed(text.get(span.0..).unwrap_or_default());
        }
        return calls;
    };
    let written = text.get(start..end.min(text.len())).unwrap_or_default();
    let read = match what {
        Capture::Object => object_call(written),
        Capture::Keyed => keyed_call(written).or_else(|| object_call(written)),
        Capture::Python => python_call(written),
        Capture::Arguments | Capture::Braces | Capture::Tags => {
            let Some(call) = calls.last_mut() else { return Vec::new() };
            call.arguments = malformed(written);
            return calls;
        }
        // An argument in tags of its own: all that was written.
        Capture::Nothing
        | Capture::Name
        | Capture::Recipient
        | Capture::Rename
        | Capture::Key
        | Capture::IsString
        | Capture::Value => {
            let Some(call) = calls.last_mut() else { return Vec::new() };
            call.arguments = malformed(text.get(call.span.0..).unwrap_or_default());
            return calls;
        }
    };
    let Some((name, arguments)) = read else { return Vec::new() };
    calls.push(TextCall {
        name: plain_name(name.trim()),
        arguments: malformed(arguments),
        bare: false,
        span: (start, text.len()),
    });
    calls
}

/// The name and the arguments of `{"name": "…", "arguments": …`, whatever is wrong with it. A name that comes after the
/// arguments is not found: it may be one of them.
fn object_call(text: &str) -> Option<(&str, &str)> {
    let (head, arguments) = ARGUMENT_KEYS
        .iter()
        .filter_map(|key| after_key(text, key))
        .min_by_key(|(head, _)| head.len())
        .unwrap_or((text, ""));
    let names = NAME_KEYS.iter().filter_map(|key| after_key(head, key));
    let name = names.filter_map(|(_, value)| value.strip_prefix('"')?.split_once('"')).next();
    name.map(|(name, _)| (name, arguments))
}

/// The name and the arguments of `{"name": {…`, which may end after the name.
fn keyed_call(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.strip_prefix('{')?.trim_start().strip_prefix('"')?.split_once('"')?;
    let rest = rest.trim_start();
    let arguments = rest.strip_prefix(':').unwrap_or(rest).trim_start();
    (arguments.is_empty() || arguments.starts_with('{')).then_some((name, arguments))
}

/// The name and the arguments of `name(…`, which may stand in `print(…`.
fn python_call(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("print").and_then(|rest| rest.trim_start().strip_prefix('('));
    let call = inner.and_then(|inner| inner.split_once('(')).or_else(|| text.split_once('('));
    call.map(|(name, arguments)| (name.strip_suffix(".call").unwrap_or(name), arguments))
}

/// What stands before the first `"key":` and what after it.
fn after_key<'t>(text: &'t str, key: &str) -> Option<(&'t str, &'t str)> {
    let quoted = format!("\"{key}\"");
    text.match_indices(&quoted).find_map(|(at, found)| {
        let value = text.get(at + found.len()..)?.trim_start().strip_prefix(':')?;
        Some((text.get(..at)?, value.trim_start()))
    })
}

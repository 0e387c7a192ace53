//! The calls of a candidate that does not parse, as far as they can be read.
//!
//! An exit call never changes what becomes of its reply, so the name of a broken call matters: what is broken may be an
//! exit call, which is recorded with the text of its arguments.

use super::decode::{Decoded, decode, plain_name};
use super::grammar::{Capture, Captured};
use super::machine::Machine;
use super::{TextArguments, TextCall};
use crate::chat::RawArguments;

/// The keys of a call's name, and those of its arguments.
const NAME_KEYS: [&str; 4] = ["name", "tool", "tool_name", "function"];
const ARGUMENTS_KEYS: [&str; 2] = ["arguments", "parameters"];

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
    // What follows the name of a call whose arguments stand in tags of their own.
    let is_name = |captured: &&Captured| matches!(captured.what, Capture::Name | Capture::Recipient);
    let after_name = machine.captures.iter().rfind(is_name).and_then(|name| text.get(name.end..));
    let after_name = after_name.unwrap_or_default().trim_start_matches(['"', '>']);
    let Some(Captured { what, start, end }) = at else {
        // Between two tokens: the last call is not closed.
        if let Some(TextCall { arguments: arguments @ TextArguments::Members(_), .. }) = calls.last_mut() {
            *arguments = malformed(after_name);
        }
        return calls;
    };
    let written = text.get(start..end.min(text.len())).unwrap_or_default();
    let read = match what {
        Capture::Object => object_call(written),
        Capture::Keyed => keyed_call(written).or_else(|| object_call(written)),
        Capture::Python => written
            .split_once('(')
            .map(|(name, arguments)| (name.strip_suffix(".call").unwrap_or(name), arguments)),
        Capture::Arguments
        | Capture::Braces
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
    });
    calls
}

/// The name and the arguments of `{"name": "…", "arguments": …`, whatever is wrong with it. A name that comes after the
/// arguments is not found: it may be one of them.
fn object_call(text: &str) -> Option<(&str, &str)> {
    let (head, arguments) = ARGUMENTS_KEYS
        .iter()
        .filter_map(|key| after_key(text, key))
        .min_by_key(|(head, _)| head.len())
        .unwrap_or((text, ""));
    let mut names = NAME_KEYS.iter().filter_map(|key| after_key(head, key));
    names.find_map(|(_, value)| Some((value.strip_prefix('"')?.split_once('"')?.0, arguments)))
}

/// The name and the arguments of `{"name": {…`.
fn keyed_call(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.strip_prefix('{')?.trim_start().strip_prefix('"')?.split_once('"')?;
    let arguments = rest.trim_start().trim_start_matches(':').trim_start();
    (arguments.is_empty() || arguments.starts_with('{')).then_some((name, arguments))
}

/// What stands before the first `"key":` and what after it.
fn after_key<'t>(text: &'t str, key: &str) -> Option<(&'t str, &'t str)> {
    let quoted = format!("\"{key}\"");
    text.match_indices(&quoted).find_map(|(at, found)| {
        let value = text.get(at + found.len()..)?.trim_start().strip_prefix(':')?;
        Some((text.get(..at)?, value.trim_start()))
    })
}

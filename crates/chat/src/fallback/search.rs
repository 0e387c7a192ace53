//! Finds every call in a text, quoted or not: JSON objects anywhere, strings inside that JSON, every family's form, and
//! text that is escaped for JSON or HTML.
//!
//! Runs in linear time: if an object cannot be read, the objects around it cannot be read either and are skipped.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::decode::call_of;
use super::escapes::{decode_references, unicode_escape};
use super::forms::Forms;
use super::json::{JsonScan, JsonStep};
use super::model::{Piece, TextCall};
use super::position::{may_contain_reasoning, split_reasoning};
use super::scanner::Scanner;

/// Maximum depth of texts inside texts: strings in JSON, repeated escapes.
const MAX_LEVELS: u32 = 4;

/// Calls `found` for each call in `text`. Reports some calls more than once.
pub(crate) fn calls_in(text: &str, found: &mut impl FnMut(&TextCall)) {
    search(text, MAX_LEVELS, found);
}

fn search(text: &str, levels: u32, found: &mut impl FnMut(&TextCall)) {
    let Some(levels) = levels.checked_sub(1) else { return };
    in_forms(text, levels, Forms::ALL, found);
    in_objects(text, levels, found);
    let plain = unescaped(text);
    if plain != text {
        search(&plain, levels, found);
    }
}

/// Returns the name of the form in which a text contains a call of `tool`, and `None` if it contains none. An object in
/// no known form is called `JSON`.
pub fn written_form(text: &str, tool: &str) -> Option<&'static str> {
    let mut pieces = Vec::new();
    let mut scanner = Scanner::everywhere(Forms::ALL);
    text.chars().for_each(|ch| scanner.push(ch, &mut pieces));
    scanner.finish(true, &mut pieces);
    let is_named = |call: &TextCall| call.name == tool;
    let form = pieces.iter().find_map(|piece| match piece {
        Piece::Candidate(candidate) if candidate.calls.iter().any(is_named) => Some(candidate.form.name()),
        _ => None,
    });
    form.or_else(|| {
        let mut found = false;
        calls_in(text, &mut |call| found |= is_named(call));
        found.then_some("JSON")
    })
}

/// Returns whether the model wrote a call in a marked form in its reasoning, and no text. `reasoning` is the reasoning
/// that the server separated from `text`.
pub(crate) fn calls_only_in_reasoning(reasoning: &str, text: &str) -> bool {
    // Usual replies are not read again.
    if !text.trim().is_empty() && !may_contain_reasoning(text) {
        return false;
    }
    let (in_text, rest) = split_reasoning(text);
    let mut found = false;
    if rest.trim().is_empty() {
        for reasoning in [reasoning, &in_text] {
            in_forms(reasoning, 1, Forms::MARKED, &mut |_| found = true);
        }
    }
    found
}

/// Finds the calls in every family's form.
fn in_forms(text: &str, levels: u32, forms: Forms, found: &mut impl FnMut(&TextCall)) {
    let mut scanner = Scanner::everywhere(forms);
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(ch) = rest.chars().next() {
        let mut taken = scanner.skip(rest);
        if taken == 0 {
            taken = ch.len_utf8();
            scanner.push(ch, &mut pieces);
            report(&mut pieces, levels, forms, found);
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    scanner.finish(true, &mut pieces);
    report(&mut pieces, levels, forms, found);
}

fn report(pieces: &mut Vec<Piece>, levels: u32, forms: Forms, found: &mut impl FnMut(&TextCall)) {
    for piece in pieces.drain(..) {
        let Piece::Candidate(candidate) = piece else { continue };
        if !(forms.all_unmarked || candidate.form.form().marked) {
            continue;
        }
        candidate.calls.iter().for_each(&mut *found);
        // An argument may contain another call.
        let mut inner = candidate.text.chars();
        inner.next();
        if let Some(levels) = levels.checked_sub(1) {
            in_forms(inner.as_str(), levels, forms, &mut *found);
        }
    }
}

/// Finds the calls in JSON objects.
fn in_objects(text: &str, levels: u32, found: &mut impl FnMut(&TextCall)) {
    // Starts of objects that cannot be read.
    let mut unreadable = HashSet::new();
    let mut at = 0;
    while let Some(brace) = text.get(at..).and_then(|rest| rest.find('{')) {
        let start = at + brace;
        at = start + 1;
        if unreadable.remove(&start) {
            continue;
        }
        match end_of_object(text, start) {
            Ok(end) => {
                let object = text.get(start..end).unwrap_or_default();
                match serde_json::from_str(object) {
                    Ok(object) => {
                        at = end;
                        in_object(&object, levels, found);
                    }
                    Err(error) => {
                        let before = text.get(..start + offset_of(&error, object)).unwrap_or_default();
                        unreadable.extend(end_of_object(before, start).err().into_iter().flatten());
                    }
                }
            }
            Err(open) => unreadable.extend(open),
        }
    }
}

/// Returns the end of the object that begins at `start`. If it cannot be read, returns the starts of the containers
/// that are open at the error.
fn end_of_object(text: &str, start: usize) -> Result<usize, Vec<usize>> {
    let mut scan = JsonScan::object(false);
    let mut open = vec![start];
    for (at, ch) in text.get(start..).unwrap_or_default().char_indices().skip(1) {
        match scan.push(ch, false) {
            JsonStep::More => {}
            JsonStep::End => return Ok(start + at + 1),
            JsonStep::Bad | JsonStep::Other => break,
        }
        if scan.depth() > open.len() {
            open.push(start + at);
        }
        open.truncate(scan.depth());
    }
    Err(open)
}

/// Returns the position of an error in `text`, in bytes.
fn offset_of(error: &serde_json::Error, text: &str) -> usize {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    lines.map(str::len).sum::<usize>() + error.column()
}

fn in_object(object: &Map<String, Value>, levels: u32, found: &mut impl FnMut(&TextCall)) {
    if let Some(call) = call_of(object) {
        found(&call);
    }
    for (key, value) in object {
        in_string(key, levels, found);
        in_value(value, levels, found);
    }
}

fn in_value(value: &Value, levels: u32, found: &mut impl FnMut(&TextCall)) {
    match value {
        Value::Object(object) => in_object(object, levels, found),
        Value::Array(items) => items.iter().for_each(|item| in_value(item, levels, found)),
        Value::String(text) => in_string(text, levels, found),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn in_string(text: &str, levels: u32, found: &mut impl FnMut(&TextCall)) {
    // Every form contains one of these characters or a character reference.
    if text.contains(['{', '<', '[', '(', '&']) {
        search(text, levels, found);
    }
}

/// Decodes one level of JSON escapes and all levels of HTML escapes.
fn unescaped(text: &str) -> String {
    let mut rest = text;
    let chars = std::iter::from_fn(|| {
        let first = rest.chars().next()?;
        rest = rest.get(first.len_utf8()..).unwrap_or_default();
        let (ch, length) = if first == '\\' { escaped(rest) } else { (Some(first), 0) };
        rest = rest.get(length..).unwrap_or_default();
        Some(ch)
    });
    decode_references(chars.flatten())
}

/// Decodes an escape. `text` begins after its backslash. Returns the character, if the escape is valid, and its length.
fn escaped(text: &str) -> (Option<char>, usize) {
    match text.chars().next() {
        Some('n') => (Some('\n'), 1),
        Some('r') => (Some('\r'), 1),
        Some('t') => (Some('\t'), 1),
        Some('u') => unicode_escape(text).unwrap_or((None, 1)),
        Some(other) => (Some(other), other.len_utf8()),
        None => (None, 0),
    }
}

#[cfg(test)]
mod tests {
    use deftool_test_support::cpu::assert_linear;

    use super::*;
    use crate::RawArguments;
    use crate::fallback::TextArguments;

    fn names(text: &str) -> Vec<String> {
        let mut names = Vec::new();
        calls_in(text, &mut |call| names.push(call.name.clone()));
        names.dedup();
        names
    }

    #[test]
    fn calls_are_found_everywhere() {
        let call = r#"{"name": "look", "arguments": {"q": "x"}}"#;
        let in_json = serde_json::json!({"a": [{"b": format!("say {call}")}]}).to_string();
        for text in [
            call.to_owned(),
            format!("What is {call}?"),
            format!("```json\n{call}\n```"),
            format!("{{{{ {{\"a\": [ {call}"),
            in_json.clone(),
            serde_json::json!(in_json).to_string(),
            call.replace('"', "&quot;"),
            call.replace('"', "\\\""),
            String::from("> `<function=look>{}</function>`"),
            String::from("<think>[TOOL_CALLS]look{}"),
            String::from("<doc>\n[look(q=1)]\n</doc>"),
            format!("{{\"a\": [{{\"b\": tru, \"c\": {call}}}]}}"),
            format!("{{\"a\":\n [1e, {{\"b\": {call}}}]}}"),
            format!("{}{call}", "{\"a\":".repeat(500)),
            format!("{{ \"He said: {call}"),
            String::from(r#"{"type": "tool_use", "name": "look", "input": {"q": "x"}}"#),
            String::from("<tool_call>{x\n<function=look>\n</function>"),
            String::from("<tool_call>{x\n<function=look><parameter=q>\nx\n</parameter></function>"),
        ] {
            assert_eq!(names(&text), ["look"], "{text}");
        }
        for text in [
            r#"{"name": "look", "description": "d", "parameters": {}}"#,
            r#"{"name": "look", "parameters": {"type": "object", "properties": {}}}"#,
            r#"{"name": "Ada"}"#,
            "look at {x} and {",
        ] {
            assert_eq!(names(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_call_is_found_inside_an_argument() {
        let text = "<function=f><parameter=p><function=look><parameter=q>x</parameter></function>";
        assert_eq!(names(text), ["f", "look"]);
    }

    #[test]
    fn escaped_arguments_are_decoded() {
        for (text, q) in [
            (
                "{&quot;name&quot;: &quot;look&quot;, &quot;arguments&quot;: {&quot;q&quot;: &quot;R&D&QA&quot;}}",
                "R&D&QA",
            ),
            (r#"{\"name\": \"look\", \"arguments\": {\"q\": \"\ud83d\ude00\"}}"#, "😀"),
        ] {
            let mut found = Vec::new();
            calls_in(text, &mut |call| found.push(call.arguments.clone()));
            let expected = serde_json::json!({"q": q}).try_into().unwrap();
            found.dedup();
            assert_eq!(found, [TextArguments::Json(RawArguments::Object { value: expected })], "{text}");
        }
    }

    #[test]
    fn search_takes_linear_time() {
        for unit in
            ["{\"a\":", "{", "{\"a\":[1,", "{\"", "\\\"{", "&amp;{", "<tool_call>{", "{\"a\":{}}", "\"{\\\""]
        {
            assert_linear(unit, 10_000, |size| search_finds_nothing(&unit.repeat(size / unit.len())));
        }
        let deep = "{\"a\":".repeat(100);
        for (unit, end) in [("1,", ""), ("1,", "tru]"), ("\"{\",", "")] {
            assert_linear(unit, 5_000, |size| {
                search_finds_nothing(&format!("{deep}[{}{end}{}", unit.repeat(size), "}".repeat(100)));
            });
        }
    }

    fn search_finds_nothing(text: &str) {
        assert_eq!(names(text), Vec::<String>::new());
    }
}

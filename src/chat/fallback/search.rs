//! Finds every call in a text, quoted or not: JSON objects anywhere, strings inside that JSON, every family's form, and
//! text that is escaped for JSON or HTML.
//!
//! Runs in linear time: `serde_json` limits the nesting, so only a limited number of failed attempts to parse an object
//! can read the same byte.

use serde_json::{Map, Value};

use super::decode::call_of;
use super::entities::{Decoded, EntityReader};
use super::{Piece, Scanner, TextCall};

/// Maximum depth of texts inside texts: strings in JSON, repeated escapes.
const MAX_LEVELS: u32 = 4;

/// Calls `found` for each call in `text`. Reports some calls more than once.
pub fn calls_in(text: &str, found: &mut impl FnMut(&TextCall)) {
    search(text, MAX_LEVELS, found);
}

fn search(text: &str, levels: u32, found: &mut impl FnMut(&TextCall)) {
    let Some(levels) = levels.checked_sub(1) else { return };
    in_forms(text, found);
    let mut at = 0;
    let last_end = text.rfind('}').unwrap_or_default();
    while let Some(brace) = text.get(at..last_end).and_then(|rest| rest.find('{')) {
        let start = at + brace;
        let rest = text.get(start..).unwrap_or_default();
        let mut objects = serde_json::Deserializer::from_str(rest).into_iter::<Map<String, Value>>();
        if let Some(Ok(object)) = objects.next() {
            at = start + objects.byte_offset();
            in_object(&object, levels, found);
        } else {
            at = start + 1;
        }
    }
    let plain = unescaped(text);
    if plain != text {
        search(&plain, levels, found);
    }
}

fn in_forms(text: &str, found: &mut impl FnMut(&TextCall)) {
    let mut scanner = Scanner::everywhere();
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(ch) = rest.chars().next() {
        let mut taken = scanner.skip(rest);
        if taken == 0 {
            taken = ch.len_utf8();
            scanner.push(ch, &mut pieces);
            report(&mut pieces, found);
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    scanner.finish(&mut pieces);
    report(&mut pieces, found);
}

fn report(pieces: &mut Vec<Piece>, found: &mut impl FnMut(&TextCall)) {
    for piece in pieces.drain(..) {
        if let Piece::Candidate(candidate) = piece {
            candidate.calls.iter().for_each(&mut *found);
        }
    }
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
    let mut out = String::with_capacity(text.len());
    let mut entities = EntityReader::default();
    let mut chars = text.chars();
    while let Some(ch) = chars.next() {
        let ch = if ch == '\\' { escaped(&mut chars) } else { Some(ch) };
        match ch.map(|ch| entities.push(ch)) {
            None | Some(Decoded::Nothing) => {}
            Some(Decoded::Plain(ch) | Decoded::Referred(ch)) => out.push(ch),
            Some(Decoded::Unread(read, ch)) => {
                out.push('&');
                out.push_str(&read);
                out.push(ch);
            }
        }
    }
    out
}

/// Decodes an escape after its backslash. Returns `None` for an invalid one.
fn escaped(chars: &mut std::str::Chars<'_>) -> Option<char> {
    match chars.next()? {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'u' => {
            let rest = chars.as_str();
            let digits = rest.get(..4).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            *chars = rest.get(4..).unwrap_or_default().chars();
            char::from_u32(u32::from_str_radix(digits, 16).ok()?)
        }
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn search_takes_linear_time() {
        for unit in
            ["{\"a\":", "{", "{\"a\":[1,", "{\"", "\\\"{", "&amp;{", "<tool_call>{", "{\"a\":{}}", "\"{\\\""]
        {
            let text = unit.repeat(200_000 / unit.len());
            let began = std::time::Instant::now();
            assert_eq!(names(&text), Vec::<String>::new());
            assert!(began.elapsed().as_secs() < 30, "{unit:?} took {:?}", began.elapsed());
        }
    }
}

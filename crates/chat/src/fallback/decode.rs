//! Decodes the captures of a complete form into calls.

use deftool_lang::schema::{Arguments, Repair, RepairKind, repair_text};
use serde_json::{Map, Value};

use super::braces::{read_braces, read_options};
use super::grammar::{Capture, Captured};
use super::model::{TextArguments, TextCall, TextMember};
use super::python::{is_name, read_call, read_literal};
use crate::RawArguments;
use crate::call_keys::{
    ARGUMENT_KEYS, FoundArguments, NAME_KEYS, UNMARKED_ARGUMENT_KEYS, Unread, find_arguments,
};

/// Prefixes that templates add to a tool's name.
const NAMESPACES: [&str; 2] = ["functions.", "default_api."];

/// The token that MiniMax M3 writes before each tag.
const MINIMAX_TOKEN: &str = "]<]minimax[>[";

/// Maximum nesting depth of elements in a value.
const MAX_DEPTH: usize = 64;

/// The tool that Command R calls if it needs no tool.
const NO_TOOL: &str = "directly_answer";

/// The content of a complete form.
#[derive(Debug)]
pub(super) enum DecodedForm {
    /// These calls, each with its position.
    Calls(Vec<TextCall>),
    /// A form that cannot be decoded.
    Unreadable {
        why: String,
        /// The calls before the error. Includes the malformed call if its name has a capture of its own.
        calls: Vec<TextCall>,
        /// The capture that cannot be decoded.
        at: Captured,
    },
    /// Not a call, for example ordinary JSON.
    Ordinary,
}

/// Decodes the calls of a complete form.
pub(super) fn decode(text: &str, captures: &[Captured], marked: bool) -> DecodedForm {
    let mut calls: Vec<TextCall> = Vec::new();
    for captured in captures {
        let Captured { what, start, end } = *captured;
        let tag = tag_before(text.get(..start).unwrap_or_default());
        let written = text.get(start..end).unwrap_or_default();
        let written = tag.and_then(|tag| written.strip_prefix(tag)).unwrap_or(written);
        let after = text.get(end..).unwrap_or_default();
        if let Some(why) =
            tag.filter(|_| what == Capture::Value).and_then(|tag| damage_in(tag, written, after))
        {
            return DecodedForm::Unreadable { why, calls, at: *captured };
        }
        let read = match what {
            Capture::Object => object_call(written, marked),
            Capture::Keyed => keyed_call(written),
            Capture::Python => python_call(written, marked),
            Capture::Name => Ok(Some(named_call(written))),
            Capture::Recipient => Ok(Some(named_call(written.strip_suffix("commentary").unwrap_or(written)))),
            Capture::Nothing => continue,
            Capture::Rename
            | Capture::Arguments
            | Capture::Braces
            | Capture::Options
            | Capture::Tags
            | Capture::Key
            | Capture::IsString
            | Capture::Value => {
                match calls.last_mut().map(|call| add_capture(call, what, written, end, marked)) {
                    Some(Err(why)) => return DecodedForm::Unreadable { why, calls, at: *captured },
                    Some(Ok(())) | None => continue,
                }
            }
        };
        match read {
            Ok(Some(call)) => calls.push(TextCall { span: (start, end), ..call }),
            Ok(None) | Err(_) if !marked => return DecodedForm::Ordinary,
            Ok(None) => {
                return DecodedForm::Unreadable {
                    why: String::from("missing tool name"),
                    calls,
                    at: *captured,
                };
            }
            Err(why) => return DecodedForm::Unreadable { why, calls, at: *captured },
        }
    }
    let is_code = !marked && text.starts_with(['`', '~']);
    for call in &mut calls {
        // A block of Python is a call only by the name of the tool.
        call.bare |= is_code && matches!(call.arguments, TextArguments::Literals { .. });
        // A bare name may occur in any text. The marks around it identify a copy.
        if call.has_no_arguments() {
            call.span = (0, text.len());
        }
    }
    if calls.is_empty() { DecodedForm::Ordinary } else { DecodedForm::Calls(calls) }
}

impl TextCall {
    fn has_no_arguments(&self) -> bool {
        match &self.arguments {
            TextArguments::Json(_) => false,
            TextArguments::Members(members) => members.is_empty(),
            TextArguments::Literals { positional, named } => positional.is_empty() && named.is_empty(),
        }
    }
}

/// Returns a call with a name and no arguments.
fn named_call(written: &str) -> TextCall {
    let arguments = TextArguments::Members(Vec::new());
    TextCall { name: plain_name(written), arguments, bare: true, span: (0, 0), repairs: Vec::new() }
}

/// Adds a capture to a call that began with its name.
fn add_capture(
    call: &mut TextCall,
    what: Capture,
    written: &str,
    end: usize,
    marked: bool,
) -> Result<(), String> {
    call.span.1 = end;
    // Without marks, a name before an object does not identify a call.
    call.bare &= what == Capture::Rename || !marked;
    match (what, &mut call.arguments) {
        (Capture::Rename, _) => call.name = plain_name(written),
        (Capture::Arguments, arguments) => {
            let (value, repairs) = read_object(written)?;
            call.repairs = repairs;
            *arguments = TextArguments::Json(RawArguments::Object { value });
        }
        (Capture::Braces, arguments) => {
            let named = read_braces(without_braces(written))?;
            *arguments = TextArguments::Literals { positional: Vec::new(), named };
        }
        (Capture::Options, arguments) => {
            let (value, repairs) = match read_object(written) {
                Ok(read) => read,
                Err(_) => (read_options(without_braces(written))?.into(), Vec::new()),
            };
            call.repairs = repairs;
            *arguments = TextArguments::Json(RawArguments::Object { value });
        }
        (Capture::Tags, TextArguments::Members(members)) => read_tags(written, members)?,
        (Capture::Key, TextArguments::Members(members)) => {
            let key = written.trim();
            if key.contains('<') {
                return Err(String::from("expected the name of an argument, found a tag"));
            }
            // The opening tag was written twice.
            if members.last().is_some_and(|last| last.key == key && last.text.is_empty()) {
                members.pop();
            }
            members.push(TextMember { key: key.to_owned(), text: String::new(), is_string: None });
        }
        (Capture::IsString, TextArguments::Members(members)) => {
            if let Some(member) = members.last_mut() {
                member.is_string = Some(matches!(written.trim(), "true" | "string"));
            }
        }
        (Capture::Value, TextArguments::Members(members)) => {
            if let Some(member) = members.last_mut() {
                trim_line_breaks(written).clone_into(&mut member.text);
            }
        }
        _ => {}
    }
    Ok(())
}

fn without_braces(text: &str) -> &str {
    text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text)
}

/// Returns the opening tag at the end of the text before a value. The model may write it twice.
fn tag_before(before: &str) -> Option<&str> {
    before.rfind('<').and_then(|at| before.get(at..)).filter(|tag| tag.ends_with('>'))
}

/// Returns an error if a value between `tag` and its closing tag ends elsewhere: a closing tag or the next opening tag is
/// damaged, or the closing tag belongs to a tag in the value. `after`: the text after the value.
fn damage_in(tag: &str, value: &str, after: &str) -> Option<String> {
    let name = tag.strip_prefix('<')?.split(['=', '>']).next()?;
    let name = name.strip_suffix(" name").unwrap_or(name);
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let end = value.trim_end();
    let mut is_damaged = [format!("/{name}>"), format!("</{name}"), format!("<{name}>")]
        .iter()
        .any(|mark| end.strip_suffix(mark.as_str()).is_some_and(|rest| !rest.ends_with('<')));
    let mut depth = 0_usize;
    for rest in value.match_indices('<').filter_map(|(at, _)| value.get(at..)) {
        depth += usize::from(rest.starts_with(&open));
        if let Some(after) = rest.strip_prefix(close.as_str()) {
            // Inside of a line, it is mentioned.
            is_damaged |= depth == 0 && after.starts_with(['\n', '\r']);
            depth = depth.saturating_sub(1);
        }
    }
    let after = after.strip_prefix(close.as_str()).unwrap_or_default();
    is_damaged |= depth > 0 && after.trim_start().starts_with(close.as_str());
    is_damaged.then(|| format!("the value of an argument contains a damaged `{close}`"))
}

/// Parses a sequence of `<name>value</name>`.
fn read_tags(text: &str, members: &mut Vec<TextMember>) -> Result<(), String> {
    let token = if text.contains(MINIMAX_TOKEN) { MINIMAX_TOKEN } else { "" };
    for (key, value) in elements(text, token)? {
        let (text, is_string) = if !token.is_empty() && value.contains(token) {
            (nested_value(value, 0)?.to_string(), Some(false))
        } else {
            (trim_line_breaks(value).to_owned(), None)
        };
        members.push(TextMember { key: key.to_owned(), text, is_string });
    }
    Ok(())
}

/// Splits a sequence of elements into names and contents. `token` precedes each tag.
fn elements<'t>(text: &'t str, token: &str) -> Result<Vec<(&'t str, &'t str)>, String> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() && rest != token {
        let (key, after) = rest
            .strip_prefix(token)
            .and_then(|rest| rest.strip_prefix('<')?.split_once('>'))
            .filter(|(key, _)| !key.is_empty() && !key.contains(['<', '/', ' ', '\n']))
            .ok_or("expected a tag with an argument")?;
        let (value, after) =
            after.split_once(&format!("{token}</{key}>")).ok_or_else(|| format!("unclosed `<{key}>`"))?;
        found.push((key, value));
        rest = after.trim_start();
    }
    Ok(found)
}

/// Parses the elements in a value of MiniMax M3: `<item>` in an array, other names in an object.
fn nested_value(text: &str, depth: usize) -> Result<Value, String> {
    if !text.contains(MINIMAX_TOKEN) {
        return Ok(Value::from(trim_line_breaks(text)));
    }
    if depth >= MAX_DEPTH {
        return Err(String::from("nested too deeply"));
    }
    let elements = elements(text, MINIMAX_TOKEN)?;
    let values = elements.iter().map(|(key, value)| Ok((*key, nested_value(value, depth + 1)?)));
    let values = values.collect::<Result<Vec<_>, String>>()?;
    Ok(if values.iter().all(|(key, _)| *key == "item") {
        values.into_iter().map(|(_, value)| value).collect()
    } else {
        Value::Object(values.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    })
}

/// Removes the line break after the opening tag and before the closing tag.
fn trim_line_breaks(text: &str) -> &str {
    let text = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
    text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text)
}

/// Removes the prefix and the number that templates add to a name: `functions.look:0`.
pub(super) fn plain_name(written: &str) -> String {
    let name = NAMESPACES.iter().find_map(|prefix| written.strip_prefix(prefix)).unwrap_or(written);
    let name = match name.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) | None => name,
    };
    name.to_owned()
}

/// Parses a JSON object, with lossless repairs of its text. It may be a Python literal or lack its last brace.
fn read_object(text: &str) -> Result<(Arguments, Vec<Repair>), String> {
    let not_json = |value| {
        let object = Arguments::try_from(value).ok()?;
        Some((object, vec![Repair::of_call(RepairKind::NotJson)]))
    };
    let mended = || {
        let closed = format!("{text}}}");
        let literal = || read_literal(text).or_else(|_| read_literal(&closed)).ok();
        serde_json::from_str(&closed).ok().or_else(literal).and_then(not_json)
    };
    match serde_json::from_str::<Map<String, Value>>(text) {
        Ok(object) => Ok((object.into(), Vec::new())),
        Err(error) => repair_text(text).or_else(mended).ok_or_else(|| error.to_string()),
    }
}

/// Parses a call as a JSON object. `None` if the object is not a call.
fn object_call(text: &str, marked: bool) -> Result<Option<TextCall>, String> {
    let (object, repairs) = read_object(text)?;
    let Some(members) = object.as_object() else { return Ok(None) };
    let call = if marked { marked_call(members) } else { unmarked_call(members, &UNMARKED_ARGUMENT_KEYS) };
    Ok(call.map(|call| TextCall { repairs, ..call }))
}

/// Parses a call as `{"name": {…}}`.
fn keyed_call(text: &str) -> Result<Option<TextCall>, String> {
    let (object, repairs) = read_object(text)?;
    let Some(object) = object.as_object() else { return Ok(None) };
    let mut members = object.iter();
    let call = match (members.next(), members.next()) {
        (Some((name, Value::Object(arguments))), None) => {
            let arguments = TextArguments::Json(RawArguments::Object { value: arguments.clone().into() });
            Some(TextCall {
                name: plain_name(name),
                arguments,
                bare: false,
                span: (0, 0),
                repairs: Vec::new(),
            })
        }
        _ => marked_call(object),
    };
    Ok(call.map(|call| TextCall { repairs, ..call }))
}

/// Returns the call that an object outside any form represents, in any API's shape. `None` for a tool's definition.
pub(super) fn call_of(object: &Map<String, Value>) -> Option<TextCall> {
    let CallMembers { named, .. } = CallMembers::of(object)?;
    let is_definition = named.contains_key("description") && named.contains_key("parameters");
    unmarked_call(object, &ARGUMENT_KEYS).filter(|_| !is_definition)
}

/// The members of a call as an object.
struct CallMembers<'o> {
    key: &'static str,
    name: &'o str,
    /// The object that contains the name.
    named: &'o Map<String, Value>,
    /// The object around it, in OpenAI's own shape: `{"type": "function", "function": {"name": …, "arguments": …}}`.
    around: Option<&'o Map<String, Value>>,
}

impl<'o> CallMembers<'o> {
    /// `None` if the object has no name.
    fn of(object: &'o Map<String, Value>) -> Option<Self> {
        let function = object.get("function").and_then(Value::as_object);
        let named = function.unwrap_or(object);
        let (key, name) = NAME_KEYS.iter().find_map(|key| Some((*key, named.get(*key)?.as_str()?)))?;
        Some(Self { key, name, named, around: function.map(|_| object) })
    }

    /// Returns all members, without the one around the others.
    fn iter(&self) -> impl Iterator<Item = (&'o str, &'o Value)> + Clone {
        let around = self.around.into_iter().flatten().filter(|(key, _)| *key != "function");
        self.named.iter().chain(around).map(|(key, value)| (key.as_str(), value))
    }
}

fn marked_call(object: &Map<String, Value>) -> Option<TextCall> {
    let members = CallMembers::of(object)?;
    let arguments = match find_arguments(members.iter(), members.name, &ARGUMENT_KEYS) {
        FoundArguments::Value(value) => raw_arguments(value),
        FoundArguments::None => RawArguments::Object { value: Arguments::default() },
        FoundArguments::Unread(Unread { text, error }) => {
            RawArguments::Malformed { text, error, truncated: false }
        }
    };
    let (name, arguments) = (plain_name(members.name), TextArguments::Json(arguments));
    Some(TextCall { name, arguments, bare: members.name == NO_TOOL, span: (0, 0), repairs: Vec::new() })
}

/// Returns the call without marks that has its arguments in one of `keys`.
fn unmarked_call(object: &Map<String, Value>, keys: &[&str]) -> Option<TextCall> {
    let members = CallMembers::of(object)?;
    let bare = members.iter().all(|(key, _)| !keys.contains(&key));
    // `{"tool": "hammer", "price": 5}` and `{"name": "Ada"}` are data; a tool's definition is not a call.
    let is_alone = members.key == "tool" && object.len() == 1;
    if bare && !is_alone {
        return None;
    }
    let arguments = match find_arguments(members.iter(), members.name, keys) {
        FoundArguments::Value(value) => Some(value).filter(|value| !is_schema(value)).map(raw_arguments)?,
        FoundArguments::None => RawArguments::Object { value: Arguments::default() },
        FoundArguments::Unread(_) => return None,
    };
    let (name, arguments) = (plain_name(members.name), TextArguments::Json(arguments));
    Some(TextCall {
        name,
        arguments,
        bare: bare || members.name == NO_TOOL,
        span: (0, 0),
        repairs: Vec::new(),
    })
}

fn is_schema(value: &Value) -> bool {
    value.get("type").is_some_and(|it| it == "object")
        && value.get("properties").is_some_and(Value::is_object)
}

fn raw_arguments(written: &Value) -> RawArguments {
    match written {
        Value::Object(value) => RawArguments::Object { value: value.clone().into() },
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(value)) => RawArguments::Object { value: value.into() },
            Ok(_) => malformed(text.clone()),
            Err(error) => {
                RawArguments::Malformed { text: text.clone(), error: error.to_string(), truncated: false }
            }
        },
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            malformed(other.to_string())
        }
    }
}

fn malformed(text: String) -> RawArguments {
    RawArguments::Malformed { text, error: String::from("not a JSON object"), truncated: false }
}

/// Parses `name(…)`, or the call inside `print(…)`, with which Gemma asks for a result.
fn python_call(text: &str, marked: bool) -> Result<Option<TextCall>, String> {
    let inner = text
        .strip_prefix("print")
        .and_then(|rest| rest.trim_start().strip_prefix('(')?.strip_suffix(')'))
        .filter(|inner| inner.trim_end().ends_with(')') && inner.trim_start().starts_with(is_name));
    let call = read_call(inner.unwrap_or(text).trim())?;
    let name = call.name.strip_suffix(".call").unwrap_or(call.name);
    let bare = !marked && call.named.is_empty();
    let arguments = TextArguments::Literals { positional: call.positional, named: call.named };
    Ok(Some(TextCall { name: plain_name(name), arguments, bare, span: (0, 0), repairs: Vec::new() }))
}

//! W3C Trace Context (<https://www.w3.org/TR/trace-context/>, version 00): the position of a call in a distributed trace.
//!
//! Values from outside are parsed strictly and formatted again, so no other text of the sender is passed on.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// The name of the header and of the `_meta` member with the ids.
pub const TRACEPARENT: &str = "traceparent";
/// The name of the header and of the `_meta` member with the data of tracing systems.
pub const TRACESTATE: &str = "tracestate";

/// Length of version 00 of `traceparent`.
const LENGTH: usize = 55;
/// Maximum length of `tracestate`, and maximum number of its members.
const MAX_STATE: usize = 512;
const MAX_MEMBERS: usize = 32;
/// Flag: the caller recorded its part of the trace.
const SAMPLED: u8 = 0x01;
/// The flags that are defined: sampled, and a trace id with random lower bytes.
const KNOWN_FLAGS: u8 = 0x03;

/// A span of a trace, used as the parent of later spans.
///
/// ```
/// use deftool_lang::tool::TraceContext;
///
/// let parent = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1").unwrap();
/// let child = parent.child(0x00f0_67aa_0ba9_02b7).unwrap();
/// assert_eq!(child.traceparent(), "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
/// assert_eq!(child.tracestate(), "a=1");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Fields", try_from = "Fields")]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
    state: String,
}

/// The serialised form.
#[derive(Serialize, Deserialize)]
struct Fields {
    traceparent: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tracestate: String,
}

impl TraceContext {
    /// Creates the first span of a trace. Returns `None` if an id is 0.
    pub fn new(trace_id: u128, span_id: u64) -> Option<Self> {
        (trace_id != 0 && span_id != 0).then(|| Self {
            trace_id,
            span_id,
            flags: SAMPLED,
            state: String::new(),
        })
    }

    /// Parses the values of `traceparent` and `tracestate`. An invalid `tracestate` is dropped. Returns `None` if
    /// `traceparent` is invalid; the receiver then starts a new trace.
    pub fn parse(traceparent: &str, tracestate: &str) -> Option<Self> {
        let (fields, rest) = traceparent.split_at_checked(LENGTH)?;
        let version = hex(fields.get(..2)?)?;
        let is_complete = match version {
            0 => rest.is_empty(),
            0xff => false,
            // A later version may only append members.
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let [separator_1, separator_2, separator_3] = [2, 35, 52].map(|at| fields.as_bytes().get(at));
        let is_separated = [separator_1, separator_2, separator_3].iter().all(|byte| *byte == Some(&b'-'));
        let trace_id = hex(fields.get(3..35)?)?;
        let span_id = hex(fields.get(36..52)?)? as u64;
        let flags = hex(fields.get(53..)?)? as u8 & KNOWN_FLAGS;
        let state = if is_state(tracestate) { tracestate.to_owned() } else { String::new() };
        let is_valid = is_complete && is_separated && trace_id != 0 && span_id != 0;
        is_valid.then_some(Self { trace_id, span_id, flags, state })
    }

    /// Returns the context of a child span. Returns `None` if `span_id` is 0.
    pub fn child(&self, span_id: u64) -> Option<Self> {
        (span_id != 0).then(|| Self { span_id, ..self.clone() })
    }

    /// Returns the id of the trace.
    pub fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// Returns the id of the span.
    pub fn span_id(&self) -> u64 {
        self.span_id
    }

    /// Returns the flags.
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Whether the spans of the trace are recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Returns the value of `traceparent`.
    pub fn traceparent(&self) -> String {
        let mut text = String::with_capacity(LENGTH);
        let _ = write!(text, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags);
        text
    }

    /// Returns the value of `tracestate`; may be empty.
    pub fn tracestate(&self) -> &str {
        &self.state
    }
}

impl From<TraceContext> for Fields {
    fn from(context: TraceContext) -> Self {
        Self { traceparent: context.traceparent(), tracestate: context.state }
    }
}

impl TryFrom<Fields> for TraceContext {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        Self::parse(&fields.traceparent, &fields.tracestate).ok_or("invalid traceparent")
    }
}

/// Parses lowercase hexadecimal digits.
fn hex(text: &str) -> Option<u128> {
    let is_hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_hex { u128::from_str_radix(text, 16).ok() } else { None }
}

/// Whether a text is a valid `tracestate` of acceptable length.
fn is_state(text: &str) -> bool {
    let members: Vec<&str> = text.split(',').map(|member| member.trim_matches([' ', '\t'])).collect();
    let mut keys: Vec<&str> = members.iter().filter_map(|member| Some(member.split_once('=')?.0)).collect();
    keys.sort_unstable();
    let count = keys.len();
    keys.dedup();
    text.len() <= MAX_STATE
        && (1..=MAX_MEMBERS).contains(&count)
        && keys.len() == count
        && members.iter().all(|member| member.is_empty() || is_member(member))
}

fn is_member(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let is_key_byte = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let is_key = key.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && key.len() <= 256
        && key.bytes().all(is_key_byte);
    let is_value = (1..=256).contains(&value.len())
        && value.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b',' | b'='));
    is_key && is_value
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line: what `traceparent` and `tracestate` become, and the values.
    const CASES: &str = include_str!("../../tests/data/trace_context.txt");

    #[test]
    fn values_from_outside_are_validated() {
        let mut count = 0;
        for line in CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let [expected, parent, state] = line.split(" | ").collect::<Vec<_>>()[..] else {
                panic!("{line}")
            };
            let decode = |text: &str| serde_json::from_str::<String>(&format!("\"{text}\"")).unwrap();
            let parsed = TraceContext::parse(&decode(parent), &decode(state));
            let found = match &parsed {
                None => String::from("invalid"),
                Some(context) if context.tracestate().is_empty() => context.traceparent(),
                Some(context) => format!("{} {}", context.traceparent(), context.tracestate()),
            };
            assert_eq!(found, expected, "{line}");
            let json = serde_json::to_string(&parsed).unwrap();
            assert_eq!(serde_json::from_str::<Option<TraceContext>>(&json).unwrap(), parsed, "{line}");
            count += 1;
        }
        assert!(count > 30);
        assert!(serde_json::from_str::<TraceContext>(r#"{"traceparent": "00-0-0-0"}"#).is_err());
    }

    #[test]
    fn long_states_are_dropped() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let state = |members: usize, length: usize| {
            let members: Vec<String> =
                (0..members).map(|nth| format!("k{nth}={}", "v".repeat(length))).collect();
            members.join(",")
        };
        let is_kept = |state: &str| !TraceContext::parse(parent, state).unwrap().tracestate().is_empty();
        assert!(is_kept(&state(32, 1)) && !is_kept(&state(33, 1)));
        assert!(is_kept(&state(1, 256)) && !is_kept(&state(1, 257)));
        assert!(!is_kept(&state(3, 200)), "longer than 512 characters");
        assert!(TraceContext::new(0, 1).is_none() && TraceContext::new(1, 0).is_none());
        assert!(TraceContext::new(1, 1).unwrap().child(0).is_none());
    }
}

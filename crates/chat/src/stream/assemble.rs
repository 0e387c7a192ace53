//! Deltas of tool calls → calls.
//!
//! In: `tool_calls` and `function_call` of each chunk. Out: [`RawCall`]s in the order of their first deltas.
//!
//! Servers disagree on how calls are separated. The index may be missing or always 0. The id may be missing, empty,
//! late, a number or new in every delta. The name may be repeated, split or empty. The rules are:
//! - A delta is assigned to a slot by index and id, by index, by id, or to the last slot.
//! - Without a name, it continues that slot, regardless of its id.
//! - With a name, it begins a new call if its id differs. If only its name differs, it begins a new call if the slot's
//!   arguments are complete or the slot's name is already a known tool.
//! - Several complete objects in one slot are calls with the same name. Equal adjacent objects count once.
//! - Arguments that are an object are converted to JSON text. Arguments that are encoded twice are decoded twice.
//! - A call without arguments, but with unknown members that may be the arguments, is malformed.
//! - `function_call` only counts in a reply without `tool_calls`.
//! - Two calls with the same id, name and arguments count once.
//!
//! Whether a call is complete is determined by parsing its arguments, never by the finish reason.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_json::{Map, Value};

use super::arguments::{FoundText, MAX_CALLS, ReceivedArguments, parse_arguments, take_text};
use super::loose::Loose;
use super::nesting::Nesting;
use super::opaque::OpaqueReader;
use crate::event::{RawArguments, RawCall};

/// Maximum length of a name. No server accepts longer names.
const MAX_NAME_BYTES: usize = 256;

/// The limit that a reply exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitExceeded {
    /// More calls than [`MAX_CALLS`].
    Calls,
    /// More items of one kind than [`MAX_CALLS`].
    Items,
    /// More bytes than the size limit.
    Bytes,
}

/// The calls of a reply that is being received.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    known_tools: HashSet<String>,
    slots: Vec<Slot>,
    /// The last slot with each index.
    by_index: HashMap<u64, usize>,
    /// The last slots with each id.
    by_id: HashMap<String, LastSlots>,
    legacy: Option<Slot>,
    foreign: ForeignItems,
    /// Number of the current chunk, to distinguish two entries of one chunk from two chunks.
    chunk: u64,
    /// The input is a complete message: each entry is a separate call.
    pub(super) has_whole_calls: bool,
}

/// The calls of a complete reply.
#[derive(Debug, Default)]
pub(super) struct Assembled {
    pub(super) calls: Vec<RawCall>,
    /// The stream ended inside the arguments of a call.
    pub(super) truncated: bool,
    /// The reply has more calls than [`MAX_CALLS`].
    pub(super) is_cut: bool,
    /// Calls that were dropped because an earlier call has the same id, name and arguments.
    pub(super) repeated: usize,
}

/// Kinds of items in a reply that are not text, reasoning or function calls, and are not read.
#[derive(Debug, Default)]
pub(super) struct ForeignItems(Vec<String>);

impl ForeignItems {
    /// Adds a kind. At most eight are kept. A kind that is not a valid name is replaced by a description.
    pub(super) fn add(&mut self, kind: &str) {
        const MAX_KINDS: usize = 8;
        let is_name = (1..=64).contains(&kind.len())
            && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let kind = if is_name { kind } else { "an item of an invalid kind" };
        if self.0.len() < MAX_KINDS && !self.0.iter().any(|known| known == kind) {
            self.0.push(kind.to_owned());
        }
    }

    pub(super) fn into_kinds(self) -> Vec<String> {
        self.0
    }
}

/// The last slots with one id.
#[derive(Debug, Default)]
struct LastSlots {
    last: usize,
    by_index: HashMap<u64, usize>,
}

/// One entry of `tool_calls`.
struct CallDelta<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    arguments: &'a str,
}

/// A call that was received completely, or up to the end of the reply.
#[derive(Debug, Default)]
pub(super) struct ReceivedCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: ReceivedArguments,
    pub(super) opaque: Map<String, Value>,
}

/// A call that is being assembled.
#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    call: ReceivedCall,
    nesting: Nesting,
    /// The last chunk that updated it.
    chunk: u64,
}

impl Assembler {
    /// Creates an assembler for a reply to a request that offered `known_tools`. The names distinguish a split name
    /// from a second call.
    pub(super) fn new(known_tools: impl IntoIterator<Item = String>) -> Self {
        Self { known_tools: known_tools.into_iter().collect(), ..Self::default() }
    }

    /// Takes a chunk's `tool_calls`: a list, one object, or nothing. Calls `on_delta` for each updated call with
    /// its number, its name and the size of its arguments so far. Returns the number of bytes added, at most `room`.
    pub(super) fn on_tool_calls(
        &mut self,
        field: Loose<'_>,
        room: usize,
        opaque: &mut OpaqueReader,
        on_delta: &mut dyn FnMut(usize, &str, usize),
    ) -> Result<usize, LimitExceeded> {
        self.chunk += 1;
        match field {
            Loose::Array(entries) => {
                let mut size = 0;
                for entry in entries {
                    size += self.on_entry(entry, room - size, opaque, on_delta)?;
                }
                Ok(size)
            }
            Loose::Object(_) => self.on_entry(field, room, opaque, on_delta),
            Loose::Null | Loose::Bool(_) | Loose::Number(_) | Loose::String(_) => Ok(0),
        }
    }

    /// Takes a chunk's `function_call`, the predecessor of `tool_calls`.
    pub(super) fn on_function_call(
        &mut self,
        mut field: Loose<'_>,
        room: usize,
        on_delta: &mut dyn FnMut(usize, &str, usize),
    ) -> Result<usize, LimitExceeded> {
        if !matches!(field, Loose::Object(_)) {
            return Ok(0);
        }
        let arguments = take_text(&mut field);
        let size = arguments.len();
        if size > room {
            return Err(LimitExceeded::Bytes);
        }
        let slot = self.legacy.get_or_insert_default();
        let mut is_updated = size > 0;
        if let Some(name) = field.get("name").and_then(Loose::as_text)
            && slot.call.name != name
            && slot.call.arguments.text.is_empty()
        {
            slot.push_name(name);
            is_updated = true;
        }
        slot.push_arguments(arguments);
        if self.slots.is_empty() && is_updated && !slot.call.name.is_empty() {
            on_delta(0, &slot.call.name, slot.call.arguments.text.len());
        }
        Ok(size)
    }

    /// Adds the type of a call that is not read.
    pub(super) fn add_foreign(&mut self, kind: &str) {
        self.foreign.add(kind);
    }

    /// Whether no part of a call was received.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.legacy.is_none()
    }

    /// Ends the reply and returns the calls and the types of the entries that were not read.
    ///
    /// With `empty_is_complete`, the server reported a regular end: a call without arguments is a call of a tool
    /// without parameters. Otherwise its arguments were cut off.
    pub(super) fn finish(self, empty_is_complete: bool) -> (Assembled, Vec<String>) {
        let slots = if self.slots.is_empty() { self.legacy.into_iter().collect() } else { self.slots };
        let calls = slots.into_iter().map(|slot| slot.call);
        (read_calls(calls, empty_is_complete), self.foreign.into_kinds())
    }

    fn on_entry(
        &mut self,
        mut entry: Loose<'_>,
        room: usize,
        opaque: &mut OpaqueReader,
        on_delta: &mut dyn FnMut(usize, &str, usize),
    ) -> Result<usize, LimitExceeded> {
        if !matches!(entry, Loose::Object(_)) {
            return Ok(0);
        }
        let arguments = take_text(&mut entry);
        let size = arguments.len();
        let function = match entry.get("function") {
            Some(function @ Loose::Object(_)) => function,
            Some(_) | None => {
                if let Some(kind) = foreign_kind(&entry) {
                    self.foreign.add(kind);
                    return Ok(0);
                }
                // The delta contains only an id or a type, or is not wrapped in `function`.
                &entry
            }
        };
        let id = entry.get("id").and_then(Loose::as_id);
        let delta = CallDelta {
            index: entry.get("index").and_then(Loose::as_count),
            id: id.as_deref(),
            name: function.get("name").and_then(Loose::as_text),
            arguments: &arguments.text,
        };
        let found = self
            .find_slot(&delta)
            .filter(|&position| !self.has_whole_calls && !self.begins_call(position, &delta));
        let position = found.unwrap_or(self.slots.len());
        if size > room {
            return Err(LimitExceeded::Bytes);
        }
        let mut is_updated = found.is_none() || size > 0;
        if position == self.slots.len() {
            if position == MAX_CALLS {
                return Err(LimitExceeded::Calls);
            }
            self.slots.push(Slot { index: delta.index, chunk: self.chunk, ..Slot::default() });
            if let Some(index) = delta.index {
                self.by_index.insert(index, position);
            }
        }
        let Some(slot) = self.slots.get_mut(position) else { return Ok(0) };
        if slot.call.id.is_none()
            && let Some(id) = delta.id
        {
            slot.call.id = Some(id.to_owned());
            let known = self.by_id.entry(id.to_owned()).or_default();
            known.last = known.last.max(position);
            if let Some(index) = slot.index {
                let last = known.by_index.entry(index).or_default();
                *last = position.max(*last);
            }
        }
        is_updated |= slot.add_name(&delta, &self.known_tools);
        slot.push_arguments(arguments);
        opaque.add_call(&mut slot.call.opaque, &entry);
        slot.chunk = self.chunk;
        if is_updated {
            on_delta(position, &slot.call.name, slot.call.arguments.text.len());
        }
        Ok(size)
    }

    /// Finds the slot of a delta, without its name. Usually the last slot.
    fn find_slot(&self, delta: &CallDelta<'_>) -> Option<usize> {
        let last = self.slots.len().checked_sub(1);
        let last_slot = self.slots.last();
        let with_id = || delta.id.and_then(|id| self.by_id.get(id));
        if let Some(index) = delta.index {
            return with_id()
                .and_then(|slots| slots.by_index.get(&index).copied())
                .or_else(|| self.by_index.get(&index).copied())
                .or_else(|| with_id().filter(|_| delta.name.is_none()).map(|slots| slots.last))
                .or_else(|| {
                    last.filter(|_| delta.name.is_none() && last_slot.is_some_and(|s| s.index.is_none()))
                });
        }
        if delta.id.is_some() {
            let id_is_late =
                last_slot.is_some_and(|slot| slot.call.id.is_none() && !slot.nesting.is_closed());
            return with_id()
                .map(|slots| slots.last)
                .or_else(|| last.filter(|_| delta.name.is_none() || id_is_late));
        }
        last
    }

    /// Whether a delta for the slot at `position` begins another call.
    fn begins_call(&self, position: usize, delta: &CallDelta<'_>) -> bool {
        let (Some(slot), Some(name)) = (self.slots.get(position), delta.name) else { return false };
        let piece = delta.arguments.trim_start();
        let may_be_start = piece.is_empty() || piece.starts_with('{');
        if let (Some(id), Some(slot_id)) = (delta.id, slot.call.id.as_deref())
            && id != slot_id
        {
            // Some servers create a new id for every delta, so a different id alone does not begin a call.
            return may_be_start || slot.nesting.is_closed() || slot.call.name != name;
        }
        if slot.call.name.is_empty() || slot.call.name == name {
            return false;
        }
        if slot.call.arguments.text.is_empty() {
            return !self.continues_name(slot, name);
        }
        slot.nesting.is_closed() || (may_be_start && self.known_tools.contains(name))
    }

    /// Whether `piece` continues the slot's name, instead of being the name of another call.
    fn continues_name(&self, slot: &Slot, piece: &str) -> bool {
        let begun = &slot.call.name;
        if self.known_tools.contains(&format!("{begun}{piece}")) {
            return true;
        }
        if self.known_tools.contains(begun) {
            return false;
        }
        if self.known_tools.contains(piece) {
            return piece.starts_with(begun);
        }
        // No server splits a name inside one chunk.
        slot.chunk != self.chunk
    }
}

/// Returns the type of an entry that is not a function call, such as `custom`.
fn foreign_kind<'a>(entry: &'a Loose<'_>) -> Option<&'a str> {
    let kind = entry.get("type").and_then(Loose::as_text)?;
    entry.get(kind).filter(|payload| matches!(payload, Loose::Object(_))).map(|_| kind)
}

/// Parses the arguments of all calls of a reply, in order.
pub(super) fn read_calls(
    calls: impl IntoIterator<Item = ReceivedCall>,
    empty_is_complete: bool,
) -> Assembled {
    let mut assembled = Assembled::default();
    // The calls with each id, as ranges of `assembled.calls`, with the hashes of their arguments.
    let mut by_id: HashMap<String, Vec<(u64, Range<usize>)>> = HashMap::new();
    for (index, ReceivedCall { mut id, name, arguments, mut opaque }) in calls.into_iter().enumerate() {
        if name.is_empty() && arguments.text.trim().is_empty() {
            continue;
        }
        let room = MAX_CALLS.saturating_sub(assembled.calls.len());
        let mut parsed = parse_arguments(arguments, empty_is_complete);
        if let Some(known) = &id {
            let same_id = by_id.entry(known.clone()).or_default();
            // The first call with an id keeps it.
            let is_first = same_id.is_empty();
            // Comparing all calls with each other would take too long.
            let hash = parsed.hash();
            let is_known = |(other, earlier): &(u64, Range<usize>)| {
                let earlier = assembled.calls.get(earlier.clone()).filter(|_| *other == hash);
                earlier.is_some_and(|earlier| parsed.equals(&name, earlier))
            };
            if same_id.iter().any(is_known) {
                assembled.repeated += 1;
                continue;
            }
            let start = assembled.calls.len();
            same_id.push((hash, start..start + parsed.len().min(room)));
            id = id.filter(|_| is_first);
        }
        assembled.truncated |= parsed.truncated;
        let objects = parsed.objects.into_iter().map(|value| RawArguments::Object { value });
        assembled.is_cut |= parsed.is_cut;
        for (number, arguments) in objects.chain(parsed.malformed).enumerate() {
            if number == room {
                assembled.is_cut = true;
                break;
            }
            let (written, opaque) = (parsed.written.take(), std::mem::take(&mut opaque));
            let repairs = match &arguments {
                RawArguments::Object { .. } => parsed.repairs.clone(),
                RawArguments::Malformed { .. } => Vec::new(),
            };
            let (id, name) = (id.take(), name.clone());
            assembled.calls.push(RawCall { index, id, name, arguments, written, opaque, repairs });
        }
    }
    assembled
}

impl Slot {
    /// Takes the name of a delta. Returns whether it changes the name.
    fn add_name(&mut self, delta: &CallDelta<'_>, known_tools: &HashSet<String>) -> bool {
        let Some(name) = delta.name else { return false };
        if name == self.call.name || !self.call.arguments.text.is_empty() {
            return false;
        }
        if known_tools.contains(name) && name.starts_with(&self.call.name) {
            // A longer repetition of the name so far.
            self.call.name.clear();
        }
        self.push_name(name);
        true
    }

    fn push_name(&mut self, piece: &str) {
        push_name(&mut self.call.name, piece);
    }

    fn push_arguments(&mut self, found: FoundText<'_>) {
        let FoundText { text: piece, unread } = found;
        self.nesting.scan(&piece);
        let arguments = &mut self.call.arguments;
        if arguments.text.is_empty() {
            // Large arguments are not copied.
            arguments.text = piece.into_owned();
        } else {
            arguments.text.push_str(&piece);
        }
        if let Some(unread) = unread {
            arguments.set_unread(unread);
        }
    }
}

/// Appends to a name, up to the maximum length.
pub(super) fn push_name(name: &mut String, piece: &str) {
    let mut room = MAX_NAME_BYTES.saturating_sub(name.len()).min(piece.len());
    while !piece.is_char_boundary(room) {
        room -= 1;
    }
    name.push_str(piece.get(..room).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes one chunk's `tool_calls` per item. Returns `name arguments` of each call, or `name !` if malformed.
    fn calls_of(known: &[&str], chunks: &[&str]) -> Vec<String> {
        let mut assembler = Assembler::new(known.iter().map(|&name| name.to_owned()));
        for chunk in chunks {
            assembler
                .on_tool_calls(
                    serde_json::from_str(chunk).unwrap(),
                    usize::MAX,
                    &mut OpaqueReader::default(),
                    &mut |_, _, _| {},
                )
                .unwrap();
        }
        let shown = |call: RawCall| match call.arguments {
            RawArguments::Object { value } => format!("{} {value}", call.name),
            RawArguments::Malformed { .. } => format!("{} !", call.name),
        };
        assembler.finish(true).0.calls.into_iter().map(shown).collect()
    }

    #[test]
    fn split_names_are_distinguished_from_second_calls() {
        let known = ["now", "get", "get_weather"];
        let cases: &[(&[&str], &[&str])] = &[
            (
                &[
                    r#"[{"index":0,"id":"a","function":{"name":"get_"}}]"#,
                    r#"[{"index":0,"function":{"name":"weather"}}]"#,
                ],
                &["get_weather {}"],
            ),
            (
                &[
                    r#"[{"index":0,"function":{"name":"get_w"}}]"#,
                    r#"[{"index":0,"function":{"name":"get_weather"}}]"#,
                ],
                &["get_weather {}"],
            ),
            (
                &[
                    r#"[{"index":0,"function":{"name":"get"}}]"#,
                    r#"[{"index":0,"function":{"name":"_weather"}}]"#,
                ],
                &["get_weather {}"],
            ),
            (
                &[
                    r#"[{"index":0,"function":{"name":"now"}}]"#,
                    r#"[{"index":0,"function":{"name":"get_weather"}}]"#,
                ],
                &["now {}", "get_weather {}"],
            ),
            (
                &[
                    r#"[{"function":{"name":"other","arguments":""}},{"function":{"name":"another","arguments":"{}"}}]"#,
                ],
                &["other {}", "another {}"],
            ),
            (
                &[
                    r#"[{"index":0,"function":{"name":"now","arguments":"{}"}}]"#,
                    r#"[{"index":0,"function":{"name":"get","arguments":"{\"a\":1}"}}]"#,
                ],
                &["now {}", r#"get {"a":1}"#],
            ),
            // Arguments with an unknown index do not belong to the last call, which has one.
            (
                &[
                    r#"[{"index":0,"function":{"name":"now","arguments":"{"}}]"#,
                    r#"[{"index":1,"function":{"arguments":"}"}}]"#,
                ],
                &["now !", " !"],
            ),
        ];
        for (chunks, expected) in cases {
            assert_eq!(&calls_of(&known, chunks), expected, "{chunks:?}");
        }
    }

    #[test]
    fn a_changed_id_begins_a_call_only_if_its_arguments_can_begin() {
        let split = [
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]"#,
            r#"[{"index":0,"id":"b","function":{"name":"f","arguments":"1}"}}]"#,
        ];
        assert_eq!(calls_of(&[], &split), [r#"f {"x":1}"#]);
        let interleaved = [
            r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]"#,
            r#"[{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\":"}}]"#,
            r#"[{"index":0,"id":"a","function":{"arguments":"1}"}}]"#,
            r#"[{"index":0,"id":"b","function":{"arguments":"2}"}}]"#,
        ];
        assert_eq!(calls_of(&[], &interleaved), [r#"f {"x":1}"#, r#"g {"y":2}"#]);
    }

    #[test]
    fn arguments_in_any_form_are_parsed() {
        for (arguments, expected) in [
            ("null", r"f {}"),
            (r#""null""#, r"f {}"),
            (r#""""#, r"f {}"),
            (r#"" \n""#, r"f {}"),
            (r#"{"a":1}"#, r#"f {"a":1}"#),
            (r#""\"{\\\"a\\\":1}\"""#, r#"f {"a":1}"#),
            (r#""{\"a\":1}{\"a\":1}""#, r#"f {"a":1}"#),
            (r#""{}{\"a\":1}""#, r#"f {"a":1}"#),
            (r#""{\"a\":1}{\"b\":2}""#, r#"f {"a":1};f {"b":2}"#),
            (r#""{\"a\":1}{\"b\"""#, r#"f {"a":1};f !"#),
            (r#""{\"a\":1}}""#, "f !"),
            ("[1]", "f !"),
            ("5", "f !"),
            (r#""\"\\\"twice\\\"\"""#, "f !"),
        ] {
            let chunk = format!(r#"{{"id":7,"function":{{"name":"f","arguments":{arguments}}}}}"#);
            assert_eq!(calls_of(&[], &[&chunk]).join(";"), expected, "{arguments}");
        }
    }

    #[test]
    fn only_the_first_call_keeps_a_repeated_id() {
        let mut assembler = Assembler::default();
        let chunk = r#"[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}{\"x\":2}"}},
                        {"index":1,"id":"a","function":{"name":"f","arguments":"{}"}}]"#;
        let (field, mut opaque) = (serde_json::from_str(chunk).unwrap(), OpaqueReader::default());
        assembler.on_tool_calls(field, usize::MAX, &mut opaque, &mut |_, _, _| {}).unwrap();
        let ids: Vec<_> = assembler.finish(true).0.calls.into_iter().map(|call| call.id).collect();
        assert_eq!(ids, [Some(String::from("a")), None, None]);
    }
}

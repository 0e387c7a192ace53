//! The content blocks of one message.
//!
//! Events identify their block by its index. A delta without an index belongs to the last block; so does one with an
//! index that no block has, if only the last block is open. A delta that does not fit its block, or has none, begins a
//! block of its own kind: some servers send no `content_block_start`.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::super::arguments::{FoundText, MAX_CALLS, find_text};
use super::super::assemble::{Assembled, ForeignItems, LimitExceeded, ReceivedCall, push_name, read_calls};
use super::super::loose::Loose;
use super::super::opaque::OpaqueReader;
use super::super::reply_state::ReplyState;
use super::super::sink::Sink;
use crate::call_keys::Content;
use crate::received::{Opaque, merge};

/// Separates the texts of two thinking blocks.
const THOUGHT_BREAK: &str = "\n\n";

/// The content blocks of a message that is being received.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    all: Vec<Block>,
    /// The last block with each index.
    by_index: HashMap<u64, usize>,
    /// Number of blocks without an end.
    open: usize,
    calls: Vec<ReceivedCall>,
    foreign: ForeignItems,
    opaque: OpaqueReader,
    has_thought: bool,
}

/// A content block.
#[derive(Debug)]
struct Block {
    kind: BlockKind,
    /// The members of the block, in order. Those that grow are added at the end of the reply.
    members: Map<String, Value>,
    /// The text of the block; for a call, the arguments that its start contained; for others, JSON in pieces.
    text: String,
    is_done: bool,
}

/// The kind of a content block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    /// A call, with its number.
    Call(usize),
    /// Any other, such as `redacted_thinking` and the server's own calls.
    Other,
}

impl BlockKind {
    /// Returns the type of a block that was sent without one.
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
            Self::Call(_) => "tool_use",
            Self::Other => "",
        }
    }
}

impl Blocks {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Takes the start of a block, or a whole block.
    pub(super) fn begin(
        &mut self,
        index: Option<u64>,
        start: &Loose<'_>,
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<usize, LimitExceeded> {
        let known = index.and_then(|index| self.by_index.get(&index)).copied();
        if let Some(at) = known.filter(|at| self.is_repeated(*at, start)) {
            return Ok(at);
        }
        let kind = self.kind_of(start);
        let at = self.all.len();
        if self.calls.len() > MAX_CALLS {
            return Err(LimitExceeded::Calls);
        }
        if at - self.calls.len().min(at) >= MAX_CALLS {
            return Err(LimitExceeded::Items);
        }
        let mut members = Map::new();
        for (name, value) in start.members().collect::<Vec<_>>().into_iter().rev() {
            // Those that grow have a place, but no value yet.
            let value = if is_grown(kind, name) { Some(Value::Null) } else { self.opaque.take(value) };
            members.extend(value.map(|value| (name.to_owned(), value)));
        }
        self.all.push(Block { kind, members, text: String::new(), is_done: false });
        self.open += 1;
        self.by_index.extend(index.map(|index| (index, at)));
        if let BlockKind::Call(number) = kind {
            self.begin_call(at, number, start, state)?;
            if let Some(call) = self.calls.get(number) {
                sink.push_call(number, &call.name, call.arguments.text.len());
            }
        } else {
            self.grow(at, start, state, sink)?;
        }
        if let Some(Block { members, .. }) = self.all.get_mut(at) {
            members.entry("type").or_insert_with(|| Value::from(kind.name()));
        }
        Ok(at)
    }

    /// Takes a delta.
    pub(super) fn add(
        &mut self,
        index: Option<u64>,
        delta: &Loose<'_>,
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        let last =
            || self.all.len().checked_sub(1).filter(|at| self.all.get(*at).is_some_and(|b| !b.is_done));
        let found = match index {
            None => last(),
            Some(index) => self.by_index.get(&index).copied().or_else(|| last().filter(|_| self.open == 1)),
        };
        let is_fitting = |at: &usize| self.all.get(*at).is_some_and(|block| block.takes(delta));
        let at = match found.filter(is_fitting) {
            Some(at) => at,
            None => {
                let kind = Loose::String(Cow::Borrowed(kind_of_delta(delta).unwrap_or_default()));
                let start = Loose::Object(vec![(Cow::Borrowed("type"), kind)]);
                self.begin(index, &start, state, sink)?
            }
        };
        self.grow(at, delta, state, sink)
    }

    /// Takes the end of a block.
    pub(super) fn end(&mut self, index: Option<u64>) {
        let last = self.all.len().checked_sub(1);
        let at = index.map_or(last, |index| self.by_index.get(&index).copied());
        if let Some(block) = at.and_then(|at| self.all.get_mut(at)).filter(|block| !block.is_done) {
            block.is_done = true;
            self.open -= 1;
        }
    }

    /// Returns the calls, the types of unknown blocks, and the blocks in order, if the next request needs them; `None` if
    /// they are too large.
    pub(super) fn finish(mut self, empty_is_complete: bool) -> (Assembled, Vec<String>, Option<Opaque>) {
        for block in &mut self.all {
            if let BlockKind::Call(number) = block.kind
                && let Some(call) = self.calls.get_mut(number)
            {
                let is_whole = |text: &str| {
                    Content::of_text(text) == Content::Filled && serde_json::from_str::<Value>(text).is_ok()
                };
                // The start contained the whole arguments. The deltas may repeat them, or be an empty object.
                if !block.text.is_empty() && !is_whole(&call.arguments.text) {
                    call.arguments.text = std::mem::take(&mut block.text);
                }
            }
        }
        let opaque = if self.has_state() { self.whole_blocks() } else { Some(Opaque::default()) };
        (read_calls(self.calls, empty_is_complete), self.foreign.into_kinds(), opaque)
    }

    /// Whether the parsed text and calls do not contain everything: the blocks of a plain reply are one text and calls.
    fn has_state(&self) -> bool {
        let is_call = |kind: BlockKind| matches!(kind, BlockKind::Call(_));
        let is_state = |kind: BlockKind| matches!(kind, BlockKind::Thinking | BlockKind::Other);
        let mut pairs = self.all.windows(2);
        self.all.iter().any(|block| is_state(block.kind))
            || pairs.any(|pair| matches!(pair, [one, next] if is_call(one.kind) && !is_call(next.kind)))
    }

    /// Returns the blocks as the next request contains them.
    fn whole_blocks(&mut self) -> Option<Opaque> {
        let mut items = Vec::with_capacity(self.all.len());
        for block in std::mem::take(&mut self.all) {
            let Block { kind, mut members, text, .. } = block;
            let mut set = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
            let size = match kind {
                BlockKind::Call(number) => {
                    let arguments = self.calls.get(number).map_or("", |call| call.arguments.text.as_str());
                    let input = serde_json::from_str(arguments).ok().filter(Value::is_object);
                    set("input", input.unwrap_or_else(|| json!({})));
                    arguments.len()
                }
                BlockKind::Text => {
                    let size = text.len();
                    set("text", Value::from(text));
                    size
                }
                BlockKind::Thinking => {
                    let size = text.len();
                    set("thinking", Value::from(text));
                    size
                }
                BlockKind::Other => {
                    if let Ok(input) = serde_json::from_str(&text) {
                        set("input", input);
                    }
                    text.len()
                }
            };
            if !self.opaque.reserve(size) {
                return None;
            }
            members.retain(|_, value| !value.is_null());
            items.push(Value::Object(members));
        }
        Some(Opaque { items, ..std::mem::take(&mut self.opaque).finish()? })
    }

    /// Whether the start of a block is sent a second time.
    fn is_repeated(&self, at: usize, start: &Loose<'_>) -> bool {
        let Some(block) = self.all.get(at).filter(|block| !block.is_done && block.text.is_empty()) else {
            return false;
        };
        let kind = start.get("type").and_then(Loose::as_text);
        kind == block.members.get("type").and_then(Value::as_str)
            && match block.kind {
                BlockKind::Call(number) => {
                    let id = start.get("id").and_then(Loose::as_id);
                    let call = self.calls.get(number);
                    id.is_some()
                        && call.is_some_and(|call| {
                            call.id.as_deref() == id.as_deref() && call.arguments.text.is_empty()
                        })
                }
                BlockKind::Text | BlockKind::Thinking => true,
                BlockKind::Other => false,
            }
    }

    /// Returns the kind of a block that begins. Counts it if it is a call or an unknown block.
    fn kind_of(&mut self, start: &Loose<'_>) -> BlockKind {
        let has = |name: &str| start.get(name).is_some();
        match start.get("type").and_then(Loose::as_text) {
            Some("text") => BlockKind::Text,
            Some("thinking") => BlockKind::Thinking,
            Some("tool_use") => self.new_call(),
            Some("redacted_thinking") => BlockKind::Other,
            None if has("text") => BlockKind::Text,
            None if has("thinking") => BlockKind::Thinking,
            None if has("input") && has("name") => self.new_call(),
            kind => {
                self.foreign.add(kind.unwrap_or_default());
                BlockKind::Other
            }
        }
    }

    fn new_call(&mut self) -> BlockKind {
        self.calls.push(ReceivedCall::default());
        BlockKind::Call(self.calls.len() - 1)
    }

    /// Takes the name, the id and the arguments of a call that begins.
    fn begin_call(
        &mut self,
        at: usize,
        number: usize,
        start: &Loose<'_>,
        state: &mut ReplyState,
    ) -> Result<(), LimitExceeded> {
        let (Some(call), Some(block)) = (self.calls.get_mut(number), self.all.get_mut(at)) else {
            return Ok(());
        };
        call.id = start.get("id").and_then(Loose::as_id).map(Cow::into_owned);
        push_name(&mut call.name, start.get("name").and_then(Loose::as_text).unwrap_or_default());
        let found = find_text(start);
        if !state.reserve(found.len()) {
            return Err(LimitExceeded::Bytes);
        }
        let FoundText { text, unread } = found;
        // An empty object is the place of the arguments that follow.
        if Content::of_text(&text) == Content::Filled {
            block.text = text.into_owned();
        }
        if let Some(unread) = unread {
            call.arguments.set_unread(unread);
        }
        Ok(())
    }

    /// Adds the members of a delta to a block.
    fn grow(
        &mut self,
        at: usize,
        delta: &Loose<'_>,
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        let Some(block) = self.all.get_mut(at) else { return Ok(()) };
        let kind = block.kind;
        let piece = match kind {
            BlockKind::Text => delta.get("text"),
            BlockKind::Thinking => delta.get("thinking"),
            BlockKind::Call(_) | BlockKind::Other => delta.get("partial_json"),
        };
        let piece = piece.map(Loose::to_text).unwrap_or_default();
        if !state.reserve(piece.len()) {
            return Err(LimitExceeded::Bytes);
        }
        match kind {
            BlockKind::Text => sink.push_text(&piece),
            BlockKind::Thinking if !piece.is_empty() => {
                if block.text.is_empty() && self.has_thought {
                    sink.push_reasoning(THOUGHT_BREAK);
                }
                self.has_thought = true;
                sink.push_reasoning(&piece);
            }
            BlockKind::Call(number) => {
                if let Some(call) = self.calls.get_mut(number).filter(|_| !piece.is_empty()) {
                    call.arguments.text.push_str(&piece);
                    sink.push_call(number, &call.name, call.arguments.text.len());
                }
                return Ok(());
            }
            BlockKind::Thinking | BlockKind::Other => {}
        }
        block.text.push_str(&piece);
        if !block.is_start(delta) {
            for (name, value) in delta.members().filter(|(name, _)| !is_grown(kind, name)) {
                block.add_member(name, value, &mut self.opaque);
            }
        }
        Ok(())
    }
}

impl Block {
    /// Whether a delta may be of this block.
    fn takes(&self, delta: &Loose<'_>) -> bool {
        match (self.kind, kind_of_delta(delta)) {
            (BlockKind::Other, _) | (_, None) => true,
            (BlockKind::Text, Some(kind)) => kind == "text",
            (BlockKind::Thinking, Some(kind)) => kind == "thinking",
            (BlockKind::Call(_), Some(kind)) => kind == "tool_use",
        }
    }

    /// Whether a value is the start of this block, whose members are known.
    fn is_start(&self, value: &Loose<'_>) -> bool {
        let kind = value.get("type").and_then(Loose::as_text);
        kind == self.members.get("type").and_then(Value::as_str)
    }

    /// Adds a member of a delta: a piece of the signature, a citation, or one of an unknown block.
    fn add_member(&mut self, name: &str, value: &Loose<'_>, opaque: &mut OpaqueReader) {
        if name == "type" {
            return;
        }
        let Some(value) = opaque.take(value) else { return };
        let (name, value) = match name {
            "citation" => ("citations", Value::Array(vec![value])),
            name => (name, value),
        };
        match self.members.get_mut(name) {
            Some(Value::String(known)) if name == "signature" && value.as_str() == Some(known) => {}
            Some(Value::Array(known)) => known.extend(value.as_array().cloned().unwrap_or_default()),
            Some(known) => merge(known, value),
            None => drop(self.members.insert(name.to_owned(), value)),
        }
    }
}

/// Whether a member is collected from deltas.
fn is_grown(kind: BlockKind, name: &str) -> bool {
    match kind {
        BlockKind::Text => name == "text",
        BlockKind::Thinking => name == "thinking",
        BlockKind::Call(_) => matches!(name, "input" | "partial_json"),
        BlockKind::Other => name == "partial_json",
    }
}

/// Returns the type of the block that a delta belongs to, by its members.
fn kind_of_delta(delta: &Loose<'_>) -> Option<&'static str> {
    let kinds = [
        ("text", "text"),
        ("citation", "text"),
        ("thinking", "thinking"),
        ("signature", "thinking"),
        ("partial_json", "tool_use"),
    ];
    kinds.into_iter().find(|(member, _)| delta.get(member).is_some()).map(|(_, kind)| kind)
}

//! Events of a response stream → text, reasoning, calls.
//!
//! In: the JSON of each event in order, or of a complete response. Out: events, then the calls at the end.

use super::super::api_decoder::ApiDecoder;
use super::super::assemble::{Assembled, ForeignItems, LimitExceeded};
use super::super::chunk::{decode_chunk, is_error};
use super::super::loose::Loose;
use super::super::loose_object::decode_object;
use super::super::opaque::OpaqueReader;
use super::super::reply_state::{BodyEnd, ReplyContent, ReplyState, local_error};
use super::super::sink::Sink;
use super::calls::{Calls, UpdatedCall};
use super::event::{Event, ResponseObject, text_of, texts_of};
use super::slots::{ItemRef, ItemSlots};
use crate::finish::FinishMeaning;
use crate::received::Opaque;

/// Separates two parts of the reasoning.
const PART_BREAK: &str = "\n\n";

/// A response that is being received.
#[derive(Debug, Default)]
pub(in super::super) struct Response {
    messages: ItemSlots<ItemText>,
    reasoning: ItemSlots<ReasoningItem>,
    calls: Calls,
    foreign: ForeignItems,
    /// The completed items, with their positions in the output.
    items: OpaqueReader,
    positions: Vec<Option<u64>>,
    /// The number of the completed items with encrypted reasoning.
    encrypted: usize,
}

/// A reasoning item. Servers send text, a summary, or both; only the source that arrives first is read.
#[derive(Debug, Default)]
struct ReasoningItem {
    text: ItemText,
    source: Option<Source>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Text,
    Summary,
}

/// The terminal state of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseEnd {
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

/// The kind of an output item.
enum ItemKind<'a> {
    Message,
    Reasoning,
    Call,
    Foreign(&'a str),
}

impl ApiDecoder for Response {
    fn read(&mut self, data: &[u8], state: &mut ReplyState, sink: &mut Sink<'_>) -> serde_json::Result<()> {
        let event = decode_object::<Event<'_>>(data)?;
        if let Err(limit) = self.on_event(&event, data, state, sink) {
            state.stop_at_limit(limit);
        }
        Ok(())
    }

    fn finish(self: Box<Self>, empty_is_complete: bool) -> (Assembled, Vec<String>, Option<Opaque>) {
        let mut opaque = self.items.finish();
        if let Some(Opaque { items, .. }) = &mut opaque
            && self.positions.len() == items.len()
            && self.positions.iter().all(Option::is_some)
        {
            let mut ordered: Vec<_> = self.positions.into_iter().zip(std::mem::take(items)).collect();
            ordered.sort_by_key(|(position, _)| *position);
            items.extend(ordered.into_iter().map(|(_, item)| item));
        } else if self.reasoning.is_empty() {
            // Large text and calls come back in their parsed form.
            opaque.get_or_insert_default();
        }
        (self.calls.finish(empty_is_complete), self.foreign.into_kinds(), opaque)
    }
}

impl Response {
    fn on_event(
        &mut self,
        event: &Event<'_>,
        data: &[u8],
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        let kind = event.kind.as_text().unwrap_or_default();
        let item_ref = || ItemRef::new(&event.item_id, &event.output_index);
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                state.note_content(ReplyContent::Choice);
                let at = self.messages.grow(&item_ref())?;
                self.push_text(at, event.content_index.as_count(), event.piece(), state, sink)?;
            }
            "response.output_text.done" => self.on_part(event, &event.text, state, sink)?,
            "response.refusal.done" => self.on_part(event, &event.refusal, state, sink)?,
            "response.content_part.done" if is_text(&event.part) => {
                self.on_part(event, &event.part, state, sink)?;
            }
            "response.reasoning_text.delta" | "response.reasoning.delta" => {
                self.on_reasoning(event, Source::Text, state, sink)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_summary.delta" => {
                self.on_reasoning(event, Source::Summary, state, sink)?;
            }
            "response.function_call_arguments.delta" => {
                state.note_content(ReplyContent::Choice);
                let updated = self.calls.grow(&item_ref(), event.piece(), state)?;
                push_call_delta(&updated, sink);
            }
            "response.function_call_arguments.done" => {
                state.note_content(ReplyContent::Choice);
                let updated = self.calls.complete(&item_ref(), &event.arguments, &event.name, state)?;
                push_call_delta(&updated, sink);
            }
            "response.output_item.added" => self.on_item(event, false, state, sink)?,
            "response.output_item.done" => self.on_item(event, true, state, sink)?,
            "response.created" | "response.in_progress" | "response.queued" => {
                let response = event.response.as_deref().unwrap_or(&event.own);
                state.set_id(&response.id);
                state.set_model(&response.model);
                state.set_usage(&response.usage);
            }
            "response.completed" | "response.done" => {
                self.on_end(event, ResponseEnd::Completed, state, sink)?;
            }
            "response.incomplete" => self.on_end(event, ResponseEnd::Incomplete, state, sink)?,
            "response.failed" => self.on_end(event, ResponseEnd::Failed, state, sink)?,
            "response.cancelled" | "response.canceled" => {
                self.on_end(event, ResponseEnd::Cancelled, state, sink)?;
            }
            "error" => state.set_server_error(data),
            _ => self.on_other(event, kind, data, state, sink)?,
        }
        Ok(())
    }

    /// Takes an event of unknown type: a response without an event around it, an error, or an irrelevant event.
    fn on_other(
        &mut self,
        event: &Event<'_>,
        kind: &str,
        data: &[u8],
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        let own = &event.own;
        let is_response = own.object.as_text() == Some("response") || matches!(own.output, Loose::Array(_));
        if kind.is_empty() && is_response {
            state.set_id(&own.id);
            state.set_model(&own.model);
            state.set_usage(&own.usage);
            if !matches!(own.status.as_text(), Some("in_progress" | "queued")) {
                self.on_end(event, ResponseEnd::Completed, state, sink)?;
            }
        } else if is_error(&event.error) || decode_chunk(data).is_ok_and(|chunk| chunk.has_error()) {
            state.set_server_error(data);
        }
        Ok(())
    }

    /// Takes an item that begins or, with `is_done`, is complete.
    fn on_item(
        &mut self,
        event: &Event<'_>,
        is_done: bool,
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        state.note_content(ReplyContent::Choice);
        let item_ref = item_ref_of(event);
        if is_done && self.items.push_item(&event.item) {
            self.positions.push(event.output_index.as_count());
            self.encrypted += usize::from(is_encrypted(&event.item));
        }
        match kind_of(&event.item) {
            ItemKind::Message => {
                let at = self.messages.begin_or_end(&item_ref, is_done, |_| true)?;
                let Some(text) = self.messages.get(at).filter(|_| is_done) else { return Ok(()) };
                let whole = texts_of(event.item.get("content")).concat();
                let rest = rest_after(text.received(), &whole);
                self.push_text(at, None, rest, state, sink)?;
            }
            ItemKind::Reasoning => {
                let at = self.reasoning.begin_or_end(&item_ref, is_done, |_| true)?;
                let Some(item) = self.reasoning.get(at).filter(|_| is_done) else { return Ok(()) };
                let whole = reasoning_of(&event.item, item.source);
                push_reasoning(item, rest_after(item.text.received(), &whole), state, sink)?;
            }
            ItemKind::Call => {
                push_call_delta(&self.calls.begin_or_end(&item_ref, &event.item, is_done, state)?, sink);
            }
            ItemKind::Foreign(name) => self.foreign.add(name),
        }
        Ok(())
    }

    /// Takes the complete content of one part of a message.
    fn on_part(
        &mut self,
        event: &Event<'_>,
        part: &Loose<'_>,
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        state.note_content(ReplyContent::Choice);
        let at = self.messages.grow(&ItemRef::new(&event.item_id, &event.output_index))?;
        let Some(text) = self.messages.get(at) else { return Ok(()) };
        let index = event.content_index.as_count();
        let rest = text.rest_of_part(index, text_of(part).unwrap_or_default());
        self.push_text(at, None, rest, state, sink)
    }

    /// Takes a delta of reasoning.
    fn on_reasoning(
        &mut self,
        event: &Event<'_>,
        source: Source,
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        state.note_content(ReplyContent::Choice);
        let at = self.reasoning.grow(&ItemRef::new(&event.item_id, &event.output_index))?;
        let Some(item) = self.reasoning.get(at) else { return Ok(()) };
        if *item.source.get_or_insert(source) != source {
            return Ok(());
        }
        let part = match source {
            Source::Text => event.content_index.as_count(),
            Source::Summary => event.summary_index.as_count(),
        };
        if item.text.start_part(part) {
            push_reasoning(item, PART_BREAK, state, sink)?;
        }
        push_reasoning(item, event.piece(), state, sink)
    }

    /// Appends text to a message.
    fn push_text(
        &mut self,
        at: usize,
        part: Option<u64>,
        piece: &str,
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        if !state.reserve(piece.len()) {
            return Err(LimitExceeded::Bytes);
        }
        if let Some(text) = self.messages.get(at) {
            text.start_part(part);
            text.push(piece);
        }
        sink.push_text(piece);
        Ok(())
    }

    /// Takes the final event, which usually contains the complete output.
    fn on_end(
        &mut self,
        event: &Event<'_>,
        reported: ResponseEnd,
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        let response = event.response.as_deref().unwrap_or(&event.own);
        let error = if is_error(&response.error) { &response.error } else { &event.error };
        state.note_content(ReplyContent::Choice);
        state.set_id(&response.id);
        state.set_model(&response.model);
        state.set_usage(&response.usage);
        let added = self.add_final_output(response, state, sink);
        // Servers may send `response.completed` for any terminal state; the status has precedence.
        let end = match (reported, response.status.as_text()) {
            (ResponseEnd::Completed, Some("incomplete")) => ResponseEnd::Incomplete,
            (ResponseEnd::Completed, Some("failed")) => ResponseEnd::Failed,
            (ResponseEnd::Completed, Some("cancelled" | "canceled")) => ResponseEnd::Cancelled,
            (reported, _) => reported,
        };
        state.body_end = BodyEnd::Done;
        if is_error(error) || end == ResponseEnd::Failed {
            state.set_server_error(failure(error, &response.error_type).as_bytes());
        } else if end == ResponseEnd::Cancelled {
            state.set_error(|| local_error(String::from("the server ended the reply as canceled")));
        } else if end == ResponseEnd::Incomplete {
            let reason = response.incomplete_details.get("reason").and_then(Loose::as_text);
            state.finish_reason = reason.map(|reason| finish_reason(reason).to_owned());
            if !matches!(state.finish_meaning(), Some(FinishMeaning::CutShort | FinishMeaning::Filtered)) {
                state.body_end = BodyEnd::Cut("the server reported the response as incomplete");
            }
        } else {
            let reason = if self.calls.is_empty() { "stop" } else { "tool_calls" };
            state.finish_reason = Some(String::from(reason));
        }
        added
    }

    /// Emits the parts of the final output that were not streamed.
    fn add_final_output(
        &mut self,
        response: &ResponseObject<'_>,
        state: &mut ReplyState,
        sink: &mut Sink<'_>,
    ) -> Result<(), LimitExceeded> {
        let items = match &response.output {
            Loose::Array(items) => items.as_slice(),
            _ => &[],
        };
        // A server without events of all items sends the others only here, some servers the encrypted reasoning.
        let encrypted = items.iter().filter(|item| is_encrypted(item)).count();
        let has_more = items.len() > self.positions.len() || encrypted > self.encrypted;
        if items.len() >= self.positions.len() && has_more {
            self.items = OpaqueReader::default();
            self.positions.clear();
            for item in items {
                self.items.push_item(item);
            }
        }
        let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
        let mut sources = self.reasoning.iter().map(|item| item.source).collect::<Vec<_>>().into_iter();
        for item in items {
            match kind_of(item) {
                ItemKind::Message => text.extend(texts_of(item.get("content"))),
                ItemKind::Reasoning => reasoning.push_str(&reasoning_of(item, sources.next().flatten())),
                ItemKind::Call => calls.push(item),
                ItemKind::Foreign(name) => self.foreign.add(name),
            }
        }
        if text.is_empty() {
            text.push_str(response.output_text.as_text().unwrap_or_default());
        }
        let received_reasoning: String = self.reasoning.iter().map(|item| item.text.received()).collect();
        let received: String = self.messages.iter().map(ItemText::received).collect();
        let (reasoning, text) = (rest_after(&received_reasoning, &reasoning), rest_after(&received, &text));
        if !state.reserve(reasoning.len() + text.len()) {
            return Err(LimitExceeded::Bytes);
        }
        sink.push_reasoning(reasoning);
        sink.push_text(text);
        self.calls.add_final_items(&calls, state)
    }
}

/// Whether an item has reasoning that only its server can read.
fn is_encrypted(item: &Loose<'_>) -> bool {
    let content = item.get("encrypted_content").and_then(Loose::as_text);
    content.is_some_and(|text| !text.is_empty())
}

/// Appends reasoning.
fn push_reasoning(
    item: &mut ReasoningItem,
    piece: &str,
    state: &mut ReplyState,
    sink: &mut Sink<'_>,
) -> Result<(), LimitExceeded> {
    if !state.reserve(piece.len()) {
        return Err(LimitExceeded::Bytes);
    }
    item.text.push(piece);
    sink.push_reasoning(piece);
    Ok(())
}

fn push_call_delta(updated: &UpdatedCall<'_>, sink: &mut Sink<'_>) {
    if updated.is_updated {
        sink.push_call(updated.at, updated.name, updated.size);
    }
}

/// Returns the reference to an event's item. The item contains its id; the event contains its index.
fn item_ref_of<'a>(event: &'a Event<'_>) -> ItemRef<'a> {
    ItemRef::new(event.item.get("id").unwrap_or(&event.item_id), &event.output_index)
}

fn kind_of<'a>(item: &'a Loose<'_>) -> ItemKind<'a> {
    let has = |name| item.get(name).is_some();
    match item.get("type").and_then(Loose::as_text) {
        Some("message") => ItemKind::Message,
        Some("reasoning") => ItemKind::Reasoning,
        Some("function_call") => ItemKind::Call,
        Some(foreign) => ItemKind::Foreign(foreign),
        None if has("arguments") => ItemKind::Call,
        None if has("summary") => ItemKind::Reasoning,
        None if has("content") => ItemKind::Message,
        None => ItemKind::Foreign(""),
    }
}

/// Whether a part is reply text. Reasoning parts have their own events.
fn is_text(part: &Loose<'_>) -> bool {
    matches!(part.get("type").and_then(Loose::as_text), Some("output_text" | "text" | "refusal"))
}

/// Returns the reasoning of a complete item: from the source that was read, otherwise its text, otherwise its summary.
fn reasoning_of(item: &Loose<'_>, source: Option<Source>) -> String {
    let text = || texts_of(item.get("content"));
    let summary = || texts_of(item.get("summary"));
    let parts = match source {
        Some(Source::Text) => text(),
        Some(Source::Summary) => summary(),
        None => Some(text()).filter(|parts| !parts.is_empty()).unwrap_or_else(summary),
    };
    parts.join(PART_BREAK)
}

/// Returns the data of the error of a failed response. `error_type` is a member that `OpenRouter` adds next to the error.
fn failure(error: &Loose<'_>, error_type: &Loose<'_>) -> String {
    if is_error(error) {
        let (error_type, error) = (error_type.to_json(), error.to_json());
        format!(r#"{{"type":{error_type},"error":{error}}}"#)
    } else {
        error_type.as_text().unwrap_or_default().to_owned()
    }
}

/// Returns the equivalent finish reason of chat completions.
fn finish_reason(reason: &str) -> &str {
    match reason {
        "max_output_tokens" | "max_tokens" | "length" => "length",
        other => other,
    }
}

/// The text of one message or one piece of reasoning, which is received in deltas and then repeated as a whole.
#[derive(Debug, Default)]
struct ItemText {
    received: String,
    /// The current part and its start in `received`.
    part: Option<u64>,
    part_start: usize,
}

impl ItemText {
    fn received(&self) -> &str {
        &self.received
    }

    /// Starts a new part if `part` differs from the current one. Returns whether text precedes it.
    fn start_part(&mut self, part: Option<u64>) -> bool {
        let Some(part) = part else { return false };
        let is_new = self.part.replace(part).is_some_and(|before| before != part);
        if is_new {
            self.part_start = self.received.len();
        }
        is_new && !self.received.is_empty()
    }

    fn push(&mut self, piece: &str) {
        self.received.push_str(piece);
    }

    /// Starts a part and returns the rest of `whole` that was not received. Returns nothing if a later part has started
    /// or the received text differs: received text is never changed.
    fn rest_of_part<'t>(&mut self, part: Option<u64>, whole: &'t str) -> &'t str {
        if part.is_some() && part < self.part {
            return "";
        }
        self.start_part(part);
        rest_after(self.received.get(self.part_start..).unwrap_or_default(), whole)
    }
}

/// Returns the rest of `whole` if it begins with `received`.
fn rest_after<'t>(received: &str, whole: &'t str) -> &'t str {
    whole.strip_prefix(received).unwrap_or_default()
}

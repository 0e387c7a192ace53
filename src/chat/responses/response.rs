//! Events of a response's stream → text, reasoning, calls.
//!
//! In: the JSON of each event, in order, or of a whole response. Out: events, and at the end the calls.

use super::super::account::{Account, Ending, Seen, own_error};
use super::super::assemble::{Assembled, ForeignItems, TooMuch};
use super::super::chunk::is_error;
use super::super::event::ServerError;
use super::super::http_error::classify_stream_error;
use super::super::loose::Loose;
use super::super::record::decode_record;
use super::super::sink::Sink;
use super::calls::{Calls, Touched};
use super::event::{Event, ResponseObject, text_of, texts_of};
use super::slots::{Place, Slots};
use super::text::{Text, rest_after};

/// Stands between two parts of the reasoning.
const PART_BREAK: &str = "\n\n";

/// A response so far.
#[derive(Debug, Default)]
pub(in super::super) struct Response {
    messages: Slots<Text>,
    thoughts: Slots<Thought>,
    calls: Calls,
    foreign: ForeignItems,
}

/// Reasoning, which comes as text, as a summary, or as both: the first to come is read.
#[derive(Debug, Default)]
struct Thought {
    text: Text,
    source: Option<Source>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Text,
    Summary,
}

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Completed,
    Incomplete,
    Failed,
    Cancelled,
}

/// What an item is.
enum ItemKind<'a> {
    Message,
    Reasoning,
    Call,
    Foreign(&'a str),
}

impl Response {
    /// Takes the JSON of one event.
    ///
    /// # Errors
    /// The bytes are not one JSON value.
    pub(in super::super) fn read(
        &mut self,
        data: &[u8],
        account: &mut Account,
        sink: &mut Sink<'_>,
    ) -> serde_json::Result<()> {
        let event = decode_record::<Event<'_>>(data)?;
        if let Err(limit) = self.on_event(&event, data, account, sink) {
            account.end_at(limit);
        }
        Ok(())
    }

    /// The reply is over: the calls, and the kinds of items that were passed over.
    pub(in super::super) fn finish(self, empty_is_whole: bool) -> (Assembled, Vec<String>) {
        (self.calls.finish(empty_is_whole), self.foreign.into_kinds())
    }

    fn on_event(
        &mut self,
        event: &Event<'_>,
        data: &[u8],
        account: &mut Account,
        sink: &mut Sink<'_>,
    ) -> Result<(), TooMuch> {
        let kind = event.kind.as_text().unwrap_or_default();
        let place = || Place::new(&event.item_id, &event.output_index);
        match kind {
            "response.output_text.delta" | "response.refusal.delta" => {
                account.saw(Seen::Choice);
                let at = self.messages.grow(&place())?;
                self.say(at, event.content_index.as_count(), event.piece(), account, sink)?;
            }
            "response.output_text.done" => self.on_part(event, &event.text, account, sink)?,
            "response.refusal.done" => self.on_part(event, &event.refusal, account, sink)?,
            "response.content_part.done" if is_text(&event.part) => {
                self.on_part(event, &event.part, account, sink)?;
            }
            "response.reasoning_text.delta" | "response.reasoning.delta" => {
                self.on_thought(event, Source::Text, account, sink)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_summary.delta" => {
                self.on_thought(event, Source::Summary, account, sink)?;
            }
            "response.function_call_arguments.delta" => {
                account.saw(Seen::Choice);
                let touched = self.calls.grow(&place(), event.piece(), account)?;
                tell(&touched, sink);
            }
            "response.function_call_arguments.done" => {
                account.saw(Seen::Choice);
                let touched = self.calls.complete(&place(), &event.arguments, &event.name, account)?;
                tell(&touched, sink);
            }
            "response.output_item.added" => self.on_item(event, false, account, sink)?,
            "response.output_item.done" => self.on_item(event, true, account, sink)?,
            "response.created" | "response.in_progress" | "response.queued" => {
                let response = event.response.as_deref().unwrap_or(&event.own);
                account.set_model(&response.model);
                account.set_usage(&response.usage);
            }
            "response.completed" | "response.done" => {
                self.on_end(event, Outcome::Completed, account, sink)?;
            }
            "response.incomplete" => self.on_end(event, Outcome::Incomplete, account, sink)?,
            "response.failed" => self.on_end(event, Outcome::Failed, account, sink)?,
            "response.cancelled" | "response.canceled" => {
                self.on_end(event, Outcome::Cancelled, account, sink)?;
            }
            "error" => account.set_error(|| classify_stream_error(data)),
            _ => self.on_other(event, kind, data, account, sink)?,
        }
        Ok(())
    }

    /// An event of no known type: a response in the place of one, an error, or nothing that matters.
    fn on_other(
        &mut self,
        event: &Event<'_>,
        kind: &str,
        data: &[u8],
        account: &mut Account,
        sink: &mut Sink<'_>,
    ) -> Result<(), TooMuch> {
        let own = &event.own;
        let is_response = own.object.as_text() == Some("response") || matches!(own.output, Loose::Array(_));
        if kind.is_empty() && is_response {
            account.set_model(&own.model);
            account.set_usage(&own.usage);
            if !matches!(own.status.as_text(), Some("in_progress" | "queued")) {
                self.on_end(event, Outcome::Completed, account, sink)?;
            }
        } else if is_error(&event.error) || own.object.as_text() == Some("error") {
            account.set_error(|| classify_stream_error(data));
        }
        Ok(())
    }

    /// An item begins or, where `is_done`, is over and whole.
    fn on_item(
        &mut self,
        event: &Event<'_>,
        is_done: bool,
        account: &mut Account,
        sink: &mut Sink<'_>,
    ) -> Result<(), TooMuch> {
        account.saw(Seen::Choice);
        let place = item_place(event);
        match kind_of(&event.item) {
            ItemKind::Message => {
                let at = self.messages.about(&place, is_done, |_| true)?;
                let Some(text) = self.messages.get(at).filter(|_| is_done) else { return Ok(()) };
                let whole = texts_of(event.item.get("content")).concat();
                let rest = rest_after(text.said(), &whole);
                self.say(at, None, rest, account, sink)?;
            }
            ItemKind::Reasoning => {
                let at = self.thoughts.about(&place, is_done, |_| true)?;
                let Some(thought) = self.thoughts.get(at).filter(|_| is_done) else { return Ok(()) };
                let whole = thought_of(&event.item, thought.source);
                think(thought, rest_after(thought.text.said(), &whole), account, sink)?;
            }
            ItemKind::Call => tell(&self.calls.about(&place, &event.item, is_done, account)?, sink),
            ItemKind::Foreign(name) => self.foreign.add(name),
        }
        Ok(())
    }

    /// The whole of one part of a message.
    fn on_part(
        &mut self,
        event: &Event<'_>,
        part: &Loose<'_>,
        account: &mut Account,
        sink: &mut Sink<'_>,
    ) -> Result<(), TooMuch> {
        account.saw(Seen::Choice);
        let at = self.messages.grow(&Place::new(&event.item_id, &event.output_index))?;
        let Some(text) = self.messages.get(at) else { return Ok(()) };
        let index = event.content_index.as_count();
        let rest = text.rest_of_part(index, text_of(part).unwrap_or_default());
        self.say(at, None, rest, account, sink)
    }

    /// A delta of reasoning.
    fn on_thought(
        &mut self,
        event: &Event<'_>,
        source: Source,
        account: &mut Account,
        sink: &mut Sink<'_>,
    ) -> Result<(), TooMuch> {
        account.saw(Seen::Choice);
        let at = self.thoughts.grow(&Place::new(&event.item_id, &event.output_index))?;
        let Some(thought) = self.thoughts.get(at) else { return Ok(()) };
        if *thought.source.get_or_insert(source) != source {
            return Ok(());
        }
        let part = match source {
            Source::Text => event.content_index.as_count(),
            Source::Summary => event.summary_index.as_count(),
        };
        if thought.text.turn_to(part) {
            think(thought, PART_BREAK, account, sink)?;
        }
        think(thought, event.piece(), account, sink)
    }

    /// More of a message.
    fn say(
        &mut self,
        at: usize,
        part: Option<u64>,
        piece: &str,
        account: &mut Account,
        sink: &mut Sink<'_>,
    ) -> Result<(), TooMuch> {
        if !account.has_room_for(piece.len()) {
            return Err(TooMuch::Bytes);
        }
        if let Some(text) = self.messages.get(at) {
            text.turn_to(part);
            text.push(piece);
        }
        sink.push_text(piece);
        Ok(())
    }

    /// The response is over, with all of its output as a rule.
    fn on_end(
        &mut self,
        event: &Event<'_>,
        told: Outcome,
        account: &mut Account,
        sink: &mut Sink<'_>,
    ) -> Result<(), TooMuch> {
        let response = event.response.as_deref().unwrap_or(&event.own);
        let error = if is_error(&response.error) { &response.error } else { &event.error };
        account.saw(Seen::Choice);
        account.set_model(&response.model);
        account.set_usage(&response.usage);
        let settled = self.settle(response, account, sink);
        // A server may send the event of a good end whatever the end was.
        let outcome = match (told, response.status.as_text()) {
            (Outcome::Completed, Some("incomplete")) => Outcome::Incomplete,
            (Outcome::Completed, Some("failed")) => Outcome::Failed,
            (Outcome::Completed, Some("cancelled" | "canceled")) => Outcome::Cancelled,
            (told, _) => told,
        };
        account.ending = Ending::Done;
        if is_error(error) || outcome == Outcome::Failed {
            account.set_error(|| failure(error, &response.error_type));
        } else if outcome == Outcome::Cancelled {
            account.set_error(|| own_error(String::from("the server ended the reply as canceled")));
        } else if outcome == Outcome::Incomplete {
            let reason = response.incomplete_details.get("reason").and_then(Loose::as_text);
            account.finish_reason = reason.map(|reason| finish_reason(reason).to_owned());
            if !matches!(account.finish_reason.as_deref(), Some("length" | "content_filter")) {
                account.ending = Ending::Cut("the server reported the response as incomplete");
            }
        } else {
            let reason = if self.calls.is_empty() { "stop" } else { "tool_calls" };
            account.finish_reason = Some(String::from(reason));
        }
        settled
    }

    /// Says what the output of the last event holds beyond what was said.
    fn settle(
        &mut self,
        response: &ResponseObject<'_>,
        account: &mut Account,
        sink: &mut Sink<'_>,
    ) -> Result<(), TooMuch> {
        let items = match &response.output {
            Loose::Array(items) => items.as_slice(),
            _ => &[],
        };
        let (mut text, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
        let mut sources = self.thoughts.iter().map(|thought| thought.source).collect::<Vec<_>>().into_iter();
        for item in items {
            match kind_of(item) {
                ItemKind::Message => text.extend(texts_of(item.get("content"))),
                ItemKind::Reasoning => thoughts.push_str(&thought_of(item, sources.next().flatten())),
                ItemKind::Call => calls.push(item),
                ItemKind::Foreign(name) => self.foreign.add(name),
            }
        }
        if text.is_empty() {
            text.push_str(response.output_text.as_text().unwrap_or_default());
        }
        let thought: String = self.thoughts.iter().map(|thought| thought.text.said()).collect();
        let said: String = self.messages.iter().map(Text::said).collect();
        let (thoughts, text) = (rest_after(&thought, &thoughts), rest_after(&said, &text));
        if !account.has_room_for(thoughts.len() + text.len()) {
            return Err(TooMuch::Bytes);
        }
        sink.push_reasoning(thoughts);
        sink.push_text(text);
        self.calls.settle(&calls, account)
    }
}

/// More of the reasoning.
fn think(
    thought: &mut Thought,
    piece: &str,
    account: &mut Account,
    sink: &mut Sink<'_>,
) -> Result<(), TooMuch> {
    if !account.has_room_for(piece.len()) {
        return Err(TooMuch::Bytes);
    }
    thought.text.push(piece);
    sink.push_reasoning(piece);
    Ok(())
}

fn tell(touched: &Touched<'_>, sink: &mut Sink<'_>) {
    sink.push_call(touched.at, touched.name);
}

/// An item's own id stands in it, its index beside it.
fn item_place<'a>(event: &'a Event<'_>) -> Place<'a> {
    Place::new(event.item.get("id").unwrap_or(&event.item_id), &event.output_index)
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

/// Whether a part is text of the reply; parts of reasoning have events of their own.
fn is_text(part: &Loose<'_>) -> bool {
    matches!(part.get("type").and_then(Loose::as_text), Some("output_text" | "text" | "refusal"))
}

/// The reasoning of a whole item: of the source that was read, else its text before its summary.
fn thought_of(item: &Loose<'_>, source: Option<Source>) -> String {
    let text = || texts_of(item.get("content"));
    let summary = || texts_of(item.get("summary"));
    let parts = match source {
        Some(Source::Text) => text(),
        Some(Source::Summary) => summary(),
        None => Some(text()).filter(|parts| !parts.is_empty()).unwrap_or_else(summary),
    };
    parts.join(PART_BREAK)
}

/// The error that a response ended with. `sort` is what `OpenRouter` tells of it beside the error.
fn failure(error: &Loose<'_>, sort: &Loose<'_>) -> ServerError {
    if is_error(error) {
        let (sort, error) = (sort.to_json(), error.to_json());
        classify_stream_error(format!(r#"{{"type":{sort},"error":{error}}}"#).as_bytes())
    } else {
        classify_stream_error(sort.as_text().unwrap_or_default().as_bytes())
    }
}

/// In the words of chat completions.
fn finish_reason(reason: &str) -> &str {
    match reason {
        "max_output_tokens" | "max_tokens" | "length" => "length",
        other => other,
    }
}

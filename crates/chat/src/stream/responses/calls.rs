//! Assembly of function calls.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde_json::Map;

use super::super::arguments::{FoundText, ReceivedArguments, find_text};
use super::super::assemble::{Assembled, LimitExceeded, ReceivedCall, push_name, read_calls};
use super::super::loose::Loose;
use super::super::reply_state::ReplyState;
use super::event::id_of;
use super::slots::{ItemRef, ItemSlots};

/// A call that is being assembled.
#[derive(Debug, Default)]
struct Call {
    /// The `call_id`, which the result refers to.
    id: Option<String>,
    name: String,
    /// The concatenated deltas.
    streamed: ReceivedArguments,
    /// The complete arguments, if an event contained them.
    whole: Option<String>,
    /// Bytes counted against the size limit for `whole`.
    counted: usize,
    /// Whether the final event listed the call.
    is_matched: bool,
}

/// The calls of one response.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: ItemSlots<Call>,
    /// The slots with each `call_id`: one, unless the server repeats an id.
    by_call_id: HashMap<String, Vec<usize>>,
}

/// The call that an event belongs to.
pub(super) struct UpdatedCall<'c> {
    pub(super) at: usize,
    /// The name received so far.
    pub(super) name: &'c str,
    /// The size of the arguments received so far.
    pub(super) size: usize,
    /// Whether the event contains more than a repetition.
    pub(super) is_updated: bool,
}

impl Calls {
    /// Takes `response.output_item.added`, or with `is_done`, `response.output_item.done`.
    pub(super) fn begin_or_end(
        &mut self,
        item_ref: &ItemRef<'_>,
        item: &Loose<'_>,
        is_done: bool,
        state: &mut ReplyState,
    ) -> Result<UpdatedCall<'_>, LimitExceeded> {
        // A completed call is never announced again, so this is another call with the same id.
        let at = match self.known(item_ref, item).filter(|at| is_done || !self.slots.is_done(*at)) {
            Some(at) => at,
            None => {
                self.slots.begin_or_end(item_ref, is_done, |call| call.may_be(item)).map_err(as_call_limit)?
            }
        };
        if is_done {
            self.slots.set_done(at);
        }
        self.fill(at, item, state)
    }

    /// Takes a delta of arguments.
    pub(super) fn grow(
        &mut self,
        item_ref: &ItemRef<'_>,
        piece: &str,
        state: &mut ReplyState,
    ) -> Result<UpdatedCall<'_>, LimitExceeded> {
        if !state.reserve(piece.len()) {
            return Err(LimitExceeded::Bytes);
        }
        let at = self.slots.grow(item_ref).map_err(as_call_limit)?;
        if let Some(call) = self.slots.get(at) {
            call.streamed.text.push_str(piece);
        }
        Ok(self.updated(at, !piece.is_empty()))
    }

    /// Takes the complete arguments, with or without the name.
    pub(super) fn complete(
        &mut self,
        item_ref: &ItemRef<'_>,
        arguments: &Loose<'_>,
        name: &Loose<'_>,
        state: &mut ReplyState,
    ) -> Result<UpdatedCall<'_>, LimitExceeded> {
        let at = self.slots.grow(item_ref).map_err(as_call_limit)?;
        let mut is_updated = false;
        if let Some(call) = self.slots.get(at) {
            is_updated |= call.set_name(name.as_text());
            is_updated |= call.set_whole(&arguments.to_text(), state)?;
        }
        Ok(self.updated(at, is_updated))
    }

    /// Takes the calls of the final event. Servers may use different ids there, so calls with equal names are matched
    /// in order. Calls without a match were not streamed and are added.
    pub(super) fn add_final_items(
        &mut self,
        items: &[&Loose<'_>],
        state: &mut ReplyState,
    ) -> Result<(), LimitExceeded> {
        let mut unknown = Vec::new();
        for item in items {
            match self.known_unmatched(item) {
                Some(at) => self.match_item(at, item, state)?,
                None => unknown.push(*item),
            }
        }
        for item in unknown {
            let name = item.get("name").and_then(Loose::as_text).unwrap_or_default();
            let found = self.unmatched(|call| call.name == name || call.name.is_empty());
            let at = found.map_or_else(|| self.slots.add().map_err(as_call_limit), Ok)?;
            self.match_item(at, item, state)?;
        }
        Ok(())
    }

    /// Returns the calls at the end of the reply.
    pub(super) fn finish(self, empty_is_complete: bool) -> Assembled {
        read_calls(self.slots.into_items().map(Call::into_received), empty_is_complete)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Finds the call with the item's `call_id`: the call that the reference identifies, otherwise the last one. A
    /// different name or output index means a different call.
    fn known(&self, item_ref: &ItemRef<'_>, item: &Loose<'_>) -> Option<usize> {
        let id = call_id(item)?;
        let last = self.by_call_id.get(&*id)?.last().copied();
        let last = last.filter(|at| self.slots.may_match(*at, item_ref));
        let here = self.slots.find(item_ref).filter(|at| self.call(*at).is_some_and(|call| call.has_id(&id)));
        here.into_iter().chain(last).find(|at| self.call(*at).is_some_and(|call| call.may_be_named(item)))
    }

    /// Finds the call for an item of the final event: a call with its `call_id` that is not matched yet, or an exact
    /// repetition.
    fn known_unmatched(&self, item: &Loose<'_>) -> Option<usize> {
        let of_id = self.by_call_id.get(&*call_id(item)?)?;
        let is = |is_it: &dyn Fn(&Call) -> bool| {
            of_id.iter().copied().find(|at| self.call(*at).is_some_and(is_it))
        };
        let arguments = find_text(item).text;
        is(&|call| !call.is_matched && call.may_be_named(item))
            .or_else(|| is(&|call| !call.is_matched))
            .or_else(|| is(&|call| call.may_be_named(item) && call.arguments() == arguments))
    }

    fn call(&self, at: usize) -> Option<&Call> {
        self.slots.peek(at)
    }

    fn unmatched(&self, is_it: impl Fn(&Call) -> bool) -> Option<usize> {
        self.slots.iter().position(|call| !call.is_matched && is_it(call))
    }

    fn match_item(
        &mut self,
        at: usize,
        item: &Loose<'_>,
        state: &mut ReplyState,
    ) -> Result<(), LimitExceeded> {
        if let Some(call) = self.slots.get(at) {
            call.is_matched = true;
        }
        self.fill(at, item, state).map(|_| ())
    }

    /// Takes the name, id and arguments of an item.
    fn fill(
        &mut self,
        at: usize,
        item: &Loose<'_>,
        state: &mut ReplyState,
    ) -> Result<UpdatedCall<'_>, LimitExceeded> {
        let mut is_updated = false;
        if let Some(call) = self.slots.get(at) {
            is_updated |= call.set_name(item.get("name").and_then(Loose::as_text));
            if call.id.is_none()
                && let Some(id) = call_id(item)
            {
                call.id = Some(id.to_string());
                self.by_call_id.entry(id.into_owned()).or_default().push(at);
            }
            let FoundText { text, unread } = find_text(item);
            is_updated |= call.set_whole(&text, state)?;
            if let Some(unread) = unread {
                if !state.reserve(unread.text.len()) {
                    return Err(LimitExceeded::Bytes);
                }
                call.streamed.set_unread(unread);
            }
        }
        Ok(self.updated(at, is_updated))
    }

    fn updated(&self, at: usize, is_updated: bool) -> UpdatedCall<'_> {
        let call = self.slots.peek(at);
        let name = call.map_or("", |call| call.name.as_str());
        UpdatedCall { at, name, size: call.map_or(0, |call| call.arguments().len()), is_updated }
    }
}

impl Call {
    /// Whether an item without a known `call_id` may belong to this call.
    fn may_be(&self, item: &Loose<'_>) -> bool {
        self.id.is_none() || call_id(item).is_none()
    }

    fn has_id(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
    }

    /// Whether the names are equal or one of them is missing.
    fn may_be_named(&self, item: &Loose<'_>) -> bool {
        let name = item.get("name").and_then(Loose::as_text).unwrap_or_default();
        self.name.is_empty() || name.is_empty() || self.name == name
    }

    /// Returns the arguments received so far.
    fn arguments(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.streamed.text)
    }

    /// Stores the name. The first one is kept. Returns whether it is new.
    fn set_name(&mut self, name: Option<&str>) -> bool {
        match name {
            Some(name) if self.name.is_empty() => {
                push_name(&mut self.name, name);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Stores complete arguments. Ignores empty arguments, because items begin with them. Returns whether the arguments
    /// are new.
    fn set_whole(&mut self, whole: &str, state: &mut ReplyState) -> Result<bool, LimitExceeded> {
        if whole.is_empty() || whole == self.streamed.text || self.whole.as_deref() == Some(whole) {
            return Ok(false);
        }
        let more = whole.len().saturating_sub(self.counted.max(self.streamed.text.len()));
        if !state.reserve(more) {
            return Err(LimitExceeded::Bytes);
        }
        self.counted = self.counted.max(whole.len());
        self.whole = Some(whole.to_owned());
        Ok(true)
    }

    /// Returns the call with its complete arguments. The streamed arguments count if only they are JSON, or if the
    /// complete arguments are a `{}` placeholder. If neither text is JSON, the longer one counts.
    fn into_received(self) -> ReceivedCall {
        let Self { id, name, streamed: mut arguments, whole, .. } = self;
        if let Some(whole) = whole {
            let is_streamed = match (is_json(&whole), is_json(&arguments.text)) {
                (true, true) => whole.trim() == "{}",
                (true, false) => false,
                (false, true) => true,
                (false, false) => arguments.text.len() > whole.len(),
            };
            if !is_streamed {
                arguments.text = whole;
            }
        }
        ReceivedCall { id, name, arguments, opaque: Map::new() }
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn call_id<'a>(item: &'a Loose<'_>) -> Option<Cow<'a, str>> {
    item.get("call_id").and_then(id_of)
}

fn as_call_limit(limit: LimitExceeded) -> LimitExceeded {
    match limit {
        LimitExceeded::Items | LimitExceeded::Calls => LimitExceeded::Calls,
        LimitExceeded::Bytes => LimitExceeded::Bytes,
    }
}

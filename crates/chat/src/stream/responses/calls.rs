//! Assembly of function calls.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::IgnoredAny;

use super::super::assemble::{Assembled, LimitExceeded, arguments_text, push_name, read_calls};
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
    streamed: String,
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

/// The call that an event updated: its position and the name received so far.
pub(super) struct UpdatedCall<'c> {
    pub(super) at: usize,
    pub(super) name: &'c str,
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
            call.streamed.push_str(piece);
        }
        Ok(self.updated(at))
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
        if let Some(call) = self.slots.get(at) {
            call.set_name(name.as_text());
            call.set_whole(&text(arguments), state)?;
        }
        Ok(self.updated(at))
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
        let calls = self.slots.into_items().map(|mut call| {
            let (id, name) = (call.id.take(), std::mem::take(&mut call.name));
            (id, name, call.into_arguments())
        });
        read_calls(calls, empty_is_complete)
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
        let arguments = arguments_text(item);
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
        if let Some(call) = self.slots.get(at) {
            call.set_name(item.get("name").and_then(Loose::as_text));
            if call.id.is_none()
                && let Some(id) = call_id(item)
            {
                call.id = Some(id.to_string());
                self.by_call_id.entry(id.into_owned()).or_default().push(at);
            }
            call.set_whole(&arguments_text(item), state)?;
        }
        Ok(self.updated(at))
    }

    fn updated(&mut self, at: usize) -> UpdatedCall<'_> {
        let name = self.slots.get(at).map_or("", |call| call.name.as_str());
        UpdatedCall { at, name }
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
        self.whole.as_deref().unwrap_or(&self.streamed)
    }

    fn set_name(&mut self, name: Option<&str>) {
        if self.name.is_empty()
            && let Some(name) = name
        {
            push_name(&mut self.name, name);
        }
    }

    /// Stores complete arguments. Ignores empty arguments, because items begin with them.
    fn set_whole(&mut self, whole: &str, state: &mut ReplyState) -> Result<(), LimitExceeded> {
        if whole.is_empty() || whole == self.streamed {
            return Ok(());
        }
        let more = whole.len().saturating_sub(self.counted.max(self.streamed.len()));
        if !state.reserve(more) {
            return Err(LimitExceeded::Bytes);
        }
        self.counted = self.counted.max(whole.len());
        self.whole = Some(whole.to_owned());
        Ok(())
    }

    /// Returns the complete arguments. Returns the streamed arguments if only they are JSON, or if the complete
    /// arguments are a `{}` placeholder. If neither text is JSON, returns the longer one.
    fn into_arguments(self) -> String {
        let Self { whole, streamed, .. } = self;
        let Some(whole) = whole else { return streamed };
        let is_streamed = match (is_json(&whole), is_json(&streamed)) {
            (true, true) => whole.trim() == "{}",
            (true, false) => false,
            (false, true) => true,
            (false, false) => streamed.len() > whole.len(),
        };
        if is_streamed { streamed } else { whole }
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

/// Returns arguments of any type as JSON text.
fn text(arguments: &Loose<'_>) -> String {
    match arguments {
        Loose::Null => String::new(),
        Loose::String(text) => text.to_string(),
        other => other.to_json(),
    }
}

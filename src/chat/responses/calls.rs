//! Calls of functions, as they are put together.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::IgnoredAny;

use super::super::account::Account;
use super::super::assemble::{Assembled, TooMuch, arguments_text, push_name, read_calls};
use super::super::loose::Loose;
use super::event::id_of;
use super::slots::{Place, Slots};

/// A call so far.
#[derive(Debug, Default)]
struct Call {
    /// Its `call_id`, to which its result refers.
    id: Option<String>,
    name: String,
    /// What the deltas brought.
    streamed: String,
    /// The arguments as they were told whole.
    whole: Option<String>,
    /// Bytes that were counted for `whole`.
    counted: usize,
    /// The last event listed it.
    is_claimed: bool,
}

/// The calls of one response.
#[derive(Debug, Default)]
pub(super) struct Calls {
    slots: Slots<Call>,
    /// The slots of each `call_id`: one, unless the server gives it twice.
    by_call_id: HashMap<String, Vec<usize>>,
}

/// A call that an event tells about: its position and its name as far as it is known.
pub(super) struct Touched<'c> {
    pub(super) at: usize,
    pub(super) name: &'c str,
}

impl Calls {
    /// `response.output_item.added`, or where `is_done` `response.output_item.done`.
    pub(super) fn about(
        &mut self,
        place: &Place<'_>,
        item: &Loose<'_>,
        is_done: bool,
        account: &mut Account,
    ) -> Result<Touched<'_>, TooMuch> {
        // A call that is over is not announced again: another has its id.
        let at = match self.known(place, item).filter(|at| is_done || !self.slots.is_done(*at)) {
            Some(at) => at,
            None => self.slots.about(place, is_done, |call| call.may_be(item)).map_err(too_many)?,
        };
        if is_done {
            self.slots.set_done(at);
        }
        self.fill(at, item, account)
    }

    /// A delta of arguments.
    pub(super) fn grow(
        &mut self,
        place: &Place<'_>,
        piece: &str,
        account: &mut Account,
    ) -> Result<Touched<'_>, TooMuch> {
        if !account.has_room_for(piece.len()) {
            return Err(TooMuch::Bytes);
        }
        let at = self.slots.grow(place).map_err(too_many)?;
        if let Some(call) = self.slots.get(at) {
            call.streamed.push_str(piece);
        }
        Ok(self.touched(at))
    }

    /// The whole arguments, with the name or without.
    pub(super) fn complete(
        &mut self,
        place: &Place<'_>,
        arguments: &Loose<'_>,
        name: &Loose<'_>,
        account: &mut Account,
    ) -> Result<Touched<'_>, TooMuch> {
        let at = self.slots.grow(place).map_err(too_many)?;
        if let Some(call) = self.slots.get(at) {
            call.name_it(name.as_text());
            call.set_whole(&text(arguments), account)?;
        }
        Ok(self.touched(at))
    }

    /// The calls of the last event. Servers give them other ids there, so that those of an equal name are taken for the
    /// same, in their order; what remains was not streamed.
    pub(super) fn settle(&mut self, items: &[&Loose<'_>], account: &mut Account) -> Result<(), TooMuch> {
        let mut unknown = Vec::new();
        for item in items {
            match self.known_unclaimed(item) {
                Some(at) => self.claim(at, item, account)?,
                None => unknown.push(*item),
            }
        }
        for item in unknown {
            let name = item.get("name").and_then(Loose::as_text).unwrap_or_default();
            let found = self.unclaimed(|call| call.name == name || call.name.is_empty());
            let at = found.map_or_else(|| self.slots.add().map_err(too_many), Ok)?;
            self.claim(at, item, account)?;
        }
        Ok(())
    }

    /// The reply is over.
    pub(super) fn finish(self, empty_is_whole: bool) -> Assembled {
        let calls = self.slots.into_items().map(|mut call| {
            let (id, name) = (call.id.take(), std::mem::take(&mut call.name));
            (id, name, call.into_arguments())
        });
        read_calls(calls, empty_is_whole)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The call whose `call_id` the item has: that in its place, or the last. One of another name or place is another call.
    fn known(&self, place: &Place<'_>, item: &Loose<'_>) -> Option<usize> {
        let id = call_id(item)?;
        let last = self.by_call_id.get(&*id)?.last().copied();
        let last = last.filter(|at| self.slots.may_stand_at(*at, place));
        let here = self.slots.find(place).filter(|at| self.call(*at).is_some_and(|call| call.has_id(&id)));
        here.into_iter().chain(last).find(|at| self.call(*at).is_some_and(|call| call.may_be_named(item)))
    }

    /// The call of an item of the last event: one of its `call_id` that was not listed there so far, or that is told twice.
    fn known_unclaimed(&self, item: &Loose<'_>) -> Option<usize> {
        let of_id = self.by_call_id.get(&*call_id(item)?)?;
        let is = |is_it: &dyn Fn(&Call) -> bool| {
            of_id.iter().copied().find(|at| self.call(*at).is_some_and(is_it))
        };
        let arguments = arguments_text(item);
        is(&|call| !call.is_claimed && call.may_be_named(item))
            .or_else(|| is(&|call| !call.is_claimed))
            .or_else(|| is(&|call| call.may_be_named(item) && call.arguments() == arguments))
    }

    fn call(&self, at: usize) -> Option<&Call> {
        self.slots.peek(at)
    }

    fn unclaimed(&self, is_it: impl Fn(&Call) -> bool) -> Option<usize> {
        self.slots.iter().position(|call| !call.is_claimed && is_it(call))
    }

    fn claim(&mut self, at: usize, item: &Loose<'_>, account: &mut Account) -> Result<(), TooMuch> {
        if let Some(call) = self.slots.get(at) {
            call.is_claimed = true;
        }
        self.fill(at, item, account).map(|_| ())
    }

    /// Takes what an item says of its call.
    fn fill(&mut self, at: usize, item: &Loose<'_>, account: &mut Account) -> Result<Touched<'_>, TooMuch> {
        if let Some(call) = self.slots.get(at) {
            call.name_it(item.get("name").and_then(Loose::as_text));
            if call.id.is_none()
                && let Some(id) = call_id(item)
            {
                call.id = Some(id.to_string());
                self.by_call_id.entry(id.into_owned()).or_default().push(at);
            }
            call.set_whole(&arguments_text(item), account)?;
        }
        Ok(self.touched(at))
    }

    fn touched(&mut self, at: usize) -> Touched<'_> {
        let name = self.slots.get(at).map_or("", |call| call.name.as_str());
        Touched { at, name }
    }
}

impl Call {
    /// Whether an item that has no known `call_id` may be about it.
    fn may_be(&self, item: &Loose<'_>) -> bool {
        self.id.is_none() || call_id(item).is_none()
    }

    fn has_id(&self, id: &str) -> bool {
        self.id.as_deref() == Some(id)
    }

    /// Whether the item has its name, or one of the two has none.
    fn may_be_named(&self, item: &Loose<'_>) -> bool {
        let name = item.get("name").and_then(Loose::as_text).unwrap_or_default();
        self.name.is_empty() || name.is_empty() || self.name == name
    }

    /// As far as they are known.
    fn arguments(&self) -> &str {
        self.whole.as_deref().unwrap_or(&self.streamed)
    }

    fn name_it(&mut self, name: Option<&str>) {
        if self.name.is_empty()
            && let Some(name) = name
        {
            push_name(&mut self.name, name);
        }
    }

    /// An empty whole says nothing: items begin with one.
    fn set_whole(&mut self, whole: &str, account: &mut Account) -> Result<(), TooMuch> {
        if whole.is_empty() || whole == self.streamed {
            return Ok(());
        }
        let more = whole.len().saturating_sub(self.counted.max(self.streamed.len()));
        if !account.has_room_for(more) {
            return Err(TooMuch::Bytes);
        }
        self.counted = self.counted.max(whole.len());
        self.whole = Some(whole.to_owned());
        Ok(())
    }

    /// The whole ones, unless only the streamed ones are JSON, or more than a placeholder; of two that are cut the longer.
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

fn too_many(limit: TooMuch) -> TooMuch {
    match limit {
        TooMuch::Items | TooMuch::Calls => TooMuch::Calls,
        TooMuch::Bytes => TooMuch::Bytes,
    }
}

/// Arguments as JSON text, whatever their type.
fn text(arguments: &Loose<'_>) -> String {
    match arguments {
        Loose::Null => String::new(),
        Loose::String(text) => text.to_string(),
        other => other.to_json(),
    }
}

//! Which item an event is about.
//!
//! Events name their item by an id, by its place in the output, by both or by nothing, and not every server keeps to
//! one id or counts the places. What agrees in both is the item; else the id decides where only one of them is told;
//! else the place; else it is the item of this kind that is being written.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::arguments::MAX_CALLS;
use super::super::assemble::TooMuch;
use super::super::loose::Loose;
use super::event::id_of;

/// Where an event says that it belongs.
#[derive(Debug, Clone)]
pub(super) struct Place<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) index: Option<u64>,
}

impl<'a> Place<'a> {
    pub(super) fn new(id: &'a Loose<'_>, index: &Loose<'_>) -> Self {
        Self { id: id_of(id), index: index.as_count() }
    }
}

/// One item.
#[derive(Debug)]
pub(super) struct Slot<T> {
    pub(super) item: T,
    id: Option<String>,
    index: Option<u64>,
    /// Its beginning was told.
    is_announced: bool,
    is_done: bool,
}

/// The items of one kind, in the order they began.
#[derive(Debug)]
pub(super) struct Slots<T> {
    all: Vec<Slot<T>>,
    /// The last slot of each id.
    by_id: HashMap<String, usize>,
    /// The last slot of each index.
    by_index: HashMap<u64, usize>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { all: Vec::new(), by_id: HashMap::new(), by_index: HashMap::new() }
    }
}

impl<T: Default> Slots<T> {
    pub(super) fn get(&mut self, at: usize) -> Option<&mut T> {
        self.all.get_mut(at).map(|slot| &mut slot.item)
    }

    pub(super) fn peek(&self, at: usize) -> Option<&T> {
        self.all.get(at).map(|slot| &slot.item)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.all.iter().map(|slot| &slot.item)
    }

    pub(super) fn into_items(self) -> impl Iterator<Item = T> {
        self.all.into_iter().map(|slot| slot.item)
    }

    /// An item begins or, where `is_done`, is over. `is_same`: whether it may be the one found.
    pub(super) fn about(
        &mut self,
        place: &Place<'_>,
        is_done: bool,
        is_same: impl Fn(&T) -> bool,
    ) -> Result<usize, TooMuch> {
        if is_done { self.close(place, is_same) } else { self.announce(place, is_same) }
    }

    /// An item begins; a server may tell that twice.
    fn announce(&mut self, place: &Place<'_>, is_same: impl Fn(&T) -> bool) -> Result<usize, TooMuch> {
        let found = self.find(place).filter(|&at| {
            self.all.get(at).is_some_and(|slot| {
                let has_id = slot.id.is_some() && slot.id.as_deref() == place.id.as_deref();
                is_same(&slot.item) && !slot.is_done && (has_id || !slot.is_announced)
            })
        });
        let at = self.found_or_new(found, place)?;
        if let Some(slot) = self.all.get_mut(at) {
            slot.is_announced = true;
        }
        Ok(at)
    }

    /// An item grows.
    pub(super) fn grow(&mut self, place: &Place<'_>) -> Result<usize, TooMuch> {
        let found = self.find(place).or_else(|| self.open(place));
        self.found_or_new(found, place)
    }

    /// An item is over.
    fn close(&mut self, place: &Place<'_>, is_same: impl Fn(&T) -> bool) -> Result<usize, TooMuch> {
        let may_be = |slots: &Self, at: usize| slots.all.get(at).is_some_and(|slot| is_same(&slot.item));
        let found = self.find(place).filter(|&at| may_be(self, at));
        let found = found.or_else(|| self.open(place).filter(|&at| may_be(self, at)));
        let at = self.found_or_new(found, place)?;
        self.set_done(at);
        Ok(at)
    }

    pub(super) fn set_done(&mut self, at: usize) {
        if let Some(slot) = self.all.get_mut(at) {
            slot.is_done = true;
        }
    }

    /// An item of which nothing else was heard.
    pub(super) fn add(&mut self) -> Result<usize, TooMuch> {
        self.found_or_new(None, &Place { id: None, index: None })
    }

    pub(super) fn is_done(&self, at: usize) -> bool {
        self.all.get(at).is_some_and(|slot| slot.is_done)
    }

    /// Whether an item of that place may be this one: not where both are counted, and otherwise.
    pub(super) fn may_stand_at(&self, at: usize, place: &Place<'_>) -> bool {
        let index = self.all.get(at).and_then(|slot| slot.index);
        index.is_none() || place.index.is_none() || index == place.index
    }

    /// The item of a place.
    pub(super) fn find(&self, place: &Place<'_>) -> Option<usize> {
        let by_id = place.id.as_deref().and_then(|id| self.by_id.get(id).copied());
        let by_index = place.index.and_then(|index| self.by_index.get(&index).copied());
        let index_of = |at: usize| self.all.get(at).and_then(|slot| slot.index);
        let id_of = |at: usize| self.all.get(at).and_then(|slot| slot.id.as_deref());
        match (by_id, by_index) {
            (Some(at), None) => Some(at),
            (Some(at), Some(_)) if index_of(at) == place.index => Some(at),
            (Some(_), Some(at)) if id_of(at) == place.id.as_deref() => Some(at),
            (Some(at), Some(_)) if index_of(at).is_none() => Some(at),
            (_, by_index) => by_index,
        }
    }

    /// The item that is being written: for an event that names none, or one that was never heard of by an id alone.
    fn open(&self, place: &Place<'_>) -> Option<usize> {
        let last = self.all.len().checked_sub(1)?;
        (place.index.is_none() && self.all.get(last).is_some_and(|slot| !slot.is_done)).then_some(last)
    }

    fn found_or_new(&mut self, found: Option<usize>, place: &Place<'_>) -> Result<usize, TooMuch> {
        let at = found.unwrap_or(self.all.len());
        if at == self.all.len() {
            if at == MAX_CALLS {
                return Err(TooMuch::Items);
            }
            let item = T::default();
            self.all.push(Slot { item, id: None, index: None, is_announced: false, is_done: false });
        }
        let Some(slot) = self.all.get_mut(at) else { return Ok(at) };
        if slot.id.is_none()
            && let Some(id) = place.id.as_deref()
        {
            slot.id = Some(id.to_owned());
            self.by_id.insert(id.to_owned(), at);
        }
        if slot.index.is_none()
            && let Some(index) = place.index
        {
            slot.index = Some(index);
            self.by_index.insert(index, at);
        }
        Ok(at)
    }
}

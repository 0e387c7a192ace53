//! Matching of events to output items.
//!
//! Events identify their item by id, by index in the output, by both or not at all. Some servers change the id between
//! events or send no index. If id and index lead to different items, an item that matches both is preferred, then the
//! item with the id if it has no index, then the item with the index. An event without either belongs to the current
//! item of its kind.

use std::borrow::Cow;
use std::collections::HashMap;

use super::super::arguments::MAX_CALLS;
use super::super::assemble::LimitExceeded;
use super::super::loose::Loose;
use super::event::id_of;

/// The item that an event refers to.
#[derive(Debug, Clone)]
pub(super) struct ItemRef<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) index: Option<u64>,
}

impl<'a> ItemRef<'a> {
    pub(super) fn new(id: &'a Loose<'_>, index: &Loose<'_>) -> Self {
        Self { id: id_of(id), index: index.as_count() }
    }
}

/// One item and its state.
#[derive(Debug)]
pub(super) struct ItemSlot<T> {
    pub(super) item: T,
    id: Option<String>,
    index: Option<u64>,
    /// Whether an event announced the item.
    is_announced: bool,
    is_done: bool,
}

/// The items of one kind, in the order in which they began.
#[derive(Debug)]
pub(super) struct ItemSlots<T> {
    all: Vec<ItemSlot<T>>,
    /// The last slot with each id.
    by_id: HashMap<String, usize>,
    /// The last slot with each index.
    by_index: HashMap<u64, usize>,
}

impl<T> Default for ItemSlots<T> {
    fn default() -> Self {
        Self { all: Vec::new(), by_id: HashMap::new(), by_index: HashMap::new() }
    }
}

impl<T: Default> ItemSlots<T> {
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

    /// Takes the beginning or, with `is_done`, the end of an item. `is_same` returns whether a found item may be the
    /// item of the event.
    pub(super) fn begin_or_end(
        &mut self,
        item_ref: &ItemRef<'_>,
        is_done: bool,
        is_same: impl Fn(&T) -> bool,
    ) -> Result<usize, LimitExceeded> {
        if is_done { self.close(item_ref, is_same) } else { self.announce(item_ref, is_same) }
    }

    /// Takes the beginning of an item. A server may send it twice.
    fn announce(
        &mut self,
        item_ref: &ItemRef<'_>,
        is_same: impl Fn(&T) -> bool,
    ) -> Result<usize, LimitExceeded> {
        let found = self.find(item_ref).filter(|&at| {
            self.all.get(at).is_some_and(|slot| {
                let has_id = slot.id.is_some() && slot.id.as_deref() == item_ref.id.as_deref();
                is_same(&slot.item) && !slot.is_done && (has_id || !slot.is_announced)
            })
        });
        let at = self.found_or_new(found, item_ref)?;
        if let Some(slot) = self.all.get_mut(at) {
            slot.is_announced = true;
        }
        Ok(at)
    }

    /// Takes a delta of an item.
    pub(super) fn grow(&mut self, item_ref: &ItemRef<'_>) -> Result<usize, LimitExceeded> {
        let found = self.find(item_ref).or_else(|| self.open(item_ref));
        self.found_or_new(found, item_ref)
    }

    /// Takes the end of an item.
    fn close(
        &mut self,
        item_ref: &ItemRef<'_>,
        is_same: impl Fn(&T) -> bool,
    ) -> Result<usize, LimitExceeded> {
        let may_be = |slots: &Self, at: usize| slots.all.get(at).is_some_and(|slot| is_same(&slot.item));
        let found = self.find(item_ref).filter(|&at| may_be(self, at));
        let found = found.or_else(|| self.open(item_ref).filter(|&at| may_be(self, at)));
        let at = self.found_or_new(found, item_ref)?;
        self.set_done(at);
        Ok(at)
    }

    pub(super) fn set_done(&mut self, at: usize) {
        if let Some(slot) = self.all.get_mut(at) {
            slot.is_done = true;
        }
    }

    /// Adds an item that no event announced.
    pub(super) fn add(&mut self) -> Result<usize, LimitExceeded> {
        self.found_or_new(None, &ItemRef { id: None, index: None })
    }

    pub(super) fn is_done(&self, at: usize) -> bool {
        self.all.get(at).is_some_and(|slot| slot.is_done)
    }

    /// Whether a reference may mean this item: false only if both have an index and the indexes differ.
    pub(super) fn may_match(&self, at: usize, item_ref: &ItemRef<'_>) -> bool {
        let index = self.all.get(at).and_then(|slot| slot.index);
        index.is_none() || item_ref.index.is_none() || index == item_ref.index
    }

    /// Finds the item of a reference.
    pub(super) fn find(&self, item_ref: &ItemRef<'_>) -> Option<usize> {
        let by_id = item_ref.id.as_deref().and_then(|id| self.by_id.get(id).copied());
        let by_index = item_ref.index.and_then(|index| self.by_index.get(&index).copied());
        let index_of = |at: usize| self.all.get(at).and_then(|slot| slot.index);
        let id_of = |at: usize| self.all.get(at).and_then(|slot| slot.id.as_deref());
        match (by_id, by_index) {
            (Some(at), None) => Some(at),
            (Some(at), Some(_)) if index_of(at) == item_ref.index => Some(at),
            (Some(_), Some(at)) if id_of(at) == item_ref.id.as_deref() => Some(at),
            (Some(at), Some(_)) if index_of(at).is_none() => Some(at),
            (_, by_index) => by_index,
        }
    }

    /// Returns the current item, for an event without a reference or with an unknown id and no index.
    fn open(&self, item_ref: &ItemRef<'_>) -> Option<usize> {
        let last = self.all.len().checked_sub(1)?;
        (item_ref.index.is_none() && self.all.get(last).is_some_and(|slot| !slot.is_done)).then_some(last)
    }

    fn found_or_new(&mut self, found: Option<usize>, item_ref: &ItemRef<'_>) -> Result<usize, LimitExceeded> {
        let at = found.unwrap_or(self.all.len());
        if at == self.all.len() {
            if at == MAX_CALLS {
                return Err(LimitExceeded::Items);
            }
            let item = T::default();
            self.all.push(ItemSlot { item, id: None, index: None, is_announced: false, is_done: false });
        }
        let Some(slot) = self.all.get_mut(at) else { return Ok(at) };
        if slot.id.is_none()
            && let Some(id) = item_ref.id.as_deref()
        {
            slot.id = Some(id.to_owned());
            self.by_id.insert(id.to_owned(), at);
        }
        if slot.index.is_none()
            && let Some(index) = item_ref.index
        {
            slot.index = Some(index);
            self.by_index.insert(index, at);
        }
        Ok(at)
    }
}

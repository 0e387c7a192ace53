//! The parked interrupt: how another thread stops a running script without costing it anything until then.
//!
//! Luau calls an interrupt function, when one is set, at every loop iteration and call. One that only looks at a
//! flag makes tight loops 2.4 times slower, so here it is *parked*: mlua's function is installed once, its pointer
//! is taken out of the state's callbacks, and [`Switch::throw`] puts it back when the call must end. A state that
//! was thrown is never used again, and nothing takes the pointer out after that. [`Switch::nudge`] puts it back for one
//! look, as at the memory that is used: the function takes it out again itself, with [`Switch::park`].
//!
//! A switch belongs to one call and stays thrown: a stop that comes before the call has its state takes hold when the
//! switch is bound. The next call on a state binds a switch of its own. A call has its state to itself, and the pointer
//! is taken out under the lock and only while the switch is not thrown, so that no stop is lost.
//!
//! This is the only file with `unsafe`. The proof that each use is sound:
//!
//! 1. *The address is good.* `lua_callbacks` returns a field of the state's `global_State`, which is allocated with
//!    the state and neither moves nor is freed before `lua_close`. `lua_close` runs when the last [`Lua`] handle is
//!    dropped. The address is written to only through a [`Switch`] that is bound, under its lock; a switch is bound
//!    by making an [`Armed`], which owns a [`Lua`] handle, and [`Armed`]'s drop unbinds, under the same lock, before
//!    that handle goes. A switch that is bound stays with that state until then. Leaking an [`Armed`] leaks the handle
//!    too, and the state then never closes.
//! 2. *The type is right.* The field is an `Option` of an `extern` function pointer: pointer-sized, aligned, null for
//!    `None`. It is accessed as an `AtomicPtr<()>`, which has the layout of a raw pointer, and the only values ever
//!    stored are null and the very pointer that mlua put there.
//! 3. *The race is allowed.* Luau reads the field as plain memory while another thread stores: its header states
//!    that "interrupt is safe to set from an arbitrary thread". A pointer is stored whole, so the reader sees either
//!    null or mlua's function.
//! 4. *What Luau found set is set when it calls it.* At a safepoint Luau reads the field into a local, tests that and
//!    calls it (`VM_INTERRUPT` in `lvmexecute.cpp`, `match` in `lstrlib.cpp`, `GC_INTERRUPT` in `lgc.cpp`, 0.740).
//!    Should a compiler read twice, no null can come between: other threads ([`Switch::throw`], [`Switch::nudge`])
//!    only ever store the function, and **null is stored by the state's own thread alone**, which is then not between
//!    the test and the call. Each place that stores null holds what cannot leave that thread: `install` and
//!    [`Switch::park`] a `&Lua` of that very state, `unbind` the [`Armed`]. [`Lua`] is not `Send` (under mlua's `send`
//!    feature `install` does not compile), and [`Armed`] and [`Parked`] are not whatever [`Lua`] is ([`Here`]). A switch
//!    is bound by `arm`, which stores nothing but the function.
//! 5. *The function is there when it is called.* It is code of this program; the closure that it runs is kept by the
//!    state until it closes, and nothing replaces or removes it. mlua itself writes the field twice, from the state's
//!    thread: in `set_interrupt`, before any other thread knows the address, and just before `lua_close`, after the
//!    last [`Armed`].
//! 6. *Nothing is called from outside.* The storing thread never enters Lua; the function runs on the state's own
//!    thread at its next safepoint.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::{Lua, VmState, ffi};

/// Keeps what holds it on its thread: point 4 of the proof.
type Here = PhantomData<*const ()>;

/// Stops, from any thread, the state that it is bound to or, when it is bound to none, the next that it will be.
#[derive(Debug, Default)]
pub(super) struct Switch {
    position: Mutex<Position>,
}

/// Of a switch, under its lock.
#[derive(Debug, Default)]
struct Position {
    /// Once thrown, for ever.
    thrown: bool,
    bound: Option<Bound>,
}

/// Where the interrupt of a state is set, and what to set there.
#[derive(Debug, Clone, Copy)]
struct Bound {
    cell: NonNull<AtomicPtr<()>>,
    interrupt: *mut (),
}

// SAFETY: the pointers are used only under the lock of a bound `Switch`; points 1, 3 and 4 of the proof.
unsafe impl Send for Bound {}

impl Switch {
    /// Makes the bound state call its interrupt function at its next safepoint.
    pub(super) fn throw(&self) {
        let mut position = self.lock();
        position.thrown = true;
        position.set();
    }

    /// Makes the bound state call its interrupt function at its next safepoint, if it is bound.
    pub(super) fn nudge(&self) {
        self.lock().set();
    }

    /// Takes the interrupt out of `lua` again after a nudge, if it is the bound state; a switch that was thrown stays
    /// thrown.
    pub(super) fn park(&self, lua: &Lua) {
        self.lock().clear(cell_of(lua));
    }

    /// Binds to a state, whose [`Armed`] there is; a switch that is bound already stays so.
    fn bind(&self, bound: Bound) {
        let mut position = self.lock();
        if position.bound.is_none() {
            position.bound = Some(bound);
            if position.thrown {
                position.set();
            }
        }
    }

    /// Lets go of the state of `armed`; what a nudge left is not for its next call.
    fn unbind(&self, armed: &Armed) {
        let cell = cell_of(&armed.lua);
        let mut position = self.lock();
        position.clear(cell);
        position.bound.take_if(|bound| bound.cell == cell);
    }

    fn lock(&self) -> MutexGuard<'_, Position> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Position {
    /// Puts the function in, from any thread.
    fn set(&self) {
        if let Some(bound) = self.bound {
            bound.store(bound.interrupt);
        }
    }

    /// Takes it out of `cell`, if that is bound and not to be stopped. For the thread of that state (4).
    fn clear(&self, cell: NonNull<AtomicPtr<()>>) {
        if let Some(bound) = self.bound.filter(|bound| bound.cell == cell && !self.thrown) {
            bound.store(ptr::null_mut());
        }
    }
}

impl Bound {
    /// For the bound of a `Position`, which is only within its lock, and for null on the thread of its state.
    fn store(self, interrupt: *mut ()) {
        // SAFETY: bound, and the lock is held: the state is open (1), the cell is a pointer (2), the store is allowed
        // from this thread (3, 4).
        unsafe { self.cell.as_ref() }.store(interrupt, Ordering::Release);
    }
}

/// Where the interrupt of `lua` is set.
fn cell_of(lua: &Lua) -> NonNull<AtomicPtr<()>> {
    // SAFETY: `lua` is open, so its state pointer is valid, and so is the struct that `lua_callbacks` returns;
    // `&raw mut` only computes the field's address. A field of a live struct is not null.
    unsafe {
        let callbacks = ffi::lua_callbacks(lua.state());
        NonNull::new_unchecked((&raw mut (*callbacks).interrupt).cast::<AtomicPtr<()>>())
    }
}

/// An interrupt function installed in a state and taken out of its way.
#[derive(Debug)]
pub(super) struct Parked {
    lua: Lua,
    bound: Bound,
    _here: Here,
}

impl Parked {
    /// Installs `interrupt` in `lua` and parks it.
    pub(super) fn install(lua: &Lua, interrupt: impl Fn(&Lua) -> mlua::Result<VmState> + 'static) -> Self {
        lua.set_interrupt(interrupt);
        let cell = cell_of(lua);
        // SAFETY: points 1 and 2; no other thread knows the address yet.
        let interrupt = unsafe { cell.as_ref() }.swap(ptr::null_mut(), Ordering::AcqRel);
        Self { lua: lua.clone(), bound: Bound { cell, interrupt }, _here: PhantomData }
    }

    /// Binds `switch` to this state until the returned guard is dropped. If it is thrown already, the state is
    /// interrupted at its first safepoint. A switch is for one state at a time: armed again, it stays with the first.
    pub(super) fn arm(&self, switch: &Arc<Switch>) -> Armed {
        let armed = Armed { switch: Arc::clone(switch), lua: self.lua.clone(), _here: PhantomData };
        switch.bind(self.bound);
        armed
    }
}

/// A switch that is bound to a state, and keeps it open.
#[derive(Debug)]
pub(super) struct Armed {
    switch: Arc<Switch>,
    // Dropped after `drop` has unbound the switch.
    lua: Lua,
    _here: Here,
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.switch.unbind(self);
    }
}

#[cfg(test)]
mod tests {
    // A test that cannot go on fails.

    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// A state whose interrupts are counted, and parked as `park` says.
    fn counting(park: impl Fn(&Lua) + 'static) -> (Lua, Parked, Rc<Cell<u32>>) {
        let (lua, count) = (Lua::new(), Rc::new(Cell::new(0)));
        let shared = Rc::clone(&count);
        let parked = Parked::install(&lua, move |lua| {
            shared.set(shared.get() + 1);
            park(lua);
            Ok(VmState::Continue)
        });
        (lua, parked, count)
    }

    fn spin(lua: &Lua) {
        lua.load("for i = 1, 100 do end").exec().unwrap();
    }

    #[test]
    fn a_nudge_is_one_look_and_a_throw_stays() {
        let switch: Arc<Switch> = Arc::default();
        let inner = Arc::clone(&switch);
        let (lua, parked, count) = counting(move |lua| inner.park(lua));
        let armed = parked.arm(&switch);
        spin(&lua);
        assert_eq!(count.get(), 0);
        switch.nudge();
        spin(&lua);
        assert_eq!(count.get(), 1);
        switch.nudge();
        drop(armed);
        spin(&lua);
        assert_eq!(count.get(), 1, "what a nudge left is not for the next call");
        let thrower = Arc::clone(&switch);
        std::thread::spawn(move || thrower.throw()).join().unwrap();
        let _armed = parked.arm(&switch);
        spin(&lua);
        assert!(count.get() > 100, "a stop before the call was lost: {}", count.get());
    }

    /// Null is stored by a state's own thread alone: no other state's handle may do it.
    #[test]
    fn a_switch_is_parked_and_unbound_by_its_own_state_only() {
        let switch: Arc<Switch> = Arc::default();
        let (lua, parked, count) = counting(|_| {});
        let (other, other_parked, other_count) = counting(|_| {});
        let _armed = parked.arm(&switch);
        let second = other_parked.arm(&switch);
        switch.nudge();
        switch.park(&other);
        drop(second);
        spin(&other);
        spin(&lua);
        assert_eq!(other_count.get(), 0, "a switch is for one state");
        assert!(count.get() > 100, "{}", count.get());
        let before = count.get();
        switch.park(&lua);
        spin(&lua);
        assert_eq!(count.get(), before);
    }
}

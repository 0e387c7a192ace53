//! The parked interrupt: how another thread stops a running script without costing it anything until then.
//!
//! Luau calls an interrupt function, when one is set, at every loop iteration and call. One that only looks at a
//! flag makes tight loops 2.4 times slower, so here it is *parked*: mlua's function is installed once, its pointer
//! is taken out of the state's callbacks, and [`Switch::throw`] puts it back when the call must end. A state that
//! was thrown is never used again, and nothing takes the pointer out after that. [`Switch::nudge`] puts it back for one
//! look, as at the memory that is used: the function takes it out again itself, with [`Switch::park`].
//!
//! A switch belongs to one call and stays thrown: a stop that comes before the call has its state takes hold when the
//! switch is bound. The next call on a state binds a switch of its own.
//!
//! This is the only file with `unsafe`. The proof that each use is sound:
//!
//! 1. *The address is good.* `lua_callbacks` returns a field of the state's `global_State`, which is allocated with
//!    the state and neither moves nor is freed before `lua_close`. `lua_close` runs when the last [`Lua`] handle is
//!    dropped. The address is written to only through a [`Switch`] that is bound, under its lock; a switch is bound
//!    by making an [`Armed`], which owns a [`Lua`] handle, and [`Armed`]'s drop unbinds, under the same lock, before
//!    that handle goes. Leaking an [`Armed`] leaks the handle too, and the state then never closes.
//! 2. *The type is right.* The field is an `Option` of an `extern` function pointer: pointer-sized, aligned, null for
//!    `None`. It is accessed as an `AtomicPtr<()>`, which has the layout of a raw pointer, and the only values ever
//!    stored are null and the very pointer that mlua put there.
//! 3. *The race is allowed.* Luau reads the field as plain memory while another thread stores: its header states
//!    that "interrupt is safe to set from an arbitrary thread". The stored value is the same each time, so the reader
//!    sees either null or mlua's function, and mlua's function lives in the state until it closes. Null is stored under
//!    the lock only while the switch is not thrown, so that no stop is lost.
//! 4. *Nothing is called from outside.* The storing thread never enters Lua; the function runs on the state's own
//!    thread at its next safepoint.

#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::{Lua, VmState, ffi};

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

// SAFETY: the pointers are used only under the lock of a bound `Switch`; points 1 and 3 of the proof.
unsafe impl Send for Bound {}

impl Switch {
    /// Makes the bound state call its interrupt function at its next safepoint.
    pub(super) fn throw(&self) {
        let mut position = self.lock();
        position.thrown = true;
        position.apply();
    }

    /// Makes the bound state call its interrupt function at its next safepoint, if it is bound.
    pub(super) fn nudge(&self) {
        self.lock().set(true);
    }

    /// Takes the interrupt out again after a nudge; a switch that was thrown stays thrown.
    pub(super) fn park(&self) {
        let position = self.lock();
        if !position.thrown {
            position.set(false);
        }
    }

    fn bind(&self, bound: Option<Bound>) {
        let mut position = self.lock();
        if !position.thrown {
            // What a nudge left is not for the next call.
            position.set(false);
        }
        position.bound = bound;
        position.apply();
    }

    fn lock(&self) -> MutexGuard<'_, Position> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Position {
    fn apply(&self) {
        if self.thrown {
            self.set(true);
        }
    }

    fn set(&self, on: bool) {
        if let Some(bound) = self.bound {
            let interrupt = if on { bound.interrupt } else { ptr::null_mut() };
            // SAFETY: bound, and the lock is held, since a `Position` is only within its lock: the state is open (1),
            // the cell is a pointer (2), the store is allowed from this thread (3).
            unsafe { bound.cell.as_ref() }.store(interrupt, Ordering::Release);
        }
    }
}

/// An interrupt function installed in a state and taken out of its way.
#[derive(Debug)]
pub(super) struct Parked {
    lua: Lua,
    bound: Bound,
}

impl Parked {
    /// Installs `interrupt` in `lua` and parks it.
    pub(super) fn install(lua: &Lua, interrupt: impl Fn(&Lua) -> mlua::Result<VmState> + 'static) -> Self {
        lua.set_interrupt(interrupt);
        // SAFETY: `lua` is open, so its state pointer is valid, and so is the struct that `lua_callbacks` returns;
        // `&raw mut` only computes the field's address. A field of a live struct is not null.
        let cell = unsafe {
            let callbacks = ffi::lua_callbacks(lua.state());
            NonNull::new_unchecked((&raw mut (*callbacks).interrupt).cast::<AtomicPtr<()>>())
        };
        // SAFETY: points 1 and 2; no other thread knows the address yet.
        let interrupt = unsafe { cell.as_ref() }.swap(ptr::null_mut(), Ordering::AcqRel);
        Self { lua: lua.clone(), bound: Bound { cell, interrupt } }
    }

    /// Binds `switch` to this state until the returned guard is dropped. If it is thrown already, the state is
    /// interrupted at its first safepoint.
    pub(super) fn arm(&self, switch: &Arc<Switch>) -> Armed {
        let armed = Armed { switch: Arc::clone(switch), _state: self.lua.clone() };
        switch.bind(Some(self.bound));
        armed
    }
}

/// A switch that is bound to a state, and keeps it open.
#[derive(Debug)]
pub(super) struct Armed {
    switch: Arc<Switch>,
    // Dropped after `drop` has unbound the switch.
    _state: Lua,
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.switch.bind(None);
    }
}

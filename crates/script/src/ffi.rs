//! Calls that the compiler cannot check: how to stop a running script, settings of glibc's allocator, and a hint for the
//! cache. This is the only file with `unsafe`.
//!
//! # Interrupts
//!
//! [`Switch`] stops a running script from another thread, without a cost to the script until then. If an interrupt
//! function is set, Luau calls it at every loop iteration and function call. Even a function that only checks a flag
//! makes tight loops 2.4 times slower, so here it is usually *disabled*: mlua's function is installed once, and its
//! pointer is removed from the state's callbacks. [`Switch::stop`] restores the pointer when the call must end. After
//! that, nothing removes it again and the state is not reused. [`Switch::interrupt_once`] restores the pointer for one
//! call of the function, for example to measure memory: the function removes it again with [`Switch::disable`].
//!
//! A switch belongs to one call and cannot be reset: a stop before the call has a state takes effect when the switch is
//! bound to one. The next call on a state binds its own switch. A call has exclusive use of its state, and the pointer
//! is removed only under the lock and while the switch is not stopped, so no stop is lost.
//!
//! The proof that each use is sound:
//!
//! 1. *The address is valid.* `lua_callbacks` returns a field of the state's `global_State`, which is allocated with
//!    the state and neither moves nor is freed before `lua_close`. `lua_close` runs when the last [`Lua`] handle is
//!    dropped. The address is written to only through a bound [`Switch`], under its lock. A switch is bound by creating
//!    an [`Armed`], which owns a [`Lua`] handle. Dropping the [`Armed`] unbinds the switch, under the same lock, before
//!    it drops the handle. Until then a bound switch stays bound to the same state. Leaking an [`Armed`] leaks the
//!    handle too, and then the state never closes.
//! 2. *The type is correct.* The field is an `Option` of an `extern` function pointer: pointer-sized, aligned, null for
//!    `None`. It is accessed as an `AtomicPtr<()>`, which has the layout of a raw pointer. The only values that are
//!    stored are null and the pointer that mlua put there.
//! 3. *The race is allowed.* Luau reads the field as plain memory while another thread stores to it: its header states
//!    that "interrupt is safe to set from an arbitrary thread". A pointer is stored as a whole, so the reader sees
//!    either null or mlua's function.
//! 4. *The pointer is not removed between test and call.* At a safepoint Luau reads the field into a local, tests it
//!    and calls it (`VM_INTERRUPT` in `lvmexecute.cpp`, `match` in `lstrlib.cpp`, `GC_INTERRUPT` in `lgc.cpp`, 0.740).
//!    Even if a compiler reads the field twice, it cannot become null in between: other threads ([`Switch::stop`],
//!    [`Switch::interrupt_once`]) only store the function. **Only the state's own thread stores null**, and it does so
//!    outside of test and call. Each function that stores null requires a value that cannot leave that thread:
//!    `install` and [`Switch::disable`] a `&Lua` of that state, `unbind` the [`Armed`]. [`Lua`] is not `Send` (with
//!    mlua's feature `send`, `install` does not compile). [`Armed`] and [`InterruptHook`] are not `Send`, independently
//!    of [`Lua`] ([`NotSend`]). Binding a switch (`arm`) stores only the function.
//! 5. *The function exists when it is called.* It is code of this program. The state keeps the closure that the
//!    function runs until the state closes, and nothing replaces or removes the closure. mlua itself writes the field
//!    twice, from the state's thread: in `set_interrupt`, before any other thread knows the address, and just before
//!    `lua_close`, after the last [`Armed`].
//! 6. *No other thread enters Lua.* The thread that stores the pointer only stores it. The function runs on the state's
//!    own thread at its next safepoint.
//!
//! # Allocator
//!
//! `mallopt` takes two integers and stores them in the allocator's settings. It may be called at any time: it takes the
//! lock of the main heap, and the settings are read as single values.
//!
//! # Cache
//!
//! A prefetch loads a line of memory into the cache and has no other effect. It never faults, whatever the address.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::{Lua, VmState, ffi};

/// Marker for types that must not leave their thread: point 4 of the proof.
type NotSend = PhantomData<*const ()>;

/// A switch that stops a Lua state from any thread: the state that it is bound to or, while it is unbound, the next
/// one.
#[derive(Debug, Default)]
pub(super) struct Switch {
    state: Mutex<SwitchState>,
}

/// The state of a switch, under its lock.
#[derive(Debug, Default)]
struct SwitchState {
    /// Never reset.
    stopped: bool,
    bound: Option<Bound>,
}

/// The location of a state's interrupt pointer, and the pointer to store there.
#[derive(Debug, Clone, Copy)]
struct Bound {
    cell: NonNull<AtomicPtr<()>>,
    interrupt: *mut (),
}

// SAFETY: the pointers are used only under the lock of a bound `Switch`; points 1, 3 and 4 of the proof.
unsafe impl Send for Bound {}

impl Switch {
    /// Makes the bound state call its interrupt function at every safepoint from now on.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.set();
    }

    /// Makes the bound state call its interrupt function at its next safepoint, if it is bound.
    pub(super) fn interrupt_once(&self) {
        self.lock().set();
    }

    /// Removes the interrupt from `lua` after [`Switch::interrupt_once`], if `lua` is the bound state. Has no effect if
    /// the switch was stopped.
    pub(super) fn disable(&self, lua: &Lua) {
        self.lock().clear(cell_of(lua));
    }

    /// Binds the switch to a state whose [`Armed`] exists. Has no effect if the switch is bound already.
    fn bind(&self, bound: Bound) {
        let mut state = self.lock();
        if state.bound.is_none() {
            state.bound = Some(bound);
            if state.stopped {
                state.set();
            }
        }
    }

    /// Unbinds the switch from the state of `armed` and removes the interrupt, so that it does not affect the next
    /// call.
    fn unbind(&self, armed: &Armed) {
        let cell = cell_of(&armed.lua);
        let mut state = self.lock();
        state.clear(cell);
        state.bound.take_if(|bound| bound.cell == cell);
    }

    fn lock(&self) -> MutexGuard<'_, SwitchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SwitchState {
    /// Stores the function. May be called from any thread.
    fn set(&self) {
        if let Some(bound) = self.bound {
            bound.store(bound.interrupt);
        }
    }

    /// Stores null in `cell` if it is bound and not stopped. Must be called on the thread of its state (4).
    fn clear(&self, cell: NonNull<AtomicPtr<()>>) {
        if let Some(bound) = self.bound.filter(|bound| bound.cell == cell && !self.stopped) {
            bound.store(ptr::null_mut());
        }
    }
}

impl Bound {
    /// Must be called under the lock of the `SwitchState`. If `interrupt` is null, must also be called on the state's
    /// thread.
    fn store(self, interrupt: *mut ()) {
        // SAFETY: bound, and the lock is held: the state is open (1), the cell is a pointer (2), the store is allowed
        // from this thread (3, 4).
        unsafe { self.cell.as_ref() }.store(interrupt, Ordering::Release);
    }
}

/// Returns the location of the interrupt pointer of `lua`.
fn cell_of(lua: &Lua) -> NonNull<AtomicPtr<()>> {
    // SAFETY: `lua` is open, so its state pointer is valid, and so is the struct that `lua_callbacks` returns;
    // `&raw mut` only computes the field's address. A field of a live struct is not null.
    unsafe {
        let callbacks = ffi::lua_callbacks(lua.state());
        NonNull::new_unchecked((&raw mut (*callbacks).interrupt).cast::<AtomicPtr<()>>())
    }
}

/// An installed and disabled interrupt function of a state.
#[derive(Debug)]
pub(super) struct InterruptHook {
    lua: Lua,
    bound: Bound,
    _not_send: NotSend,
}

impl InterruptHook {
    /// Installs `interrupt` in `lua` and disables it.
    pub(super) fn install(lua: &Lua, interrupt: impl Fn(&Lua) -> mlua::Result<VmState> + 'static) -> Self {
        lua.set_interrupt(interrupt);
        let cell = cell_of(lua);
        // SAFETY: points 1 and 2; no other thread knows the address yet.
        let interrupt = unsafe { cell.as_ref() }.swap(ptr::null_mut(), Ordering::AcqRel);
        Self { lua: lua.clone(), bound: Bound { cell, interrupt }, _not_send: PhantomData }
    }

    /// Binds `switch` to this state until the returned guard is dropped. If the switch is stopped already, the state is
    /// interrupted at its first safepoint. A switch that is bound to another state stays bound to that state.
    pub(super) fn arm(&self, switch: &Arc<Switch>) -> Armed {
        let armed = Armed { switch: Arc::clone(switch), lua: self.lua.clone(), _not_send: PhantomData };
        switch.bind(self.bound);
        armed
    }
}

/// Guard that keeps a switch bound to a state, and the state open.
#[derive(Debug)]
pub(super) struct Armed {
    switch: Arc<Switch>,
    // Dropped after `drop` unbinds the switch.
    lua: Lua,
    _not_send: NotSend,
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.switch.unbind(self);
    }
}

/// Makes glibc return freed blocks of 1 MiB and more to the operating system at once. A setting of the whole process, for
/// programs that run a worker. Does nothing with other C libraries.
///
/// Otherwise glibc raises this limit to the size of each larger block that is freed, up to 32 MiB. Smaller blocks then
/// stay in the heaps of the threads that freed them: a call with a long argument needs up to five times its size.
pub fn return_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: see the section on the allocator.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}

/// Makes the threads of this process share one heap. Does nothing with other C libraries.
///
/// Otherwise glibc gives each thread a heap of its own, which grows by a system call for each page.
pub(super) fn share_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: see the section on the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Loads a value into the cache, without what it points to. Returns at once. Does nothing on other processors than
/// `x86_64`.
///
/// For state that is read after a long pause, and whose parts would otherwise be waited for one after the other.
pub fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of_val(value)).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: see the section on the cache.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ptr::from_ref(value).cast::<i8>().wrapping_add(offset)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    /// Creates a state that counts its interrupts and calls `on_interrupt` at each.
    fn counting(on_interrupt: impl Fn(&Lua) + 'static) -> (Lua, InterruptHook, Rc<Cell<u32>>) {
        let (lua, count) = (Lua::new(), Rc::new(Cell::new(0)));
        let shared = Rc::clone(&count);
        let hook = InterruptHook::install(&lua, move |lua| {
            shared.set(shared.get() + 1);
            on_interrupt(lua);
            Ok(VmState::Continue)
        });
        (lua, hook, count)
    }

    fn spin(lua: &Lua) {
        lua.load("for i = 1, 100 do end").exec().unwrap();
    }

    #[test]
    fn interrupt_once_interrupts_once_and_stop_interrupts_permanently() {
        let switch: Arc<Switch> = Arc::default();
        let inner = Arc::clone(&switch);
        let (lua, hook, count) = counting(move |lua| inner.disable(lua));
        let armed = hook.arm(&switch);
        spin(&lua);
        assert_eq!(count.get(), 0);
        switch.interrupt_once();
        spin(&lua);
        assert_eq!(count.get(), 1);
        switch.interrupt_once();
        drop(armed);
        spin(&lua);
        assert_eq!(count.get(), 1, "an interrupt of the previous call reached the next call");
        let stopper = Arc::clone(&switch);
        std::thread::spawn(move || stopper.stop()).join().unwrap();
        let _armed = hook.arm(&switch);
        spin(&lua);
        assert!(count.get() > 100, "a stop before the call was lost: {}", count.get());
    }

    /// Only a state's own thread stores null, so the handle of another state has no effect.
    #[test]
    fn only_the_bound_state_disables_and_unbinds_a_switch() {
        let switch: Arc<Switch> = Arc::default();
        let (lua, hook, count) = counting(|_| {});
        let (other, other_hook, other_count) = counting(|_| {});
        let _armed = hook.arm(&switch);
        let second = other_hook.arm(&switch);
        switch.interrupt_once();
        switch.disable(&other);
        drop(second);
        spin(&other);
        spin(&lua);
        assert_eq!(other_count.get(), 0, "the switch affected another state");
        assert!(count.get() > 100, "{}", count.get());
        let before = count.get();
        switch.disable(&lua);
        spin(&lua);
        assert_eq!(count.get(), before);
    }
}

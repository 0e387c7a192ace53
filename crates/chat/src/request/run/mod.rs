//! One request as a state machine.
//!
//! [`Run::next_step`] returns what the driver must do, repeatedly until the result arrives. The `on_` functions take
//! the inputs. Comments in `reply` number the rules of the tool loop.

mod batch;
mod calls;
mod model;
mod reply;
mod state;
mod turn;

pub use model::{Budget, PendingCall, RequestState, RequestStatus, Step};
pub use state::Run;

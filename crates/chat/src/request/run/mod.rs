//! One request as a state machine.
//!
//! [`Run::next_step`] returns the next action of the driver, and the same action again until its result arrives. The
//! `on_` functions take the inputs. `docs/worker.md` lists the rules of the tool loop.

mod batch;
mod calls;
mod failures;
mod journal;
mod model;
mod raw_text;
mod reply;
mod resume;
mod state;
mod turn;

pub(super) use batch::CallPlan;
pub use journal::{JournalEntry, RestoreError};
pub use model::{Budget, PendingCall, RequestState, RequestStatus, Step};
pub use resume::{RestoredRun, Resumption};
pub use state::{ReplyState, Run};

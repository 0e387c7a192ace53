//! The public interface of a worker: connects it, submits requests to it, and returns their events and outcomes.

mod choose;
mod connect;
mod handle;
mod stream;
mod submit;

pub use choose::{ChooseError, DEFAULT_WORKER, choose_worker, default_of, usable_workers};
pub use connect::AskError;
pub use handle::Worker;
pub use stream::RequestStream;
pub use submit::{Origin, ResumeError, SubmitError, SubmitRequest};

//! The public interface of a worker: opens it, submits requests to it, and returns their events and outcomes.

mod handle;
mod open;
mod stream;
mod submit;

pub use handle::Worker;
pub use open::{AskError, ChooseError, DEFAULT_WORKER, OpenError, OpenWorker, choose_worker, default_of};
pub use stream::RequestStream;
pub use submit::{Origin, ResumeError, SubmitError, SubmitRequest};

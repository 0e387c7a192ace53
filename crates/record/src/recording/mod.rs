//! Recordings of requests, a form of [`stored`](crate::stored) files.
//!
//! A file holds the requests of one session in submission order. Each request begins with its `session` line. Because
//! requests may overlap, the lines of the second and later requests contain the request number (`request`). A recording
//! contains the responses of the server with their times, the events of each request, and the inputs from the
//! environment: clock, time zone, ids, model, detected capabilities and offered tools. The bytes of an image are in one
//! line, and other lines have their digest.
//!
//! | file | |
//! |---|---|
//! | `format` | the lines of a recording |
//! | `media` | replaces images in request bodies by their digests |
//! | `redact` | the lines as they are stored, without secrets |
//! | `recorder` | writes recordings |
//! | `read` | reads recordings |
//! | `calls` | the tool calls of a recording, parsed from its replies |

mod calls;
mod format;
mod media;
mod read;
mod recorder;
mod redact;

pub use calls::RecordedToolCall;
pub use format::{Line, Session, Stopped};
pub(crate) use read::RecordedEvent;
pub use read::{RecordedRequest, Recording};
pub use recorder::{Recorder, RequestRecorder};

pub(crate) use calls::{text_in, text_of};
pub(crate) use format::{api_of, conversation_member};
pub(crate) use media::refer_to_media;
pub(crate) use redact::{redact_event, redact_message, redact_outcome};

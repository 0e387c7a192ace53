//! Stored conversations of `deftool chat` and `deftool acp`.
//!
//! A message is written when it is complete. Until then, an incomplete reply is written as events, from which a reader
//! restores the partial reply. The file is append-only; `rewind` removes messages.
//!
//! | file | |
//! |---|---|
//! | `line` | the lines of a session, without secrets |
//! | `file` | a session that is open for writing |
//! | `read` | reads sessions |

mod file;
mod line;
mod read;

pub use file::{SessionFile, is_stored};
pub use line::{Line, Session};
pub use read::SessionPart;

//! Files of lines: recordings, sessions and lists of events. One JSON object per line, appended immediately, so that a
//! killed process loses at most its last line.
//!
//! | file | |
//! |---|---|
//! | `error` | the forms, and a file that cannot be read or written |
//! | `read` | reads the lines of a file |
//! | `write` | appends lines, without secrets, and each image once |
//! | `fit` | limits how deeply the values of a line are nested |

mod error;
mod fit;
mod read;
mod write;

pub use error::{StoredFileError, StoredFileProblem, StoredForm};

pub(crate) use fit::fit;
pub(crate) use read::{LineError, ReadLines, read_lines};
pub(crate) use write::{StoredFile, StoredLine, continue_after, lock};

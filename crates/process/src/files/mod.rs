//! Files that this process shares with other processes.
//!
//! | module | contents |
//! |---|---|
//! | `private` | files that only their user may change, and locks |
//! | `leftover` | temporary files and test folders, also those that a killed process left behind |
//! | `replace` | atomic replacement of files that are edited |
//! | `output` | outputs of commands, which replace what has their name |

mod leftover;
mod output;
mod private;
mod replace;

pub use leftover::{
    create_beside, create_temporary, create_test_folder, is_temporary, remove_leftover_test_folders,
};
pub use output::{is_stream, write_output};
pub use private::{
    check_private, create_new_private, create_only_private_files, create_output, create_private,
    create_private_folder, lock_private, open_or_create_private, open_private, open_regular,
    untrusted_parent_reason, untrusted_reason,
};
pub use replace::{BYTE_ORDER_MARK, Readers, replace_file, replace_text};

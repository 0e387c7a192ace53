//! Files that this process shares with other processes.

mod leftover;

pub use leftover::{
    create_beside, create_temporary, is_temporary, lock_folder, remove_leftover_test_folders, test_folder_in,
};

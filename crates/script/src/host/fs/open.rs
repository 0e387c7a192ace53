//! Opens files and folders relative to a folder handle and checks what was opened.
//!
//! Another process can replace the file of a name at any time, so checks of a name alone are not sufficient. A file is
//! opened without blocking (a pipe may have no writer) and rejected unless the open file is a regular file.

use std::fs::File;

use cap_std::fs::OpenOptions;
use deftool_lang::tool::ToolErrorKind;

use super::grant::{GrantedPath, Leaf};
use super::no_follow::set_nonblocking_no_follow;
use crate::error::HostError;

/// Opens the file `target` for reading. Returns it and its length in bytes.
pub(super) fn open_file(target: &GrantedPath) -> Result<(File, u64), HostError> {
    let failed = |error| target.io_error(&error);
    if target.is_grant() {
        return Err(target.invalid("is not a regular file"));
    }
    let leaf = target.leaf(true, None)?;
    // Check before opening: opening a device can have side effects.
    match &leaf.metadata {
        None => return Err(failed(std::io::ErrorKind::NotFound.into())),
        Some(metadata) if !metadata.is_file() => return Err(target.invalid("is not a regular file")),
        Some(_) => {}
    }
    let mut options = OpenOptions::new();
    options.read(true);
    set_nonblocking_no_follow(&mut options);
    let file = leaf.dir.open_with(&leaf.name, &options).map_err(failed)?.into_std();
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(target.invalid("is not a regular file"));
    }
    check_not_system(target, &file, "read")?;
    Ok((file, metadata.len()))
}

/// Opens the file at `leaf` of `target` for appending. Does not follow a link. Creates the file if it does not exist.
pub(super) fn open_end(target: &GrantedPath, leaf: &Leaf) -> Result<File, HostError> {
    let failed = |error| target.io_error(&error);
    if leaf.metadata.as_ref().is_some_and(|metadata| !metadata.is_file()) {
        return Err(target.invalid("is not a regular file"));
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    set_nonblocking_no_follow(&mut options);
    let file = leaf.dir.open_with(&leaf.name, &options).map_err(failed)?.into_std();
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(target.invalid("is not a regular file"));
    }
    check_not_system(target, &file, "write")?;
    Ok(file)
}

/// Returns an error if `file` is on a system file system and the granted folder is not. (`/proc/self/environ` contains
/// the secrets of this process, and reading some such files blocks forever.)
fn check_not_system(target: &GrantedPath, file: &File, key: &str) -> Result<(), HostError> {
    if is_system(file) && !is_system(&target.dir) {
        return Err(HostError {
            kind: ToolErrorKind::Permission,
            message: target
                .invalid(format!(
                    "is not allowed: it is on a system file system, which a grant of a parent folder does not include; to \
                     allow it, name it in :allow (:{key} […]) in the spec"
                ))
                .message,
        });
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn is_system(file: impl std::os::fd::AsFd) -> bool {
    /// The `statfs(2)` magic numbers of proc, sysfs, debugfs, tracefs, configfs, securityfs, cgroup and cgroup2.
    const SYSTEMS: [u32; 8] =
        [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x6265_6570, 0x7363_6673, 0x0027_e0eb, 0x6367_7270];
    // The type of the field depends on the architecture; the magic numbers have 32 bits.
    #[allow(clippy::cast_sign_loss)]
    rustix::fs::fstatfs(file).is_ok_and(|metadata| SYSTEMS.contains(&(metadata.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_system<T>(_: T) -> bool {
    false
}

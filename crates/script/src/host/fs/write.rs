//! `write` and `append`.
//!
//! `write` creates a temporary file in the same folder and renames it, relative to the folder's handle: readers never
//! see a partial file, and other hard links of the old file keep its contents. `append` changes the file in place, so
//! it rejects files with several hard links.

use std::fs::{File, Metadata};
use std::io::Write as _;

use deftool_process::files::create_temporary;

use super::access::Access;
use super::context::FsContext;
use super::grant::{GrantedPath, Leaf};
use super::open::open_end;
use crate::error::HostError;

/// Number of bytes to write between two checks for cancellation.
const CHUNK: usize = 1 << 20;

/// The parameters of a write.
pub(super) struct WriteRequest {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    /// Whether to create missing folders.
    pub(super) parents: bool,
}

/// Creates or replaces a file.
pub(super) fn write(context: &FsContext, request: WriteRequest) -> Result<(), HostError> {
    let (target, leaf) = open(context, &request)?;
    // A file that cannot be written must not be replaced either, although its folder would allow that.
    let old = match &leaf.metadata {
        Some(_) => {
            let file = open_end(&target, &leaf)?;
            let metadata = file.metadata().map_err(|error| target.io_error(&error))?;
            if metadata.permissions().readonly() {
                return Err(target.invalid("is read-only"));
            }
            Some(metadata)
        }
        None => None,
    };
    let (file, temporary) = create_temporary(&leaf.dir).map_err(|error| target.io_error(&error))?;
    let written = write_contents(context, &target, &file, &request.bytes, old.as_ref()).and_then(|()| {
        leaf.dir.rename(&temporary, &leaf.dir, &leaf.name).map_err(|error| target.io_error(&error))
    });
    if written.is_err() {
        let _ = leaf.dir.remove_file(&temporary);
    }
    written
}

/// Appends to a file. Creates it if it does not exist.
pub(super) fn append(context: &FsContext, request: WriteRequest) -> Result<(), HostError> {
    let (target, leaf) = open(context, &request)?;
    let mut file = open_end(&target, &leaf)?;
    let failed = |error| target.io_error(&error);
    if has_other_links(&file.metadata().map_err(failed)?) {
        return Err(target.invalid(
            "has other hard links, possibly outside of the granted folder; use fs.write, which replaces the file",
        ));
    }
    file.write_all(&request.bytes).map_err(failed)
}

fn open(context: &FsContext, request: &WriteRequest) -> Result<(GrantedPath, Leaf), HostError> {
    let target = context.grants.open(Access::Write, &request.path)?;
    context.quota.add_bytes(request.bytes.len())?;
    let before_create = || context.quota.add_entry();
    let leaf = target.leaf(true, if request.parents { Some(&before_create) } else { None })?;
    if leaf.metadata.is_none() {
        context.quota.add_entry()?;
    }
    Ok((target, leaf))
}

fn write_contents(
    context: &FsContext,
    target: &GrantedPath,
    mut file: &File,
    bytes: &[u8],
    old: Option<&Metadata>,
) -> Result<(), HostError> {
    let failed = |error| target.io_error(&error);
    if let Some(old) = old {
        copy_mode(file, old).map_err(failed)?;
    }
    for chunk in bytes.chunks(CHUNK) {
        context.check_canceled()?;
        file.write_all(chunk).map_err(failed)?;
    }
    file.sync_all().map_err(failed)?;
    context.check_canceled()
}

/// Copies the mode of `old` to `file` and, if permitted, its owner. Never copies the setuid and setgid bits.
#[cfg(unix)]
fn copy_mode(file: &File, old: &Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

    let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    file.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o777))
}

#[cfg(not(unix))]
fn copy_mode(_: &File, _: &Metadata) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn has_other_links(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

#[cfg(not(unix))]
fn has_other_links(_: &Metadata) -> bool {
    false
}

//! `write` and `append`: what is put into files.
//!
//! A file is written beside its name first and then put in its place, beneath the folder's handle: nobody reads a half,
//! and a file elsewhere that shares the old one's inode (a hard link) keeps what it holds. What is appended goes into the
//! file itself, which is why one with several names is refused.

use std::fs::{File, Metadata};
use std::io::Write as _;

use super::Work;
use super::grant::{Leaf, Need, Place};
use super::open::open_end;
use crate::script::error::HostError;
use crate::script::leftover;

/// Bytes between two looks at whether the call still stands.
const STRIDE: usize = 1 << 20;

/// What is written where, and whether missing folders are made.
pub(super) struct Writing {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    pub(super) parents: bool,
}

/// Puts bytes in the place of a file, or makes it.
pub(super) fn write(work: &Work, writing: Writing) -> Result<(), HostError> {
    let (place, leaf) = open(work, &writing)?;
    // Who may not write into a file may not replace it either, though its folder would allow that.
    let old = match &leaf.about {
        Some(_) => {
            let file = open_end(&place, &leaf)?;
            let about = file.metadata().map_err(|error| place.failed(&error))?;
            if about.permissions().readonly() {
                return Err(place.wrong("is read-only"));
            }
            Some(about)
        }
        None => None,
    };
    let (file, beside) = leftover::create(&leaf.dir).map_err(|error| place.failed(&error))?;
    let written = fill(work, &place, &file, &writing.bytes, old.as_ref())
        .and_then(|()| leaf.dir.rename(&beside, &leaf.dir, &leaf.name).map_err(|error| place.failed(&error)));
    if written.is_err() {
        let _ = leaf.dir.remove_file(&beside);
    }
    written
}

/// Adds bytes to the end of a file, or makes it.
pub(super) fn append(work: &Work, writing: Writing) -> Result<(), HostError> {
    let (place, leaf) = open(work, &writing)?;
    let mut file = open_end(&place, &leaf)?;
    let told = |error| place.failed(&error);
    if has_other_names(&file.metadata().map_err(told)?) {
        return Err(place.wrong(
            "has other names (hard links), perhaps outside of what is granted; fs.write puts a new file in its place",
        ));
    }
    file.write_all(&writing.bytes).map_err(told)
}

fn open(work: &Work, writing: &Writing) -> Result<(Place, Leaf), HostError> {
    let place = work.grants.open(Need::Write, &writing.path)?;
    work.spent.bytes(writing.bytes.len())?;
    let make = || work.spent.entry();
    let leaf = place.leaf(true, if writing.parents { Some(&make) } else { None })?;
    if leaf.about.is_none() {
        work.spent.entry()?;
    }
    Ok((place, leaf))
}

fn fill(
    work: &Work,
    place: &Place,
    mut file: &File,
    bytes: &[u8],
    old: Option<&Metadata>,
) -> Result<(), HostError> {
    let told = |error| place.failed(&error);
    if let Some(old) = old {
        keep(file, old).map_err(told)?;
    }
    for stride in bytes.chunks(STRIDE) {
        work.go_on()?;
        file.write_all(stride).map_err(told)?;
    }
    file.sync_all().map_err(told)?;
    work.go_on()
}

/// Gives `file` the mode of `old` and, where that is allowed, its owner. Never the bits that lend a program its
/// owner's rights.
#[cfg(unix)]
fn keep(file: &File, old: &Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

    let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    file.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o777))
}

#[cfg(not(unix))]
fn keep(_: &File, _: &Metadata) -> std::io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn has_other_names(about: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(about) > 1
}

#[cfg(not(unix))]
fn has_other_names(_: &Metadata) -> bool {
    false
}

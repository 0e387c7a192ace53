//! Files and folders opened beneath a handle, and judged by what was opened.
//!
//! A name says nothing about what it leads to a moment later. So nothing is concluded from it: a file is opened without
//! waiting (a pipe has no writer) and refused unless the open file itself is a regular one.

use std::fs::File;
use std::path::Path;

use cap_std::fs::{Dir, OpenOptions};

use super::grant::{Leaf, Place};
use crate::script::error::HostError;
use crate::tool::ToolErrorKind;

/// Opens the file at `place` for reading, and its length.
pub(super) fn open_file(place: &Place) -> Result<(File, u64), HostError> {
    let told = |error| place.failed(&error);
    if place.is_grant() {
        return Err(place.wrong("is not a regular file"));
    }
    let leaf = place.leaf(true, None)?;
    // Looked at first: to open a device may move it.
    match &leaf.about {
        None => return Err(told(std::io::ErrorKind::NotFound.into())),
        Some(about) if !about.is_file() => return Err(place.wrong("is not a regular file")),
        Some(_) => {}
    }
    let mut options = OpenOptions::new();
    options.read(true);
    never_wait(&mut options);
    let file = leaf.dir.open_with(&leaf.name, &options).map_err(told)?.into_std();
    let about = file.metadata().map_err(told)?;
    if !about.is_file() {
        return Err(place.wrong("is not a regular file"));
    }
    refuse_system(place, &file, "read")?;
    Ok((file, about.len()))
}

/// Opens the file at `leaf` of `place` for writing at its end, not through a link; makes it where it is missing.
pub(super) fn open_end(place: &Place, leaf: &Leaf) -> Result<File, HostError> {
    let told = |error| place.failed(&error);
    if leaf.about.as_ref().is_some_and(|about| !about.is_file()) {
        return Err(place.wrong("is not a regular file"));
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    never_wait(&mut options);
    let file = leaf.dir.open_with(&leaf.name, &options).map_err(told)?.into_std();
    if !file.metadata().map_err(told)?.is_file() {
        return Err(place.wrong("is not a regular file"));
    }
    refuse_system(place, &file, "write")?;
    Ok(file)
}

/// Opens the folder `name` of `dir`, which must be none of a link.
pub(super) fn open_folder(dir: &Dir, name: &Path) -> std::io::Result<Dir> {
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        use rustix::fs::OFlags;

        let mut options = OpenOptions::new();
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.read(true).custom_flags(flags.bits().cast_signed());
        Ok(Dir::from_std_file(dir.open_with(name, &options)?.into_std()))
    }
    #[cfg(not(unix))]
    dir.open_dir(name)
}

/// Has an open for `options` come back at once, whatever is there, and follow no link.
pub(super) fn never_wait(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt as _;
        use rustix::fs::OFlags;

        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    #[cfg(not(unix))]
    let _ = options;
}

/// Refuses `file` where it is a window into the system rather than something on a disk (`/proc/self/environ` has the
/// engine's secrets, and reading some such files waits for ever), unless the grant itself lies there.
fn refuse_system(place: &Place, file: &File, key: &str) -> Result<(), HostError> {
    if is_system(file) && !is_system(&place.dir) {
        return Err(HostError {
            kind: ToolErrorKind::Permission,
            message: place
                .wrong(format!(
                    "is not allowed: it is no file on a disk but a part of the running system, which a grant around \
                     it does not include; to allow it, name it in :allow (:{key} […]) in the spec"
                ))
                .message,
        });
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn is_system(file: impl std::os::fd::AsFd) -> bool {
    /// proc, sysfs, debugfs, tracefs, configfs, securityfs, cgroup, cgroup2, as `statfs(2)` has them.
    const SYSTEMS: [u32; 8] =
        [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x6265_6570, 0x7363_6673, 0x0027_e0eb, 0x6367_7270];
    // The field's type differs between architectures; the numbers have 32 bits.
    #[allow(clippy::cast_sign_loss)]
    rustix::fs::fstatfs(file).is_ok_and(|about| SYSTEMS.contains(&(about.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn is_system<T>(_: T) -> bool {
    false
}

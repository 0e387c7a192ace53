//! Outputs that a command writes as a whole to a path of the user.
//!
//! The path may be in a cloned project. So a new file is renamed over the name: a link is replaced and never followed.
//! Opening a pipe could block, and writing to a device could do anything, so only the names of the system for streams are
//! opened.

use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::path::{Component, Path};

use super::leftover::create_beside;
use super::replace::{Readers, check_writable, fill};

/// Writes an output. A regular file keeps its mode, unless only the user may read it. Anything else with this name except a
/// folder is replaced, or refused if it is not a file.
///
/// # Errors
/// If the path is a folder, a pipe, a device or a read-only file, or if its folder does not exist or is not writable.
/// Nothing is changed then.
pub fn write_output(path: &Path, bytes: &[u8], readers: Readers) -> Result<()> {
    if is_stream(path) {
        return File::options().write(true).open(path)?.write_all(bytes);
    }
    let like = match path.symlink_metadata() {
        Ok(found) if found.is_file() => {
            check_writable(path, &found)?;
            Some(found)
        }
        Ok(found) if found.is_symlink() => None,
        Ok(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(_) => {
            let why = "not a regular file; of pipes and devices, only /dev/stdout, /dev/stderr, /dev/fd/N and /dev/null are written";
            return Err(Error::other(why));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // Open until after the rename: a file without a lock is removed as left behind.
    let (file, temporary) = create_beside(path)?;
    let written = fill(&file, bytes, like.as_ref(), readers).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Whether a path is the name of a stream, as it is written.
pub fn is_stream(path: &Path) -> bool {
    let names: Vec<_> = path.components().collect();
    let [Component::RootDir, Component::Normal(dev), Component::Normal(name), rest @ ..] = names.as_slice()
    else {
        return false;
    };
    let is_number = |part: &Component<'_>| {
        part.as_os_str()
            .to_str()
            .is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    *dev == "dev"
        && match (name.to_str(), rest) {
            (Some("null" | "stdout" | "stderr"), []) => true,
            (Some("fd"), [number]) => is_number(number),
            _ => false,
        }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_link_is_replaced_and_a_file_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("target"), "before").unwrap();
        for target in ["target", "missing", "link"] {
            let _ = std::fs::remove_file(path("link"));
            symlink(target, path("link")).unwrap();
            write_output(&path("link"), b"new", Readers::Default).unwrap();
            assert!(!path("link").is_symlink(), "{target}");
            assert_eq!(std::fs::read(path("link")).unwrap(), b"new");
        }
        assert_eq!(std::fs::read(path("target")).unwrap(), b"before");
        assert!(!path("missing").exists());
        let mode = |name: &str| std::fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
        std::fs::set_permissions(path("target"), PermissionsExt::from_mode(0o754)).unwrap();
        write_output(&path("target"), b"new", Readers::Default).unwrap();
        assert_eq!(mode("target"), 0o754);
        for name in ["target", "private"] {
            write_output(&path(name), b"new", Readers::User).unwrap();
            assert_eq!(mode(name), 0o600);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn pipes_devices_and_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let refused = |path: &Path| write_output(path, b"new", Readers::Default).unwrap_err().to_string();
        assert!(refused(&pipe).starts_with("not a regular file"));
        assert!(refused(Path::new("/dev/full")).starts_with("not a regular file"));
        assert_eq!(refused(folder.path()), "is a directory");
        write_output(Path::new("/dev/null"), b"new", Readers::Default).unwrap();
        for (path, expected) in [
            ("/dev/stdout", true),
            ("/dev/fd/12", true),
            ("/dev/../dev/null", false),
            ("dev/null", false),
            ("/dev/fd/x", false),
            ("/dev/fd", false),
            ("/dev/null/x", false),
            ("/tmp/dev/null", false),
        ] {
            assert_eq!(is_stream(Path::new(path)), expected, "{path}");
        }
    }
}

//! Files that only their owner can read, for recordings and logs, which contain conversations.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// Creates or truncates a file that no other user can read. An existing file must be empty or begin with `beginning`.
/// `what` names the kind of file in errors.
///
/// # Errors
/// If the file cannot be written or has a different beginning. It is then unchanged.
pub fn create_private(path: &Path, what: &str, beginning: &str) -> std::io::Result<File> {
    if std::fs::metadata(path).is_ok_and(|there| there.is_file() && there.len() > 0) {
        let mut head = Vec::new();
        File::open(path)?.take(beginning.len() as u64).read_to_end(&mut head)?;
        if head != beginning.as_bytes() {
            let why = format!("the existing file is not a {what}; choose another name");
            return Err(Error::new(ErrorKind::AlreadyExists, why));
        }
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    // Restrict the mode of an existing regular file. Terminals, pipes and devices keep theirs.
    #[cfg(unix)]
    if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        // This fails if another user owns the file, or on file systems without permissions. There is no alternative.
        let _ = file.set_permissions(mode);
    }
    Ok(file)
}

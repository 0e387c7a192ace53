//! The files of a journal: the database, the files that SQLite keeps beside it, and the lock.
//!
//! SQLite follows a link to the database and puts its files beside the target. The lock must be there too: otherwise two
//! processes could write the same journal by different names.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use deftool_process::files::{check_private, lock_private, open_or_create_private};

use crate::model::OpenError;

/// Size of a database without tables, at most.
const EMPTY: u64 = 4096;
/// Maximum wait for the lock of a journal.
const LOCK_LIMIT: Duration = Duration::from_secs(1);

/// The device and the number of a file. `None`: the platform has none.
pub(crate) type Identity = Option<(u64, u64)>;

/// The names of the files of a journal.
pub(crate) struct Files {
    /// The name from the user, for messages.
    pub(crate) given: PathBuf,
    /// The absolute path of the database, without links. The names of the other files begin with it.
    pub(crate) database: PathBuf,
}

impl Files {
    /// Returns the files of an existing journal.
    ///
    /// # Errors
    /// If the file does not exist.
    pub(crate) fn existing(given: &Path) -> Result<Self, OpenError> {
        let database = std::fs::canonicalize(given).map_err(|error| OpenError::of_io(given, &error))?;
        Ok(Self { given: given.to_owned(), database })
    }

    /// Returns the files of a journal. Creates the database if it does not exist.
    ///
    /// # Errors
    /// If the path is a link to a file that does not exist, or the database cannot be created.
    pub(crate) fn existing_or_new(given: &Path) -> Result<Self, OpenError> {
        let error = |error: Error| OpenError::of_io(given, &error);
        match (std::fs::canonicalize(given), given.file_name()) {
            (Err(not_found), Some(name)) if not_found.kind() == ErrorKind::NotFound => {
                if given.is_symlink() {
                    return Err(error(Error::other("a link to a file that does not exist")));
                }
                let folder = given.parent().filter(|folder| !folder.as_os_str().is_empty());
                let folder = std::fs::canonicalize(folder.unwrap_or(Path::new("."))).map_err(error)?;
                Ok(Self { given: given.to_owned(), database: folder.join(name) })
            }
            (database, _) => Ok(Self { given: given.to_owned(), database: database.map_err(error)? }),
        }
    }

    /// Creates the database if it does not exist.
    pub(crate) fn create(&self) -> Result<(), OpenError> {
        let created = open_or_create_private(&self.database, File::options().write(true));
        created.map(drop).map_err(|error| OpenError::of_io(&self.given, &error))
    }

    /// Returns the path of a file beside the database.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = OsString::from(&self.database);
        name.push(suffix);
        PathBuf::from(name)
    }

    /// Checks that only the user can write the files, and that SQLite uses the database as it is. Does not open a file:
    /// closing it would release the locks of all connections of this process.
    pub(crate) fn check(&self) -> Result<Identity, OpenError> {
        let error = |error: Error| OpenError::of_io(&self.given, &error);
        check_private(&self.database).map_err(error)?;
        let metadata = std::fs::symlink_metadata(&self.database).map_err(error)?;
        let identity = identity(&metadata).map_err(error)?;
        let changes = self.check_beside("-wal")?;
        self.check_beside("-shm")?;
        // Last: a new database has changes in this file until the other files have content.
        let rollback = self.check_beside("-journal")?;
        if rollback > 0 && (metadata.len() > EMPTY || changes > 0) {
            let why =
                "a journal has no such file, and its content would replace that of the journal; remove it";
            return Err(OpenError::of_io(&self.beside("-journal"), &Error::other(why)));
        }
        Ok(identity)
    }

    /// Checks a file that SQLite keeps beside the database. Returns its size; 0 if it does not exist.
    fn check_beside(&self, suffix: &str) -> Result<u64, OpenError> {
        let path = self.beside(suffix);
        let size = check_private(&path).and_then(|()| Ok(std::fs::metadata(&path)?.len()));
        match size {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            size => size.map_err(|error| OpenError::of_io(&path, &error)),
        }
    }

    /// Locks the journal for this process.
    pub(crate) fn lock(&self) -> Result<File, OpenError> {
        let path = self.beside(".lock");
        let unusable = |error: Error| OpenError::of_io(&path, &error);
        let file = open_or_create_private(&path, File::options().write(true)).map_err(unusable)?;
        match lock_private(&file, LOCK_LIMIT) {
            Ok(true) => Ok(file),
            Ok(false) => Err(OpenError::Locked { path: self.given.clone() }),
            Err(error) => Err(unusable(Error::other(format!(
                "{error}; network file systems often have no locks: store the journal on a local disk"
            )))),
        }
    }
}

/// Returns the identity of a database.
///
/// # Errors
/// If it has several names: the files beside it differ by name.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> Result<Identity, Error> {
    use std::os::unix::fs::MetadataExt;

    if metadata.nlink() > 1 {
        let why = "the file has several names (hard links), and each would have its own lock and changes; remove the others";
        return Err(Error::other(why));
    }
    Ok(Some((metadata.dev(), metadata.ino())))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Result<Identity, Error> {
    Ok(None)
}

//! The connection to the database of a journal. Its content is untrusted.
//!
//! A database can contain programs: views, triggers, generated columns, default values. A journal has two tables and
//! nothing else, so a database with a different schema is rejected before any row is read. The settings of the
//! connection and its limits protect against what a schema does not show, such as pages that refer to each other.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use crate::files::Files;
use crate::model::{FORMAT, OpenError};

/// Marks a database as a journal: `deft`.
const APPLICATION: i64 = 0x6465_6674;

/// The tables, with the SQL that creates them.
const TABLES: [(&str, &str); 2] = [
    (
        "entry",
        "CREATE TABLE entry (
    request INTEGER NOT NULL REFERENCES request(number),
    number INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (request, number)
) WITHOUT ROWID",
    ),
    (
        "request",
        "CREATE TABLE request (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    context TEXT NOT NULL,
    start TEXT NOT NULL,
    state TEXT
)",
    ),
];

/// The index that SQLite adds for `UNIQUE`.
const INDEX: &str = "sqlite_autoindex_request_1";

/// Maximum size of a value, in bytes. The queue of a journal holds less text.
const MAX_VALUE: i32 = 1 << 30;
/// Maximum length of a statement and of the definition of a table, in bytes.
const MAX_SQL: i32 = 4096;
/// Time to wait for a reader or writer in another process.
const BUSY_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for reading.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// Number of instructions of SQLite between two looks at the clock.
const INSTRUCTIONS: i32 = 10_000;

/// Access to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading and writing.
    Write,
    /// Reading.
    Read,
}

/// A database that is a journal, or empty.
pub(crate) struct Database {
    /// The name of the journal, for messages.
    pub(crate) path: PathBuf,
    pub(crate) connection: Connection,
    /// Whether the tables exist. The process that created the file may have ended before it created them.
    pub(crate) has_tables: bool,
    /// The end of the current read operation; `None`: no limit.
    deadline: Arc<Mutex<Option<Instant>>>,
}

impl Database {
    /// Opens a database.
    ///
    /// # Errors
    /// If it is neither a journal of this version nor empty, or cannot be used.
    pub(crate) fn open(files: &Files, access: Access) -> Result<Self, OpenError> {
        let checked = files.check()?;
        let flags = OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let opened = match Self::connect(files, &files.database, flags | OpenFlags::SQLITE_OPEN_READ_WRITE) {
            // SQLite cannot read a file in a read-only folder in the usual way.
            Err(OpenError::NotOpened { .. }) if access == Access::Read => {
                let changes = files.beside("-wal");
                if changes.exists() {
                    return Err(OpenError::UnreadableChanges { path: files.given.clone(), changes });
                }
                // No process uses the file, because there is no log of changes, so it cannot change.
                let flags = flags | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                Self::connect(files, &immutable_uri(&files.database), flags)
            }
            opened => opened,
        }?;
        // SQLite opened the files by their names, so they may have been replaced after the check.
        if files.check()? != checked {
            let detail = String::from("the file was replaced while it was opened");
            return Err(OpenError::Unreadable { path: files.given.clone(), detail });
        }
        Ok(opened)
    }

    fn connect(files: &Files, name: &Path, flags: OpenFlags) -> Result<Self, OpenError> {
        let path = &files.given;
        let error = |error: rusqlite::Error| OpenError::of_sqlite(path, &error);
        let connection =
            Connection::open_with_flags(name, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(error)?;
        let mut database =
            Self { path: path.clone(), connection, has_tables: false, deadline: Arc::default() };
        database.protect().map_err(error)?;
        database.begin_reading();
        database.has_tables = database.check_schema()?;
        Ok(database)
    }

    /// Limits what the content of the database can do.
    fn protect(&mut self) -> Result<(), rusqlite::Error> {
        let connection = &mut self.connection;
        connection.busy_timeout(BUSY_LIMIT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        for setting in [
            DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA,
            DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER,
            DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW,
        ] {
            connection.set_db_config(setting, false)?;
        }
        for (limit, value) in [
            (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE),
            (Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_SQL),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
        ] {
            connection.set_limit(limit, value)?;
        }
        let deadline = Arc::clone(&self.deadline);
        let is_over = move || {
            let deadline = *deadline.lock().unwrap_or_else(PoisonError::into_inner);
            deadline.is_some_and(|deadline| Instant::now() >= deadline)
        };
        connection.progress_handler(INSTRUCTIONS, Some(is_over))?;
        connection.pragma_update(None, "cell_size_check", true)
    }

    /// Starts the time limit of a read operation.
    pub(crate) fn begin_reading(&self) {
        self.set_deadline(Instant::now().checked_add(READ_LIMIT));
    }

    /// Removes the time limit: what is written comes from this process.
    pub(crate) fn begin_writing(&self) {
        self.set_deadline(None);
    }

    fn set_deadline(&self, deadline: Option<Instant>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    /// Returns the size of the database in bytes. All values together are smaller.
    pub(crate) fn size(&self) -> Result<u64, OpenError> {
        Ok(self.pragma("page_count")?.unsigned_abs().saturating_mul(self.pragma("page_size")?.unsigned_abs()))
    }

    /// Returns whether the database has the tables of a journal; `false`: it is empty.
    ///
    /// # Errors
    /// If it has a different schema or format.
    fn check_schema(&self) -> Result<bool, OpenError> {
        let schema = self.schema().map_err(|error| self.error(&error))?;
        match (self.pragma("application_id")?, self.pragma("user_version")?) {
            (0, _) if schema.is_empty() => return Ok(false),
            (APPLICATION, FORMAT) => {}
            (APPLICATION, found) => return Err(OpenError::Format { path: self.path.clone(), found }),
            _ => return Err(OpenError::NotAJournal { path: self.path.clone() }),
        }
        let table = |(name, sql): (&str, &str)| ("table".to_owned(), name.to_owned(), Some(sql.to_owned()));
        let index = (String::from("index"), INDEX.to_owned(), None);
        let expected: Vec<_> = std::iter::once(index).chain(TABLES.map(table)).collect();
        if schema == expected {
            return Ok(true);
        }
        let detail =
            "the database has a different schema than a journal of deftool; another program changed it";
        Err(OpenError::Unreadable { path: self.path.clone(), detail: detail.to_owned() })
    }

    /// Returns type, name and SQL of the first elements of the schema, in order.
    fn schema(&self) -> Result<Vec<(String, String, Option<String>)>, rusqlite::Error> {
        let mut select = self.connection.prepare("SELECT type, name, sql FROM sqlite_schema LIMIT 4")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let mut schema = rows.collect::<Result<Vec<_>, _>>()?;
        schema.sort();
        Ok(schema)
    }

    /// Creates the tables of a journal.
    pub(crate) fn create_tables(&mut self) -> Result<(), OpenError> {
        self.begin_writing();
        let created = self.connection.pragma_update(None, "journal_mode", "WAL").and_then(|()| {
            let transaction = self.connection.transaction()?;
            for (_, sql) in TABLES {
                transaction.execute(sql, [])?;
            }
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
            transaction.commit()
        });
        created.map_err(|error| OpenError::of_sqlite(&self.path, &error))?;
        self.has_tables = true;
        Ok(())
    }

    fn pragma(&self, name: &str) -> Result<i64, OpenError> {
        let value = self.connection.pragma_query_value(None, name, |row| row.get(0));
        value.map_err(|error| self.error(&error))
    }

    pub(crate) fn error(&self, error: &rusqlite::Error) -> OpenError {
        OpenError::of_sqlite(&self.path, error)
    }
}

/// Returns the URI of a file that does not change while it is read.
fn immutable_uri(path: &Path) -> PathBuf {
    let mut uri = OsString::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push((*byte as char).to_string());
            }
            _ => uri.push(format!("%{byte:02x}")),
        }
    }
    uri.push("?immutable=1");
    PathBuf::from(uri)
}

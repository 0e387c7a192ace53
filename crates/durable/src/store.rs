//! The tables of a journal.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use deftool_chat::Message;
use deftool_chat::request::{Event, FinalState, JournalEntry};
use deftool_worker::{Durability, JournaledRequest};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};

use crate::model::{FORMAT, OpenError, RequestSummary};
use crate::queue::Item;

/// Marks a database as a journal: `deft`.
const APPLICATION: i64 = 0x6465_6674;

/// Time to wait for a reader or writer in another process.
const BUSY_LIMIT: Duration = Duration::from_secs(10);

const TABLES: &str = "
CREATE TABLE request (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    context TEXT NOT NULL,
    start TEXT NOT NULL,
    state TEXT
);
CREATE TABLE entry (
    request INTEGER NOT NULL REFERENCES request(number),
    number INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (request, number)
) WITHOUT ROWID;
";

/// A connection to the database.
pub(crate) struct Store {
    path: PathBuf,
    connection: Connection,
    /// The number of each request, and that of its next entry.
    known: HashMap<String, (i64, i64)>,
}

impl Store {
    /// Opens a journal for writing. Creates the file if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Self, OpenError> {
        let mut store =
            Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        if store.is_empty()? {
            store.create_tables()?;
        }
        store.check_format()?;
        Ok(store)
    }

    /// Opens an existing journal.
    pub(crate) fn open_existing(path: &Path) -> Result<Self, OpenError> {
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // The process that created the file may have ended before it created the tables.
        if !store.is_empty()? {
            store.check_format()?;
        }
        Ok(store)
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, OpenError> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags);
        let connection =
            opened.and_then(|connection| connection.busy_timeout(BUSY_LIMIT).map(|()| connection));
        let connection = connection.map_err(|error| of_sqlite(path, &error))?;
        Ok(Self { path: path.to_owned(), connection, known: HashMap::new() })
    }

    /// Returns whether the database has no tables.
    fn is_empty(&self) -> Result<bool, OpenError> {
        let tables =
            self.connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0));
        Ok(tables.map_err(|error| self.error(&error))? == 0)
    }

    fn create_tables(&mut self) -> Result<(), OpenError> {
        let created = self.connection.pragma_update(None, "journal_mode", "WAL").and_then(|()| {
            let transaction = self.connection.transaction()?;
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", FORMAT)?;
            transaction.commit()
        });
        created.map_err(|error| of_sqlite(&self.path, &error))
    }

    fn check_format(&self) -> Result<(), OpenError> {
        let pragma = |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let application = pragma("application_id").map_err(|error| self.error(&error))?;
        let found = pragma("user_version").map_err(|error| self.error(&error))?;
        match (application, found) {
            (APPLICATION, FORMAT) => Ok(()),
            (APPLICATION, _) => Err(OpenError::Format { path: self.path.clone(), found }),
            _ => Err(OpenError::NotAJournal { path: self.path.clone() }),
        }
    }

    /// Writes items in one transaction.
    pub(crate) fn write(&mut self, items: Vec<Item>, durability: Durability) -> Result<(), rusqlite::Error> {
        let level = match durability {
            Durability::Process => "NORMAL",
            Durability::Machine => "FULL",
        };
        self.connection.pragma_update(None, "synchronous", level)?;
        let Self { connection, known, .. } = self;
        let transaction = connection.transaction()?;
        {
            let mut add_request =
                transaction.prepare_cached("INSERT INTO request (id, context, start) VALUES (?1, ?2, ?3)")?;
            let mut add_entry = transaction.prepare_cached(
                "INSERT INTO entry (request, number, at_ms, entry) VALUES (?1, ?2, ?3, ?4)",
            )?;
            let mut end = transaction.prepare_cached("UPDATE request SET state = ?2 WHERE number = ?1")?;
            for item in items {
                match item {
                    Item::Request { start, context } => {
                        let number = add_request.insert(params![
                            start.session.request_id,
                            context,
                            to_json(&*start)?
                        ])?;
                        known.insert(start.session.request_id, (number, 1));
                    }
                    Item::Entry { request_id, at_ms, entry } => {
                        let (request, next) = match known.get_mut(&*request_id) {
                            Some(known) => known,
                            None => known
                                .entry(request_id.to_string())
                                .or_insert(position(&transaction, &request_id)?),
                        };
                        add_entry.execute(params![*request, *next, at_ms.cast_signed(), to_json(&entry)?])?;
                        *next += 1;
                        if let JournalEntry::Event(Event::Finished(outcome)) = &entry {
                            end.execute(params![*request, to_json(&outcome.state)?])?;
                        }
                    }
                }
            }
            if durability == Durability::Machine {
                // SQLite synchronises only a transaction with a change. This also synchronises earlier transactions.
                transaction.pragma_update(None, "user_version", FORMAT)?;
            }
        }
        transaction.commit()
    }

    /// Returns all requests, oldest first.
    pub(crate) fn requests(&self) -> Result<Vec<RequestSummary>, OpenError> {
        if self.is_empty()? {
            return Ok(Vec::new());
        }
        let read = || {
            let mut select =
                self.connection.prepare("SELECT id, context, start, state FROM request ORDER BY number")?;
            let rows = select.query_map([], |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                    row.get(3)?,
                ))
            })?;
            rows.collect::<Result<Vec<(String, String, String, Option<String>)>, _>>()
        };
        let rows = read().map_err(|error| self.error(&error))?;
        let summaries = rows.into_iter().map(|(id, context, start, state)| {
            let start: JournaledRequest = self.parse(&id, &start)?;
            let state: Option<FinalState> = state.map(|state| self.parse(&id, &state)).transpose()?;
            let prompts = start.session.conversation.iter().rev();
            let prompt = prompts.filter_map(|message| match message {
                Message::User { content } => Some(content.clone()),
                _ => None,
            });
            Ok(RequestSummary {
                prompt: { prompt }.next().unwrap_or_default(),
                id,
                context,
                worker: start.session.worker,
                submitted_at_ms: start.session.submitted_at_ms,
                state,
            })
        });
        summaries.collect()
    }

    /// Returns the start of a request and its entries, with their times.
    pub(crate) fn load(&self, id: &str) -> Result<(JournaledRequest, Vec<(u64, JournalEntry)>), OpenError> {
        let find = || {
            if self.is_empty().unwrap_or(false) {
                return Ok(None);
            }
            let mut select =
                self.connection.prepare_cached("SELECT number, start FROM request WHERE id = ?1")?;
            select.query_row([id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))).optional()
        };
        let found = find().map_err(|error| self.error(&error))?;
        let (number, start) = found.ok_or_else(|| OpenError::UnknownRequest { id: id.to_owned() })?;
        let read = || {
            let mut select = self
                .connection
                .prepare_cached("SELECT at_ms, entry FROM entry WHERE request = ?1 ORDER BY number")?;
            let rows =
                select.query_map([number], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
            rows.collect::<Result<Vec<_>, _>>()
        };
        let rows = read().map_err(|error| self.error(&error))?;
        let entries = rows
            .into_iter()
            .map(|(at_ms, entry): (i64, String)| Ok((at_ms.cast_unsigned(), self.parse(id, &entry)?)));
        Ok((self.parse(id, &start)?, entries.collect::<Result<_, OpenError>>()?))
    }

    /// Removes a request.
    pub(crate) fn remove(&mut self, id: &str) -> Result<(), OpenError> {
        self.known.remove(id);
        let remove = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "DELETE FROM entry WHERE request = (SELECT number FROM request WHERE id = ?1)",
                [id],
            )?;
            let removed = transaction.execute("DELETE FROM request WHERE id = ?1", [id])?;
            transaction.commit().map(|()| removed)
        };
        match remove(&mut self.connection) {
            Ok(0) => Err(OpenError::UnknownRequest { id: id.to_owned() }),
            Ok(_) => Ok(()),
            Err(error) => Err(self.error(&error)),
        }
    }

    fn parse<T: serde::de::DeserializeOwned>(&self, id: &str, json: &str) -> Result<T, OpenError> {
        serde_json::from_str(json).map_err(|error| {
            let detail = format!("the request {id} is damaged: {error}");
            OpenError::Unreadable { path: self.path.clone(), detail }
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn error(&self, error: &rusqlite::Error) -> OpenError {
        of_sqlite(&self.path, error)
    }
}

/// Returns the number of a request, and that of its next entry.
fn position(connection: &Connection, id: &str) -> Result<(i64, i64), rusqlite::Error> {
    connection.query_row(
        "SELECT request.number, coalesce(max(entry.number), 0) + 1 \
         FROM request LEFT JOIN entry ON entry.request = request.number WHERE request.id = ?1 \
         GROUP BY request.number",
        [id],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

fn to_json(value: &impl serde::Serialize) -> Result<String, rusqlite::Error> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn of_sqlite(path: &Path, error: &rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotAJournal { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Locked { path },
        _ => OpenError::Unreadable { path, detail: error.to_string() },
    }
}

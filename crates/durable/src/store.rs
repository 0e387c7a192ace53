//! Reading and writing of the tables of a journal.

use std::collections::HashMap;
use std::path::Path;

use deftool_chat::request::{Event, FinalState, JournalEntry};
use deftool_record::{Durability, JournaledRequest, prompt_of};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row, params};

use crate::database::{Access, Database};
use crate::files::Files;
use crate::model::{FORMAT, OpenError, RequestSummary, describe};
use crate::queue::Item;

/// Minimum number of bytes of a row in a file, in addition to its texts.
const ROW: u64 = 4;

/// Reads the rows of the table `request`.
const REQUEST: &str = "SELECT number, id, context, start, state FROM request";

/// The tables of a journal.
pub(crate) struct Store {
    database: Database,
    /// The number of each request, and that of its next entry.
    known: HashMap<String, (i64, i64)>,
}

impl Store {
    /// Opens a journal for writing. Creates the tables if they do not exist.
    pub(crate) fn create(files: &Files) -> Result<Self, OpenError> {
        let mut database = Database::open(files, Access::Write)?;
        if !database.has_tables {
            database.create_tables()?;
        }
        Ok(Self { database, known: HashMap::new() })
    }

    /// Opens an existing journal for writing.
    pub(crate) fn write_to(files: &Files) -> Result<Self, OpenError> {
        Ok(Self { database: Database::open(files, Access::Write)?, known: HashMap::new() })
    }

    /// Opens an existing journal for reading.
    pub(crate) fn read(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { database: Database::open(&Files::existing(path)?, Access::Read)?, known: HashMap::new() })
    }

    /// Writes items in one transaction.
    pub(crate) fn write(&mut self, items: Vec<Item>, durability: Durability) -> Result<(), rusqlite::Error> {
        let level = match durability {
            Durability::Process => "NORMAL",
            Durability::Machine => "FULL",
        };
        self.database.begin_writing();
        let Self { database, known } = self;
        database.connection.pragma_update(None, "synchronous", level)?;
        let transaction = database.connection.transaction()?;
        {
            let mut add_request =
                transaction.prepare_cached("INSERT INTO request (id, context, start) VALUES (?1, ?2, ?3)")?;
            let mut add_entry = transaction.prepare_cached(
                "INSERT INTO entry (request, number, at_ms, entry) VALUES (?1, ?2, ?3, ?4)",
            )?;
            // A new request may get the number of a request that another program removed.
            let mut remove_entries = transaction.prepare_cached("DELETE FROM entry WHERE request = ?1")?;
            let mut end = transaction.prepare_cached("UPDATE request SET state = ?2 WHERE number = ?1")?;
            for item in items {
                match item {
                    Item::Request { start, context } => {
                        let number = add_request.insert(params![
                            start.session.request_id,
                            context,
                            to_json(&*start)?
                        ])?;
                        remove_entries.execute([number])?;
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

    /// Returns all requests with their numbers, oldest first.
    pub(crate) fn requests(&self) -> Result<Vec<(i64, RequestSummary)>, OpenError> {
        let mut requests = self.rows(&format!("{REQUEST} ORDER BY number"), [], |row| {
            let (number, summary, _) = request(row)?;
            Ok((number, summary))
        })?;
        for (number, request) in &mut requests {
            // The entries of a request that ended are not needed to continue it. An error of the database is not damage
            // of one request: reading the request reports it.
            if request.state.is_none()
                && request.damage.is_none()
                && let Ok(Err(damage)) = self.entries(*number)
            {
                request.damage = Some(damage);
            }
        }
        Ok(requests)
    }

    /// Returns the start of a request and its entries, with their times.
    pub(crate) fn load(&self, id: &str) -> Result<(JournaledRequest, Vec<(u64, JournalEntry)>), OpenError> {
        let number: Option<i64> = id.strip_prefix('#').and_then(|number| number.parse().ok());
        let found =
            self.rows(&format!("{REQUEST} WHERE id = ?1 OR number = ?2"), params![id, number], request)?;
        let (number, _, start) = found
            .into_iter()
            .find(|(_, summary, _)| summary.id == id)
            .ok_or_else(|| OpenError::UnknownRequest { id: id.to_owned() })?;
        let entries = self.entries(number)?;
        start.and_then(|start| Ok((start, entries?))).map_err(|error| {
            let detail = format!("the request {id} is damaged: {error}");
            OpenError::Unreadable { path: self.database.path.clone(), detail }
        })
    }

    /// Returns the entries of a request, with their times, or the reason why they are damaged.
    fn entries(&self, request: i64) -> Result<Result<Vec<(u64, JournalEntry)>, String>, OpenError> {
        let sql = "SELECT number, at_ms, entry FROM entry WHERE request = ?1 ORDER BY number";
        let entries = self.rows(sql, [request], |row| {
            Ok((row.get_ref(0)?.as_i64().ok(), row.get_ref(1)?.as_i64().unwrap_or(0), text(row, 2)?))
        })?;
        let entries = entries.into_iter().zip(1..).map(|((number, at_ms, entry), expected)| {
            if number != Some(expected) {
                return Err(format!("the entry {expected} is missing or has another number"));
            }
            Ok((u64::try_from(at_ms).unwrap_or(0), parse(&entry)?))
        });
        Ok(entries.collect())
    }

    /// Reads rows. If pages of a damaged file refer to each other, it contains endless rows.
    fn rows<T>(
        &self,
        sql: &str,
        params: impl Params,
        convert: impl Fn(&Row<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<Vec<T>, OpenError> {
        let database = &self.database;
        if !database.has_tables {
            return Ok(Vec::new());
        }
        database.begin_reading();
        let size = database.size()?;
        let error = |error: rusqlite::Error| database.error(&error);
        let mut select = database.connection.prepare_cached(sql).map_err(error)?;
        let mut rows = select.query(params).map_err(error)?;
        let (mut found, mut read) = (Vec::new(), 0_u64);
        while let Some(row) = rows.next().map_err(error)? {
            read = read.saturating_add(length(row).map_err(error)?);
            if read > size {
                let detail = String::from("the file is damaged: it contains more rows than fit into it");
                return Err(OpenError::Unreadable { path: database.path.clone(), detail });
            }
            found.push(convert(row).map_err(error)?);
        }
        Ok(found)
    }

    /// Removes a request. `id` is for the error.
    pub(crate) fn remove(&mut self, number: i64, id: &str) -> Result<(), OpenError> {
        self.database.begin_writing();
        let remove = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            transaction.execute("DELETE FROM entry WHERE request = ?1", [number])?;
            transaction.execute("DELETE FROM request WHERE number = ?1", [number])?;
            transaction.commit()
        };
        remove(&mut self.database.connection).map_err(|error| {
            let detail = format!("cannot remove the request {id}: {}", describe(&error));
            OpenError::Unreadable { path: self.database.path.clone(), detail }
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.database.path
    }
}

/// A row of the table `request`: its number, its summary, and its start or the reason why it is damaged.
type Found = (i64, RequestSummary, Result<JournaledRequest, String>);

/// Converts a row of [`REQUEST`].
fn request(row: &Row<'_>) -> Result<Found, rusqlite::Error> {
    let (number, id, context) = (row.get(0)?, text(row, 1)?, text(row, 2)?);
    let mut start = parse::<JournaledRequest>(&text(row, 3)?);
    let (mut worker, mut prompt, mut submitted_at_ms) = (String::new(), String::new(), 0);
    if let Ok(JournaledRequest { session, .. }) = &start {
        prompt_of(&session.conversation).clone_into(&mut prompt);
        (worker, submitted_at_ms) = (session.worker.clone(), session.submitted_at_ms);
        if session.request_id != id {
            start = Err(String::from("its id is not that of its start"));
        }
    }
    let state = match row.get_ref(4)? {
        ValueRef::Null => None,
        _ => parse::<FinalState>(&text(row, 4)?).map_err(|error| start = Err(error)).ok(),
    };
    let damage = start.as_ref().err().cloned();
    let id = if id.is_empty() { format!("#{number}") } else { id };
    let session = start.as_ref().ok().map(|start| start.session.clone());
    let summary = RequestSummary { id, context, worker, prompt, session, submitted_at_ms, state, damage };
    Ok((number, summary, start))
}

/// Returns the text of a column. A value of another type is not a text, so its request is damaged.
fn text(row: &Row<'_>, column: usize) -> Result<String, rusqlite::Error> {
    Ok(row.get_ref(column)?.as_str().unwrap_or_default().to_owned())
}

/// Returns the number of bytes of a row, at most.
fn length(row: &Row<'_>) -> Result<u64, rusqlite::Error> {
    let mut bytes = ROW;
    for column in 0..row.as_ref().column_count() {
        if let ValueRef::Text(value) | ValueRef::Blob(value) = row.get_ref(column)? {
            bytes += value.len() as u64;
        }
    }
    Ok(bytes)
}

fn parse<T: serde::de::DeserializeOwned>(json: &str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// Returns the number of a request, and that of its next entry.
fn position(connection: &Connection, id: &str) -> Result<(i64, i64), rusqlite::Error> {
    connection.query_row(
        "SELECT number, (SELECT max(entry.number) FROM entry WHERE entry.request = request.number) FROM request WHERE id = ?1",
        [id],
        |row| {
            let last: i64 = row.get::<_, Option<_>>(1)?.unwrap_or(0);
            Ok((row.get(0)?, last.checked_add(1).ok_or(rusqlite::Error::IntegralValueOutOfRange(1, last))?))
        },
    )
}

fn to_json(value: &impl serde::Serialize) -> Result<String, rusqlite::Error> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

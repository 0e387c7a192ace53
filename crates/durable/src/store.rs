//! Reading and writing of the tables of a journal.

use std::collections::HashMap;
use std::path::Path;

use deftool_chat::Message;
use deftool_chat::request::{Event, FinalState, JournalEntry};
use deftool_worker::{Durability, JournaledRequest};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Params, Row, params};

use crate::database::{Access, Database};
use crate::model::{FORMAT, OpenError, RequestSummary};
use crate::queue::Item;

/// Minimum number of bytes of a row in a file, in addition to its texts.
const ROW: u64 = 4;

/// The tables of a journal.
pub(crate) struct Store {
    database: Database,
    /// The number of each request, and that of its next entry.
    known: HashMap<String, (i64, i64)>,
}

impl Store {
    /// Opens a journal for writing. Creates the tables if they do not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, OpenError> {
        let mut database = Database::open(path, Access::Create)?;
        if !database.has_tables {
            database.create_tables()?;
        }
        Ok(Self { database, known: HashMap::new() })
    }

    /// Opens an existing journal for writing.
    pub(crate) fn write_to(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { database: Database::open(path, Access::Write)?, known: HashMap::new() })
    }

    /// Opens an existing journal for reading.
    pub(crate) fn read(path: &Path) -> Result<Self, OpenError> {
        Ok(Self { database: Database::open(path, Access::Read)?, known: HashMap::new() })
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
        self.rows("SELECT number, id, context, start, state FROM request ORDER BY number", [], |row| {
            let texts = [text(row, 1)?, text(row, 2)?, text(row, 3)?];
            let state = if row.get_ref(4)? == ValueRef::Null { None } else { Some(text(row, 4)?) };
            Ok(summary(row.get(0)?, texts, state))
        })
    }

    /// Returns the start of a request and its entries, with their times.
    pub(crate) fn load(&self, id: &str) -> Result<(JournaledRequest, Vec<(u64, JournalEntry)>), OpenError> {
        let found = self.rows("SELECT number, start FROM request WHERE id = ?1", [id], |row| {
            Ok((row.get::<_, i64>(0)?, text(row, 1)?))
        })?;
        let unknown = || OpenError::UnknownRequest { id: id.to_owned() };
        let (number, start) = found.into_iter().next().ok_or_else(unknown)?;
        let entries = self.rows(
            "SELECT at_ms, entry FROM entry WHERE request = ?1 ORDER BY number",
            [number],
            |row| Ok((row.get::<_, i64>(0)?, text(row, 1)?)),
        )?;
        let damaged = |error: String| {
            let detail = format!("the request {id} is damaged: {error}");
            OpenError::Unreadable { path: self.database.path.clone(), detail }
        };
        let entries = entries
            .into_iter()
            .map(|(at_ms, entry)| Ok((u64::try_from(at_ms).unwrap_or(0), parse(&entry).map_err(damaged)?)));
        Ok((parse(&start).map_err(damaged)?, entries.collect::<Result<_, OpenError>>()?))
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

    /// Removes a request.
    pub(crate) fn remove(&mut self, id: &str) -> Result<(), OpenError> {
        self.known.remove(id);
        if !self.database.has_tables {
            return Err(OpenError::UnknownRequest { id: id.to_owned() });
        }
        self.database.begin_writing();
        let remove = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            transaction.execute(
                "DELETE FROM entry WHERE request = (SELECT number FROM request WHERE id = ?1)",
                [id],
            )?;
            let removed = transaction.execute("DELETE FROM request WHERE id = ?1", [id])?;
            transaction.commit().map(|()| removed)
        };
        match remove(&mut self.database.connection) {
            Ok(0) => Err(OpenError::UnknownRequest { id: id.to_owned() }),
            Ok(_) => Ok(()),
            Err(error) => Err(self.database.error(&error)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.database.path
    }
}

/// Summarises a row of the table `request`.
fn summary(number: i64, [id, context, start]: [String; 3], state: Option<String>) -> RequestSummary {
    let id = if id.is_empty() { format!("#{number}") } else { id };
    let start = parse::<JournaledRequest>(&start);
    let state = state.map(|state| parse::<FinalState>(&state)).transpose();
    let damage = start.as_ref().err().or(state.as_ref().err()).cloned();
    let (mut worker, mut prompt, mut submitted_at_ms) = (String::new(), String::new(), 0);
    if let Ok(JournaledRequest { session, .. }) = start {
        let prompts = session.conversation.into_iter().rev().filter_map(|message| match message {
            Message::User { content } => Some(content),
            _ => None,
        });
        prompt = { prompts }.next().unwrap_or_default();
        (worker, submitted_at_ms) = (session.worker, session.submitted_at_ms);
    }
    RequestSummary { id, context, worker, prompt, submitted_at_ms, state: state.unwrap_or_default(), damage }
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

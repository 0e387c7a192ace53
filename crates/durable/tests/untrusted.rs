//! Journals that another program changed. Their content is untrusted.

// Clippy does not treat helper functions outside of a `#[test]` as test code.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use deftool_chat::request::{JournalEntry, RunConfig};
use deftool_durable::SqliteJournal;
use deftool_record::{Journal, JournaledRequest};
use rusqlite::Connection;
use serde_json::json;

/// Creates a journal with `count` requests: `req_0`, `req_1`, … with a prompt of 1,500 bytes each.
fn journal(folder: &Path, count: usize) -> PathBuf {
    let path = folder.join("requests.journal");
    let journal = SqliteJournal::open(&path).unwrap();
    for number in 0..count {
        let id = format!("req_{number}");
        journal.begin(start(&id));
        journal.append(&id, 5, entries(3));
    }
    journal.close().unwrap();
    path
}

fn start(id: &str) -> JournaledRequest {
    let session = serde_json::from_value(json!({
        "request_id": id, "job_name": "", "worker": "w", "url": "", "model": "m", "server": {},
        "conversation": [{"role": "user", "content": "x".repeat(1_500)}], "parallel_tool_calls": true,
        "submitted_at_ms": 0, "zone": "UTC", "local_time": "", "id_seed": 1, "engine": "0",
    }));
    JournaledRequest { session: session.unwrap(), config: RunConfig::default() }
}

fn entries(count: usize) -> Vec<JournalEntry> {
    let entry = |number| json!({"call_id": "c", "log": format!("info: {number}")});
    (0..count).map(|number| serde_json::from_value(entry(number)).unwrap()).collect()
}

/// Returns the errors of all uses of a journal.
fn errors(path: &Path) -> Vec<String> {
    let errors = [
        SqliteJournal::requests(path).err(),
        SqliteJournal::load(path, "req_0").err(),
        SqliteJournal::remove(path, |_| true).err(),
        SqliteJournal::open(path).err(),
    ];
    errors.into_iter().map(|error| error.map_or_else(String::new, |error| error.to_string())).collect()
}

/// Programs in the schema do not run: each of them would need endless time or memory, or change what is read.
#[test]
fn only_the_tables_of_a_journal_are_read() {
    const ENDLESS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)";
    let large = "printf('%.*c', 1000000000, 'x')";
    let view =
        |columns: &str| format!("ALTER TABLE request RENAME TO other; CREATE VIEW request AS {columns}");
    for sql in [
        view(&format!(
            "{ENDLESS} SELECT x AS number, 'req_0' AS id, '' AS context, '' AS start, '' AS state FROM n"
        )),
        view(&format!("SELECT number, id, context, {large} AS start, state FROM other")),
        format!("ALTER TABLE request ADD COLUMN text TEXT AS ({large})"),
        String::from("ALTER TABLE request ADD COLUMN text TEXT"),
        String::from("CREATE TRIGGER added AFTER INSERT ON entry BEGIN DELETE FROM request; END"),
        String::from("CREATE INDEX states ON request (state)"),
        String::from("CREATE TABLE other (x)"),
        String::from("CREATE VIRTUAL TABLE words USING fts5(x)"),
        String::from("DROP TABLE entry"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path(), 1);
        Connection::open(&path).unwrap().execute_batch(&sql).unwrap();
        for error in errors(&path) {
            assert!(error.contains("a different schema than a journal of deftool"), "{sql}: {error}");
        }
    }
    // The order in which the tables were created does not matter, nor whether the file was compacted.
    let folder = tempfile::tempdir().unwrap();
    let path = journal(folder.path(), 1);
    Connection::open(&path).unwrap().execute_batch("VACUUM").unwrap();
    assert_eq!(SqliteJournal::requests(&path).unwrap().len(), 1);
}

/// The children of a page refer to one page, and its children to another one: reading them all never ends.
#[test]
fn pages_that_refer_to_each_other_are_detected() {
    const PAGE: usize = 4096;
    let folder = tempfile::tempdir().unwrap();
    let path = journal(folder.path(), 80);
    let connection = Connection::open(&path).unwrap();
    let root: u32 = connection
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'request'", [], |row| row.get(0))
        .unwrap();
    drop(connection);
    let root = root as usize;
    let mut bytes = fs::read(&path).unwrap();
    let start = (root - 1) * PAGE;
    let page = bytes[start..start + PAGE].to_vec();
    assert_eq!(page[0], 5, "an interior page of a table");
    let number = |at: usize| usize::from(u16::from_be_bytes([page[at], page[at + 1]]));
    // The positions of the numbers of all children.
    let children: Vec<usize> =
        std::iter::once(8).chain((0..number(3)).map(|cell| number(12 + 2 * cell))).collect();
    let child = |at: usize| u32::from_be_bytes(page[at..at + 4].try_into().unwrap());
    let (between, leaf) = (child(children[0]), child(children[1]));
    for (target, refers_to) in [(root, between), (between as usize, leaf)] {
        let mut page = page.clone();
        for at in &children {
            page[*at..at + 4].copy_from_slice(&refers_to.to_be_bytes());
        }
        bytes[(target - 1) * PAGE..target * PAGE].copy_from_slice(&page);
    }
    fs::write(&path, bytes).unwrap();
    let error = SqliteJournal::requests(&path).unwrap_err().to_string();
    assert!(error.ends_with("the file is damaged: it contains more rows than fit into it"), "{error}");
}

#[test]
fn a_damaged_request_does_not_affect_the_others() {
    for (sql, id) in [
        ("UPDATE request SET start = '{' WHERE number = 1", "req_0"),
        ("UPDATE request SET start = x'00ff' WHERE number = 1", "req_0"),
        ("UPDATE request SET state = '\"unknown\"' WHERE number = 1", "req_0"),
        ("UPDATE request SET id = x'00' WHERE number = 1", "#1"),
        ("UPDATE request SET id = '' WHERE number = 1", "#1"),
        ("UPDATE request SET id = 'req_9' WHERE number = 1", "req_9"),
        ("UPDATE entry SET entry = '[]' WHERE request = 1 AND number = 2", "req_0"),
        ("UPDATE entry SET number = 9223372036854775807 WHERE request = 1 AND number = 3", "req_0"),
        ("UPDATE entry SET number = 'x' WHERE request = 1 AND number = 3", "req_0"),
        ("DELETE FROM entry WHERE request = 1 AND number = 1", "req_0"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path(), 2);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let requests = SqliteJournal::requests(&path).unwrap();
        let [damaged, other] = &requests[..] else { panic!("{requests:?}") };
        assert!(damaged.damage.is_some() && damaged.id == id, "{sql}: {damaged:?}");
        assert_eq!((other.id.as_str(), &other.damage, other.prompt.len()), ("req_1", &None, 1_500), "{sql}");
        let error = SqliteJournal::load(&path, id).unwrap_err().to_string();
        assert!(error.contains(&format!("the request {id} is damaged: ")), "{sql}: {error}");

        let writer = SqliteJournal::open_existing(&path).unwrap();
        writer.append("req_1", 6, entries(1));
        writer.begin(start("req_2"));
        writer.append("req_2", 6, entries(2));
        writer.close().unwrap();
        drop(writer);
        let (removed, errors) = SqliteJournal::remove(&path, |request| request.damage.is_some()).unwrap();
        assert!(removed == 1 && errors.is_empty(), "{sql}: {errors:?}");
        let requests = SqliteJournal::requests(&path).unwrap();
        let left: Vec<_> = requests.iter().map(|request| (request.id.as_str(), &request.damage)).collect();
        assert_eq!(left, [("req_1", &None), ("req_2", &None)], "{sql}");
        let count = |id| SqliteJournal::load(&path, id).unwrap().1.len();
        assert_eq!((count("req_1"), count("req_2")), (4, 2), "{sql}");
    }
}

#[test]
fn entries_without_a_request_do_not_affect_a_new_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(folder.path(), 2);
    let sql = "PRAGMA foreign_keys = OFF; DELETE FROM request WHERE number = 2";
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let writer = SqliteJournal::open(&path).unwrap();
    writer.begin(start("req_2"));
    writer.append("req_2", 6, entries(1));
    writer.close().unwrap();
    assert_eq!(SqliteJournal::load(&path, "req_2").unwrap().1.len(), 1);
}

#[test]
fn a_stored_time_can_be_any_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(folder.path(), 1);
    Connection::open(&path).unwrap().execute_batch("UPDATE entry SET at_ms = -1").unwrap();
    let entries = SqliteJournal::load(&path, "req_0").unwrap().1;
    assert!(entries.iter().all(|(at_ms, _)| *at_ms == 0), "{entries:?}");
}

/// SQLite would interpret this relative path as a URI.
#[test]
fn a_path_is_not_interpreted_as_a_uri() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file:a?mode=memory#1%20");
    drop(SqliteJournal::open(&path).unwrap());
    assert!(path.is_file());
    assert_eq!(SqliteJournal::requests(&path).unwrap(), []);
}

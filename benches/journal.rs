//! The cost of a step of a request with a journal: `cargo bench --bench journal`.
//!
//! A step is the result of a call, the new budget and the start of the next turn, and waits until it is stored. Goal: at
//! most 150 µs if it must survive the end of the process. If it must survive a power failure, the disk decides.

// A benchmark stops at the first error.
#![allow(clippy::unwrap_used)]

use deftool_chat::request::{Event, JournalEntry, RunConfig};
use deftool_durable::SqliteJournal;
use deftool_record::{Durability, Journal, JournaledRequest, Session};
use divan::Bencher;
use serde_json::json;

/// The events of a step.
fn step() -> Vec<JournalEntry> {
    let finished = json!({
        "type": "tool_finished", "id": "Ab3dE6gH9", "name": "search_text", "ok": true, "elapsed_ms": 12,
        "result": {"matches": [{"path": "src/main.rs", "line": 12, "text": "fn main() {"}], "truncated": false},
    });
    let budget = json!({"type": "budget", "left": 7, "unit": "iteration"});
    let turn = json!({"type": "turn_started", "turn": 2, "tools": "0".repeat(64), "budget_left": 7});
    [finished, budget, turn]
        .map(|event| JournalEntry::Event(serde_json::from_value::<Event>(event).unwrap()))
        .to_vec()
}

fn session() -> Session {
    serde_json::from_value(json!({
        "request_id": "req_1", "job_name": "", "worker": "w", "url": "http://127.0.0.1:8080/v1/chat/completions",
        "conversation": [{"role": "user", "content": "What changed?"}], "model": "m", "server": {},
        "parallel_tool_calls": true, "submitted_at_ms": 0, "zone": "UTC", "local_time": "2026-01-01 00:00",
        "id_seed": 1,
    }))
    .unwrap()
}

#[divan::bench(args = [Durability::Process, Durability::Machine], sample_count = 1000)]
fn step_of_a_request(bencher: Bencher, durability: Durability) {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&folder.path().join("requests.journal")).unwrap();
    journal.begin(JournaledRequest { session: session(), config: RunConfig::default() });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    bencher.with_inputs(step).bench_local_values(|step| {
        journal.append("req_1", 1, step);
        runtime.block_on(journal.commit("r", durability)).unwrap();
    });
}

fn main() {
    divan::main();
}

//! The pace of a replay whose recording nobody should have made.

use deftool::worker::ReplayOptions;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::bench::*;
use super::recorded::{play, slow_recording};

/// A clock that went back would be waited for twice.
#[tokio::test(start_paused = true)]
async fn times_that_go_back_cost_no_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let mut lines: Vec<Value> =
        slow_recording().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last_piece = lines.iter().position(|line| line["record"] == "end").unwrap() - 1;
    lines[last_piece]["at_ms"] = json!(50);
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let started = Instant::now();
    let options =
        ReplayOptions { pace: Some(1.0), lenient: true, recorded_tools: true, ..ReplayOptions::default() };
    let (again, _) = play(&path, config(), echo(), options).await;
    assert_eq!((again[0].text(), started.elapsed().as_secs()), ("slow fine", 310));
}

//! Prints the statistics of runs that other programs counted: one JSON object a line, `{"asks": [[PASSES, RUNS]], "k": [K]}`.
//! Prints the pass rate, and pass^k and pass@k for each K. `tests/interop/inspect_statistics.py` uses it.

use std::io::{BufRead, stdin};

use deftool_eval::statistics::{Tally, pass_at_k, pass_hat_k, pass_rate};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Counts {
    asks: Vec<(u32, u32)>,
    k: Vec<u32>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in stdin().lock().lines() {
        let Counts { asks, k } = serde_json::from_str(&line?)?;
        let asks: Vec<Tally> = asks.into_iter().map(|(passes, runs)| Tally { passes, runs }).collect();
        let all: Vec<_> = k.iter().map(|k| pass_hat_k(&asks, *k)).collect();
        let any: Vec<_> = k.iter().map(|k| pass_at_k(&asks, *k)).collect();
        println!("{}", json!({"pass_rate": pass_rate(&asks), "pass_hat_k": all, "pass_at_k": any}));
    }
    Ok(())
}

//! Judges replies that other programs wrote: one JSON object a line, `{"tools": [DEFINITION], "ask": ASK, "replies": [REPLY]}`,
//! in the notation of `tests/it/notation.rs`. Prints an array of verdicts for each line. `tests/interop/bfcl.py` uses it.

#[path = "../tests/it/notation.rs"]
mod notation;

use std::io::{BufRead, stdin};

use deftool_eval::judge::judge;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for line in stdin().lock().lines() {
        let input: Value = serde_json::from_str(&line?)?;
        let (ask, tools) = (notation::ask(&input["ask"]), notation::tools(&input["tools"]));
        let verdicts = input["replies"].as_array().into_iter().flatten().map(|reply| {
            let verdict = judge(&ask, &notation::calls(reply, &tools), &tools);
            let problems: Vec<String> = verdict.problems.iter().map(ToString::to_string).collect();
            json!({
                "choice": verdict.choice,
                "validity": verdict.validity,
                "arguments": verdict.arguments,
                "problems": problems,
            })
        });
        println!("{}", verdicts.collect::<Value>());
    }
    Ok(())
}

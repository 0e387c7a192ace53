//! `deftool-analyze`: analysis of scripts for `deftool check --types` and `deftool lsp`.
//!
//! Reads requests from stdin and writes answers to stdout, one line of JSON each. Started by deftool only.
//!
//! | module | contents |
//! |---|---|
//! | `annotate` | the types of a tool's arguments at the parameters of its script |
//! | `files` | the sources of a unit, and what they require |
//! | `checker` | the type checker, and the unit that it checked |
//! | `confidence` | which findings are certain |
//! | `check` | type findings |
//! | `analyzer` | the answers to requests |

mod analyzer;
mod annotate;
mod check;
mod checker;
mod confidence;
mod files;

use analyzer::LuauAnalyzer;

/// Stack size; the checker is deeply recursive.
const STACK: usize = 256 << 20;

fn main() -> std::io::Result<()> {
    let serve = || deftool_script::serve_analyzer(LuauAnalyzer::default());
    let serving = std::thread::Builder::new().stack_size(STACK).spawn(serve)?;
    serving.join().unwrap_or_else(|_| Err(std::io::Error::other("the analyzer failed")))
}

//! `deftool-analyze`: analysis of scripts for `deftool check --types` and `deftool lsp`.
//!
//! Reads requests from stdin and writes answers to stdout, one line of JSON each. Started by deftool only.
//!
//! | module | contents |
//! |---|---|
//! | `text` | byte offsets, and lines with columns |
//! | `types` | texts of types |
//! | `annotate` | the types of a tool's arguments at the parameters of its script |
//! | `files` | the sources of a unit, and what they require |
//! | `checker` | the type checker, and the unit that it checked |
//! | `confidence` | which findings are certain |
//! | `check` | type findings |
//! | `complete`, `describe`, `signature` | completion, hover and definition, signature help |
//! | `names`, `outline` | uses of names, symbols |
//! | `inlays`, `tokens` | types beside variables, colours of names |
//! | `analyzer` | the answers to requests |

mod analyzer;
mod annotate;
mod check;
mod checker;
mod complete;
mod confidence;
mod describe;
mod files;
mod inlays;
mod names;
mod outline;
mod signature;
mod text;
mod tokens;
mod types;

use analyzer::LuauAnalyzer;

/// Stack size; the checker is deeply recursive.
const STACK: usize = 256 << 20;

fn main() -> std::io::Result<()> {
    let serve = || deftool_script::serve_analyzer(LuauAnalyzer::default());
    let serving = std::thread::Builder::new().stack_size(STACK).spawn(serve)?;
    serving.join().unwrap_or_else(|_| Err(std::io::Error::other("the analyzer failed")))
}

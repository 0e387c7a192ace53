//! `deftool-types`: the type checker of `deftool check --types`.
//!
//! Reads jobs from stdin and writes results to stdout. Started by deftool only.

mod annotate;
mod check;
mod confidence;

/// Stack size; the checker is deeply recursive.
const STACK: usize = 256 << 20;

fn main() -> std::io::Result<()> {
    let serve = || deftool_script::serve_type_checks(check::new_checker, check::check);
    let serving = std::thread::Builder::new().stack_size(STACK).spawn(serve)?;
    serving.join().unwrap_or_else(|_| Err(std::io::Error::other("the checker failed")))
}

//! `deftool-types`: the program that `deftool check --types` has check the types of scripts.
//!
//! It reads what to check on stdin and answers on stdout; nobody starts it by hand.

mod annotate;
mod check;
mod trust;

/// The checker goes some hundred calls deep.
const STACK: usize = 256 << 20;

fn main() -> std::io::Result<()> {
    let serve = || deftool::script::serve_type_checks(check::new_checker, check::check);
    let serving = std::thread::Builder::new().stack_size(STACK).spawn(serve)?;
    serving.join().unwrap_or_else(|_| Err(std::io::Error::other("the checker failed")))
}

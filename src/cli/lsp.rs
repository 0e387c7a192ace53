//! `deftool lsp`: serves editors over the Language Server Protocol, on stdin and stdout.

use std::io::IsTerminal;

use deftool_lsp::{End, serve};

use super::command::Exit;
use super::output::eprint_line;

/// Runs the command. It fails if the client ends the connection without a `shutdown` request.
pub(super) fn run() -> Exit {
    if std::io::stdin().is_terminal() {
        eprint_line("note: an editor starts this command and sends messages on stdin; press Ctrl-C to stop");
    }
    match serve(std::io::stdin(), std::io::stdout().lock(), env!("CARGO_PKG_VERSION")) {
        End::Shutdown => Exit::Clean,
        End::WithoutShutdown => Exit::Failed,
    }
}

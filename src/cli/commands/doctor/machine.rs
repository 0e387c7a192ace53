//! The version of deftool, and the machine.

use deftool_lang::text::count;

use super::line::Line;

pub(super) fn check() -> Line {
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let processors = count(processors, "processor");
    Line::ok("deftool", format!("{} on {os} {architecture}, {processors}", env!("CARGO_PKG_VERSION")))
}

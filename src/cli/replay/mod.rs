//! `deftool replay`: replays recordings without server and key, for example in CI. With `--specs`, validates the
//! arguments of recorded calls against the current specs instead.

mod files;
mod play;
mod specs;

use super::args::ReplayOptions;
use super::command::{CliError, Exit};

pub(super) use files::read;

pub(super) fn run(options: &ReplayOptions) -> Result<Exit, CliError> {
    if options.specs { specs::run(options) } else { play::run(options) }
}

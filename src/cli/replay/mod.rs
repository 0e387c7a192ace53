//! `deftool replay`: recordings played again, for CI: no server, no key. With `--specs` nothing is played: the arguments of
//! every recorded call are held against the specs as they are now.

mod files;
mod play;
mod specs;

use super::args::ReplayOptions;
use super::{CliError, Exit};

pub(super) fn run(options: &ReplayOptions) -> Result<Exit, CliError> {
    if options.specs { specs::run(options) } else { play::run(options) }
}

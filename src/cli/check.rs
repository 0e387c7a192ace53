//! `deftool check`.

use super::args::CheckOptions;
use super::fix::{apply, show};
use super::{CliError, Exit, check_watch, locate, report};
use crate::project::{load, resolve_inputs};

pub(super) fn run(options: &CheckOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    if options.watch {
        return check_watch::run(options, &place);
    }
    let inputs = resolve_inputs(&options.paths, &place.folder)?;
    if options.fixing.diff {
        return show(&inputs, &place.current, options.fixing.unsafe_fixes);
    }
    let (mut load, is_whole) = if options.fixing.fix {
        apply(&inputs, &place.current, options.fixing.unsafe_fixes)?
    } else {
        (load(&inputs, &place.current)?, true)
    };
    load.check_targets(&options.targets);
    load.raise_denied();
    report::print_report(&load, options.format, options.strict);
    let failed = !is_whole || report::fails(&load, options.strict);
    Ok(if failed { Exit::Failed } else { Exit::Clean })
}

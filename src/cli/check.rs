//! `deftool check`.

use super::args::CheckOptions;
use super::fix::{apply, show};
use super::{CliError, Exit, check_watch, locate, report};
use crate::project::{LoadOptions, load_with, resolve_inputs};

pub(super) fn run(options: &CheckOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    if options.watch {
        return check_watch::run(options, &place);
    }
    let inputs = resolve_inputs(&options.paths, &place.folder)?;
    let how = options.load_options();
    if options.fixing.diff {
        return show(&inputs, &place.current, how, options.fixing.unsafe_fixes);
    }
    let (load, is_whole) = if options.fixing.fix {
        apply(&inputs, &place.current, how, options.fixing.unsafe_fixes)?
    } else {
        (load_with(&inputs, &place.current, &how)?, true)
    };
    report::print_report(&load, options.format, options.strict);
    let failed = !is_whole || report::fails(&load, options.strict);
    Ok(if failed { Exit::Failed } else { Exit::Clean })
}

impl CheckOptions {
    pub(super) fn load_options(&self) -> LoadOptions {
        LoadOptions {
            with_scripts: true,
            targets: self.targets.clone(),
            raises_denied: true,
            ..LoadOptions::default()
        }
    }
}

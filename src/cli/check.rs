//! `deftool check`.

use std::path::Path;

use super::args::CheckOptions;
use super::fix::{apply, show};
use super::{CliError, Exit, Place, check_watch, inputs_of, locate, report};
use crate::project::{Input, LoadOptions, Overlay, load_with, read_stream};

pub(super) fn run(options: &CheckOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let mut how = options.load_options();
    let inputs = if options.paths.iter().any(|path| path == Path::new("-")) {
        vec![options.read_stdin(&place, &mut how.overlay)?]
    } else if options.watch {
        return check_watch::run(options, &place);
    } else {
        inputs_of(&options.paths, &place.folder)?
    };
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
    /// What an editor has not saved stands in for the file of that name, with its project around it.
    fn read_stdin(&self, place: &Place, overlay: &mut Overlay) -> Result<Input, CliError> {
        if self.paths.len() > 1 || self.fixing.fix || self.fixing.diff || self.watch {
            let message = "`-` is stdin: it is checked alone and once, and fixes have no file to go to";
            return Err(CliError::Usage(String::from(message)));
        }
        let name = self.stdin_filename.to_string_lossy();
        let Some(text) = read_stream(&name, std::io::stdin())?.into_text() else {
            return Err(CliError::Usage(String::from("stdin is not UTF-8")));
        };
        let path = place.current.join(&self.stdin_filename);
        overlay.set(&path, text);
        Ok(Input::of_file(path))
    }

    pub(super) fn load_options(&self) -> LoadOptions {
        LoadOptions {
            with_scripts: true,
            targets: self.targets.clone(),
            #[cfg(feature = "types")]
            checks_types: self.types,
            raises_denied: true,
            ..LoadOptions::default()
        }
    }
}

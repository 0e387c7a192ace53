//! `deftool check`.

use std::path::{Path, PathBuf};

use super::args::CheckOptions;
use super::fix::{apply, show};
use super::{CliError, Exit, Place, check_watch, inputs_of, locate, report};
use crate::project::{Input, LoadOptions, Overlay, load_with, read_stream};

/// The program that checks the types of scripts.
const TYPE_CHECKER: &str = "deftool-types";

pub(super) fn run(options: &CheckOptions) -> Result<Exit, CliError> {
    let place = locate(options.project.as_deref())?;
    let mut how = options.load_options()?;
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

    /// # Errors
    /// When types are to be checked and there is nothing to do it with.
    pub(super) fn load_options(&self) -> Result<LoadOptions, CliError> {
        Ok(LoadOptions {
            with_scripts: true,
            targets: self.targets.clone(),
            type_checker: if self.types { Some(find_type_checker()?) } else { None },
            raises_denied: true,
            ..LoadOptions::default()
        })
    }
}

/// The program that checks types: beside this one, or in `PATH`.
fn find_type_checker() -> Result<PathBuf, CliError> {
    let name = format!("{TYPE_CHECKER}{}", std::env::consts::EXE_SUFFIX);
    let own = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A folder that is named relative to the current one may be a stranger's.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let found = own.into_iter().chain(folders).map(|folder| folder.join(&name)).find(|file| file.is_file());
    found.ok_or_else(|| {
        CliError::Usage(format!(
            "--types needs the program `{TYPE_CHECKER}`, which is neither beside `deftool` nor in PATH; \
             `cargo install deftool --features types` installs both"
        ))
    })
}

//! `deftool check`: checks specs, scripts and workers.

use std::path::{Path, PathBuf};

use deftool_project::{Input, LoadOptions, Overlay, load_with, read_stream};
use deftool_script::can_analyse_scripts;

use super::args::CheckOptions;
use super::command::{CliError, CommandDirs, Exit, command_dirs, inputs_of, refuse_nothing};
use super::fix::FixRun;
use super::output::eprint_line;
use super::selection::Selection;
use super::{check_watch, online, report};

/// The program that checks the types of scripts.
const TYPE_CHECKER: &str = "deftool-types";

pub(super) fn run(options: &CheckOptions) -> Result<Exit, CliError> {
    let dirs = command_dirs(options.project.as_deref())?;
    let mut load_options = options.load_options()?;
    let selection = Selection::of(&options.selection, &dirs.current)?;
    let inputs = if options.paths.iter().any(|path| path == Path::new("-")) {
        vec![options.read_stdin(&dirs, &mut load_options.overlay)?]
    } else if options.watch {
        return check_watch::run(options, selection, &dirs);
    } else {
        inputs_of(&options.paths, &dirs.project)?
    };
    let fixes = FixRun {
        inputs: &inputs,
        from: &dirs.current,
        selection: &selection,
        with_unsafe: options.fixing.unsafe_fixes,
    };
    if options.fixing.diff {
        return fixes.print_changes(load_options, options.format);
    }
    let (load, all_applied) = if options.fixing.fix {
        fixes.apply_all(load_options)?
    } else {
        let mut load = load_with(&inputs, &dirs.current, &load_options)?;
        if options.online {
            online::check(&mut load, &options.targets)?;
        }
        selection.apply(&mut load);
        (load, true)
    };
    refuse_nothing(&options.paths, &load)?;
    report::print_report(&load, options.format, options.strict);
    if !options.quiet {
        report::eprint_summary(&load, options.format);
        if !can_analyse_scripts() {
            eprint_line(
                "note: the parameters and globals of scripts were not checked: unknown version of Luau bytecode",
            );
        }
    }
    let failed = !all_applied || report::fails(&load, options.strict);
    Ok(if failed && !options.exit_zero { Exit::Failed } else { Exit::Clean })
}

impl CheckOptions {
    /// Reads stdin as the content of `--stdin-filename`, so that an editor can check an unsaved buffer in its project.
    fn read_stdin(&self, dirs: &CommandDirs, overlay: &mut Overlay) -> Result<Input, CliError> {
        if self.paths.len() > 1 || self.fixing.fix || self.fixing.diff || self.watch {
            let message = "`-` (stdin) cannot be combined with other paths, --fix, --diff or --watch";
            return Err(CliError::Usage(String::from(message)));
        }
        let name = self.stdin_filename.to_string_lossy();
        let Some(text) = read_stream(&name, std::io::stdin())?.into_text() else {
            return Err(CliError::Usage(String::from("stdin is not UTF-8")));
        };
        let path = dirs.current.join(&self.stdin_filename);
        overlay.set(&path, text);
        Ok(Input::of_file(path))
    }

    /// Returns the load options.
    ///
    /// # Errors
    /// If `--types` is set and the type checker is not installed.
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

/// Finds the type checker: next to this program, or in `PATH`.
fn find_type_checker() -> Result<PathBuf, CliError> {
    let name = format!("{TYPE_CHECKER}{}", std::env::consts::EXE_SUFFIX);
    let own = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.to_owned()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Ignore relative entries of PATH: the current folder may be untrusted.
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let found = own.into_iter().chain(folders).map(|folder| folder.join(&name)).find(|file| file.is_file());
    found.ok_or_else(|| {
        CliError::Usage(format!(
            "--types requires the program `{TYPE_CHECKER}`, which is neither next to `deftool` nor in PATH; \
             install both with `cargo install deftool --features types`"
        ))
    })
}

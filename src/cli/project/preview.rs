//! Preview features: `--preview NAME`, and `:preview` of the project.

use std::sync::OnceLock;

use deftool_lang::spec::preview_problem;
use deftool_project::Load;

use crate::cli::terminal::output::{clean, eprint_line};

/// The names on the command line.
static NAMED: OnceLock<Vec<String>> = OnceLock::new();

/// Stores the features of `--preview`. One that cannot be enabled is a warning.
pub(in crate::cli) fn enable(names: Vec<String>) {
    for problem in names.iter().filter_map(|name| preview_problem(name)) {
        eprint_line(&format!("warning: --preview: {}; {}", clean(&problem.message), problem.help));
    }
    // Set once, at the start.
    let _ = NAMED.set(names);
}

/// Warns that `what` is a preview, unless the command line or all projects of `load` enable it.
pub(in crate::cli) fn announce(feature: &str, what: &str, load: &Load) {
    let is_named = NAMED.get().is_some_and(|names| names.iter().any(|name| name == feature));
    if !is_named && !load.enables(feature) {
        eprint_line(&format!(
            "warning: {what} is a preview and may change or leave; enable it with `--preview {feature}`, or \
             `(defproject :preview ({feature}))` in a spec file"
        ));
    }
}

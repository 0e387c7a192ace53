//! Whether the programs, environment variables, files and folders in `:allow` exist.

use std::collections::BTreeSet;
use std::path::Path;

use deftool_lang::spec::Permissions;
use deftool_project::{Generation, LoadedTool};
use deftool_script::PathGrant;

use super::line::{Line, list};
use super::permissions::is_writable;
use crate::cli::project::programs::find_program;

pub(super) fn check(generation: &Generation) -> Vec<Line> {
    let root = generation.load.root.clone().unwrap_or_default();
    let required = |list: fn(&Permissions) -> &Vec<String>| -> BTreeSet<String> {
        let tools = generation.tool_names().filter_map(|name| generation.tool(name));
        tools.flat_map(|LoadedTool { tool, .. }| list(&tool.permissions).iter().cloned()).collect()
    };
    let programs = required(|permissions| &permissions.run);
    let variables = required(|permissions| &permissions.env);
    let (read, write) =
        (required(|permissions| &permissions.read), required(|permissions| &permissions.write));
    let why = |name: &String, check: fn(&Path) -> Option<String>| match PathGrant::of_spec(name, &root) {
        Ok(grant) => Some(format!("{name} {}", check(&grant.path)?)),
        Err(why) => Some(format!("{name}: {why}")),
    };
    let unreadable = read.iter().filter_map(|name| why(name, why_unreadable));
    let unwritable = write.iter().filter_map(|name| why(name, why_unwritable));
    let wrong: Vec<String> = unreadable.chain(unwritable).collect();
    [
        check_existence(
            "programs",
            &programs,
            |name| find_program(name, &root).is_some(),
            |missing| {
                (format!("not found in PATH: {missing}"), "install them, or correct the names in `:run`")
            },
        ),
        check_existence(
            "variables",
            &variables,
            |name| std::env::var_os(name).is_some(),
            |missing| (format!("not set: {missing}"), "set them in the environment of deftool"),
        ),
        line("paths", &read.union(&write).cloned().collect(), &wrong, |wrong| {
            (wrong, "create them, or correct the paths in `:read` and `:write`")
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Reports the names that do not exist.
fn check_existence(
    check: &'static str,
    required: &BTreeSet<String>,
    exists: impl Fn(&str) -> bool,
    describe: impl Fn(String) -> (String, &'static str),
) -> Option<Line> {
    let missing: Vec<String> = required.iter().filter(|name| !exists(name)).cloned().collect();
    line(check, required, &missing, describe)
}

/// Reports the problems in `wrong`. Returns `None` if no names are required.
fn line(
    check: &'static str,
    required: &BTreeSet<String>,
    wrong: &[String],
    describe: impl Fn(String) -> (String, &'static str),
) -> Option<Line> {
    if wrong.is_empty() {
        let required: Vec<String> = required.iter().cloned().collect();
        return (!required.is_empty()).then(|| Line::ok(check, format!("found: {}", list(&required))));
    }
    let (message, advice) = describe(list(wrong));
    Some(Line::warning(check, message, advice))
}

/// Returns the reason why a path is not readable.
fn why_unreadable(path: &Path) -> Option<String> {
    let opened = std::fs::metadata(path).and_then(|metadata| {
        if metadata.is_dir() {
            std::fs::read_dir(path).map(drop)
        } else if metadata.is_file() {
            std::fs::File::open(path).map(drop)
        } else {
            // Opening a pipe would block until it has a writer.
            Err(std::io::Error::other("not a regular file or a folder"))
        }
    });
    match opened {
        Ok(()) => None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(String::from("does not exist")),
        Err(error) => Some(format!("cannot be read: {error}")),
    }
}

/// Returns the reason why a path is not writable. A missing path is fine if the script can create it.
fn why_unwritable(path: &Path) -> Option<String> {
    if path.exists() {
        return (!is_writable(path)).then(|| String::from("is not writable"));
    }
    let parent = path.ancestors().skip(1).find(|parent| parent.exists());
    (!parent.is_some_and(is_writable)).then(|| String::from("does not exist and cannot be created"))
}

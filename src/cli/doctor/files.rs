//! Whether what `:allow` names is there: programs, environment variables, files and folders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::permissions::is_writable;
use super::{Line, list};
use crate::project::{Generation, LoadedTool};
use crate::script::PathGrant;
use crate::spec::Permissions;

pub(super) fn check(generation: &Generation) -> Vec<Line> {
    let root = generation.load.root.clone().unwrap_or_default();
    let wanted = |list: fn(&Permissions) -> &Vec<String>| -> BTreeSet<String> {
        let tools = generation.tool_names().filter_map(|name| generation.tool(name));
        tools.flat_map(|LoadedTool { tool, .. }| list(&tool.permissions).iter().cloned()).collect()
    };
    let programs = wanted(|permissions| &permissions.run);
    let variables = wanted(|permissions| &permissions.env);
    let (read, write) = (wanted(|permissions| &permissions.read), wanted(|permissions| &permissions.write));
    let at = |name: &String| PathGrant::new(name, root.join(name)).path;
    let unreadable = read.iter().filter_map(|name| Some(format!("{name} {}", why_unreadable(&at(name))?)));
    let unwritable = write.iter().filter_map(|name| Some(format!("{name} {}", why_unwritable(&at(name))?)));
    let wrong: Vec<String> = unreadable.chain(unwritable).collect();
    [
        missing(
            "programs",
            &programs,
            |name| find_program(name, &root).is_some(),
            |missing| {
                (format!("not found in PATH: {missing}"), "install them, or correct the names in `:run`")
            },
        ),
        missing(
            "variables",
            &variables,
            |name| std::env::var_os(name).is_some(),
            |missing| (format!("not set: {missing}"), "set them where deftool is started"),
        ),
        told("paths", &read.union(&write).cloned().collect(), &wrong, |wrong| {
            (wrong, "make them, or correct the paths in `:read` and `:write`")
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn missing(
    check: &'static str,
    wanted: &BTreeSet<String>,
    is_there: impl Fn(&str) -> bool,
    say: impl Fn(String) -> (String, &'static str),
) -> Option<Line> {
    let missing: Vec<String> = wanted.iter().filter(|name| !is_there(name)).cloned().collect();
    told(check, wanted, &missing, say)
}

/// Nothing where nothing is wanted.
fn told(
    check: &'static str,
    wanted: &BTreeSet<String>,
    wrong: &[String],
    say: impl Fn(String) -> (String, &'static str),
) -> Option<Line> {
    if wrong.is_empty() {
        let wanted: Vec<String> = wanted.iter().cloned().collect();
        return (!wanted.is_empty()).then(|| Line::ok(check, format!("there: {}", list(&wanted))));
    }
    let (message, advice) = say(list(wrong));
    Some(Line::warning(check, message, advice))
}

/// A program, by its path or in PATH.
pub(super) fn find_program(name: &str, root: &Path) -> Option<PathBuf> {
    if Path::new(name).components().count() > 1 {
        return Some(root.join(name)).filter(|path| is_program(path));
    }
    let path = std::env::var_os("PATH")?;
    let names: Vec<String> = if cfg!(windows) {
        [".exe", ".cmd", ".bat", ""].iter().map(|ending| format!("{name}{ending}")).collect()
    } else {
        vec![name.to_owned()]
    };
    let places = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    places
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>())
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    #[cfg(unix)]
    let may_run = rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    #[cfg(not(unix))]
    let may_run = true;
    may_run && path.is_file()
}

fn why_unreadable(path: &Path) -> Option<String> {
    let opened = std::fs::metadata(path).and_then(|metadata| {
        if metadata.is_dir() {
            std::fs::read_dir(path).map(drop)
        } else if metadata.is_file() {
            std::fs::File::open(path).map(drop)
        } else {
            // Opening a pipe would wait for a writer.
            Err(std::io::Error::other("it is neither a file nor a folder"))
        }
    });
    match opened {
        Ok(()) => None,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(String::from("is not there")),
        Err(error) => Some(format!("cannot be read: {error}")),
    }
}

/// What is not there yet may be made by the script, where the folder above takes it.
fn why_unwritable(path: &Path) -> Option<String> {
    if path.exists() {
        return (!is_writable(path)).then(|| String::from("is not writable"));
    }
    let above = path.ancestors().skip(1).find(|above| above.exists());
    (!above.is_some_and(is_writable)).then(|| String::from("is not there and cannot be made"))
}

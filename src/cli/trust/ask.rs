//! Whether a command may run scripts: what they want, what was trusted, and the question where that is less.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::store::{Store, StoreError};
use crate::cli::CliError;
use crate::cli::output::{clean, paint, say, say_error};
use crate::project::{Generation, Grants, LoadedTool, ScriptState, Trust, Wish, wishes};
use crate::text::{count, one_line};

/// Names the project at `root` in the store; `None` where no text can.
pub(super) fn key_of(root: &Path) -> Option<String> {
    let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    root.to_str().map(str::to_owned)
}

/// What one project is trusted with while a command runs.
pub(in crate::cli) struct ProjectTrust {
    root: PathBuf,
    /// `None`: everything, for this run.
    granted: Option<Mutex<Granted>>,
}

struct Granted {
    grants: Arc<Grants>,
    /// The number of a generation whose tools want no more.
    suffices: u64,
}

impl ProjectTrust {
    /// Settles it for a command that may run those tools of `generation` for which `counts` holds: by `--trust`
    /// (`trusts_all`), by what is remembered, or by asking, where somebody is there to answer.
    ///
    /// # Errors
    /// When it is not trusted.
    pub(in crate::cli) fn settle(
        generation: &Generation,
        counts: impl Fn(&LoadedTool) -> bool,
        trusts_all: bool,
    ) -> Result<Self, CliError> {
        let root = generation.load.root.clone().unwrap_or_default();
        if trusts_all {
            return Ok(Self { root, granted: None });
        }
        let can_run = |loaded: &LoadedTool| matches!(loaded.script, ScriptState::Ready(_)) && counts(loaded);
        let wanted = wishes(generation, can_run);
        let mut granted = Grants::default();
        if !wanted.is_empty() {
            let store = Store::of_user();
            granted = remembered(&store, &root);
            let missing: Vec<Wish> = wanted
                .into_iter()
                .map(|wish| Wish { grants: granted.missing(&wish.grants), ..wish })
                .filter(|wish| !wish.grants.is_empty())
                .collect();
            if !missing.is_empty() {
                let given = ask(&root, &missing)?;
                remember(&store, &root, &given);
                granted.add(given);
            }
        }
        let granted = Granted { grants: Arc::new(granted), suffices: 0 };
        Ok(Self { root, granted: Some(Mutex::new(granted)) })
    }

    /// What the scripts of `generation` may use. What was granted elsewhere meanwhile counts, too.
    pub(in crate::cli) fn of(&self, generation: &Generation) -> Trust {
        let Some(granted) = &self.granted else { return Trust::Everything };
        let mut granted = granted.lock().unwrap_or_else(PoisonError::into_inner);
        if granted.suffices != generation.number {
            if !untrusted(generation, |_| true, &granted.grants).is_empty()
                && let (Ok(projects), Some(key)) = (Store::of_user().read(), key_of(&self.root))
                && let Some(more) = projects.get(&key)
            {
                let mut all = Grants::clone(&granted.grants);
                all.add(more.clone());
                granted.grants = Arc::new(all);
            }
            if untrusted(generation, |_| true, &granted.grants).is_empty() {
                granted.suffices = generation.number;
            }
        }
        Trust::Only(Arc::clone(&granted.grants))
    }

    /// What those tools of `generation` for which `counts` holds want and are refused, a line each.
    pub(in crate::cli) fn refused(
        &self,
        generation: &Generation,
        counts: impl Fn(&LoadedTool) -> bool,
    ) -> Vec<String> {
        match self.of(generation) {
            Trust::Everything => Vec::new(),
            Trust::Only(granted) => untrusted(generation, counts, &granted),
        }
    }
}

/// What the tools of `generation` want beyond what is remembered of their project, a line each.
pub(in crate::cli) fn not_remembered(generation: &Generation) -> Vec<String> {
    let root = generation.load.root.clone().unwrap_or_default();
    let wanted = wishes(generation, |_| true);
    if wanted.is_empty() {
        return Vec::new();
    }
    let projects = Store::of_user().read().unwrap_or_default();
    let granted = key_of(&root).and_then(|key| projects.get(&key).cloned()).unwrap_or_default();
    untrusted(generation, |_| true, &granted)
}

fn untrusted(generation: &Generation, counts: impl Fn(&LoadedTool) -> bool, granted: &Grants) -> Vec<String> {
    let missing = |wish: Wish| (wish.tool, granted.missing(&wish.grants));
    let wanted = wishes(generation, counts).into_iter().map(missing);
    wanted
        .filter(|(_, missing)| !missing.is_empty())
        .map(|(tool, missing)| one_line(format!("{tool} wants {missing}")))
        .collect()
}

fn remembered(store: &Store, root: &Path) -> Grants {
    match store.read() {
        Ok(projects) => key_of(root).and_then(|key| projects.get(&key).cloned()).unwrap_or_default(),
        // It will be said when it would have been of use.
        Err(StoreError::NoFolder) => Grants::default(),
        Err(error) => {
            say_error(&error.to_string());
            Grants::default()
        }
    }
}

/// The answer counts for this run, whether it can be kept or not.
fn remember(store: &Store, root: &Path, given: &Grants) {
    let Some(key) = key_of(root) else {
        return say("note: the project's path is no text, so this is not remembered");
    };
    let changed = store.change(|projects| projects.entry(key).or_default().add(given.clone()));
    if let Err(error) = changed {
        say(&format!("note: this is not remembered: {}", clean(&error.to_string())));
    }
}

/// Asks, on a terminal; what was granted.
fn ask(root: &Path, missing: &[Wish]) -> Result<Grants, CliError> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        let wanted: Vec<String> = missing.iter().map(ToString::to_string).collect();
        return Err(CliError::Usage(format!(
            "this project is not trusted with what its tools want: {}; read the specs, then `deftool trust grant` \
             remembers it, and `--trust` allows this run alone",
            wanted.join("; ")
        )));
    }
    let project = one_line(root.to_string_lossy().into_owned());
    let what = count(missing.len(), "tool");
    say(&format!("In {project}, {what} may use more than the project's own files:"));
    for wish in missing {
        say(&format!("  {wish}"));
    }
    let mut err = std::io::stderr().lock();
    let question = paint("Trust the project with this, now and later?", anstyle::AnsiColor::Yellow);
    let _ = write!(anstream::AutoStream::auto(&mut err), "{question} [y/N] ");
    let _ = err.flush();
    drop(err);
    let mut answer = String::new();
    let read = std::io::stdin().lock().take(1024).read_line(&mut answer);
    if read.is_err() || !answer.ends_with('\n') {
        // The next thing that is said begins a line.
        say("");
    }
    if !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Err(CliError::Usage(String::from(
            "the project is not trusted, so nothing was run; `--trust` allows one run",
        )));
    }
    let mut given = Grants::default();
    for wish in missing {
        given.add(wish.grants.clone());
    }
    Ok(given)
}

//! Whether a command may run scripts: what they want, what was trusted, and the question where that is less.

use std::io::{BufRead, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::store::{Store, StoreError};
use crate::cli::CliError;
use crate::cli::output::{clean, paint, say, say_error};
use crate::project::{Generation, Grants, Trust, Wish, follow, wishes};
use crate::text::{count, one_line};
use crate::worker::TrustSource;

/// Names the project at `root`, which is absolute and may be gone, in the store; `None` where no text can.
pub(super) fn key_of(root: &Path) -> Option<String> {
    follow(root).to_str().map(str::to_owned)
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
    /// Settles it for a command that may run the scripts that want `wanted`, of the project at `root`: by `--trust`
    /// (`trusts_all`), by what is remembered, or by asking, where somebody is there to answer.
    ///
    /// # Errors
    /// When it is not trusted.
    pub(in crate::cli) fn settle(root: &Path, wanted: Vec<Wish>, trusts_all: bool) -> Result<Self, CliError> {
        let root = root.to_owned();
        let mut grants = Grants::default();
        if trusts_all {
            // What specs list now: a reload in the middle of the run, which a model's edit may have made, adds nothing.
            for wish in wanted {
                grants.add(wish.grants);
            }
        } else if !wanted.is_empty() {
            let store = Store::of_user();
            grants = remembered(&store, &root);
            let missing = grants.beyond(wanted);
            if !missing.is_empty() {
                let given = ask(&root, &missing)?;
                remember(&store, &root, &given);
                grants.add(given);
            }
        }
        let granted = Granted { grants: Arc::new(grants), suffices: 0 };
        Ok(Self { root, granted: Some(Mutex::new(granted)) })
    }

    /// Settles it by `--trust` (`trusts_all`) or by what is remembered, which [`of`](Self::of) reads; nobody is asked.
    pub(in crate::cli) fn without_asking(root: &Path, trusts_all: bool) -> Self {
        let granted = Granted { grants: Arc::default(), suffices: 0 };
        Self { root: root.to_owned(), granted: (!trusts_all).then(|| Mutex::new(granted)) }
    }

    /// What was settled.
    pub(in crate::cli) fn settled(&self) -> Trust {
        let Some(granted) = &self.granted else { return Trust::Everything };
        Trust::Only(Arc::clone(&granted.lock().unwrap_or_else(PoisonError::into_inner).grants))
    }

    /// What the scripts of `generation` may use. What was granted elsewhere meanwhile counts, too.
    pub(in crate::cli) fn of(&self, generation: &Generation) -> Trust {
        let Some(granted) = &self.granted else { return Trust::Everything };
        let mut granted = granted.lock().unwrap_or_else(PoisonError::into_inner);
        if granted.suffices != generation.number {
            let wanted = wishes(&generation.load, generation.tools());
            if wanted.iter().any(|wish| !granted.grants.covers(&wish.grants))
                && let (Ok(projects), Some(key)) = (Store::of_user().read(), key_of(&self.root))
                && let Some(more) = projects.get(&key)
            {
                let mut all = Grants::clone(&granted.grants);
                all.add(more.clone());
                granted.grants = Arc::new(all);
            }
            if wanted.iter().all(|wish| granted.grants.covers(&wish.grants)) {
                granted.suffices = generation.number;
            }
        }
        Trust::Only(Arc::clone(&granted.grants))
    }
}

impl TrustSource for ProjectTrust {
    fn of(&self, generation: &Generation) -> Trust {
        Self::of(self, generation)
    }
}

/// What of `wanted` is beyond what is remembered of the project of `generation`.
pub(in crate::cli) fn not_remembered(generation: &Generation, wanted: Vec<Wish>) -> Vec<Wish> {
    if wanted.is_empty() {
        return wanted;
    }
    let projects = Store::of_user().read().unwrap_or_default();
    let key = generation.load.root.as_deref().and_then(key_of);
    key.and_then(|key| projects.get(&key).cloned()).unwrap_or_default().beyond(wanted)
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
        return Err(CliError::Usage(format!(
            "this project is not trusted with what it wants: {}; read the specs, then `deftool trust grant` \
             remembers it, and `--trust` allows this run alone",
            Wish::lines(missing).join("; ")
        )));
    }
    let project = one_line(root.to_string_lossy().into_owned());
    say(&format!("More than its own files is wanted in {project}:"));
    for line in Wish::lines(missing) {
        say(&format!("  {line}"));
    }
    let mut given = Grants::default();
    for wish in missing {
        given.add(wish.grants.clone());
    }
    // Below a list that is too long for the screen, so that its length is seen.
    say(&format!("In all {}.", count(given.len(), "permission")));
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
    Ok(given)
}

//! Selects the worker of a project.

use deftool_lang::spec::{WorkerSpec, advice_on_name};
use deftool_project::Load;

/// An error of [`choose_worker`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChooseError {
    /// Unknown worker.
    #[error("unknown worker `{name}`; {advice}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The similar or known workers, as a clause.
        advice: String,
    },
    /// The project has several workers, none of them is the default, and no name was given.
    #[error("the project has several workers ({}); set `:default t` in one, or select one", known.join(", "))]
    Several {
        /// The names of the workers.
        known: Vec<String>,
    },
    /// The spec of the worker has errors.
    #[error("the worker `{name}` has errors; see `deftool check`")]
    Broken {
        /// Its name.
        name: String,
    },
}

/// The worker of a project without workers.
pub const DEFAULT_WORKER: &str = "default";

/// Returns the named worker. Without a name: the one with `:default t`, the one called [`DEFAULT_WORKER`], or the only one.
///
/// # Errors
/// When the worker is unknown or has errors, or when the project has several workers and no name is given.
pub fn choose_worker(load: &Load, name: Option<&str>) -> Result<WorkerSpec, ChooseError> {
    let names = || load.workers.iter().map(|worker| worker.name.value.as_str());
    let chosen = match (name, load.workers.as_slice()) {
        (None | Some(DEFAULT_WORKER), []) => return Ok(WorkerSpec::named(DEFAULT_WORKER)),
        (Some(name), workers) => {
            let found = workers.iter().find(|worker| worker.name.value == name);
            found.ok_or_else(|| ChooseError::Unknown {
                name: name.to_owned(),
                advice: advice_on_name(name, "workers", names()),
            })?
        }
        (None, [only]) => only,
        (None, workers) => default_of(workers)
            .ok_or_else(|| ChooseError::Several { known: names().map(str::to_owned).collect() })?,
    };
    if chosen.valid {
        Ok(chosen.clone())
    } else {
        Err(ChooseError::Broken { name: chosen.name.value.clone() })
    }
}

/// Returns the names of the workers that can be used: those without errors.
pub fn usable_workers(load: &Load) -> impl Iterator<Item = &str> {
    load.workers.iter().filter(|worker| worker.valid).map(|worker| worker.name.value.as_str())
}

/// Returns the worker that is used where none is named.
pub fn default_of(workers: &[WorkerSpec]) -> Option<&WorkerSpec> {
    let is_called_default = |worker: &&WorkerSpec| worker.name.value == DEFAULT_WORKER;
    let marked = workers.iter().find(|worker| worker.is_default);
    marked.or_else(|| workers.iter().find(is_called_default))
}

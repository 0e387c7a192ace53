//! Selects a worker of a project.

use deftool_lang::spec::WorkerSpec;
use deftool_project::Load;

/// An error of [`choose_worker`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// Unknown worker.
    #[error("unknown worker `{name}`; {known}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The known workers, as a clause.
        known: String,
    },
    /// The project has several workers, and no name was given.
    #[error("the project has several workers ({}); select one", known.join(", "))]
    Several {
        /// Their names.
        known: Vec<String>,
    },
    /// The spec of the worker has errors.
    #[error("the worker `{name}` has errors; see `deftool check`")]
    Broken {
        /// Its name.
        name: String,
    },
}

/// Returns the named worker, the only one, or the implicit worker `default`.
///
/// # Errors
/// When the worker is unknown or has errors, or when the project has several workers and no name is given.
pub fn choose_worker(load: &Load, name: Option<&str>) -> Result<WorkerSpec, ChooseError> {
    let known = || load.workers.iter().map(|worker| worker.name.value.clone()).collect::<Vec<_>>();
    let chosen = match (name, load.workers.as_slice()) {
        (Some(name), workers) => {
            let found = workers.iter().find(|worker| worker.name.value == name);
            found.ok_or_else(|| ChooseError::Unknown {
                name: name.to_owned(),
                known: if workers.is_empty() {
                    String::from("the project has no workers")
                } else {
                    format!("known workers: {}", known().join(", "))
                },
            })?
        }
        (None, []) => return Ok(WorkerSpec::named("default")),
        (None, [only]) => only,
        (None, _) => return Err(ChooseError::Several { known: known() }),
    };
    if chosen.valid {
        Ok(chosen.clone())
    } else {
        Err(ChooseError::Broken { name: chosen.name.value.clone() })
    }
}

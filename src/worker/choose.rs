//! Which of a project's workers is meant.

use crate::project::Load;
use crate::spec::WorkerSpec;

/// No worker can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChooseError {
    /// None is called that.
    #[error("no worker called `{name}`; {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Which there are, in a clause.
        known: String,
    },
    /// There are several, and none was named.
    #[error("the project has several workers ({}); choose one", known.join(", "))]
    Several {
        /// Their names.
        known: Vec<String>,
    },
    /// Its spec has errors.
    #[error("the worker `{name}` has errors; see `deftool check`")]
    Broken {
        /// Its name.
        name: String,
    },
}

/// The worker that is named, the only one, or the implicit one, `default`.
///
/// # Errors
/// When there is no such worker, or several and no name, or it has errors.
pub fn choose_worker(load: &Load, name: Option<&str>) -> Result<WorkerSpec, ChooseError> {
    let known = || load.workers.iter().map(|worker| worker.name.value.clone()).collect::<Vec<_>>();
    let chosen = match (name, load.workers.as_slice()) {
        (Some(name), workers) => {
            let found = workers.iter().find(|worker| worker.name.value == name);
            found.ok_or_else(|| ChooseError::Unknown {
                name: name.to_owned(),
                known: if workers.is_empty() {
                    String::from("the project has none")
                } else {
                    format!("there are: {}", known().join(", "))
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

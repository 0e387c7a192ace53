//! The trust of the user in projects.
//!
//! Scripts have the permissions in the project's own specs. A project that requires more than read access to its own
//! files must be trusted once. The store ([`store`]) maps project paths to permissions. Scripts may change later, but a new
//! permission requires a new confirmation.

mod store;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use deftool_project::{
    Generation, PermissionRequest, PermissionSet, Trust, permission_requests, resolve_links,
};
use deftool_worker::TrustSource;

pub use store::{Projects, Store, StoreError};

/// Returns the store key of the project at `root`, which must be an absolute path. Returns `None` if the path is not
/// valid UTF-8.
pub fn store_key(root: &Path) -> Option<String> {
    resolve_links(root).to_str().map(str::to_owned)
}

/// Returns the stored permissions of the project at `root`.
pub fn stored_trust(root: &Path) -> PermissionSet {
    let projects = Store::of_user().read().unwrap_or_default();
    store_key(root).and_then(|key| projects.get(&key).cloned()).unwrap_or_default()
}

/// The trusted permissions of one project while a program runs.
#[derive(Debug)]
pub struct ProjectTrust {
    root: PathBuf,
    /// `None`: all permissions, for this run.
    granted: Option<Mutex<Granted>>,
}

#[derive(Debug)]
struct Granted {
    grants: Arc<PermissionSet>,
    /// The number of the latest generation whose tools require only `grants`.
    checked_generation: u64,
}

impl ProjectTrust {
    /// Trusts the project at `root` with `grants`, and with what the user stores for it while the program runs.
    pub fn with(root: &Path, grants: PermissionSet) -> Self {
        let granted = Granted { grants: Arc::new(grants), checked_generation: 0 };
        Self { root: root.to_owned(), granted: Some(Mutex::new(granted)) }
    }

    /// Trusts the project with what the user has stored, or with everything (`trusts_all`).
    pub fn stored(root: &Path, trusts_all: bool) -> Self {
        if trusts_all {
            return Self { root: root.to_owned(), granted: None };
        }
        Self::with(root, stored_trust(root))
    }

    /// Returns whether [`of`](TrustSource::of) found no permission missing for `generation`.
    pub fn is_complete(&self, generation: &Generation) -> bool {
        let checked = |granted: &Mutex<Granted>| {
            granted.lock().unwrap_or_else(PoisonError::into_inner).checked_generation
        };
        self.granted.as_ref().is_none_or(|granted| checked(granted) == generation.number)
    }
}

impl TrustSource for ProjectTrust {
    /// Returns the trust for the scripts of `generation`. Includes permissions that were stored in the meantime.
    fn of(&self, generation: &Generation) -> Trust {
        let Some(granted) = &self.granted else { return Trust::Everything };
        let mut granted = granted.lock().unwrap_or_else(PoisonError::into_inner);
        if granted.checked_generation != generation.number {
            let wanted = permission_requests(&generation.load, generation.tools());
            if wanted.iter().any(|request| !granted.grants.covers(&request.grants)) {
                let mut all = PermissionSet::clone(&granted.grants);
                all.add(stored_trust(&self.root));
                granted.grants = Arc::new(all);
            }
            if wanted.iter().all(|request| granted.grants.covers(&request.grants)) {
                granted.checked_generation = generation.number;
            }
        }
        Trust::Only(Arc::clone(&granted.grants))
    }
}

/// Describes on one line the tools that are not available, and the permissions that they lack.
pub fn untrusted(missing: &[PermissionRequest]) -> String {
    let lines = PermissionRequest::lines(missing).join("; ");
    format!("not trusted, so not available: {lines}; see `{}`", command_of(missing))
}

/// Returns the command that grants the missing permissions, or those of the project if both lack some.
pub fn command_of(missing: &[PermissionRequest]) -> &'static str {
    let of_project = missing.iter().find(|request| !request.is_of_user());
    of_project.or(missing.first()).map_or("deftool trust grant", |request| request.grants.grant_command())
}

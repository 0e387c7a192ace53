//! The trust of the user in projects.
//!
//! Scripts have the permissions in the project's own specs. A project that requires more than read access to its own
//! files must be trusted once ([`prompt`]). The store ([`store`]) maps project paths to permissions. Scripts may change
//! later, but a new permission requires a new confirmation.

mod prompt;
mod state;
mod store;

pub(in crate::cli) use deftool_worker::{
    bios_permission_request, bios_permission_requests, endpoint_permission_request,
    endpoint_permission_requests, server_permission_request, server_permission_requests,
};
pub(in crate::cli) use prompt::{
    ProjectTrust, missing_permissions, report_untrusted, store_key, stored_trust, untrusted,
};
pub(in crate::cli) use state::state_folder;
pub(in crate::cli) use store::{Projects, Store, StoreError};

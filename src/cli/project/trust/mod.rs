//! The trust of the user in projects: what is stored ([`deftool_engine::ProjectTrust`]), `--trust`, or a prompt.

mod prompt;

pub(in crate::cli) use deftool_engine::{Projects, Store, StoreError, state_folder, store_key, stored_trust};
pub(in crate::cli) use deftool_worker::{
    bios_permission_request, bios_permission_requests, endpoint_permission_request,
    endpoint_permission_requests, server_permission_request, server_permission_requests,
};
pub(in crate::cli) use prompt::{missing_permissions, report_untrusted, resolve, resolve_partly};

//! The permissions that a project's scripts require beyond reading the project, as a set that can be compared.
//!
//! The set is shown in confirmation prompts, stored, and checked on every call ([`Trust`]). It is therefore normalized.
//! Hosts are lower-case and in punycode. Paths are resolved through links, and relative if they are inside the project.
//! So `out`, `out/` and `./out` are equal, and a granted folder that was replaced by a link no longer matches. A path
//! covers everything below it, a limit covers every lower limit, and any other value covers only itself.

mod request;
mod set;

use std::sync::Arc;

use deftool_lang::tool::{ToolError, ToolErrorKind};
use deftool_script::Script;

use crate::model::{Load, LoadedTool};
use request::required;

pub use request::{PermissionRequest, mcp_permission_request, permission_requests, quote, quote_words};
pub use set::PermissionSet;

/// The permissions in specs that the user trusts.
#[derive(Debug, Clone)]
pub enum Trust {
    /// All permissions.
    Everything,
    /// Reading the project, and these permissions.
    Only(Arc<PermissionSet>),
}

impl Trust {
    /// Checks whether a call of `script` is allowed.
    ///
    /// # Errors
    /// If the script requires a permission that is not trusted.
    pub fn allow(&self, script: &Script) -> Result<(), ToolError> {
        self.allow_set(&script.tool, || PermissionSet::of_script(script))
    }

    /// Checks whether a call of `loaded` is allowed. `load`: its load.
    ///
    /// # Errors
    /// If it requires a permission that is not trusted.
    pub fn allow_tool(&self, load: &Load, loaded: &LoadedTool) -> Result<(), ToolError> {
        self.allow_set(&loaded.tool.name.value, || required(load, loaded))
    }

    fn allow_set(&self, tool: &str, required: impl FnOnce() -> PermissionSet) -> Result<(), ToolError> {
        let Self::Only(granted) = self else { return Ok(()) };
        let missing = granted.missing(&required());
        if missing.is_empty() {
            return Ok(());
        }
        let command = missing.grant_command();
        let message = format!(
            "`{tool}` was not run: it requires {missing}, which is not trusted; review the spec, then run `{command}`"
        );
        Err(ToolError::new(ToolErrorKind::Permission, message))
    }

    /// Returns the parts of the requests that are not trusted.
    pub fn refused(&self, requests: Vec<PermissionRequest>) -> Vec<PermissionRequest> {
        match self {
            Self::Everything => Vec::new(),
            Self::Only(granted) => granted.missing_requests(requests),
        }
    }
}

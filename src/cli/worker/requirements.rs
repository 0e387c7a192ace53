//! What a worker uses, and the permissions for it.

use std::collections::HashSet;
use std::path::Path;

use deftool_lang::spec::{ToolKind, WorkerSpec};
use deftool_project::{Generation, PermissionRequest, PermissionSet, Trust, permission_requests};

use super::servers::Servers;
use crate::cli::project::trust::bios_permission_request;

/// What a worker of a project uses, and the permissions for it.
pub(in crate::cli) struct Requirements {
    /// The MCP servers whose tools it uses.
    pub(in crate::cli) servers: Servers,
    /// The permissions of its own settings. Without them, it does not start.
    pub(in crate::cli) own: Vec<PermissionRequest>,
    /// The permissions of its tools and MCP servers.
    of_tools: Vec<PermissionRequest>,
    /// The number of its tools that can be run, and of its MCP servers.
    uses: usize,
    /// Whether the worker is one of the user, whose MCP servers need no trust.
    is_user: bool,
    /// The names of the tools that are left out.
    pub(in crate::cli) left_out: HashSet<String>,
}

impl Requirements {
    /// Returns the requirements of a worker of the project at `root`, without its server and its key. A worker of the user's
    /// own project (`is_user`) requires only what its tools change in the current project or folder.
    pub(in crate::cli) fn of(
        (root, is_user): (&Path, bool),
        generation: &Generation,
        spec: &WorkerSpec,
    ) -> Self {
        let offered = generation.tool_set(spec);
        let tools: Vec<_> = offered.iter().filter_map(|entry| generation.tool(&entry.name)).collect();
        let servers = Servers::of_worker(&generation.load, spec, root);
        let run = tools.iter().filter(|loaded| loaded.tool.kind == ToolKind::Normal);
        let uses = run.count() + servers.count();
        let mut of_tools = permission_requests(&generation.load, tools);
        let mut own = Vec::new();
        if !is_user {
            of_tools.extend(servers.permission_requests(&generation.load));
            own.extend(bios_permission_request(&generation.load, spec));
        }
        Self { servers, own, of_tools, uses, is_user, left_out: HashSet::new() }
    }

    /// Drops the permissions of tools and MCP servers.
    pub(in crate::cli) fn run_no_tools(&mut self) {
        self.of_tools.clear();
    }

    /// Returns all permissions.
    pub(in crate::cli) fn all(&self) -> Vec<PermissionRequest> {
        [self.own.as_slice(), &self.of_tools].concat()
    }

    /// Returns whether the worker can start with `granted`, and can then run a tool.
    pub(in crate::cli) fn are_enough(&self, granted: &PermissionSet) -> bool {
        granted.missing_requests(self.own.clone()).is_empty()
            && granted.missing_requests(self.of_tools.clone()).len() < self.uses
    }

    /// Leaves out the tools and MCP servers that require more than `trust`. Returns what they lack.
    pub(in crate::cli) fn leave_out(
        &mut self,
        generation: &Generation,
        trust: &Trust,
    ) -> Vec<PermissionRequest> {
        let missing = trust.refused(self.of_tools.clone());
        self.left_out = missing.iter().map(|request| request.tool.clone()).collect();
        if !self.is_user {
            self.servers.leave_out(&generation.load, trust);
        }
        missing
    }
}

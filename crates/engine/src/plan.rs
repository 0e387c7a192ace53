//! What a worker of a project uses and requires, and the worker without what is not trusted.

use std::path::PathBuf;
use std::sync::Arc;

use deftool_lang::spec::{DIALECTS_PREVIEW, OnFailure, ToolKind, WorkerSpec};
use deftool_project::{Generation, LiveProject, PermissionRequest, Trust, permission_requests};
use deftool_script::ScriptRunner;
use deftool_worker::{ProjectTools, TrustSource, WorkerConfig, api_of, bios_permission_request};

use crate::project::WorkerProject;
use crate::roots::user_dialects;
use crate::secrets::secrets;
use crate::servers::Servers;
use crate::{Connection, Notices, OpenError, telemetry};

/// What a worker of a project uses, and the permissions for it.
pub struct Plan {
    project: Arc<LiveProject>,
    root: PathBuf,
    is_user: bool,
    generation: Arc<Generation>,
    spec: WorkerSpec,
    servers: Servers,
    /// The permissions for its settings. Without them, it does not start.
    own: Vec<PermissionRequest>,
    /// The permissions for its model server and its key. Without them, it does not start.
    of_server: Vec<PermissionRequest>,
    /// The permissions of its tools and MCP servers.
    of_tools: Vec<PermissionRequest>,
    /// The number of its tools that can be run, and of its MCP servers.
    uses: usize,
}

impl WorkerProject {
    /// Returns what the worker `spec` of the project requires. A worker of the user's own project requires only what its
    /// tools change in the current project or folder.
    pub fn plan(&self, mut spec: WorkerSpec, connection: &Connection) -> Plan {
        spec.api = Some(api_of(&spec, connection.endpoint.as_deref()));
        let Self { root, project, is_user, .. } = self;
        let generation = project.current();
        let load = &generation.load;
        let offered = generation.tool_set(&spec);
        let tools: Vec<_> = offered.iter().filter_map(|entry| generation.tool(&entry.name)).collect();
        let servers = Servers::of_worker(load, &spec, root);
        let run = tools.iter().filter(|loaded| loaded.tool.kind == ToolKind::Normal);
        let uses = run.count() + servers.count();
        let mut of_tools = permission_requests(load, tools);
        let (mut own, mut of_server) = (Vec::new(), Vec::new());
        if !is_user {
            of_tools.extend(servers.permission_requests(load));
            own.extend(bios_permission_request(load, &spec));
            of_server = connection.permission_requests(load, &spec);
        }
        let (project, root, is_user) = (Arc::clone(project), root.clone(), *is_user);
        Plan { project, root, is_user, generation, spec, servers, own, of_server, of_tools, uses }
    }
}

impl Plan {
    /// Drops the permissions of tools and MCP servers: none of them is used.
    pub fn omit_tools(&mut self) {
        self.of_tools.clear();
    }

    /// Drops the permissions for the model server, and returns them.
    pub fn omit_server(&mut self) -> Vec<PermissionRequest> {
        std::mem::take(&mut self.of_server)
    }

    /// Returns all permissions.
    pub fn permissions(&self) -> Vec<PermissionRequest> {
        [&*self.own, &*self.of_server, &*self.of_tools].concat()
    }

    /// Returns whether the worker can start with `trust`, and can then run a tool, if it has any.
    pub fn is_enough(&self, trust: &Trust) -> bool {
        let missing = trust.refused(self.of_tools.clone());
        trust.refused([&*self.own, &*self.of_server].concat()).is_empty()
            && (missing.is_empty() || missing.len() < self.uses)
    }

    /// Returns the worker without the tools and MCP servers that require more than `trust`.
    ///
    /// # Errors
    /// If the trust is not enough, or if the BIOS of the worker cannot be read.
    pub fn prepare(
        self,
        trust: Box<dyn TrustSource>,
        scripts: Arc<ScriptRunner>,
    ) -> Result<PreparedWorker, OpenError> {
        let now = trust.of(&self.generation);
        if !self.is_enough(&now) {
            return Err(OpenError::NotTrusted { missing: now.refused(self.permissions()) });
        }
        let Self { project, root, is_user, generation, spec, mut servers, of_tools, .. } = self;
        let untrusted = now.refused(of_tools);
        if !is_user {
            servers.leave_out(&generation.load, &now);
        }
        let left_out = untrusted.iter().map(|request| request.tool.clone()).collect();
        let tools = ProjectTools::new(project, spec.clone(), trust, scripts).without_untrusted(left_out);
        let own = &generation.load.dialects;
        let of_user = if is_user { own.clone() } else { user_dialects() };
        let config = WorkerConfig::of_project(&root, &spec, own, &of_user).map_err(OpenError::Unusable)?;
        let load = &generation.load;
        let suggests_rows = !load.checked.is_empty() && load.enables(DIALECTS_PREVIEW);
        let config = WorkerConfig { suggests_rows, ..config };
        Ok(PreparedWorker { spec, root, tools: Arc::new(tools), config, servers, untrusted })
    }
}

/// A worker of the project that has the permissions of its tools.
pub struct PreparedWorker {
    /// Its spec.
    pub spec: WorkerSpec,
    /// The folder of its project.
    pub root: PathBuf,
    /// The tools of the project.
    pub tools: Arc<ProjectTools>,
    /// Its configuration, without what its server is able to do.
    pub config: WorkerConfig,
    /// The MCP servers whose tools it uses.
    pub servers: Servers,
    /// What the tools and MCP servers lack that are left out.
    pub untrusted: Vec<PermissionRequest>,
}

impl PreparedWorker {
    /// Exports the requests, without the secrets of the project, if the environment names a collector.
    #[must_use]
    pub fn observed(mut self, connection: &Connection, notices: &Notices) -> Self {
        let (spec, generation) = (&self.spec, self.tools.project().current());
        self.config.observer = telemetry::observer(notices, || {
            (connection.key_of(spec), secrets(&[], &generation).unwrap_or_default())
        });
        self
    }

    /// Reports errors to the model where the spec does not set what happens to them. For conversations: a person sees
    /// the errors and can stop the model.
    #[must_use]
    pub fn reporting_errors(mut self) -> Self {
        let run = &mut self.config.run;
        run.on_invalid_arguments = self.spec.on_invalid_arguments.unwrap_or(OnFailure::Report);
        run.on_tool_error = self.spec.on_tool_error.unwrap_or(OnFailure::Report);
        self
    }
}

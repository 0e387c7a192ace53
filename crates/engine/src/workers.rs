//! Workers that are opened by programs and clients, which cannot be asked for trust.

use std::path::Path;
use std::sync::Arc;

use deftool_lang::spec::WorkerSpec;
use deftool_lang::text::readable;
use deftool_mcp::RemoteTools;
use deftool_project::PermissionRequest;
use deftool_script::ScriptRunner;
use deftool_worker::{ToolSource, TrustSource, Worker, WorkerConfig};

use crate::connection::ready_or_stopped;
use crate::plan::PreparedWorker;
use crate::servers::{AddedServer, join};
use crate::trust::{ProjectTrust, untrusted};
use crate::{Connection, Notices, OpenError, WorkerProject};

/// Maximum number of requests that wait for a slot of a worker.
const MAX_QUEUE: usize = 64;

/// Opens the workers of a project with the stored trust of the user.
pub struct ProjectWorkers {
    /// The project.
    pub project: WorkerProject,
    /// What the caller sets for the model server.
    pub connection: Connection,
    /// Runs the scripts of the tools.
    pub scripts: Arc<ScriptRunner>,
    /// Whether everything is trusted, for this run.
    pub trusts_all: bool,
    /// Whether a person sees the replies: errors are reported to the model where the spec does not set it, and tools
    /// that are not trusted are left out.
    pub is_conversation: bool,
    /// Receives what is left out.
    pub notices: Notices,
}

/// A worker with the connections of its tools.
pub struct OpenedWorker {
    /// The worker.
    pub worker: Worker,
    /// Its tools.
    pub tools: Arc<dyn ToolSource>,
    /// The MCP servers of its tools.
    pub remote: Option<Arc<RemoteTools>>,
    /// The MCP servers and tools that cannot be used, one clause each.
    pub left_out: Vec<String>,
}

impl ProjectWorkers {
    /// Connects a worker to its server, after `adjust`. `added`: MCP servers of the client, and the folder in which they run.
    ///
    /// # Errors
    /// If a required permission is not trusted, or if a server cannot be used.
    pub async fn open(
        &self,
        spec: WorkerSpec,
        (added, folder): (Vec<AddedServer>, &Path),
        adjust: impl FnOnce(&mut PreparedWorker),
    ) -> Result<OpenedWorker, OpenError> {
        let Self { project, connection, notices, .. } = self;
        let plan = project.plan(spec, connection);
        let trust = ProjectTrust::stored(&project.folder, self.trusts_all);
        let missing = trust.of(&project.project.current()).refused(plan.permissions());
        // A project without trust is an error for a program, and a tool of the user that may not change the folder is not.
        if !self.is_conversation && !missing.iter().all(PermissionRequest::is_of_user) {
            return Err(OpenError::NotTrusted { missing });
        }
        let mut prepared =
            plan.prepare(Box::new(trust), Arc::clone(&self.scripts))?.observed(connection, notices);
        if self.is_conversation {
            prepared = prepared.reporting_errors();
        }
        adjust(&mut prepared);
        let PreparedWorker { spec, root, tools, config, mut servers, untrusted: missing } = prepared;
        servers.add(added, folder.to_owned());
        let remote = servers.connect(notices).await?;
        let unusable = remote.iter().flat_map(|remote| remote.left_out());
        let mut left_out: Vec<String> = unusable.map(|error| readable(&error.to_string())).collect();
        for server in &left_out {
            notices.send(&format!("warning: {server}; its tools are left out"));
        }
        if !missing.is_empty() {
            let missing = untrusted(&missing);
            notices.send(&missing);
            left_out.push(missing);
        }
        let tools = join(tools, remote.as_ref());
        let config = WorkerConfig { queue: MAX_QUEUE, ..config };
        let worker = connection.connect((&spec, &root), config, Arc::clone(&tools), true).await?;
        let worker = if connection.starts_server(&spec) {
            ready_or_stopped(worker, async |worker| worker.ready().await).await?
        } else {
            worker
        };
        Ok(OpenedWorker { worker, tools, remote, left_out })
    }
}

/// Closes the connections of the tools of a worker that has ended.
pub async fn close_remote(remote: Option<Arc<RemoteTools>>) {
    if let Some(remote) = remote {
        remote.close().await;
    }
}

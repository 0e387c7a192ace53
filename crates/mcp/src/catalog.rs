//! The tools that a server offers.

use std::path::Path;
use std::sync::Arc;

use deftool_lang::schema::ToolEntry;
use deftool_lang::spec::Permissions;
use deftool_lang::tool::ToolRunner;
use rmcp::model::Tool;
use serde_json::Value;

/// One offered tool.
pub struct CatalogTool {
    pub(crate) listed: Tool,
    pub(crate) entry: Arc<ToolEntry>,
}

impl CatalogTool {
    /// Creates a tool. `definition` is its element of `tools/list`, as compiled for the target `mcp`.
    ///
    /// # Errors
    /// If `definition` is not such an element.
    pub fn new(definition: Value, entry: Arc<ToolEntry>) -> Result<Self, serde_json::Error> {
        Ok(Self { listed: serde_json::from_value(definition)?, entry })
    }

    /// Adds the hints that follow from the permissions of a sandboxed script. Without hosts and programs, it does not
    /// access external systems. If it also has no writable folders, it is not destructive.
    #[must_use]
    pub fn with_hints(mut self, permissions: &Permissions) -> Self {
        let Permissions { net, read: _, write, run, env: _ } = permissions;
        if net.is_empty() && run.is_empty() {
            let hints = self.listed.annotations.get_or_insert_default();
            hints.open_world_hint = Some(false);
            hints.destructive_hint = write.is_empty().then_some(false);
        }
        self
    }
}

/// The tools that are offered at one time, and the runner of their calls.
///
/// Tools are emitted on request, so that a change costs what it changes.
pub trait Catalog: ToolRunner {
    /// Returns the names of the tools, in the order in which they are listed.
    fn names(&self) -> Vec<&str>;

    /// Returns the tool called `name`, if it is offered.
    fn tool(&self, name: &str) -> Option<Arc<CatalogTool>>;
}

/// A source of tools that may change.
pub trait CatalogSource: Send + Sync {
    /// Returns the current tools. Called for each request; must be fast.
    fn current(&self) -> Arc<dyn Catalog>;

    /// Returns a source whose tools work in `folder`, the first root of the client. `None`: this source does.
    fn in_folder(&self, folder: &Path) -> Option<Arc<dyn CatalogSource>> {
        let _ = folder;
        None
    }
}

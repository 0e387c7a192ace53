//! The tools that a server offers.

use std::collections::BTreeMap;
use std::sync::Arc;

use deftool_lang::schema::ToolEntry;
use deftool_lang::spec::Permissions;
use deftool_lang::tool::ToolRunner;
use rmcp::model::Tool;
use serde_json::Value;

/// One offered tool.
#[derive(Clone)]
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
#[derive(Clone)]
pub struct Catalog {
    pub(crate) tools: Arc<BTreeMap<String, CatalogTool>>,
    pub(crate) runner: Arc<dyn ToolRunner>,
}

impl Catalog {
    /// Creates a catalog. Its tools are listed in the order of their names.
    pub fn new(tools: impl IntoIterator<Item = CatalogTool>, runner: Arc<dyn ToolRunner>) -> Self {
        let tools = tools.into_iter().map(|tool| (tool.entry.name.clone(), tool));
        Self { tools: Arc::new(tools.collect()), runner }
    }
}

/// A source of tools that may change.
pub trait CatalogSource: Send + Sync {
    /// Returns the current tools. Called for each request; must be fast.
    fn current(&self) -> Catalog;
}

impl CatalogSource for Catalog {
    fn current(&self) -> Catalog {
        self.clone()
    }
}

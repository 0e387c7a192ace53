//! Tools that the program implements, in addition to those of the project.

use std::collections::BTreeMap;
use std::sync::Arc;

use deftool_lang::diagnostic::Severity;
use deftool_lang::schema::{Arguments, ToolEntry, ToolSet, compile_tool};
use deftool_lang::spec::{FileKind, ToolKind, lower};
use deftool_lang::syntax::parse;
use deftool_lang::text::Sources;
use deftool_lang::tool::{
    CallContext, ToolCall, ToolError, ToolErrorKind, ToolOutput, ToolRunner, Toolbox, check_result,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

type Run = dyn Fn(Arguments) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync;

/// A tool that the program implements.
///
/// ```
/// use deftool_lang::tool::{ToolError, ToolErrorKind};
/// use deftool_worker::OwnTool;
/// use serde_json::json;
///
/// let tool = OwnTool::new(
///     r#"(deftool :name "stock" :description "Return the stock of an article."
///         :args ((:name "article" :type string :description "Its number.")))"#,
///     |arguments| async move {
///         match arguments["article"].as_str() {
///             Some("A-1") => Ok(json!({"stock": 12})),
///             _ => Err(ToolError::new(ToolErrorKind::Failure, "unknown article")),
///         }
///     },
/// );
/// assert!(tool.is_ok());
/// ```
#[derive(Clone)]
pub struct OwnTool {
    entry: Arc<ToolEntry>,
    run: Arc<Run>,
}

impl std::fmt::Debug for OwnTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnTool").field("name", &self.entry.name).finish_non_exhaustive()
    }
}

/// The spec of an [`OwnTool`] is invalid.
#[derive(Debug, thiserror::Error)]
#[error("invalid spec of a tool: {0}")]
pub struct InvalidSpec(String);

impl OwnTool {
    /// Creates a tool with a spec, one `(deftool …)` form, and the function that runs it. The function receives
    /// arguments that match the spec. A canceled call drops its future.
    ///
    /// # Errors
    /// If the spec is not exactly one normal tool, or has errors.
    pub fn new<F, R>(spec: &str, run: F) -> Result<Self, InvalidSpec>
    where
        F: Fn(Arguments) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let source = Sources::new().id_ahead(0);
        let (tree, mut findings) = parse(source, spec);
        let (definitions, more) = lower(source, spec, &tree, FileKind::Specs);
        findings.extend(more);
        if let Some(error) = findings.iter().find(|finding| finding.severity == Severity::Error) {
            return Err(InvalidSpec(error.message.clone()));
        }
        match definitions.tools.as_slice() {
            [tool] if tool.kind == ToolKind::Normal && tool.valid => Ok(Self {
                entry: Arc::new(compile_tool(tool)),
                run: Arc::new(move |arguments| run(arguments).boxed()),
            }),
            _ => Err(InvalidSpec(String::from("expected one `(deftool …)` form"))),
        }
    }
}

/// Returns a source of the program's own tools, sorted by name.
pub fn own_tools(tools: Vec<OwnTool>) -> Toolbox {
    let tools: BTreeMap<_, _> = tools.into_iter().map(|tool| (tool.entry.name.clone(), tool)).collect();
    let entries = tools.values().map(|tool| Arc::clone(&tool.entry));
    Toolbox { generation: 0, tools: ToolSet::new(entries), runner: Arc::new(OwnRunner(tools)) }
}

struct OwnRunner(BTreeMap<String, OwnTool>);

impl ToolRunner for OwnRunner {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        let Some(tool) = self.0.get(&call.name) else {
            let message = format!("unknown tool `{}`", call.name);
            return std::future::ready(Err(ToolError::new(ToolErrorKind::UnknownTool, message))).boxed();
        };
        let ended = (tool.run)(call.arguments);
        let ended = async { check_result(&tool.entry, ended.await?.into()) }.boxed();
        let Some(limit) = context.timeout.or(tool.entry.timeout) else { return ended };
        let late = move |_| {
            let message = format!("`{}` did not end within {limit:?}", call.name);
            Err(ToolError::new(ToolErrorKind::Timeout, message))
        };
        async move { tokio::time::timeout(limit, ended).await.unwrap_or_else(late) }.boxed()
    }
}

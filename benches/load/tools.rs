//! A toolbox with one script.

use std::sync::Arc;

use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use deftool_lang::tool::{CallContext, ToolCall, ToolError, ToolOutput, ToolRunner};
use deftool_script::{Parameter, RunnerOptions, Script, ScriptRunner};
use deftool_worker::Toolbox;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

/// Runs one script.
struct OneScript(ScriptRunner, Arc<Script>);

impl ToolRunner for OneScript {
    fn run(&self, call: ToolCall, context: CallContext) -> BoxFuture<'_, Result<ToolOutput, ToolError>> {
        self.0.call(Arc::clone(&self.1), call, context).boxed()
    }
}

pub(crate) fn toolbox() -> Arc<Toolbox> {
    let source = "return function(location) return { letters = #location, temperature = 21 } end";
    let mut script = Script::new("get_weather", "scripts/get_weather.lua", source);
    script.parameters = vec![Parameter::new("location")];
    let parameters = json!({
        "type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"],
        "additionalProperties": false
    });
    let function = json!({"name": "get_weather", "description": "The weather.", "parameters": parameters});
    let definition = json!({"type": "function", "function": function});
    let entry = ToolEntry::new(ToolKind::Normal, definition, None).unwrap();
    let runner = OneScript(ScriptRunner::new(RunnerOptions::default()), Arc::new(script));
    Arc::new(Toolbox { generation: 1, tools: ToolSet::new([Arc::new(entry)]), runner: Arc::new(runner) })
}

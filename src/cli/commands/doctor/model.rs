//! The model of a worker: whether the server has it, whether its chat template supports tools, and whether the worker's
//! tools fit its context.

use deftool_chat::Dialect;
use deftool_lang::spec::WorkerSpec;
use deftool_lang::text::count;
use deftool_project::Generation;
use deftool_worker::{Examination, Model};

use super::line::{Line, list};

/// Estimate for English and JSON; no tokenizer is used.
const BYTES_PER_TOKEN: usize = 4;

pub(super) fn check(
    worker: &WorkerSpec,
    named: Option<&String>,
    models: &[Model],
    found: &Examination,
    generation: Option<&Generation>,
) -> Vec<Line> {
    let of = format!("of worker `{}`", worker.name.value);
    let chosen = match named {
        Some(name) => models.iter().find(|model| model.id == *name),
        None => models.first(),
    };
    let mut lines =
        vec![model_line(named, models, found.found.server.dialect == Dialect::named("llama-cpp"), &of)];
    let server = found.found.server;
    if server.tools == Some(false) {
        let message = "the model's chat template does not support tools, so the model may never call one";
        lines.push(Line::warning(
            "template",
            message,
            "use a model that supports tool calls, or set another chat template in the server",
        ));
    } else if server.tools == Some(true) {
        lines.push(Line::ok("template", "supports tools"));
    }
    let context =
        server.context.or_else(|| chosen.and_then(|model| model.context)).filter(|context| *context > 0);
    lines.extend(context.map(|context| context_line(worker, context, generation, &of)));
    lines
}

fn model_line(named: Option<&String>, models: &[Model], takes_any: bool, of: &str) -> Line {
    let available: Vec<String> = models.iter().map(|model| model.id.clone()).collect();
    match (named, models) {
        (None, []) => {
            Line::warning("model", "the server has no model", "load or pull one, or use --model NAME")
        }
        (None, [only]) => Line::ok("model", format!("`{}`, the server's only model ({of})", only.id)),
        (None, [first, ..]) => {
            let message =
                format!("no model configured; using the first of {}: `{}` ({of})", models.len(), first.id);
            Line::warning("model", message, "set :model in the worker, or use --model NAME")
        }
        (Some(name), _) if available.contains(name) => {
            Line::ok("model", format!("`{name}` is available ({of})"))
        }
        (Some(name), _) if takes_any => Line::ok(
            "model",
            format!("`{name}` ({of}); llama.cpp ignores the name and serves {}", list(&available)),
        ),
        (Some(name), []) => Line::warning(
            "model",
            format!("the server has no models; missing `{name}` ({of})"),
            "load or pull it",
        ),
        (Some(name), _) => {
            let message =
                format!("`{name}` ({of}) is not one of the server's {}", count(models.len(), "model"));
            Line::warning(
                "model",
                message,
                format!("load or pull it, or use an available model: {}", list(&available)),
            )
        }
    }
}

/// Compares the size of tools and system prompt with the context.
fn context_line(worker: &WorkerSpec, context: u64, generation: Option<&Generation>, of: &str) -> Line {
    let definitions = generation.map(|generation| generation.tool_set(worker).definitions(|_| true));
    let definitions = definitions.unwrap_or_default();
    let bytes: usize = definitions.iter().map(|definition| definition.to_string().len()).sum();
    let bytes = bytes + worker.system.as_ref().map_or(0, String::len);
    let tokens = (bytes / BYTES_PER_TOKEN) as u64;
    let tools = count(definitions.len(), "tool");
    let message = format!("{context} tokens; {tools} and the system prompt {of} use about {tokens}");
    if tokens >= context {
        return Line::error(
            "context",
            message,
            "start the server with a larger context (llama.cpp: -c), or reduce :tools of the worker",
        );
    }
    if tokens * 2 > context || context < 4096 {
        return Line::warning(
            "context",
            message,
            "start the server with a larger context (llama.cpp: -c) to leave room for the conversation",
        );
    }
    Line::ok("context", message)
}

//! The model of a worker: whether the server has it, whether its template takes tools, and whether the worker's fit its context.

use super::{Line, list};
use crate::project::Generation;
use crate::spec::{Dialect, WorkerSpec};
use crate::text::count;
use crate::worker::{Examination, Model};

/// A rule of thumb for English and JSON; no tokenizer is asked.
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
    let mut lines = vec![model_line(named, models, found.found.server.dialect == Dialect::LlamaCpp, &of)];
    let server = found.found.server;
    if server.tools == Some(false) {
        let message = "the model's chat template has no place for tools, so it may never call one";
        lines.push(Line::warning(
            "template",
            message,
            "take a model made for tool calls, or give the server another template",
        ));
    } else if server.tools == Some(true) {
        lines.push(Line::ok("template", "takes tools"));
    }
    let context =
        server.context.or_else(|| chosen.and_then(|model| model.context)).filter(|context| *context > 0);
    lines.extend(context.map(|context| context_line(worker, context, generation, &of)));
    lines
}

fn model_line(named: Option<&String>, models: &[Model], takes_any: bool, of: &str) -> Line {
    let there: Vec<String> = models.iter().map(|model| model.id.clone()).collect();
    match (named, models) {
        (None, []) => Line::warning("model", "the server has none", "load or pull one, or give --model NAME"),
        (None, [only]) => Line::ok("model", format!("`{}`, the server's only one ({of})", only.id)),
        (None, [first, ..]) => {
            let message =
                format!("none named, so the first of {} is taken: `{}` ({of})", models.len(), first.id);
            Line::warning("model", message, "name one with the worker's :model or --model NAME")
        }
        (Some(name), _) if there.contains(name) => Line::ok("model", format!("`{name}` is there ({of})")),
        (Some(name), _) if takes_any => {
            Line::ok("model", format!("`{name}` ({of}); llama.cpp serves what it has: {}", list(&there)))
        }
        (Some(name), []) => Line::warning(
            "model",
            format!("the server has none, not even `{name}` ({of})"),
            "load or pull it",
        ),
        (Some(name), _) => {
            let message =
                format!("`{name}` ({of}) is not among the server's {}", count(models.len(), "model"));
            Line::warning(
                "model",
                message,
                format!("load or pull it, or take one that is there: {}", list(&there)),
            )
        }
    }
}

/// How much of the context is spent before the first word.
fn context_line(worker: &WorkerSpec, context: u64, generation: Option<&Generation>, of: &str) -> Line {
    let definitions = generation.map(|generation| generation.tool_set(worker).definitions(|_| true));
    let definitions = definitions.unwrap_or_default();
    let bytes: usize = definitions.iter().map(|definition| definition.to_string().len()).sum();
    let bytes = bytes + worker.system.as_ref().map_or(0, String::len);
    let tokens = (bytes / BYTES_PER_TOKEN) as u64;
    let tools = count(definitions.len(), "tool");
    let message = format!("{context} tokens; {tools} and the system prompt {of} take about {tokens}");
    if tokens >= context {
        return Line::error(
            "context",
            message,
            "start the server with a larger context (llama.cpp: -c), or give the worker fewer :tools",
        );
    }
    if tokens * 2 > context || context < 4096 {
        return Line::warning(
            "context",
            message,
            "a larger context (llama.cpp: -c) leaves room for the conversation",
        );
    }
    Line::ok("context", message)
}

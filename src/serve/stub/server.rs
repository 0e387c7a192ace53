//! Whose server the stub says that it is, and the pages that such a server has beside the API.

use serde_json::{Value, json};

use super::answer::Answer;
use super::misbehave::Misbehaviour;
use super::reply::MODEL;
use super::scenario::Scenario;

/// Tokens of the context that it says it has.
pub(super) const CONTEXT: u64 = 4096;

/// Whose server it says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Server {
    /// Nobody's that anyone knows.
    #[default]
    Other,
    LlamaCpp,
    Ollama,
}

/// What a path that is none of the API's is answered with. A scenario's own pages come first.
pub(super) fn page(scenario: &Scenario, method: &str, path: &str) -> Option<Answer> {
    let path = path.trim_end_matches('/');
    let is_own = |page: &&super::scenario::Page| page.path.trim_end_matches('/') == path;
    let answer = match scenario.pages.iter().find(is_own) {
        Some(page) => page.answer.clone(),
        None => {
            let json = of_server(scenario, method, path)?;
            let name = if scenario.server == Server::LlamaCpp { "llama.cpp" } else { "deftool-stub" };
            let headers = [("content-type", "application/json"), ("server", name)];
            Answer::whole(200, &headers, &json.to_string())
        }
    };
    // Of an answer to HEAD the head is all there is.
    Some(if method == "HEAD" { answer.cut_after(1) } else { answer })
}

fn of_server(scenario: &Scenario, method: &str, path: &str) -> Option<Value> {
    Some(match (scenario.server, method, path) {
        // Looks something up, as no other POST does.
        (Server::Ollama, "POST", "/api/show") => json!({
            "parameters": format!("num_ctx {CONTEXT}"), "capabilities": ["completion", "tools"],
            "details": {"format": "gguf", "family": "stub"}, "model_info": {},
        }),
        (_, "POST", _) => return None,
        (_, _, "/health") => json!({"status": "ok"}),
        (_, _, "/v1/models" | "/models") => models(scenario),
        (Server::LlamaCpp, _, "/props") => json!({
            "default_generation_settings": {"n_ctx": CONTEXT}, "total_slots": 1, "model_path": "stub.gguf",
            "chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}{{ tools }}",
            "chat_template_caps": {"supports_tools": true, "supports_tool_calls": true, "supports_parallel_tool_calls": true},
        }),
        (Server::LlamaCpp, _, "/slots") => json!([{"id": 0, "n_ctx": CONTEXT, "is_processing": false}]),
        (Server::Ollama, _, "/api/version") => json!({"version": "0.12.6"}),
        (Server::Ollama, _, "/api/tags") => json!({"models": running(scenario)}),
        (Server::Ollama, _, "/api/ps") => json!({"models": running(scenario)}),
        _ => return None,
    })
}

fn names(scenario: &Scenario) -> Vec<&str> {
    let names: Vec<&str> = scenario.models.iter().map(String::as_str).collect();
    if names.is_empty() { vec![MODEL] } else { names }
}

/// As Ollama lists what it runs.
fn running(scenario: &Scenario) -> Value {
    let model = |name| json!({"name": name, "model": name, "context_length": CONTEXT});
    names(scenario).into_iter().map(model).collect()
}

fn models(scenario: &Scenario) -> Value {
    let owner = match scenario.server {
        Server::Other => "stub",
        Server::LlamaCpp => "llamacpp",
        Server::Ollama => "library",
    };
    let mut names = names(scenario);
    if scenario.obeys_model {
        names.extend(Misbehaviour::all().map(|way| way.name));
    }
    let models = names.into_iter().map(|name| json!({"id": name, "object": "model", "owned_by": owner}));
    json!({"object": "list", "data": models.collect::<Value>()})
}

//! The pages of the emulated server outside the API: models, health, properties.

use serde_json::{Value, json};

use super::answer::Answer;
use super::fault::Fault;
use super::model::{CONTEXT, EmulatedServer, MODEL};
use super::scenario::{Page, Scenario};

/// Returns the answer for a path outside the API. The pages of the scenario take precedence.
pub(super) fn page(scenario: &Scenario, method: &str, path: &str) -> Option<Answer> {
    let path = path.trim_end_matches('/');
    let is_own = |page: &&Page| page.path.trim_end_matches('/') == path;
    let answer = match scenario.pages.iter().find(is_own) {
        Some(page) => page.answer.clone(),
        None => {
            let json = of_server(scenario, method, path)?;
            let name = if scenario.server == EmulatedServer::LlamaCpp { "llama.cpp" } else { "deftool-stub" };
            let headers = [("content-type", "application/json"), ("server", name)];
            Answer::whole(200, &headers, &json.to_string())
        }
    };
    // The answer to HEAD has no body.
    Some(if method == "HEAD" { answer.cut_after(1) } else { answer })
}

fn of_server(scenario: &Scenario, method: &str, path: &str) -> Option<Value> {
    Some(match (scenario.server, method, path) {
        // The only page that is requested with POST.
        (EmulatedServer::Ollama, "POST", "/api/show") => json!({
            "parameters": format!("num_ctx {CONTEXT}"), "capabilities": ["completion", "tools"],
            "details": {"format": "gguf", "family": "stub"}, "model_info": {},
        }),
        (_, "POST", _) => return None,
        (_, _, "/health") => json!({"status": "ok"}),
        (_, _, "/v1/models" | "/models") => models(scenario),
        (EmulatedServer::LlamaCpp, _, "/props") => json!({
            "default_generation_settings": {"n_ctx": CONTEXT}, "total_slots": 1, "model_path": "stub.gguf",
            "chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}{{ tools }}",
            "chat_template_caps": {"supports_tools": true, "supports_tool_calls": true, "supports_parallel_tool_calls": true},
        }),
        (EmulatedServer::LlamaCpp, _, "/slots") => {
            json!([{"id": 0, "n_ctx": CONTEXT, "is_processing": false}])
        }
        (EmulatedServer::Ollama, _, "/api/version") => json!({"version": "0.12.6"}),
        (EmulatedServer::Ollama, _, "/api/tags") => json!({"models": running(scenario)}),
        (EmulatedServer::Ollama, _, "/api/ps") => json!({"models": running(scenario)}),
        _ => return None,
    })
}

fn names(scenario: &Scenario) -> Vec<&str> {
    let names: Vec<&str> = scenario.models.iter().map(String::as_str).collect();
    if names.is_empty() { vec![MODEL] } else { names }
}

/// Returns the models in the format of Ollama.
fn running(scenario: &Scenario) -> Value {
    let model = |name| json!({"name": name, "model": name, "context_length": CONTEXT});
    names(scenario).into_iter().map(model).collect()
}

fn models(scenario: &Scenario) -> Value {
    let owner = match scenario.server {
        EmulatedServer::Other => "stub",
        EmulatedServer::LlamaCpp => "llamacpp",
        EmulatedServer::Ollama => "library",
    };
    let mut names = names(scenario);
    if scenario.fault_by_model {
        names.extend(Fault::all().map(|fault| fault.name));
    }
    let models = names.into_iter().map(|name| json!({"id": name, "object": "model", "owned_by": owner}));
    json!({"object": "list", "data": models.collect::<Value>()})
}

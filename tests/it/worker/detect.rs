//! Detection of the dialect and the capabilities of a server, with few requests and for any responses.

use std::time::Duration;

use deftool_chat::{Api, Capabilities, Dialect, Dialects};
use deftool_test_support::server::{Answer, Server};
use deftool_worker::{EndpointOptions, Evidence, find_endpoint};
use serde_json::{Value, json};

fn page(body: &Value) -> Answer {
    Answer::whole(200, &[("content-type", "application/json")], &body.to_string())
}

fn list(owner: &str) -> Value {
    json!({"object": "list", "data": [{"id": "m", "object": "model", "owned_by": owner, "max_model_len": 8192}]})
}

fn gone() -> Answer {
    Answer::error(404, &[], "Not Found")
}

/// Starts a server with responses from a function of method and path.
fn pages(pages: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static) -> Server {
    Server::answering_all(move |_, request| pages(&request.line).unwrap_or_else(gone))
}

type Pages = fn(&str) -> Option<Answer>;

/// Detects servers by their responses, and checks the evidence and the capabilities.
async fn find_all(cases: Vec<(&str, Pages, Evidence, Capabilities)>) {
    for (name, responses, evidence, expected) in cases {
        let server = pages(responses);
        let options = EndpointOptions { endpoint: Some(server.endpoint()), ..EndpointOptions::default() };
        let found = find_endpoint(options).await.unwrap().found;
        assert_eq!((found.evidence, found.server), (evidence, expected), "{name}");
        let asked = server.posts().len();
        assert!(asked <= 8, "{name}: {asked} requests");
    }
}

#[tokio::test]
async fn a_server_is_detected_by_header_owner_or_page() {
    let capable = |dialect| Capabilities { context: Some(8192), ..Capabilities::of(dialect) };
    let llama = || Capabilities {
        context: Some(4096),
        parallel_calls: Some(false),
        tools: Some(true),
        slots_page: Some(true),
        ..Capabilities::of(Dialect::named("llama-cpp"))
    };
    let cases: Vec<(&str, Pages, Evidence, Capabilities)> = vec![
        (
            "llama.cpp by its header, while it loads",
            |line| (line == "GET /v1/models").then(|| Answer::whole(503, &[("server", "llama.cpp")], "{}")),
            Evidence::ServerHeader,
            Capabilities::of(Dialect::named("llama-cpp")),
        ),
        (
            "llama.cpp by the owner",
            |line| match line {
                "GET /v1/models" => Some(page(&json!({"data": [{"id": "m", "owned_by": "llamacpp"}]}))),
                "GET /props" => Some(page(&llama_props())),
                _ => None,
            },
            Evidence::Owner("llamacpp"),
            llama(),
        ),
        (
            "llama.cpp behind a proxy",
            |line| match line {
                "GET /v1/models" => Some(page(&json!({"data": [{"id": "m", "owned_by": "me"}]}))),
                "GET /props" => Some(page(&llama_props())),
                _ => None,
            },
            Evidence::Page("props"),
            llama(),
        ),
        (
            "vLLM by the owner",
            |line| (line == "GET /v1/models").then(|| page(&list("vllm"))),
            Evidence::Owner("vllm"),
            capable(Dialect::named("vllm")),
        ),
        (
            "vLLM by its version",
            |line| match line {
                "GET /v1/models" => Some(page(&list("us"))),
                "GET /version" => Some(page(&json!({"version": "0.11.0"}))),
                _ => None,
            },
            Evidence::Page("version"),
            capable(Dialect::named("vllm")),
        ),
    ];
    find_all(cases).await;
}

#[tokio::test]
async fn embedding_models_are_skipped_if_no_model_is_chosen() {
    for (ids, expected) in [
        (
            &["nomic-embed-text:latest", "text-embedding-nomic-embed-text-v1.5", "qwen3:8b"][..],
            Ok("qwen3:8b"),
        ),
        (&["bge-m3:latest", "qwen3:8b"], Ok("qwen3:8b")),
        (&["nomic-embed-text:latest", "bge-m3:latest"], Err("nomic-embed-text:latest, bge-m3:latest")),
    ] {
        let data: Vec<Value> = ids.iter().map(|id| json!({"id": id, "owned_by": "library"})).collect();
        let server = Server::answering_all(move |_, request| match request.line.as_str() {
            "GET /v1/models" => page(&json!({"data": data})),
            "GET /api/version" => page(&json!({"version": "0.12.6"})),
            "POST /api/show" => {
                let embeds = request.body.to_string().contains("bge");
                page(&json!({"capabilities": [if embeds { "embedding" } else { "completion" }]}))
            }
            _ => gone(),
        });
        let options = EndpointOptions { endpoint: Some(server.endpoint()), ..EndpointOptions::default() };
        let found = find_endpoint(options).await.map(|found| found.model).map_err(|error| error.to_string());
        match expected {
            Ok(model) => assert_eq!(found.as_deref(), Ok(model)),
            Err(listed) => assert!(found.as_ref().unwrap_err().contains(listed), "{found:?}"),
        }
    }
}

#[tokio::test]
async fn ollama_and_lm_studio_are_detected_by_their_pages() {
    let cases: Vec<(&str, Pages, Evidence, Capabilities)> = vec![
        (
            "Ollama, with the context that the model runs with",
            |line| match line {
                "GET /v1/models" => Some(page(&json!({"data": [{"id": "m:latest", "owned_by": "library"}]}))),
                "GET /api/version" => Some(page(&json!({"version": "0.12.6"}))),
                "POST /api/show" => Some(page(
                    &json!({"parameters": "num_ctx 2048\nstop \"x\"", "capabilities": ["completion"]}),
                )),
                "GET /api/ps" => {
                    Some(page(&json!({"models": [{"name": "m:latest", "context_length": 16384}]})))
                }
                _ => None,
            },
            Evidence::Page("api/version"),
            Capabilities {
                context: Some(16384),
                tools: Some(false),
                images: Some(false),
                ..Capabilities::of(Dialect::named("ollama"))
            },
        ),
        (
            "Ollama, with the context that is set",
            |line| match line {
                "GET /v1/models" => Some(page(&json!({"data": [{"id": "m", "owned_by": "library"}]}))),
                "GET /api/version" => Some(page(&json!({"version": "0.12.6"}))),
                "POST /api/show" => Some(page(
                    &json!({"parameters": "stop \"x\"\nnum_ctx                        2048", "capabilities": ["tools", "vision"]}),
                )),
                _ => None,
            },
            Evidence::Page("api/version"),
            Capabilities {
                context: Some(2048),
                tools: Some(true),
                images: Some(true),
                ..Capabilities::of(Dialect::named("ollama"))
            },
        ),
        (
            "LM Studio",
            |line| match line {
                "GET /v1/models" => Some(page(&list("organization_owner"))),
                "GET /api/v0/models" => Some(page(
                    &json!({"data": [{"id": "m", "state": "loaded", "loaded_context_length": 6000}]}),
                )),
                _ => None,
            },
            Evidence::Owner("organization_owner"),
            Capabilities { context: Some(6000), ..Capabilities::of(Dialect::named("lm-studio")) },
        ),
        (
            "an unknown server",
            |line| {
                (line == "GET /v1/models").then(|| page(&json!({"data": [{"id": "m", "owned_by": "me"}]})))
            },
            Evidence::Nothing,
            Capabilities::of(Dialect::default()),
        ),
        (
            "an unknown server without a list",
            |_| None,
            Evidence::Nothing,
            Capabilities::of(Dialect::default()),
        ),
    ];
    find_all(cases).await;
}

fn llama_props() -> Value {
    json!({"default_generation_settings": {"n_ctx": 4096}, "endpoint_slots": true,
        "chat_template_caps": {"supports_tools": true, "supports_parallel_tool_calls": false}})
}

#[tokio::test]
async fn a_configured_dialect_has_precedence_and_known_hosts_are_not_probed() {
    let server = pages(|line| (line == "GET /v1/models").then(|| page(&list("vllm"))));
    for dialect in Dialects::built_in().iter() {
        let options = EndpointOptions {
            endpoint: Some(server.endpoint()),
            dialect: Some(dialect),
            ..EndpointOptions::default()
        };
        let found = find_endpoint(options).await.unwrap().found;
        assert_eq!((found.evidence, found.server.dialect), (Evidence::Configured, dialect));
    }
    // No server could answer within the timeout: no request is sent.
    for (base, dialect, expected) in [
        ("https://api.openai.com/v1", None, Dialect::named("openai-com")),
        ("https://openrouter.ai/api/v1", None, Dialect::named("openrouter")),
        ("https://example.invalid/v1", Some(Dialect::named("vllm")), Dialect::named("vllm")),
    ] {
        let options = EndpointOptions {
            endpoint: Some(base.into()),
            model: Some("m".into()),
            dialect,
            connect: Duration::from_nanos(1),
            ..EndpointOptions::default()
        };
        let endpoint = find_endpoint(options).await.unwrap();
        assert_eq!((endpoint.found.server.dialect, endpoint.model.as_str()), (expected, "m"));
    }
}

/// Invalid responses cause no errors, no delays, and do not leak the key.
#[tokio::test]
async fn invalid_responses_are_handled() {
    let key = "sk-very-secret";
    let deep = "[".repeat(100_000);
    let wide = "x".repeat(6 << 20);
    for body in [
        deep,
        wide,
        String::from("{\"data\": {}, \"version\": [], \"models\": 3}"),
        String::from(
            "{\"data\": [{\"id\": [], \"owned_by\": {}}], \"default_generation_settings\": {\"n_ctx\": -1}}",
        ),
        json!({"data": [{"id": format!("m {key}"), "owned_by": key, "max_model_len": 0}], "version": key})
            .to_string(),
    ] {
        let server = Server::answering_all(move |_, _| Answer::whole(200, &[], &body));
        let options = EndpointOptions {
            endpoint: Some(server.endpoint()),
            key: Some(key.into()),
            ..EndpointOptions::default()
        };
        let endpoint = find_endpoint(options).await.unwrap();
        assert_eq!(endpoint.found.server.context, None);
        assert!(
            !format!("{endpoint:?} {}", endpoint.found.describe(Api::default())).contains(key),
            "{endpoint:?}"
        );
    }
}

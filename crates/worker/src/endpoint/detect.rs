//! Detects the dialect and the capabilities of a server, by the hosts and probes of the dialects.
//!
//! Input: a base URL, the response to `GET {base}/models`, the model name. Output: the [`Capabilities`] and the
//! evidence of the dialect. The worker's `:dialect` takes precedence, followed by the host, the list of models, and
//! pages that only one kind of server has. These pages are requested concurrently. The last step requests details that
//! depend on the dialect. Detection never fails: missing facts remain unknown.
//!
//! Sources: tools/server/README.md of ggml-org/llama.cpp (`/props`, `/slots`), docs/api.md of ollama/ollama
//! (`/api/version`, `/api/show`, `/api/ps`), lmstudio.ai/docs/developer/rest/endpoints (`/api/v0/models`),
//! docs.vllm.ai (`owned_by`, `max_model_len`, `/version`); llama.cpp's pages from a real server, 2026-11.

use std::fmt;

use deftool_chat::fallback::FormSet;
use deftool_chat::{Api, Capabilities, Details, Dialect, Dialects};
use futures_util::future::join_all;
use reqwest::Url;
use serde_json::{Value, json};

use crate::transport::{Answer, Prober, server_page};

/// The evidence of a dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evidence {
    /// Set by the worker's `:dialect`.
    Configured,
    /// The host is known.
    Host,
    /// The `Server` header.
    ServerHeader,
    /// `owned_by` in the server's list of models.
    Owner(&'static str),
    /// A page that only this kind of server has.
    Page(&'static str),
    /// No evidence: the `OpenAI` API is assumed.
    Nothing,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("as set by `:dialect`"),
            Self::Host => f.write_str("by its host"),
            Self::ServerHeader => f.write_str("by its Server header"),
            Self::Owner(owner) => write!(f, "by the owner of its models, {owner}"),
            Self::Page(page) => write!(f, "by its /{page}"),
            Self::Nothing => f.write_str("because no other dialect was detected"),
        }
    }
}

/// A detected server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// Its dialect and capabilities.
    pub server: Capabilities,
    /// The evidence of its dialect.
    pub evidence: Evidence,
}

impl Default for Detected {
    fn default() -> Self {
        Self { server: Capabilities::default(), evidence: Evidence::Nothing }
    }
}

impl Detected {
    /// Describes the server for workers that use `api`, for example `llama.cpp by its Server header`.
    pub fn describe(&self, api: Api) -> String {
        let (evidence, dialect) = (&self.evidence, self.server.dialect);
        let is_openai = dialect.is_default();
        let name = if is_openai && api == Api::Messages { "Messages" } else { dialect.title() };
        match self.evidence {
            Evidence::Nothing => format!("assumed to be the {name} API {evidence}"),
            _ if is_openai => format!("the {name} API {evidence}"),
            _ => format!("{name} {evidence}"),
        }
    }
}

/// Detects the server at `base`. `models` is its response to `GET {base}/models`, if any; `model` is the model that
/// will be used; `configured` is the worker's `:dialect`.
pub(crate) async fn detect(
    dialects: &Dialects,
    prober: &Prober,
    base: &Url,
    models: Option<&Answer>,
    model: Option<&str>,
    configured: Option<Dialect>,
) -> Detected {
    let detected =
        || detect_without_probing(dialects, base, models).map(|found| (found.server.dialect, found.evidence));
    let known = configured.map(|dialect| (dialect, Evidence::Configured)).or_else(detected);
    let (dialect, evidence) = match (known, models) {
        (Some(known), _) => known,
        // The server answered, and its dialect is unknown.
        (None, Some(_)) => of_pages(dialects, prober, base).await,
        (None, None) => (dialects.default_dialect(), Evidence::Nothing),
    };
    let mut server = Capabilities::of(dialect);
    let listed = models.and_then(|models| listed(&models.body, model));
    if let Some(listed) = listed {
        server.context = count(listed, "max_model_len").or_else(|| count(listed, "context_length"));
        server.text_forms = named_forms(listed, &["id", "root"]);
    }
    match dialect.details() {
        Some(Details::LlamaCpp) => {
            if let Some(props) = page(prober, base, "props").await {
                read_props(&props, &mut server);
            }
        }
        Some(Details::Ollama) => {
            let named = model.or_else(|| listed.and_then(|model| model.get("id")).and_then(Value::as_str));
            query_ollama(prober, base, named, &mut server).await;
        }
        Some(Details::LmStudio) => {
            if let Some(models) = page(prober, base, "api/v0/models").await {
                read_lm_studio(&models, model, &mut server);
            }
        }
        None => {}
    }
    Detected { server, evidence }
}

/// Detects the dialect from the host or the list of models, without further requests.
pub(crate) fn detect_without_probing(
    dialects: &Dialects,
    base: &Url,
    models: Option<&Answer>,
) -> Option<Detected> {
    let of_host = base.host_str().and_then(|host| dialects.of_host(host));
    let known = of_host.map(|dialect| (dialect, Evidence::Host));
    let (dialect, evidence) = known.or_else(|| of_models(dialects, models?))?;
    Some(Detected { server: Capabilities::of(dialect), evidence })
}

/// Detects the dialect from the `Server` header or the list of models.
fn of_models(dialects: &Dialects, models: &Answer) -> Option<(Dialect, Evidence)> {
    let owner = models.body.pointer("/data/0/owned_by").and_then(Value::as_str);
    dialects.probes().find_map(|(dialect, probe)| {
        let is_header = probe.header.as_deref().is_some_and(|header| models.server == header);
        let of_owner =
            || Some(Evidence::Owner(probe.owner.as_deref().filter(|known| owner == Some(*known))?));
        Some((dialect, is_header.then_some(Evidence::ServerHeader).or_else(of_owner)?))
    })
}

/// Detects the dialect from pages that only one kind of server has. Requests them concurrently; the first dialect takes
/// precedence.
async fn of_pages(dialects: &Dialects, prober: &Prober, base: &Url) -> (Dialect, Evidence) {
    let mut names: Vec<&'static str> =
        dialects.probes().filter_map(|(_, probe)| probe.page.as_deref()).collect();
    names.dedup();
    let pages = join_all(names.iter().map(|name| page(prober, base, name))).await;
    let found = dialects.probes().find_map(|(dialect, probe)| {
        let name = probe.page.as_deref()?;
        let page = pages.get(names.iter().position(|known| *known == name)?)?.as_ref()?;
        page.pointer(probe.has.as_deref().unwrap_or_default())?;
        Some((dialect, Evidence::Page(name)))
    });
    found.unwrap_or((dialects.default_dialect(), Evidence::Nothing))
}

/// Returns the JSON of a page, if it exists.
async fn page(prober: &Prober, base: &Url, name: &str) -> Option<Value> {
    let answer = prober.get(&server_page(base, name)).await.ok()?;
    answer.is_success().then_some(answer.body)
}

/// Returns the entry of `model` in a list of models, or the first one.
fn listed<'a>(body: &'a Value, model: Option<&str>) -> Option<&'a Value> {
    let list = body.get("data")?.as_array()?;
    match model {
        Some(model) => list.iter().find(|entry| entry.get("id").is_some_and(|id| id == model)),
        None => list.first(),
    }
}

/// Returns the forms of calls written as text of the models with the names in these members.
fn named_forms(value: &Value, names: &[&str]) -> FormSet {
    let names = names.iter().filter_map(|name| value.get(*name)?.as_str());
    names.map(|name| Dialect::default().text_forms(name)).fold(FormSet::default(), FormSet::union)
}

/// Returns the forms of calls written as text in a chat template.
fn template_forms(value: &Value, name: &str) -> FormSet {
    value.get(name).and_then(Value::as_str).map(FormSet::of_template).unwrap_or_default()
}

/// Returns a number of tokens; `None` for zero or another type.
fn count(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64).filter(|count| *count > 0)
}

/// Reads llama.cpp's `/props`: the context size of one slot, the features and forms of the chat template, and the media
/// that the model takes.
fn read_props(body: &Value, server: &mut Capabilities) {
    let forms = named_forms(body, &["model_path"]).union(template_forms(body, "chat_template"));
    server.text_forms = server.text_forms.union(forms);
    let cap = |name: &str| body.get("chat_template_caps")?.get(name)?.as_bool();
    server.context = body.get("default_generation_settings").and_then(|settings| count(settings, "n_ctx"));
    server.parallel_calls = cap("supports_parallel_tool_calls");
    server.tools = match (cap("supports_tools"), cap("supports_tool_calls")) {
        // Older servers do not report the features of the template. Search the template itself.
        (None, None) => body.get("chat_template").and_then(Value::as_str).map(|text| text.contains("tool")),
        (tools, calls) => Some(tools == Some(true) || calls == Some(true)),
    };
    server.slots_page = body.get("endpoint_slots").and_then(Value::as_bool);
    let takes = |modality: &str| body.get("modalities")?.get(modality)?.as_bool();
    (server.images, server.audio) = (takes("vision"), takes("audio"));
}

/// Requests the details of a model from Ollama: its current or configured context size, and its features.
async fn query_ollama(prober: &Prober, base: &Url, model: Option<&str>, server: &mut Capabilities) {
    let Some(model) = model else { return };
    let (show_url, request) = (server_page(base, "api/show"), json!({ "model": model }));
    let (shown, running) = tokio::join!(prober.post(&show_url, &request), page(prober, base, "api/ps"));
    let shown = shown.ok().filter(Answer::is_success).map(|answer| answer.body).unwrap_or_default();
    let models = running.as_ref().and_then(|body| body.get("models")?.as_array());
    let is_it = |entry: &&Value| {
        let named = |key: &str| entry.get(key).and_then(Value::as_str);
        [named("model"), named("name")]
            .into_iter()
            .flatten()
            .any(|name| name == model || name.strip_suffix(":latest") == Some(model))
    };
    let running = models.and_then(|models| models.iter().find(is_it));
    let set = shown.get("parameters").and_then(Value::as_str).and_then(|parameters| {
        let value = parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx"))?;
        value.trim().parse().ok()
    });
    server.context = running.and_then(|model| count(model, "context_length")).or(set);
    server.text_forms = server.text_forms.union(template_forms(&shown, "template"));
    let capabilities = shown.get("capabilities").and_then(Value::as_array);
    let has = |name: &str| capabilities.map(|capabilities| capabilities.iter().any(|one| one == name));
    (server.tools, server.images) = (has("tools"), has("vision"));
}

/// Reads the details of a model of LM Studio. Tool support is not read: LM Studio describes tools in the prompt of
/// models without it.
fn read_lm_studio(body: &Value, model: Option<&str>, server: &mut Capabilities) {
    server.context = listed(body, model).and_then(|model| count(model, "loaded_context_length"));
    // Its own form, which it describes in the prompt of models without tool support.
    if !server.text_forms.is_empty() {
        server.text_forms = server.text_forms.union(server.dialect.text_forms("lm-studio"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_members_of_props_are_used() {
        let read = |body: Value| {
            let mut server = Capabilities::of(Dialect::named("llama-cpp"));
            read_props(&body, &mut server);
            (server.context, server.tools, server.parallel_calls)
        };
        let caps = |tools: bool, calls: bool| json!({"supports_tools": tools, "supports_tool_calls": calls});
        for (body, expected) in [
            (json!({"default_generation_settings": {"n_ctx": 4096}}), (Some(4096), None, None)),
            (json!({"chat_template_caps": caps(true, false)}), (None, Some(true), None)),
            (
                json!({"chat_template_caps": caps(false, false), "chat_template": "tools"}),
                (None, Some(false), None),
            ),
            (
                json!({"chat_template_caps": {"supports_parallel_tool_calls": false}}),
                (None, None, Some(false)),
            ),
            (json!({"chat_template": "{% if tools %}"}), (None, Some(true), None)),
            (json!({"chat_template": "{{ messages }}"}), (None, Some(false), None)),
            (
                json!({"chat_template": 1, "default_generation_settings": {"n_ctx": "many"}}),
                (None, None, None),
            ),
            (Value::Null, (None, None, None)),
        ] {
            assert_eq!(read(body.clone()), expected, "{body}");
        }
        let mut server = Capabilities::of(Dialect::named("llama-cpp"));
        read_props(&json!({"modalities": {"vision": true, "audio": "some"}}), &mut server);
        assert_eq!((server.images, server.audio), (Some(true), None));
    }
}

//! The model server of a request: its provider, address and port.

use deftool_lang::spec::Dialect;
use reqwest::Url;

/// Hosts whose provider has a name in the conventions. A leading dot matches subdomains.
const PROVIDERS: [(&str, &str); 13] = [
    ("api.openai.com", "openai"),
    (".openai.azure.com", "azure.ai.openai"),
    (".services.ai.azure.com", "azure.ai.inference"),
    ("api.anthropic.com", "anthropic"),
    (".amazonaws.com", "aws.bedrock"),
    ("api.cohere.ai", "cohere"),
    ("api.deepseek.com", "deepseek"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.x.ai", "x_ai"),
];

/// A model server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelServer {
    pub(crate) provider: &'static str,
    /// Host and port; `None`: the URL is not known.
    pub(crate) address: Option<(String, u16)>,
}

impl ModelServer {
    /// Returns the server at a URL.
    pub(crate) fn new(url: &str, dialect: Dialect) -> Self {
        let url = Url::parse(url).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let is_at = |known: &str| host == known || known.starts_with('.') && host.ends_with(known);
        let by_host = PROVIDERS.iter().find(|(known, _)| is_at(known)).map(|(_, provider)| *provider);
        let provider = by_host.unwrap_or(match dialect {
            Dialect::OpenAi => "openai",
            Dialect::LlamaCpp => "llama_cpp",
            Dialect::Vllm => "vllm",
            Dialect::Ollama => "ollama",
            Dialect::LmStudio => "lm_studio",
            Dialect::OpenRouter => "openrouter",
        });
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = url.as_ref().and_then(Url::port_or_known_default);
        let address = port.filter(|_| !host.is_empty()).map(|port| (host.to_owned(), port));
        Self { provider, address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_decides_before_the_dialect() {
        for (url, dialect, provider, address) in [
            ("https://api.openai.com/v1/responses", Dialect::OpenAi, "openai", "api.openai.com 443"),
            (
                "https://x.openai.azure.com/openai/v1",
                Dialect::OpenAi,
                "azure.ai.openai",
                "x.openai.azure.com 443",
            ),
            ("https://api.groq.com/openai/v1", Dialect::OpenAi, "groq", "api.groq.com 443"),
            (
                "https://api.groq.com.evil.example/",
                Dialect::OpenAi,
                "openai",
                "api.groq.com.evil.example 443",
            ),
            ("http://127.0.0.1:8080/v1", Dialect::LlamaCpp, "llama_cpp", "127.0.0.1 8080"),
            ("http://[::1]:11434/v1", Dialect::Ollama, "ollama", "::1 11434"),
            ("replay", Dialect::Vllm, "vllm", ""),
        ] {
            let server = ModelServer::new(url, dialect);
            let shown = server.address.map(|(host, port)| format!("{host} {port}")).unwrap_or_default();
            assert_eq!((server.provider, shown.as_str()), (provider, address), "{url}");
        }
    }
}

//! The model server of a request: its provider, address and port.

use deftool_chat::{Dialect, Dialects};
use reqwest::Url;

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
        // A replay has no URL.
        let provider = Dialects::built_in().of_host(host).unwrap_or(dialect).provider();
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
            ("https://api.openai.com/v1/responses", Dialect::default(), "openai", "api.openai.com 443"),
            (
                "https://x.openai.azure.com/openai/v1",
                Dialect::default(),
                "azure.ai.openai",
                "x.openai.azure.com 443",
            ),
            ("https://api.groq.com/openai/v1", Dialect::default(), "groq", "api.groq.com 443"),
            (
                "https://api.groq.com.evil.example/",
                Dialect::default(),
                "openai",
                "api.groq.com.evil.example 443",
            ),
            ("http://127.0.0.1:8080/v1", Dialect::named("llama-cpp"), "llama_cpp", "127.0.0.1 8080"),
            ("http://[::1]:11434/v1", Dialect::named("ollama"), "ollama", "::1 11434"),
            ("replay", Dialect::named("vllm"), "vllm", ""),
        ] {
            let server = ModelServer::new(url, dialect);
            let shown = server.address.map(|(host, port)| format!("{host} {port}")).unwrap_or_default();
            assert_eq!((server.provider, shown.as_str()), (provider, address), "{url}");
        }
    }
}

//! One health check of a server.
//!
//! Sends `GET …/v1/models` to every server. llama.cpp also reports its busy slots (`GET /slots`,
//! tools/server/README.md of ggml-org/llama.cpp, 2026-10; the page may be disabled).

use std::time::Duration;

use reqwest::Url;

use super::options::ServerOptions;
use crate::endpoint::{Endpoint, EndpointOptions, find_endpoint};
use crate::transport::{Prober, busy_slots, endpoint_url, http_client, server_page};

/// Connect timeout. Short, because the server is on this machine.
pub(super) const CONNECT: Duration = Duration::from_secs(3);

/// The result of one health check.
pub(super) struct HealthCheck {
    pub(super) probe: Probe,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) slots: Option<Slots>,
}

/// The result of `GET …/models`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Probe {
    /// Status 200 and a JSON body.
    Healthy,
    /// Another response: its status, and a description as a clause.
    Answered(u16, String),
    /// No response: the reason as a clause.
    NoAnswer(String),
}

/// The result of `GET /slots`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slots {
    /// Number of busy slots.
    Busy(usize),
    /// The server does not report its slots.
    Unknown,
    /// No response.
    NoAnswer,
}

/// Checks a server at its port.
#[derive(Clone)]
pub(super) struct HealthChecker {
    pub(super) base: String,
    prober: Prober,
    models: Url,
    slots: Url,
    endpoint_options: EndpointOptions,
}

impl HealthChecker {
    pub(super) fn new(options: &ServerOptions, port: u16) -> Result<Self, String> {
        let base = format!("http://127.0.0.1:{port}/v1");
        let models = endpoint_url(&base, "models")?;
        let slots = server_page(&endpoint_url(&base, "")?, "slots");
        let client = http_client(&models, CONNECT)?;
        let prober = Prober::new(client, &models, options.key.as_deref(), options.limits.probe);
        let endpoint_options = EndpointOptions {
            endpoint: Some(base.clone()),
            model: options.model.clone(),
            key: options.key.clone(),
            connect: CONNECT,
            dialect: options.dialect,
            dialects: options.dialects.clone(),
            ..EndpointOptions::default()
        };
        Ok(Self { base, prober, models, slots, endpoint_options })
    }

    /// Runs a check. If the server is not yet known to be ready (`is_ready`), also detects its endpoint. If `drains`,
    /// also requests its slots.
    pub(super) async fn check(self, is_ready: bool, drains: bool) -> HealthCheck {
        let slots = async { if drains { Some(self.slots().await) } else { None } };
        // Concurrently, so that a server that does not respond costs one timeout, not two.
        let (probe, slots) = tokio::join!(self.probe(), slots);
        let mut check = HealthCheck { probe, endpoint: None, slots };
        if check.probe == Probe::Healthy && !is_ready {
            check.endpoint = find_endpoint(self.endpoint_options).await.ok();
        }
        check
    }

    async fn probe(&self) -> Probe {
        match self.prober.get(&self.models).await {
            Ok(answer) if answer.status == 200 && !answer.body.is_null() => Probe::Healthy,
            Ok(answer) if answer.status == 200 => {
                Probe::Answered(200, format!("{} returned a body that is not JSON", answer.url))
            }
            Ok(answer) => {
                let message = self.prober.error_message(&answer);
                let message = if message.is_empty() { message } else { format!(" ({message})") };
                Probe::Answered(
                    answer.status,
                    format!("{} returned HTTP {}{message}", answer.url, answer.status),
                )
            }
            Err(error) => Probe::NoAnswer(error.to_string()),
        }
    }

    async fn slots(&self) -> Slots {
        match self.prober.get(&self.slots).await {
            Ok(answer) if answer.status == 200 => {
                busy_slots(&answer.body).map_or(Slots::Unknown, Slots::Busy)
            }
            Ok(_) => Slots::Unknown,
            Err(_) => Slots::NoAnswer,
        }
    }
}

//! One look at a server: what it answers, and what a keeper wants to know of it then.
//!
//! `GET …/v1/models` of every server; llama.cpp's also tells which of its slots are busy (`GET /slots`,
//! tools/server/README.md of ggml-org/llama.cpp, 2026-10; a server may have it switched off).

use std::time::Duration;

use reqwest::Url;

use super::options::ServerOptions;
use crate::worker::detect::server_page;
use crate::worker::endpoint::{Endpoint, EndpointOptions, find_endpoint};
use crate::worker::http::{build_client, endpoint_url};
use crate::worker::probe::{Prober, busy_slots};

/// TCP to this machine.
pub(super) const CONNECT: Duration = Duration::from_secs(3);

/// What one look showed.
pub(super) struct Look {
    pub(super) probe: Probe,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) slots: Option<Slots>,
}

/// What `GET …/models` gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Probe {
    /// 200 and JSON.
    Good,
    /// Another answer: its status, and all of it in a clause.
    Answered(u16, String),
    /// None; why, in a clause.
    Silent(String),
}

/// What `GET /slots` gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slots {
    /// So many are busy.
    Busy(usize),
    /// The server does not tell.
    Untold,
    /// No answer at all.
    Silent,
}

/// Asks a server at its port.
#[derive(Clone)]
pub(super) struct Asker {
    pub(super) base: String,
    prober: Prober,
    models: Url,
    slots: Url,
    asked: EndpointOptions,
}

impl Asker {
    pub(super) fn new(options: &ServerOptions, port: u16) -> Result<Self, String> {
        let base = format!("http://127.0.0.1:{port}/v1");
        let models = endpoint_url(&base, "models")?;
        let slots = server_page(&endpoint_url(&base, "")?, "slots");
        let client = build_client(&models, CONNECT)?;
        let prober = Prober::new(client, &models, options.key.as_deref(), options.limits.probe);
        let asked = EndpointOptions {
            endpoint: Some(base.clone()),
            model: options.model.clone(),
            key: options.key.clone(),
            connect: CONNECT,
            dialect: options.dialect,
            ..EndpointOptions::default()
        };
        Ok(Self { base, prober, models, slots, asked })
    }

    /// `is_ready`: it was asked for all that it tells of itself; `drains`: its slots count.
    pub(super) async fn look(self, is_ready: bool, drains: bool) -> Look {
        let slots = async { if drains { Some(self.slots().await) } else { None } };
        // At once: one that answers nothing is waited for once.
        let (probe, slots) = tokio::join!(self.probe(), slots);
        let mut look = Look { probe, endpoint: None, slots };
        if look.probe == Probe::Good && !is_ready {
            look.endpoint = find_endpoint(self.asked).await.ok();
        }
        look
    }

    async fn probe(&self) -> Probe {
        match self.prober.get(&self.models).await {
            Ok(answer) if answer.status == 200 && !answer.body.is_null() => Probe::Good,
            Ok(answer) if answer.status == 200 => {
                Probe::Answered(200, format!("{} answers with something that is no JSON", answer.url))
            }
            Ok(answer) => {
                let said = self.prober.said(&answer);
                let said = if said.is_empty() { said } else { format!(" ({said})") };
                Probe::Answered(answer.status, format!("{} answers {}{said}", answer.url, answer.status))
            }
            Err(error) => Probe::Silent(error.to_string()),
        }
    }

    async fn slots(&self) -> Slots {
        match self.prober.get(&self.slots).await {
            Ok(answer) if answer.status == 200 => busy_slots(&answer.body).map_or(Slots::Untold, Slots::Busy),
            Ok(_) => Slots::Untold,
            Err(_) => Slots::Silent,
        }
    }
}

//! One look at a server: what it answers, and what a keeper wants to know of it then.

use std::time::Duration;

use reqwest::{Client, Url};

use super::options::ServerOptions;
use super::probe::{Probe, Slots, busy_slots, probe};
use crate::spec::Dialect;
use crate::worker::endpoint::{Endpoint, EndpointOptions, find_endpoint};
use crate::worker::http::{build_client, endpoint_url};

/// TCP to this machine.
pub(super) const CONNECT: Duration = Duration::from_secs(3);

/// What one look showed.
pub(super) struct Look {
    pub(super) probe: Probe,
    pub(super) endpoint: Option<Endpoint>,
    pub(super) slots: Option<Slots>,
}

/// Asks a server at its port.
#[derive(Clone)]
pub(super) struct Asker {
    client: Client,
    pub(super) base: String,
    pub(super) models: Url,
    key: Option<String>,
    model: Option<String>,
    dialect: Option<Dialect>,
    limit: Duration,
}

impl Asker {
    pub(super) fn new(options: &ServerOptions, port: u16) -> Result<Self, String> {
        let base = format!("http://127.0.0.1:{port}/v1");
        let models = endpoint_url(&base, "models")?;
        let client = build_client(&models, CONNECT)?;
        let (key, model) = (options.key.clone(), options.model.clone());
        let dialect = options.dialect;
        Ok(Self { client, base, models, key, model, dialect, limit: options.limits.probe })
    }

    /// `is_ready`: it was asked for all that it tells of itself; `drains`: its slots count.
    pub(super) async fn look(self, is_ready: bool, drains: bool) -> Look {
        let Self { client, base, models, key, model, dialect, limit } = self;
        let probe = probe(&client, &models, key.as_deref(), limit).await;
        let mut look = Look { probe, endpoint: None, slots: None };
        if drains {
            look.slots = Some(busy_slots(&client, &models, key.as_deref(), limit).await);
        }
        if look.probe == Probe::Good && !is_ready {
            let asked = EndpointOptions { endpoint: Some(base), model, key, connect: CONNECT, dialect };
            look.endpoint = find_endpoint(asked).await.ok();
        }
        look
    }
}

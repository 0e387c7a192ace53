//! The transport to a managed server. Its port changes with each start.

use std::sync::{Arc, Mutex};

use deftool_chat::Api;
use deftool_process::lock;
use deftool_record::Redactor;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::endpoint::Endpoint;
use crate::transport::{HttpTransport, Incoming, Outgoing, Page, PageResponse, Transport, TransportError};

/// A transport that sends to the current endpoint of the server.
pub(crate) struct Route {
    /// Name in messages: a port would be wrong after a restart.
    name: String,
    redactor: Redactor,
    current: Mutex<Option<(Endpoint, Arc<HttpTransport>)>>,
}

impl Route {
    pub(super) fn new(name: String, key: Option<&str>) -> Self {
        Self { name, redactor: Redactor::new(key), current: Mutex::new(None) }
    }

    /// Returns the name for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sets the current endpoint and transport.
    pub(super) fn set_target(&self, endpoint: Endpoint, transport: HttpTransport) {
        *lock(&self.current) = Some((endpoint, Arc::new(transport)));
    }

    /// Returns the current endpoint.
    pub(crate) fn endpoint(&self) -> Option<Endpoint> {
        lock(&self.current).as_ref().map(|(endpoint, _)| endpoint.clone())
    }
}

impl Transport for Route {
    fn send(&self, outgoing: Outgoing) -> BoxFuture<'_, Result<Incoming, TransportError>> {
        let transport = lock(&self.current).as_ref().map(|(_, transport)| Arc::clone(transport));
        async move {
            match transport {
                Some(transport) => transport.send(outgoing).await,
                None => Err(TransportError::Connect {
                    message: format!("{} is not ready", self.name),
                    refused: true,
                }),
            }
        }
        .boxed()
    }

    fn get_page(&self, page: Page) -> BoxFuture<'_, PageResponse> {
        let transport = lock(&self.current).as_ref().map(|(_, transport)| Arc::clone(transport));
        async move {
            match transport {
                Some(transport) => transport.get_page(page).await,
                None => PageResponse::NoAnswer,
            }
        }
        .boxed()
    }

    fn url(&self, _: Api) -> &str {
        &self.name
    }

    fn redactor(&self) -> &Redactor {
        &self.redactor
    }
}

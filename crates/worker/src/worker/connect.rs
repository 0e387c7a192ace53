//! Connects a worker to its endpoint.

use std::sync::Arc;

use deftool_chat::request::Outcome;
use deftool_lang::tool::ToolSource;

use super::handle::Worker;
use super::submit::{SubmitError, SubmitRequest};
use crate::config::WorkerConfig;
use crate::driver::ResultError;
use crate::endpoint::{EndpointError, EndpointOptions, find_endpoint};
use crate::transport::HttpTransport;

/// An error of [`Worker::ask`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The request was not accepted.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The result was dropped before it was read: the worker keeps too few results.
    #[error(transparent)]
    Result(#[from] ResultError),
}

impl Worker {
    /// Finds the endpoint and starts a worker for it, configured with the detected capabilities of the server.
    ///
    /// # Errors
    /// When no endpoint is found.
    pub async fn connect(
        config: WorkerConfig,
        tools: Arc<dyn ToolSource>,
        options: EndpointOptions,
    ) -> Result<Self, EndpointError> {
        let (key, connect) = (options.key.clone(), options.connect);
        let endpoint = find_endpoint(options).await?;
        let key = key.filter(|_| endpoint.takes_key);
        let transport = HttpTransport::new(&endpoint.base, key, connect).map_err(EndpointError::Invalid)?;
        Ok(Self::start(config.at(&endpoint), tools, Arc::new(transport)))
    }

    /// Submits a prompt and waits for its outcome. Dropping the future cancels the request.
    ///
    /// # Errors
    /// When the request is not accepted. A failed request is not an error: its outcome has the failure and the text.
    pub async fn ask(&self, prompt: impl Into<String>) -> Result<Arc<Outcome>, AskError> {
        let mut reply = self.stream(SubmitRequest::prompt(prompt))?;
        while reply.next().await.is_some() {}
        Ok(reply.outcome()?)
    }
}

//! Requests over HTTP: the response to a request ends it, whatever it is.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use deftool_jsonrpc::MAX_MESSAGE;
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use serde_json::Value;
use sse_stream::{Sse, SseStream};
use tokio_util::bytes::Bytes;

use super::answer::{cause_of, read, unusable};
use crate::lines::TOO_LARGE;

/// Maximum length of the text of an HTTP response in an error, in characters.
const MAX_TEXT: usize = 1_000;

/// Maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 5;

type Failed = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// A client whose requests always end.
#[derive(Clone)]
pub(super) struct HttpClient {
    http: reqwest::Client,
    /// The requests that were refused as if their session were lost.
    refused: Arc<Mutex<HashSet<RequestId>>>,
}

impl HttpClient {
    pub(super) fn new() -> reqwest::Result<Self> {
        // Fails if the program has already selected an implementation of cryptography, which is then used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().redirect(within_origin()).referer(false);
        // A compressed stream would arrive in large chunks.
        let http = http.no_gzip().no_deflate().build()?;
        Ok(Self { http, refused: Arc::default() })
    }

    /// Reads the response to a request.
    async fn answer(
        &self,
        response: Response,
        request: RequestId,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let status = response.status();
        let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if status.is_success() && kind.to_ascii_lowercase().starts_with(EVENT_STREAM_MIME_TYPE.as_bytes()) {
            return Ok(StreamableHttpPostResponse::Sse(events(response, request), None));
        }
        let Some(body) = body_of(response).await? else {
            return Ok(StreamableHttpPostResponse::Json(unusable(&request, TOO_LARGE), None));
        };
        // A server that was restarted refuses the session that it does not know. The request is sent again, once.
        let id =
            serde_json::from_slice(&body).ok().and_then(|mut body: Value| Some(body.get_mut("id")?.take()));
        let is_foreign = id != Some(request.clone().into_json_value());
        let is_lost = status == StatusCode::NOT_FOUND || (status == StatusCode::BAD_REQUEST && is_foreign);
        if has_session && is_lost && self.refuse(&request) {
            return Err(StreamableHttpError::SessionExpired);
        }
        let answer = match read(&body, std::slice::from_ref(&request), true) {
            Ok(Some(answer @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)))) => answer,
            _ => unusable(&request, described(status, &body)),
        };
        Ok(StreamableHttpPostResponse::Json(answer, None))
    }

    /// Returns whether the request was not refused before.
    fn refuse(&self, request: &RequestId) -> bool {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(request.clone())
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        use ClientRequest::{DiscoverRequest, InitializeRequest};

        let id = match &message {
            JsonRpcMessage::Request(sent)
                if !matches!(sent.request, InitializeRequest(_) | DiscoverRequest(_)) =>
            {
                sent.id.clone()
            }
            // The library selects the protocol by the response.
            _ => {
                let (http, mut limits) = (&self.http, StreamableHttpResponseLimits::default());
                (limits.max_sse_event_size, limits.max_json_response_size) = (MAX_MESSAGE, MAX_MESSAGE);
                let posted =
                    http.post_message_with_response_limits(uri, message, session, token, headers, limits);
                return posted.await;
            }
        };
        let mut post = self.http.post(uri.as_ref()).headers(headers.into_iter().collect());
        post = post.header(ACCEPT, [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", "));
        if let Some(token) = token {
            post = post.bearer_auth(token);
        }
        if let Some(session) = &session {
            post = post.header(HEADER_SESSION_ID, session.as_ref());
        }
        match post.json(&message).send().await {
            Ok(response) => self.answer(response, id, session.is_some()).await,
            // The connection works: only this request ends.
            Err(error) if error.is_redirect() => {
                Ok(StreamableHttpPostResponse::Json(unusable(&id, cause_of(&error)), None))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.http.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let http = &self.http;
        http.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, MAX_MESSAGE).await
    }
}

/// Follows redirects that keep the request and do not leave the origin of the trusted URL, whose server gets the token.
fn within_origin() -> Policy {
    Policy::custom(|attempt| {
        let (asked, location) = (attempt.previous(), attempt.url());
        let is_within = asked.first().is_some_and(|first| first.origin() == location.origin());
        let keeps_request =
            matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let reason = if !is_within {
            "which is another origin; write that URL in `:url` if you trust it"
        } else if !keeps_request {
            "with a status that changes the request; write that URL in `:url`"
        } else if asked.len() > MAX_REDIRECTS {
            "and so on"
        } else {
            return attempt.follow();
        };
        let mut location = location.clone();
        location.set_query(None);
        let error = format!("the server redirects with {} to {location}, {reason}", attempt.status());
        attempt.error(error)
    })
}

/// Returns the body, unless it is too large.
async fn body_of(mut response: Response) -> Result<Option<Vec<u8>>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_MESSAGE {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Describes a response without an answer.
fn described(status: StatusCode, body: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(body).trim().chars().take(MAX_TEXT).collect();
    format!("HTTP {status}: {}", if text.is_empty() { "no result" } else { &text })
}

/// Returns the events of a response, with repaired answers.
fn events(response: Response, request: RequestId) -> BoxStream<'static, Result<Sse, SseError>> {
    let repaired = move |event: Result<Sse, SseError>| {
        let answer = match &event {
            Err(SseError::Body(error)) if error.to_string() == TOO_LARGE => {
                Some(unusable(&request, TOO_LARGE))
            }
            Ok(Sse { data: Some(data), .. }) => {
                read(data.as_bytes(), std::slice::from_ref(&request), true).ok().flatten()
            }
            _ => None,
        };
        let Some(answer) = answer else { return event };
        Ok(Sse { data: serde_json::to_string(&answer).ok(), ..event.unwrap_or_default() })
    };
    SseStream::from_bytes_stream(limited(response.bytes_stream())).map(repaired).boxed()
}

/// Returns a stream that fails if an event is too large. An event ends with an empty line.
fn limited(
    bytes: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let (mut size, mut is_line_start) = (0, true);
    bytes.map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        for byte in chunk.iter().filter(|byte| **byte != b'\r') {
            size = if *byte == b'\n' && is_line_start { 0 } else { size + 1 };
            is_line_start = *byte == b'\n';
        }
        if size > MAX_MESSAGE { Err(io::Error::other(TOO_LARGE)) } else { Ok(chunk) }
    })
}

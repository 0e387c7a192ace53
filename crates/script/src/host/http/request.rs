//! Parses the arguments of `http.get`, `http.post` and `http.request`.
//!
//! The result is a [`Draft`] with a valid method, URL and headers, or an error that names the invalid value.

use std::time::Duration;

use mlua::{LuaString, MultiValue, Table};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;

use super::super::arguments::Options;
use super::values::Reader;

/// Maximum length of a request or response body, in bytes.
pub(super) const MAX_BYTES: usize = 32 << 20;
/// Default maximum length of a response body, in bytes.
const DEFAULT_BYTES: usize = 8 << 20;
/// Timeout for a connection, including name resolution.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// Maximum and default number of redirects to follow.
const MAX_REDIRECTS: usize = 20;
const DEFAULT_REDIRECTS: usize = 5;

/// A function of the `http` table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpFunction {
    Get,
    Post,
    Request,
}

impl HttpFunction {
    pub(super) const ALL: [Self; 3] = [Self::Get, Self::Post, Self::Request];

    /// Returns the name in the table.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Request => "request",
        }
    }

    /// Returns the name for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "http.get",
            Self::Post => "http.post",
            Self::Request => "http.request",
        }
    }

    /// Returns the names of its options.
    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Get => &["query", "headers", "timeout", "max_bytes", "redirects"],
            Self::Post => &["query", "headers", "json", "form", "timeout", "max_bytes", "redirects"],
            Self::Request => &[
                "method",
                "url",
                "query",
                "headers",
                "body",
                "json",
                "form",
                "timeout",
                "max_bytes",
                "redirects",
            ],
        }
    }
}

/// A valid request. Its host is not checked yet.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
    pub(super) limits: Limits,
}

/// The limits of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The timeout. `None` means the call's deadline.
    pub(super) timeout: Option<Duration>,
    /// Maximum length of the decompressed response body, in bytes.
    pub(super) bytes: usize,
    /// Maximum number of redirects to follow. With 0, a redirect is returned as the response.
    pub(super) redirects: usize,
}

/// A [`Request`] with a body that is still a Lua string.
pub(super) struct Draft {
    request: Request,
    text: Option<LuaString>,
}

impl Draft {
    /// Parses the arguments of `function`. `array_mark` is the metatable of tables from `json.array`.
    ///
    /// # Errors
    /// When an argument or option is invalid.
    pub(super) fn read(
        function: HttpFunction,
        arguments: &MultiValue,
        array_mark: &Table,
    ) -> mlua::Result<Self> {
        let reader = Reader { function: function.name(), array_mark };
        let at = |index: usize| arguments.get(index).filter(|value| !value.is_nil());
        let (url, body, options) = match function {
            HttpFunction::Get => (at(0), None, 1),
            HttpFunction::Post => (at(0), at(1), 2),
            HttpFunction::Request => (None, None, 0),
        };
        let options = Options::new(function.name(), arguments, options, function.options())?;
        let option = |key: &str| options.value(key).map(|value| (!value.is_nil()).then_some(value));
        let mut url = match function {
            HttpFunction::Get | HttpFunction::Post => reader.url(url)?,
            HttpFunction::Request => reader.url(option("url")?.as_ref())?,
        };
        if let Some(query) = option("query")? {
            reader.query(&mut url, &query)?;
        }
        let method = match (option("method")?, function) {
            (Some(method), _) => reader.method(&method)?,
            (None, HttpFunction::Post) => Method::POST,
            (None, HttpFunction::Get | HttpFunction::Request) => Method::GET,
        };
        let mut headers = HeaderMap::new();
        if let Some(option) = option("headers")? {
            reader.headers(&mut headers, &option)?;
        }
        let (text, json, form) = (
            body.cloned().map_or_else(|| option("body"), |body| Ok(Some(body)))?,
            option("json")?,
            option("form")?,
        );
        if [&text, &json, &form].iter().filter(|body| body.is_some()).count() > 1 {
            return Err(reader.error("expected only one of body, json and form"));
        }
        let text = text.map(|text| reader.body(&text)).transpose()?;
        let body = if let Some(json) = json {
            // A content type in the headers takes precedence.
            headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
            Some(reader.json(&json)?)
        } else if let Some(form) = form {
            headers
                .entry(CONTENT_TYPE)
                .or_insert(HeaderValue::from_static("application/x-www-form-urlencoded"));
            Some(reader.form(&form)?)
        } else {
            None
        };
        if text.as_ref().is_some_and(|text| text.as_bytes().len() > MAX_BYTES) {
            return Err(reader.error(&format!("the body is longer than {} MiB", MAX_BYTES >> 20)));
        }
        let limits = Limits {
            timeout: options.seconds("timeout")?,
            bytes: options
                .integer("max_bytes", 1..=MAX_BYTES as u64)?
                .map_or(DEFAULT_BYTES, |bytes| bytes as usize),
            redirects: options
                .integer("redirects", 0..=MAX_REDIRECTS as u64)?
                .map_or(DEFAULT_REDIRECTS, |redirects| redirects as usize),
        };
        Ok(Self { request: Request { method, url, headers, body, limits }, text })
    }

    /// Returns the request without its body.
    pub(super) fn request_mut(&mut self) -> &mut Request {
        &mut self.request
    }

    /// Returns the URL.
    pub(super) fn url(&self) -> &Url {
        &self.request.url
    }

    /// Returns the maximum number of bytes that the request holds outside of the script's memory limit.
    pub(super) fn cost(&self) -> usize {
        let text = self.text.as_ref().map_or(0, |text| text.as_bytes().len());
        self.request.limits.bytes.saturating_add(text)
    }

    /// Returns the request with a copy of its body.
    pub(super) fn into_request(self) -> Request {
        let text = self.text.map(|text| text.as_bytes().to_vec());
        Request { body: text.or(self.request.body), ..self.request }
    }
}

//! A request, read from what a script passed, and checked.
//!
//! In: the arguments of `http.get`, `http.post` or `http.request`. Out: a [`Draft`] whose method, headers and URL can be
//! sent as they are, or an error that says what was found.

use std::time::Duration;

use mlua::{LuaString, MultiValue, Table};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use url::Url;

use super::super::options::Options;
use super::values::Reader;

/// Most bytes of a body, received or sent.
pub(super) const MAX_BYTES: usize = 32 << 20;
/// Most bytes of a body that is received, when the script does not say.
const DEFAULT_BYTES: usize = 8 << 20;
/// Most redirects that a script may ask for, and those that are followed when it does not.
const MAX_REDIRECTS: usize = 20;
const DEFAULT_REDIRECTS: usize = 5;

/// Which of the functions was called, and what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Called {
    Get,
    Post,
    Request,
}

impl Called {
    pub(super) const ALL: [Self; 3] = [Self::Get, Self::Post, Self::Request];

    /// The name within the table.
    pub(super) fn field(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Request => "request",
        }
    }

    /// The name as messages have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "http.get",
            Self::Post => "http.post",
            Self::Request => "http.request",
        }
    }

    /// The options that it knows.
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

/// A request that can be sent once its host is allowed.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
    pub(super) limits: Limits,
}

/// What a request may cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// `None`: until the call's deadline.
    pub(super) timeout: Option<Duration>,
    /// Most bytes of the answer's body, decompressed.
    pub(super) bytes: usize,
    /// Most redirects that are followed; 0: they are answers like others.
    pub(super) redirects: usize,
}

/// A [`Request`] whose body is still the script's.
pub(super) struct Draft {
    request: Request,
    text: Option<LuaString>,
}

impl Draft {
    /// Reads what a script passed. `array_mark`: the metatable of `json.array`'s tables.
    ///
    /// # Errors
    /// One that names the function, what was found and what it takes.
    pub(super) fn read(called: Called, arguments: &MultiValue, array_mark: &Table) -> mlua::Result<Self> {
        let reader = Reader { function: called.name(), array_mark };
        let at = |index: usize| arguments.get(index).filter(|value| !value.is_nil());
        let (url, body, options) = match called {
            Called::Get => (at(0), None, 1),
            Called::Post => (at(0), at(1), 2),
            Called::Request => (None, None, 0),
        };
        let options = Options::new(called.name(), arguments, options, called.options())?;
        let given = |key: &str| options.value(key).map(|value| (!value.is_nil()).then_some(value));
        let mut url = match called {
            Called::Get | Called::Post => reader.url(url)?,
            Called::Request => reader.url(given("url")?.as_ref())?,
        };
        if let Some(query) = given("query")? {
            reader.query(&mut url, &query)?;
        }
        let method = match (given("method")?, called) {
            (Some(method), _) => reader.method(&method)?,
            (None, Called::Post) => Method::POST,
            (None, Called::Get | Called::Request) => Method::GET,
        };
        let mut headers = HeaderMap::new();
        if let Some(given) = given("headers")? {
            reader.headers(&mut headers, &given)?;
        }
        let (text, json, form) = (
            body.cloned().map_or_else(|| given("body"), |body| Ok(Some(body)))?,
            given("json")?,
            given("form")?,
        );
        if [&text, &json, &form].iter().filter(|body| body.is_some()).count() > 1 {
            return Err(
                reader.wrong("a body, json and form are three ways to say one thing; pass one of them")
            );
        }
        let text = text.map(|text| reader.body(&text)).transpose()?;
        let body = if let Some(json) = json {
            // A content type among the headers stands before these.
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
            return Err(reader.wrong(&format!("the body is longer than {} MiB", MAX_BYTES >> 20)));
        }
        let limits = Limits {
            timeout: options.seconds("timeout")?,
            bytes: options
                .whole("max_bytes", 1..=MAX_BYTES as u64)?
                .map_or(DEFAULT_BYTES, |bytes| bytes as usize),
            redirects: options
                .whole("redirects", 0..=MAX_REDIRECTS as u64)?
                .map_or(DEFAULT_REDIRECTS, |redirects| redirects as usize),
        };
        Ok(Self { request: Request { method, url, headers, body, limits }, text })
    }

    /// Where it is to go.
    pub(super) fn url(&self) -> &Url {
        &self.request.url
    }

    /// Most bytes that the request holds outside the script's memory limit.
    pub(super) fn cost(&self) -> usize {
        let text = self.text.as_ref().map_or(0, |text| text.as_bytes().len());
        self.request.limits.bytes.saturating_add(text)
    }

    /// The request, with its body copied.
    pub(super) fn into_request(self) -> Request {
        let text = self.text.map(|text| text.as_bytes().to_vec());
        Request { body: text.or(self.request.body), ..self.request }
    }
}

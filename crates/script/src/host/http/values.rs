//! Converts Lua values to the parts of a request: URL, method, headers, query, form and JSON.
//!
//! Errors start with the name of the function. Metatables are not used. The size of all data that is copied to memory
//! outside of the script's limit is bounded.

use mlua::{LuaString, Table, Value as LuaValue};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::{Url, form_urlencoded};

use super::target::{self, MAX_URL};
use crate::convert;
use crate::error::{HostError, clean, type_name};

/// Maximum number of headers of a request, and their maximum total length in bytes.
const MAX_HEADERS: usize = 100;
const MAX_HEADER_BYTES: usize = 32 << 10;
/// Maximum number of pairs of a query or a form, and maximum length of a form in bytes.
const MAX_PAIRS: usize = 1_000;
const MAX_FORM: usize = 1 << 20;

/// Headers that control message framing and routing, which scripts must not set: they allow request smuggling. Headers
/// that start with `proxy-` are rejected too.
const REFUSED_HEADERS: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Converts the values of one function call.
pub(super) struct Reader<'m> {
    pub(super) function: &'static str,
    /// The metatable of tables from `json.array`.
    pub(super) array_mark: &'m Table,
}

impl Reader<'_> {
    pub(super) fn error(&self, message: &str) -> mlua::Error {
        HostError::script(format!("{}: {message}", self.function))
    }

    pub(super) fn argument_error(&self, expected: &str, got: Option<&LuaValue>) -> mlua::Error {
        crate::host::arguments::argument_error(self.function, expected, got)
    }

    pub(super) fn url(&self, value: Option<&LuaValue>) -> mlua::Result<Url> {
        let Some(LuaValue::String(text)) = value else {
            return Err(self.argument_error("a URL, as a string", value));
        };
        let text = text.as_bytes();
        let text = std::str::from_utf8(&text).map_err(|_| self.error("the URL is not UTF-8"))?;
        target::parse(text).map_err(|reason| self.error(&reason))
    }

    pub(super) fn method(&self, value: &LuaValue) -> mlua::Result<Method> {
        let LuaValue::String(text) = value else {
            return Err(self.argument_error("method to be a string", Some(value)));
        };
        let text = text.to_string_lossy();
        let is_word = (1..=30).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
        let method = is_word.then(|| Method::from_bytes(text.to_ascii_uppercase().as_bytes()).ok()).flatten();
        match method {
            Some(Method::CONNECT | Method::TRACE) | None => Err(self.error(&format!(
                "expected method to be a word such as GET, POST, PUT, PATCH or DELETE, got \"{}\"",
                clean(&text, 60).replace('\n', "\u{FFFD}")
            ))),
            Some(method) => Ok(method),
        }
    }

    pub(super) fn query(&self, url: &mut Url, value: &LuaValue) -> mlua::Result<()> {
        let pairs = self.pairs("query", value, MAX_URL)?;
        if !pairs.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        if url.as_str().len() > MAX_URL {
            return Err(self.error(&format!("the URL with its query is longer than {} KiB", MAX_URL >> 10)));
        }
        Ok(())
    }

    pub(super) fn form(&self, value: &LuaValue) -> mlua::Result<Vec<u8>> {
        let pairs = self.pairs("form", value, MAX_FORM)?;
        Ok(form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish().into_bytes())
    }

    pub(super) fn json(&self, value: &LuaValue) -> mlua::Result<Vec<u8>> {
        let value = convert::to_json(value, self.array_mark).map_err(|error| {
            let path = error.path();
            match error.reason {
                convert::Reason::Lua(error) => error,
                reason @ (convert::Reason::Type(_) | convert::Reason::Other(_)) => {
                    self.error(&format!("cannot encode json{path}: {reason}"))
                }
            }
        })?;
        serde_json::to_vec(&value).map_err(|error| self.error(&format!("cannot encode json: {error}")))
    }

    pub(super) fn body(&self, value: &LuaValue) -> mlua::Result<LuaString> {
        match value {
            LuaValue::String(body) => Ok(body.clone()),
            LuaValue::Table(_) => Err(self.argument_error(
                "the body to be a string (a table is sent with json = … or form = …)",
                Some(value),
            )),
            _ => Err(self.argument_error("the body to be a string", Some(value))),
        }
    }

    /// Returns the pairs of a query or form, sorted by key, at most `max_bytes` bytes. An array repeats its key.
    fn pairs(&self, what: &str, value: &LuaValue, max_bytes: usize) -> mlua::Result<Vec<(String, String)>> {
        let LuaValue::Table(table) = value else {
            return Err(self.argument_error(&format!("{what} to be a table"), Some(value)));
        };
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut bytes = 0;
        let mut add = |key: &str, text: String| {
            bytes += key.len() + text.len() + 2;
            pairs.push((key.to_owned(), text));
            if pairs.len() > MAX_PAIRS || bytes > max_bytes {
                return Err(self
                    .error(&format!("{what} has more than {MAX_PAIRS} values or {} KiB", max_bytes >> 10)));
            }
            Ok(())
        };
        table.for_each(|key: LuaValue, value: LuaValue| {
            let name = match &key {
                LuaValue::String(name) => self.utf8(what, name)?,
                LuaValue::Integer(number) => number.to_string(),
                _ => {
                    return Err(self.error(&format!(
                        "expected the keys of {what} to be strings, got {}",
                        type_name(&key)
                    )));
                }
            };
            let LuaValue::Table(items) = &value else { return add(&name, self.scalar(what, &name, &value)?) };
            for index in 1..=items.raw_len() {
                add(&name, self.scalar(what, &name, &items.raw_get(index)?)?)?;
            }
            Ok(())
        })?;
        // A stable sort: repeated keys keep their order.
        pairs.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(pairs)
    }

    fn scalar(&self, what: &str, name: &str, value: &LuaValue) -> mlua::Result<String> {
        match value {
            LuaValue::String(text) => self.utf8(what, text),
            LuaValue::Integer(integer) => Ok(integer.to_string()),
            LuaValue::Number(number) if number.is_finite() => Ok(number.to_string()),
            LuaValue::Boolean(flag) => Ok(flag.to_string()),
            _ => Err(self.argument_error(
                &format!("{what}.{} to be a string, number, boolean or an array of them", clean(name, 60)),
                Some(value),
            )),
        }
    }

    fn utf8(&self, what: &str, text: &LuaString) -> mlua::Result<String> {
        let text = text.as_bytes();
        std::str::from_utf8(&text)
            .map(str::to_owned)
            .map_err(|_| self.error(&format!("{what} contains a string that is not UTF-8")))
    }

    pub(super) fn headers(&self, headers: &mut HeaderMap, value: &LuaValue) -> mlua::Result<()> {
        let LuaValue::Table(table) = value else {
            return Err(self.argument_error("headers to be a table", Some(value)));
        };
        let mut bytes = 0;
        table.for_each(|name: LuaValue, value: LuaValue| {
            let LuaValue::String(name) = &name else {
                return Err(
                    self.error(&format!("expected header names to be strings, got {}", type_name(&name)))
                );
            };
            let name = self.header_name(&name.as_bytes())?;
            let mut add = |value: &LuaValue| {
                let value = self.header_value(&name, value)?;
                bytes += name.as_str().len() + value.len() + 4;
                headers.append(name.clone(), value);
                if headers.len() > MAX_HEADERS || bytes > MAX_HEADER_BYTES {
                    return Err(self.error(&format!(
                        "more than {MAX_HEADERS} headers or {} KiB of them",
                        MAX_HEADER_BYTES >> 10
                    )));
                }
                Ok(())
            };
            let LuaValue::Table(items) = &value else { return add(&value) };
            for index in 1..=items.raw_len() {
                add(&items.raw_get(index)?)?;
            }
            Ok(())
        })
    }

    fn header_name(&self, bytes: &[u8]) -> mlua::Result<HeaderName> {
        let displayed = || clean(&String::from_utf8_lossy(bytes), 60).replace(['\n', '\t'], "\u{FFFD}");
        let name = HeaderName::from_bytes(bytes)
            .map_err(|_| self.error(&format!("invalid header name \"{}\"", displayed())))?;
        if REFUSED_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
            return Err(self.error(&format!("the header {name} is set automatically; remove it")));
        }
        Ok(name)
    }

    fn header_value(&self, name: &HeaderName, value: &LuaValue) -> mlua::Result<HeaderValue> {
        let made = match value {
            LuaValue::String(text) => HeaderValue::from_bytes(&text.as_bytes()),
            LuaValue::Integer(number) => return Ok(HeaderValue::from(*number)),
            LuaValue::Number(number) => HeaderValue::from_str(&number.to_string()),
            _ => return Err(self.argument_error(&format!("headers[\"{name}\"] to be a string"), Some(value))),
        };
        made.map_err(|_| {
            self.error(&format!(
                "the value of header {name} contains a line end or another control character"
            ))
        })
    }
}

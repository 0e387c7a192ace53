//! The `http` host table: HTTP requests to the hosts that `:allow (:net …)` grants.
//!
//! The functions take a URL and options and return status, headers and body, or raise an error that scripts can catch.
//! A request is parsed on the script's thread (`request`, `values`, `target`), checked against the grants (`grants`,
//! `address`) and sent on the IO threads (`exchange`, `client`, `body`) while the script is suspended. When a call
//! ends, its requests are aborted.
//!
//! Out of scope: cookies, caches, proxies, retries, HTTP/2, settings from the environment, and a `response.json()`,
//! because `json.decode(response.body)` does the same.

mod address;
mod body;
mod call_headers;
mod client;
mod exchange;
mod failure;
mod grants;
mod request;
mod target;
mod values;

use std::rc::Rc;

use mlua::{Lua, MultiValue, Table};
use reqwest::header::{HeaderMap, HeaderValue, SET_COOKIE};
use tokio::sync::Semaphore;

use self::client::CLIENTS;
pub use self::client::client_builder;
use self::exchange::{HttpResponse, exchange};
use self::grants::NetGrants;
use self::request::{Draft, HttpFunction};
use super::docs::{FunctionDoc, TableDoc};
use super::state::{Host, Marks};
use crate::error::HostError;
use crate::io;
use crate::script::Script;

/// Maximum number of requests of a call at a time. Further requests wait.
const MAX_REQUESTS: usize = 16;
/// Maximum memory of the requests of a call at a time, in MiB. Request and response bodies are held outside of the
/// script's memory limit.
const MAX_MIB: u32 = 64;

pub(super) const DOC: TableDoc = TableDoc {
    permissions: &["net"],
    types: "\
type HttpScalar = string | number | boolean
type HttpPairs = { [string]: HttpScalar | { HttpScalar } }
type HttpHeaders = { [string]: string | number | { string | number } }
type HttpGetOptions = { query: HttpPairs?, headers: HttpHeaders?, timeout: number?, max_bytes: number?, redirects: number? }
type HttpPostOptions = { query: HttpPairs?, headers: HttpHeaders?, json: any?, form: HttpPairs?, timeout: number?, max_bytes: number?, redirects: number? }
type HttpRequestOptions = { method: string?, url: string, query: HttpPairs?, headers: HttpHeaders?, body: string?, json: any?, form: HttpPairs?, timeout: number?, max_bytes: number?, redirects: number? }
type HttpResponse = { status: number, ok: boolean, url: string, headers: { [string]: string }, body: string }",
    functions: &[
        FunctionDoc::new(
            "get",
            "(url: string, options: HttpGetOptions?) -> HttpResponse",
            "Sends a GET request. `query` is escaped and added to the URL, sorted by key; an array repeats its key. `timeout` is in \
             seconds and applies to the complete request; the call's deadline applies too. `max_bytes` limits the decompressed body \
             (by default 8 MiB, at most 32 MiB). `redirects` limits the followed redirects (by default 5, at most 20); with 0, a \
             redirect is returned as the response.",
        )
        .with_permissions(&["net"])
        .with_errors(
            "The spec does not list the host, or the host of a redirect, under `:allow (:net [\"HOST\"])`, or a name resolves to a \
             private address (kind `permission`). Errors that a script may want to catch: the name cannot be resolved, the connection \
             fails or is lost, the certificate is not trusted, `timeout`, a body longer than `max_bytes`, too many redirects, a redirect \
             from https to http, more than 100 headers or 400 KiB of headers. A status of 400 or above is not an error; check `ok`.",
        )
        .with_example(
            "local r = http.get(\"https://api.example.org/weather\", { query = { q = \"Oslo\" }, timeout = 5 })\n\
             if not r.ok then error(tool.failure(\"status \" .. r.status)) end\n\
             return json.decode(r.body)",
        ),
        FunctionDoc::new(
            "post",
            "(url: string, body: string?, options: HttpPostOptions?) -> HttpResponse",
            "Sends a POST request with one of: `body`, sent unchanged; `json`, any value, sent as `application/json`; `form`, a table, \
             sent as `application/x-www-form-urlencoded`. A content type in `headers` takes precedence.",
        )
        .with_permissions(&["net"])
        .with_errors("As for `get`; the body is longer than 32 MiB; `json` cannot be encoded or is longer than 1 MiB.")
        .with_example("http.post(\"https://api.example.org/notes\", nil, { json = { title = \"Milk\" } })"),
        FunctionDoc::new(
            "request",
            "(options: HttpRequestOptions) -> HttpResponse",
            "Sends a request with any method. `method` is GET by default and is converted to upper case.",
        )
        .with_permissions(&["net"])
        .with_errors("As for `post`; the methods CONNECT and TRACE are not allowed.")
        .with_example("http.request({ method = \"DELETE\", url = \"https://api.example.org/notes/7\" })"),
    ],
    ..TableDoc::new(
        "http",
        "HTTP requests to the hosts that the spec grants. The current task waits for the response; other tasks continue. A response \
         has `status`, `ok` (status 200 to 299), `url` (after redirects), `headers` and `body`. Header names are in lower case. Repeated \
         headers are joined with `, `, except `set-cookie`, which is joined with line ends. The body contains bytes; gzip and \
         deflate are decompressed. Decode JSON with `json.decode(r.body)`.\n\n\
         A grant is a host (`api.example.org`), all subdomains of a host (`*.example.org`), an address (`192.168.1.5`, `[::1]`) or `*`. \
         It covers the ports 80 and 443, or an explicit port (`localhost:8080`), or all ports (`localhost:*`). A name must resolve to \
         public addresses; to reach a private address, grant it too (`[\"intranet.example\" \"10.0.0.5\"]`). `localhost` may resolve \
         to loopback addresses. The same rules apply to redirects. A redirect to another origin drops headers such as \
         `authorization`, `cookie` and `x-api-key`.\n\n\
         Not allowed: schemes other than http and https, users in URLs, control characters and spaces in URLs, line ends in headers, \
         and headers that control message framing (`host`, `content-length`, `connection`, …). Proxies, cookies and credentials from \
         the environment are never used. A call may have 16 requests at a time, with 64 MiB in total; further requests wait.\n\n\
         Added headers: in a trace, `traceparent` and `tracestate`, unless the script sets one of them. In a tool with `:effect keyed`, \
         `Idempotency-Key`, unless the script sets it or the method is GET, HEAD or OPTIONS: `tool.idempotency_key` in the first such \
         request of a call, then the same text with `-2`, `-3` and so on. A call that runs again sends the same keys in the same order.",
    )
};

pub(super) fn table(lua: &Lua, host: &Rc<Host>, marks: &Marks, script: &Script) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let context = Rc::new(RequestContext {
        host: Rc::clone(host),
        array_mark: marks.array.clone(),
        grants: NetGrants::new(&script.permissions.net),
        permits: Semaphore::new(MAX_REQUESTS),
        memory: Semaphore::new(MAX_MIB as usize),
    });
    for http_function in HttpFunction::ALL {
        let context = Rc::clone(&context);
        let function = lua.create_async_function(move |lua, arguments: MultiValue| {
            let context = Rc::clone(&context);
            async move { context.call(&lua, http_function, arguments).await }
        })?;
        table.raw_set(http_function.field(), function)?;
    }
    Ok(table)
}

/// State that the requests of a Lua state share.
struct RequestContext {
    host: Rc<Host>,
    array_mark: Table,
    grants: NetGrants,
    permits: Semaphore,
    memory: Semaphore,
}

impl RequestContext {
    async fn call(
        &self,
        lua: &Lua,
        http_function: HttpFunction,
        arguments: MultiValue,
    ) -> mlua::Result<Table> {
        let _waiting = self.host.wait(http_function.name())?;
        // Acquired before anything is copied.
        let _permit = self.permits.acquire().await.map_err(mlua::Error::external)?;
        let prefix_error = |error: HostError| {
            HostError::lua(error.kind, format!("{}: {}", http_function.name(), error.message))
        };
        let mut draft = Draft::read(http_function, &arguments, &self.array_mark)?;
        self.grants.check(draft.url()).map_err(prefix_error)?;
        call_headers::add(draft.request_mut(), &self.host);
        let mib = u32::try_from(draft.cost().div_ceil(1 << 20)).unwrap_or(MAX_MIB).min(MAX_MIB);
        let _memory = self.memory.acquire_many(mib).await.map_err(mlua::Error::external)?;
        let (request, grants) = (draft.into_request(), self.grants.clone());
        let result = io::run(async move { exchange(&CLIENTS, &grants, request).await }).await;
        let response_parts = result.map_err(prefix_error)?;
        response(lua, response_parts)
    }
}

fn response(lua: &Lua, response_parts: HttpResponse) -> mlua::Result<Table> {
    let response = lua.create_table_with_capacity(0, 5)?;
    response.raw_set("status", response_parts.status)?;
    response.raw_set("ok", (200..300).contains(&response_parts.status))?;
    response.raw_set("url", response_parts.url.as_str())?;
    response.raw_set("headers", headers(lua, &response_parts.headers)?)?;
    response.raw_set("body", lua.create_string(&response_parts.body)?)?;
    Ok(response)
}

/// Converts headers to a table. Repeated headers are joined as a list (RFC 9110, section 5.3), except `set-cookie`,
/// whose values contain commas.
fn headers(lua: &Lua, headers: &HeaderMap) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, headers.keys_len())?;
    for name in headers.keys() {
        let separator: &[u8] = if name == SET_COOKIE { b"\n" } else { b", " };
        let values: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        table.raw_set(name.as_str(), lua.create_string(values.join(separator))?)?;
    }
    Ok(table)
}

#[cfg(test)]
mod tests;

//! `http`: requests to the hosts that the spec grants, under `:allow (:net …)`.
//!
//! In: a URL and options. Out: status, headers and body, or an error that a script may catch. A request is read and
//! checked on the script's thread (`request`, `values`, `target`), judged (`grants`, `address`) and sent on the engine's
//! IO threads (`exchange`, `client`, `body`); the script is suspended meanwhile, and a call that ends takes its requests
//! along.
//!
//! Absent on purpose: cookies, caches, proxies, retries, HTTP/2, anything from the environment, a `response.json()`:
//! `json.decode(response.body)` says the same.

mod address;
mod body;
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
use self::exchange::{Answer, exchange};
use self::grants::Grants;
use self::request::{Called, Draft};
use super::{FunctionDoc, Host, Marks, TableDoc};
use crate::script::Script;
use crate::script::error::HostError;
use crate::script::io;

/// Most requests of a call at a time; others wait for their turn.
const MAX_REQUESTS: usize = 16;
/// Most mebibytes that the requests of a call may hold at a time: what is sent and received waits outside the script's
/// memory limit.
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
            "Sends a GET. `query` is added to the URL, escaped, by key; an array repeats its key. `timeout` is in seconds, for the \
             whole exchange, and ends at the call's deadline at the latest. `max_bytes` bounds the body after decompression \
             (8 MiB unless said, at most 32 MiB). `redirects` is how many are followed (5 unless said, at most 20); with 0 \
             a redirect is an answer like others.",
        )
        .needs(&["net"])
        .fails(
            "A host that the spec does not list under `:allow (:net [\"HOST\"])`, at the first hop or a later one, and a name that \
             leads to a private address (kind `permission`). What a script may want to catch: a name that cannot be \
             resolved, no connection, a certificate that is not trusted, a connection that breaks, `timeout`, a body beyond \
             `max_bytes`, too many redirects, one from https to http, more than 100 headers or 400 KiB of them. A status of 400 or above \
             is no error: look at `ok`.",
        )
        .as_in(
            "local r = http.get(\"https://api.example.org/weather\", { query = { q = \"Oslo\" }, timeout = 5 })\n\
             if not r.ok then error(tool.failure(\"the service answered \" .. r.status)) end\n\
             return json.decode(r.body)",
        ),
        FunctionDoc::new(
            "post",
            "(url: string, body: string?, options: HttpPostOptions?) -> HttpResponse",
            "Sends a POST with one of: `body`, bytes as they are; `json`, any value, as `application/json`; `form`, a table, as \
             `application/x-www-form-urlencoded`. A content type among `headers` stands before these.",
        )
        .needs(&["net"])
        .fails("As `get`; a body beyond 32 MiB; a `json` that has no JSON form or is longer than 1 MiB.")
        .as_in("http.post(\"https://api.example.org/notes\", nil, { json = { title = \"Milk\" } })"),
        FunctionDoc::new(
            "request",
            "(options: HttpRequestOptions) -> HttpResponse",
            "Sends any request; `method` is GET unless said and written in capitals for you.",
        )
        .needs(&["net"])
        .fails("As `post`; the methods CONNECT and TRACE.")
        .as_in("http.request({ method = \"DELETE\", url = \"https://api.example.org/notes/7\" })"),
    ],
    ..TableDoc::new(
        "http",
        "HTTP requests to the hosts that the spec grants. The script waits; others go on. A response has `status`, `ok` (200 to 299), \
         `url` (after redirects), `headers` and `body`. Names of headers are in lower case; repeated ones are joined by `, `, \
         those of `set-cookie` by line ends. The body is bytes, gzip unpacked; read JSON with `json.decode(r.body)`.\n\n\
         A grant is a host (`api.example.org`), the hosts beneath one (`*.example.org`), an address (`192.168.1.5`, `[::1]`) or `*`, \
         at the ports 80 and 443, or with a port (`localhost:8080`) or all of them (`localhost:*`). A name may only lead to \
         public addresses: grant a private one beside it (`[\"intranet.example\" \"10.0.0.5\"]`). `localhost` may lead to \
         loopback. Redirects are held to the same, and leave headers such as `authorization`, `cookie` and `x-api-key` behind when they \
         lead to another origin.\n\n\
         Refused: schemes but http and https, users in URLs, control characters and spaces in URLs, line ends in headers, \
         headers that frame the message (`host`, `content-length`, `connection`, …). Proxies, cookies and credentials of the \
         environment are never used. A call has at most 16 requests at a time, which together may hold 64 MiB; others wait for their turn.",
    )
};

pub(super) fn table(lua: &Lua, host: &Rc<Host>, marks: &Marks, script: &Script) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let caller = Rc::new(Caller {
        host: Rc::clone(host),
        array_mark: marks.array.clone(),
        grants: Grants::new(&script.permissions.net),
        turns: Semaphore::new(MAX_REQUESTS),
        room: Semaphore::new(MAX_MIB as usize),
    });
    for called in Called::ALL {
        let caller = Rc::clone(&caller);
        let function = lua.create_async_function(move |lua, arguments: MultiValue| {
            let caller = Rc::clone(&caller);
            async move { caller.call(&lua, called, arguments).await }
        })?;
        table.raw_set(called.field(), function)?;
    }
    Ok(table)
}

/// What the requests of one state share.
struct Caller {
    host: Rc<Host>,
    array_mark: Table,
    grants: Grants,
    turns: Semaphore,
    room: Semaphore,
}

impl Caller {
    async fn call(&self, lua: &Lua, called: Called, arguments: MultiValue) -> mlua::Result<Table> {
        let _waiting = self.host.wait(called.name())?;
        // Before anything is copied.
        let _turn = self.turns.acquire().await.map_err(mlua::Error::external)?;
        let named =
            |error: HostError| HostError::lua(error.kind, format!("{}: {}", called.name(), error.message));
        let draft = Draft::read(called, &arguments, &self.array_mark)?;
        self.grants.check(draft.url()).map_err(named)?;
        let mib = u32::try_from(draft.cost().div_ceil(1 << 20)).unwrap_or(MAX_MIB).min(MAX_MIB);
        let _room = self.room.acquire_many(mib).await.map_err(mlua::Error::external)?;
        let (request, grants) = (draft.into_request(), self.grants.clone());
        let answered = io::run(async move { exchange(&CLIENTS, &grants, request).await }).await;
        let answer = answered.map_err(named)?;
        response(lua, answer)
    }
}

fn response(lua: &Lua, answer: Answer) -> mlua::Result<Table> {
    let response = lua.create_table_with_capacity(0, 5)?;
    response.raw_set("status", answer.status)?;
    response.raw_set("ok", (200..300).contains(&answer.status))?;
    response.raw_set("url", answer.url.as_str())?;
    response.raw_set("headers", headers(lua, &answer.headers)?)?;
    response.raw_set("body", lua.create_string(&answer.body)?)?;
    Ok(response)
}

/// Repeated headers are one list (RFC 9110, section 5.3), but for `set-cookie`, whose values hold commas.
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

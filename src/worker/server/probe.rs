//! What a server answers when it is asked whether it is there.
//!
//! `GET …/v1/models` for every server; llama.cpp's also tells which of its slots are busy (`GET /slots`,
//! tools/server/README.md of ggml-org/llama.cpp, 2026-10; a server may have it switched off).

use std::time::Duration;

use reqwest::header::ACCEPT_ENCODING;
use reqwest::{Client, Url};
use serde_json::Value;

use crate::worker::http::{is_refused, root_cause};

/// Longer answers are not read on.
const MAX_BODY: usize = 4 << 20;

/// What `GET …/models` gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::worker) enum Probe {
    /// 200 and JSON.
    Good,
    /// Another answer, with its status and what it was.
    Answered(u16, String),
    /// None; why.
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

/// Asks for the models.
pub(in crate::worker) async fn probe(
    client: &Client,
    models: &Url,
    key: Option<&str>,
    limit: Duration,
) -> Probe {
    match ask(client, models, key, limit).await {
        Ok((200, Some(_))) => Probe::Good,
        Ok((200, None)) => Probe::Answered(200, String::from("with something that is no JSON")),
        Ok((status, body)) => {
            let body = body.unwrap_or_default();
            let said = ["/error/message", "/error", "/message"];
            let said = said.iter().find_map(|pointer| body.pointer(pointer)?.as_str()).unwrap_or_default();
            let said: String = crate::text::one_line(said.to_owned()).chars().take(200).collect();
            Probe::Answered(status, said)
        }
        Err(why) => Probe::Silent(why),
    }
}

/// Asks how many slots are busy.
pub(super) async fn busy_slots(client: &Client, models: &Url, key: Option<&str>, limit: Duration) -> Slots {
    let Ok(url) = models.join("/slots") else { return Slots::Untold };
    match ask(client, &url, key, limit).await {
        Ok((200, Some(Value::Array(slots)))) => {
            let is_busy = |slot: &&Value| slot.get("is_processing").and_then(Value::as_bool) == Some(true);
            Slots::Busy(slots.iter().filter(is_busy).count())
        }
        Ok(_) => Slots::Untold,
        Err(_) => Slots::Silent,
    }
}

/// Status and JSON of an answer.
async fn ask(
    client: &Client,
    url: &Url,
    key: Option<&str>,
    limit: Duration,
) -> Result<(u16, Option<Value>), String> {
    let mut request = client.get(url.clone()).header(ACCEPT_ENCODING, "identity").timeout(limit);
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    let failed = |error: reqwest::Error| {
        if error.is_timeout() {
            format!("no answer within {} s", limit.as_secs_f64())
        } else if is_refused(&error) {
            String::from("nobody listens yet")
        } else {
            root_cause(&error)
        }
    };
    let mut response = request.send().await.map_err(failed)?;
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(failed)? {
        body.extend_from_slice(&bytes);
        if body.len() > MAX_BODY {
            break;
        }
    }
    Ok((response.status().as_u16(), serde_json::from_slice(&body).ok()))
}

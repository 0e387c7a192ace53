//! Event streams that violate the specification, or use rare parts of it.

use std::time::Duration;

use deftool_chat::Api;

use super::raw_events::{is_text_event, text_event};
use crate::answer::DONE;
use crate::fault::{Fault, Injection, Needs, new, pieces};
use crate::model::Piece;

pub(super) static TABLE: &[Fault] = &[
    pieces(
        "comments",
        "comments in several formats are sent between the events",
        "llama.cpp, llama-cpp-python, DeepSeek, OpenRouter",
        |pieces, _| {
            let comments = [
                ":\n\n",
                ": ping - 2026-01-01\n\n",
                ": keep-alive\n\n",
                ": OPENROUTER PROCESSING\n\n",
                ": x-cost=1\n\n",
            ];
            let mut comments = comments.into_iter().cycle();
            pieces
                .into_iter()
                .flat_map(|piece| comments.next().map(Piece::now).into_iter().chain([piece]))
                .collect()
        },
    ),
    pieces("crlf", "lines end with CR LF", "sse-starlette, Azure", |pieces, _| {
        with_line_ends(pieces, &["\r\n"])
    }),
    pieces("lone-cr", "lines end with CR", "allowed by the specification", |pieces, _| {
        with_line_ends(pieces, &["\r"])
    }),
    pieces("line-ends-mixed", "line ends alternate between LF, CR LF and CR", "proxies", |pieces, _| {
        with_line_ends(pieces, &["\n", "\r\n", "\r"])
    }),
    pieces("crlf-apart", "the CR and LF of a line end are sent in separate writes", "Azure", |pieces, _| {
        with_line_ends(pieces, &["\r\n"])
            .into_iter()
            .flat_map(|Piece { wait, bytes }| {
                let mut parts: Vec<Piece> =
                    bytes.split_inclusive(|byte| *byte == b'\r').map(Piece::now).collect();
                if let Some(first) = parts.first_mut() {
                    first.wait = wait;
                }
                parts
            })
            .collect()
    }),
    pieces("bom", "the stream starts with a byte order mark", "proxies", |mut pieces, _| {
        pieces.insert(0, Piece::now("\u{feff}"));
        pieces
    }),
    pieces(
        "blank-lines-first",
        "the stream starts with blank lines",
        "DeepSeek, 9router",
        |mut pieces, _| {
            pieces.insert(0, Piece::now("\n\n\r\n\n"));
            pieces
        },
    ),
    pieces("no-space", "the space after `data:` is missing", "proxies", |pieces, _| {
        each_text(pieces, |text| text.replacen("data: ", "data:", 1))
    }),
    pieces(
        "data-on-lines",
        "the JSON of an event is split into several `data:` lines",
        "proxies",
        |pieces, _| each_text(pieces, |text| text.replacen(",\"", ",\ndata: \"", 1)),
    ),
    pieces(
        "event-and-id-lines",
        "events have `event`, `id` and `retry` lines",
        "KoboldCpp, proxies",
        |pieces, _| each_text(pieces, |text| format!("event: message\nid: 7\nretry: 3000\n{text}")),
    ),
    pieces(
        "blank-lines-missing",
        "the blank lines between the events are missing",
        "hand-written servers",
        |pieces, _| each_text(pieces, |text| text.replace("\n\n", "\n")),
    ),
    new(
        "event-cut",
        "an event in the middle of a call is truncated",
        "gateways that truncate a line",
        Needs::Call,
        Injection::Pieces(|mut pieces, _| {
            let at = pieces.len() / 2;
            if let Some(piece) = pieces.get_mut(at) {
                let half = piece.bytes.len() / 2;
                piece.bytes.truncate(half);
                piece.bytes.extend_from_slice(b"\n\n");
            }
            pieces
        }),
    ),
    pieces("done-missing", "`[DONE]` is missing", "many servers", |pieces, _| without_done(pieces))
        .chat_only(),
    pieces(
        "done-unclosed",
        "`[DONE]` is not followed by a line end or a blank line",
        "llama-server b10603",
        |pieces, _| each_text(pieces, |text| if text == DONE { String::from("data: [DONE]") } else { text }),
    )
    .chat_only(),
    pieces("done-twice", "`[DONE]` is sent twice", "proxies that append `[DONE]`", |mut pieces, _| {
        pieces.push(Piece::now(DONE));
        pieces
    })
    .chat_only(),
    pieces("done-early", "`[DONE]` is sent before the finish reason", "gateways", |pieces, _| {
        let mut pieces = without_done(pieces);
        // Before the finish reason and the token counts.
        pieces.insert(pieces.len().saturating_sub(2), Piece::now(DONE));
        pieces
    })
    .chat_only(),
    pieces("done-padded", "`[DONE]` has spaces around it", "hand-written servers", |pieces, _| {
        each_text(pieces, |text| if text == DONE { String::from("data:   [DONE]  \n\n") } else { text })
    })
    .chat_only(),
    pieces(
        "done-late",
        "`[DONE]` is sent one second after the finish reason",
        "gateways that count the tokens before `[DONE]`",
        |mut pieces, _| {
            for piece in pieces.iter_mut().filter(|piece| piece.bytes == DONE.as_bytes()) {
                piece.wait = Duration::from_secs(1);
            }
            pieces
        },
    )
    .chat_only(),
    pieces(
        "text-after-done",
        "text is sent after `[DONE]` (otherwise: after the final event)",
        "proxies that mix two streams",
        |mut pieces, api| {
            let text = pieces.iter().find(|piece| is_text_event(api, &piece.bytes)).cloned();
            pieces.extend(text);
            pieces
        },
    ),
    pieces(
        "done-in-text",
        "the text contains `data: [DONE]`, U+2028 and U+0085",
        "models that explain event streams",
        |mut pieces, api| {
            if let Some(at) = pieces.iter().position(|piece| is_text_event(api, &piece.bytes)) {
                let text = "\\n\u{2028}data: [DONE]\\n\\n\u{85}";
                pieces.insert(at + 1, Piece::now(text_event(api, text.as_bytes())));
            }
            pieces
        },
    ),
    pieces(
        "utf8-cut",
        "the bytes of a character are sent in several writes",
        "any server, any network",
        |mut pieces, api| {
            if let Some(at) = pieces.iter().position(|piece| is_text_event(api, &piece.bytes)) {
                pieces.insert(at + 1, Piece::now(text_event(api, "na\u{ef}ve \u{1f600} ".as_bytes())));
            }
            let cut = |Piece { wait, bytes }: Piece| {
                // After the first byte of each character.
                let mut parts: Vec<Piece> =
                    bytes.split_inclusive(|byte| *byte >= 0xc0).map(Piece::now).collect();
                if let Some(first) = parts.first_mut() {
                    first.wait = wait;
                }
                parts
            };
            pieces.into_iter().flat_map(cut).collect()
        },
    ),
    pieces("byte-by-byte", "every byte is sent in its own write", "slow networks", |pieces, _| {
        let bytes = |piece: Piece| piece.bytes.into_iter().map(|byte| Piece::now([byte]));
        pieces.into_iter().flat_map(bytes).collect()
    }),
    pieces("at-once", "the whole stream is sent in one write", "proxies that buffer", |pieces, _| {
        vec![Piece::now(pieces.into_iter().flat_map(|piece| piece.bytes).collect::<Vec<u8>>())]
    }),
    pieces(
        "error-field",
        "an error is sent in the middle of the reply, in an `error:` line instead of `data:`",
        "llama.cpp until 2025-09",
        |pieces, _| {
            broken_off(
                pieces,
                "error: {\"code\":500,\"message\":\"out of memory\",\"type\":\"server_error\"}\n\n",
            )
        },
    ),
    pieces(
        "error-event",
        "an error is sent in the middle of the reply, as an event named `error`",
        "gateways",
        |pieces, _| broken_off(pieces, "event: error\ndata: {\"message\":\"out of memory\"}\n\n"),
    ),
    pieces(
        "error-words",
        "an error is sent in the middle of the reply, as plain text instead of JSON",
        "hand-written servers",
        |pieces, _| broken_off(pieces, "data: out of memory\n\n"),
    ),
    pieces(
        "json-broken",
        "an event in the middle of the reply is truncated to invalid JSON",
        "proxies that truncate events",
        |mut pieces, _| {
            let middle = pieces.len() / 2;
            if let Some(piece) = pieces.get_mut(middle) {
                piece.bytes.truncate(piece.bytes.len() * 2 / 3);
                piece.bytes.extend_from_slice(b"\n\n");
            }
            pieces
        },
    ),
    pieces("json-bomb", "one event is nested 100,000 levels deep", "an attack", |mut pieces, api| {
        let bomb = "[".repeat(100_000);
        let member = match api {
            Api::ChatCompletions => "choices",
            Api::Responses => "item",
            Api::Messages => "delta",
        };
        pieces.insert(pieces.len() / 2, Piece::now(format!("data: {{\"{member}\":{bomb}\n\n")));
        pieces
    }),
    pieces(
        "utf8-invalid",
        "the text contains invalid UTF-8",
        "servers that split characters between tokens",
        |mut pieces, api| {
            pieces.insert(pieces.len() / 2, Piece::now(text_event(api, b"\xff\xfe")));
            pieces
        },
    ),
    pieces(
        "nul-bytes",
        "NUL bytes are sent between events, and inside an event",
        "memory corruption",
        |mut pieces, api| {
            pieces.insert(pieces.len() / 2, Piece::now(text_event(api, b"\\u0000")));
            pieces.insert(1.min(pieces.len()), Piece::now("\0\0\n\n"));
            pieces
        },
    ),
    pieces("line-long", "one event is a line of 2 MB", "any server", |mut pieces, api| {
        let text = "a word on a line that goes on and on, ".repeat(55_000);
        pieces.insert(pieces.len() / 2, Piece::now(text_event(api, text.as_bytes())));
        pieces
    }),
];

fn each_text(mut pieces: Vec<Piece>, change: impl Fn(String) -> String) -> Vec<Piece> {
    for piece in &mut pieces {
        let text = String::from_utf8_lossy(&piece.bytes).into_owned();
        piece.bytes = change(text).into_bytes();
    }
    pieces
}

fn with_line_ends(pieces: Vec<Piece>, ends: &[&str]) -> Vec<Piece> {
    let mut ends = ends.iter().copied().cycle();
    let mut written = Vec::new();
    for Piece { wait, bytes } in pieces {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let lines = text.split_inclusive('\n');
        let text: String = lines
            .flat_map(|line| match line.strip_suffix('\n') {
                Some(line) => [line, ends.next().unwrap_or("\n")],
                None => [line, ""],
            })
            .collect();
        written.push(Piece { wait, bytes: text.into_bytes() });
    }
    written
}

fn without_done(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.retain(|piece| piece.bytes != DONE.as_bytes());
    pieces
}

/// Returns the first half of the pieces, then `last`.
fn broken_off(mut pieces: Vec<Piece>, last: &str) -> Vec<Piece> {
    pieces.truncate(pieces.len() / 2);
    pieces.push(Piece::now(last));
    pieces
}

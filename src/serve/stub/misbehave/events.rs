//! Event streams that are written otherwise than the specification says, or as few read it.

use std::time::Duration;

use super::speech::{is_said, said};
use super::{Bend, Misbehaviour, Needs, new, pieces};
use crate::chat::Api;
use crate::serve::stub::answer::DONE;
use crate::serve::stub::material::Piece;

pub(super) static TABLE: &[Misbehaviour] = &[
    pieces(
        "comments",
        "comments of every kind come between the events",
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
    pieces("line-ends-mixed", "lines end with LF, CR LF and CR in turn", "proxies", |pieces, _| {
        with_line_ends(pieces, &["\n", "\r\n", "\r"])
    }),
    pieces("crlf-apart", "CR and LF of one line end come in two writes", "Azure", |pieces, _| {
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
    pieces("bom", "the stream begins with a byte order mark", "proxies", |mut pieces, _| {
        pieces.insert(0, Piece::now("\u{feff}"));
        pieces
    }),
    pieces(
        "blank-lines-first",
        "the stream begins with blank lines",
        "DeepSeek, 9router",
        |mut pieces, _| {
            pieces.insert(0, Piece::now("\n\n\r\n\n"));
            pieces
        },
    ),
    pieces("no-space", "no blank stands behind `data:`", "proxies", |pieces, _| {
        each_text(pieces, |text| text.replacen("data: ", "data:", 1))
    }),
    pieces("data-on-lines", "the JSON of an event stands on several data lines", "proxies", |pieces, _| {
        each_text(pieces, |text| text.replacen(",\"", ",\ndata: \"", 1))
    }),
    pieces(
        "event-and-id-lines",
        "events have `event`, `id` and `retry` lines",
        "KoboldCpp, proxies",
        |pieces, _| each_text(pieces, |text| format!("event: message\nid: 7\nretry: 3000\n{text}")),
    ),
    pieces("blank-lines-missing", "no blank line parts the events", "hand-written servers", |pieces, _| {
        each_text(pieces, |text| text.replace("\n\n", "\n"))
    }),
    new(
        "event-cut",
        "an event in the middle of a call is cut off",
        "gateways that truncate a line",
        Needs::Call,
        Bend::Pieces(|mut pieces, _| {
            let at = pieces.len() / 2;
            if let Some(piece) = pieces.get_mut(at) {
                let half = piece.bytes.len() / 2;
                piece.bytes.truncate(half);
                piece.bytes.extend_from_slice(b"\n\n");
            }
            pieces
        }),
    ),
    pieces("done-missing", "`[DONE]` never comes", "many", |pieces, _| without_done(pieces)).of_chat(),
    pieces(
        "done-unclosed",
        "no blank line, nor a line end, follows `[DONE]`",
        "llama-server b10603",
        |pieces, _| each_text(pieces, |text| if text == DONE { String::from("data: [DONE]") } else { text }),
    )
    .of_chat(),
    pieces("done-twice", "`[DONE]` comes twice", "proxies that add their own", |mut pieces, _| {
        pieces.push(Piece::now(DONE));
        pieces
    })
    .of_chat(),
    pieces("done-early", "`[DONE]` comes before the finish reason", "gateways", |pieces, _| {
        let mut pieces = without_done(pieces);
        // The finish reason and the token counts stay behind it.
        pieces.insert(pieces.len().saturating_sub(2), Piece::now(DONE));
        pieces
    })
    .of_chat(),
    pieces("done-padded", "`[DONE]` has blanks around it", "hand-written servers", |pieces, _| {
        each_text(pieces, |text| if text == DONE { String::from("data:   [DONE]  \n\n") } else { text })
    })
    .of_chat(),
    pieces(
        "done-late",
        "`[DONE]` comes a second after the finish reason",
        "gateways that count tokens first",
        |mut pieces, _| {
            for piece in pieces.iter_mut().filter(|piece| piece.bytes == DONE.as_bytes()) {
                piece.wait = Duration::from_secs(1);
            }
            pieces
        },
    )
    .of_chat(),
    pieces(
        "text-after-done",
        "more text comes after the end of the reply, `[DONE]`",
        "proxies that mix two streams up",
        |mut pieces, api| {
            let text = pieces.iter().find(|piece| is_said(api, &piece.bytes)).cloned();
            pieces.extend(text);
            pieces
        },
    ),
    pieces(
        "done-in-text",
        "the text holds `data: [DONE]`, U+2028 and U+0085",
        "any model that is asked about event streams",
        |mut pieces, api| {
            if let Some(at) = pieces.iter().position(|piece| is_said(api, &piece.bytes)) {
                let text = "\\n\u{2028}data: [DONE]\\n\\n\u{85}";
                pieces.insert(at + 1, Piece::now(said(api, text.as_bytes())));
            }
            pieces
        },
    ),
    pieces(
        "utf8-cut",
        "the bytes of a character come in several writes",
        "any server, any network",
        |mut pieces, api| {
            if let Some(at) = pieces.iter().position(|piece| is_said(api, &piece.bytes)) {
                pieces.insert(at + 1, Piece::now(said(api, "na\u{ef}ve \u{1f600} ".as_bytes())));
            }
            let cut = |Piece { wait, bytes }: Piece| {
                // Behind the first byte of each.
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
    pieces("byte-by-byte", "every byte comes in a write of its own", "slow networks", |pieces, _| {
        let bytes = |piece: Piece| piece.bytes.into_iter().map(|byte| Piece::now([byte]));
        pieces.into_iter().flat_map(bytes).collect()
    }),
    pieces("at-once", "the whole stream comes in one write", "proxies that buffer", |pieces, _| {
        vec![Piece::now(pieces.into_iter().flat_map(|piece| piece.bytes).collect::<Vec<u8>>())]
    }),
    pieces(
        "error-field",
        "an error comes in the middle in a field named `error`",
        "llama.cpp until 2025-09",
        |pieces, _| {
            broken_off(
                pieces,
                "error: {\"code\":500,\"message\":\"out of memory\",\"type\":\"server_error\"}\n\n",
            )
        },
    ),
    pieces("error-event", "an error comes in the middle as `event: error`", "gateways", |pieces, _| {
        broken_off(pieces, "event: error\ndata: {\"message\":\"out of memory\"}\n\n")
    }),
    pieces(
        "error-words",
        "an error comes in the middle as words, not JSON",
        "hand-written servers",
        |pieces, _| broken_off(pieces, "data: out of memory\n\n"),
    ),
    pieces(
        "json-broken",
        "one event in the middle is broken JSON",
        "proxies that cut events",
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
        };
        pieces.insert(pieces.len() / 2, Piece::now(format!("data: {{\"{member}\":{bomb}\n\n")));
        pieces
    }),
    pieces(
        "utf8-invalid",
        "the text holds bytes that are not UTF-8",
        "servers that cut tokens",
        |mut pieces, api| {
            pieces.insert(pieces.len() / 2, Piece::now(said(api, b"\xff\xfe")));
            pieces
        },
    ),
    pieces(
        "nul-bytes",
        "NUL bytes stand between the events and inside one",
        "memory gone wrong",
        |mut pieces, api| {
            pieces.insert(pieces.len() / 2, Piece::now(said(api, b"\\u0000")));
            pieces.insert(1.min(pieces.len()), Piece::now("\0\0\n\n"));
            pieces
        },
    ),
    pieces("line-long", "one event is a line of 2 MB", "any server", |mut pieces, api| {
        let text = "a word on a line that goes on and on, ".repeat(55_000);
        pieces.insert(pieces.len() / 2, Piece::now(said(api, text.as_bytes())));
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

/// The first half of the pieces, then this and nothing more.
fn broken_off(mut pieces: Vec<Piece>, last: &str) -> Vec<Piece> {
    pieces.truncate(pieces.len() / 2);
    pieces.push(Piece::now(last));
    pieces
}

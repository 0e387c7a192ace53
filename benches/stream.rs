//! Decoding a reply: the cost of one text chunk in llama.cpp's format, and the cost of the search for calls written as
//! text.
//!
//! The relevant figure is the time per item (one text chunk). Goal: at most one microsecond.

#![allow(clippy::expect_used)]

use std::sync::Arc;

use deftool_chat::request::{BiosV1, Fallback, Run, RunConfig, RunStart};
use deftool_chat::{Api, ChatEvent, StreamDecoder, TransportEnd};
use deftool_lang::schema::{ToolEntry, ToolKind, ToolSet};
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};

const CHUNKS: usize = 2_000;

/// Returns bytes in llama.cpp's format. Word lengths vary like tokens; some words have escapes or non-ASCII characters.
fn text_stream() -> Vec<Vec<u8>> {
    let words =
        [" the", " ship", ".", "\\n\\n", " Maverick", "'s", " \\\"Rev", "enge", " é", " of", " 日本", "1"];
    let chunk = |word: &&str| {
        format!(
            "data: {{\"choices\":[{{\"finish_reason\":null,\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}],\
             \"created\":1795145193,\"id\":\"chatcmpl-dyUPgHOJyzgakZIaXVtVC3rtlT0TdQxd\",\"model\":\"smollm2.gguf\",\
             \"system_fingerprint\":\"b0-unknown\",\"object\":\"chat.completion.chunk\"}}\n\n"
        )
        .into_bytes()
    };
    words.iter().cycle().take(CHUNKS).map(chunk).collect()
}

/// Returns the same for the arguments of one call.
fn call_stream() -> Vec<Vec<u8>> {
    let chunk = |number: usize| {
        let (head, piece) = match number {
            0 => (
                "\"id\":\"O2yczr3c\",\"type\":\"function\",",
                "\"name\":\"f\",\"arguments\":\"{\\\"s\\\":\\\"\"",
            ),
            _ if number + 1 == CHUNKS => ("", "\"arguments\":\"\\\"}\""),
            _ => ("", "\"arguments\":\" word\""),
        };
        format!(
            "data: {{\"choices\":[{{\"finish_reason\":null,\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,{head}\
             \"function\":{{{piece}}}}}]}}}}],\"created\":1795146004,\"id\":\"chatcmpl-VdDLgNblgRkIeVIrJVuFk473OlDw\",\
             \"model\":\"smollm2.gguf\",\"system_fingerprint\":\"b0-unknown\",\"object\":\"chat.completion.chunk\"}}\n\n"
        )
        .into_bytes()
    };
    (0..CHUNKS).map(chunk).collect()
}

fn decode<'a>(reads: impl Iterator<Item = &'a [u8]>) -> usize {
    let mut decoder = StreamDecoder::new(Api::ChatCompletions, [String::from("f")]);
    let mut events: Vec<ChatEvent> = Vec::new();
    let mut count = 0;
    for read in reads {
        decoder.feed(black_box(read), &mut events);
        // A driver forwards the events of one read before the next read.
        count += events.len();
        events.clear();
    }
    decoder.finish(TransportEnd::Clean, &mut events);
    black_box(&events);
    count
}

fn run(bencher: Bencher<'_, '_>, chunks: &[Vec<u8>], read_bytes: Option<usize>) {
    let whole = chunks.concat();
    let bencher = bencher.counter(ItemsCount::new(chunks.len())).counter(BytesCount::new(whole.len()));
    match read_bytes {
        Some(size) => bencher.bench(|| decode(whole.chunks(size))),
        None => bencher.bench(|| decode(chunks.iter().map(Vec::as_slice))),
    }
}

#[divan::bench]
fn text_in_reads_of_16_kib(bencher: Bencher<'_, '_>) {
    run(bencher, &text_stream(), Some(16 * 1024));
}

#[divan::bench]
fn text_one_chunk_a_read(bencher: Bencher<'_, '_>) {
    run(bencher, &text_stream(), None);
}

#[divan::bench]
fn text_in_reads_of_100_bytes(bencher: Bencher<'_, '_>) {
    run(bencher, &text_stream(), Some(100));
}

#[divan::bench]
fn call_one_chunk_a_read(bencher: Bencher<'_, '_>) {
    run(bencher, &call_stream(), None);
}

/// Sends plain text in token-sized pieces through the request state machine. One item is one piece.
fn request(bencher: Bencher<'_, '_>, fallback: Fallback, pieces_an_event: usize) {
    let words =
        [" the", " ship", ".", "\n\n", " Maverick", "'s", " `Rev", "enge`", " é", " of", " 日本", "1"];
    let pieces: Vec<&str> = words.into_iter().cycle().take(CHUNKS).collect();
    let events: Vec<String> = pieces.chunks(pieces_an_event).map(<[&str]>::concat).collect();
    let definition = serde_json::json!({"type": "function", "function": {"name": "f"}});
    let tool = ToolEntry::new(ToolKind::Normal, definition, None).expect("a tool without parameters");
    let tools = ToolSet::new([Arc::new(tool)]);
    let config = RunConfig { fallback, ..RunConfig::default() };
    let start = RunStart { request_id: String::from("r1"), id_seed: 1, ..RunStart::default() };
    bencher.counter(ItemsCount::new(pieces.len())).bench(|| {
        let mut run = Run::new(config.clone(), start.clone());
        run.next_step(&tools, &BiosV1);
        for text in &events {
            run.on_event(ChatEvent::Text { text: text.clone() }, &tools, 1);
            black_box(run.take_events());
        }
        run
    });
}

#[divan::bench(args = ["off", "auto", "on"])]
fn shown_one_piece_an_event(bencher: Bencher<'_, '_>, fallback: &str) {
    request(bencher, named(fallback), 1);
}

#[divan::bench(args = ["off", "auto", "on"])]
fn shown_300_pieces_an_event(bencher: Bencher<'_, '_>, fallback: &str) {
    request(bencher, named(fallback), 300);
}

fn named(fallback: &str) -> Fallback {
    match fallback {
        "auto" => Fallback::Auto,
        "on" => Fallback::On,
        _ => Fallback::Off,
    }
}

fn main() {
    divan::main();
}

use crate::dialect::Dialect;
use deftool_lang::tool::Attachment;

use super::*;
use crate::dialect::Capabilities;
use crate::message::MessageToolCall;
use crate::{BodyEncoder, BodyFallbacks};

/// A PNG image of 100 by 100 pixels with `size` bytes.
fn image(size: usize) -> Attachment {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x64\0\0\0\x64".to_vec();
    bytes.resize(size, 7);
    Attachment::new(bytes, "image/png").unwrap()
}

/// A PNG image of this width.
fn wide(width: u32) -> Attachment {
    let start = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice();
    Attachment::new([start, &width.to_be_bytes(), b"\0\0\0\x64"].concat(), "").unwrap()
}

fn audio() -> Attachment {
    Attachment::new(b"RIFF\0\0\0\0WAVE".to_vec(), "audio/wav").unwrap()
}

fn user(text: &str, attachments: Vec<Attachment>) -> Message {
    let lines: Vec<String> = attachments.iter().map(Attachment::line).collect();
    Message::User { content: format!("{text}{}", lines.concat()), attachments }
}

fn result(id: &str, attachments: Vec<Attachment>) -> Message {
    let lines: Vec<String> = attachments.iter().map(Attachment::line).collect();
    Message::Tool { tool_call_id: id.to_owned(), content: lines.concat(), attachments }
}

fn calls(ids: &[&str]) -> Message {
    let tool_calls = ids.iter().map(|id| MessageToolCall::new(*id, "f", "{}")).collect();
    Message::Assistant { content: String::new(), tool_calls, received: None }
}

fn request(messages: Vec<Message>) -> ChatRequest {
    ChatRequest { messages: messages.into_iter().map(Arc::new).collect(), ..ChatRequest::default() }
}

fn form(api: Api, fallbacks: &[BodyFallback]) -> BodyForm {
    BodyForm { api, fallbacks: BodyFallbacks::from(fallbacks.to_vec()), ..BodyForm::default() }
}

/// Returns the messages or items of a body, with the start of long strings.
fn sent(request: &ChatRequest, form: BodyForm) -> Value {
    let mut body = request.encode_body(form).to_value();
    shorten(&mut body);
    let member = if form.api == Api::Responses { "input" } else { "messages" };
    body[member].take()
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some((start, _)) = text.split_once("iVBOR") {
                *text = format!("{start}…");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}

const LINE: &str = "[image: image/png, 100×100, 99 bytes]";

#[test]
fn completions_place_the_images_of_results_after_the_last_result() {
    let request = request(vec![
        user("Look: ", vec![image(99)]),
        calls(&["1", "2", "3"]),
        result("1", vec![image(99)]),
        result("2", vec![]),
        result("3", vec![image(99)]),
        Message::System { content: String::from("left: 1") },
    ]);
    let part = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,…"}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let expected = json!([
        {"role": "user", "content": [text(&format!("Look: {LINE}")), part]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "2", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "3", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "1", "content": LINE},
        {"role": "tool", "tool_call_id": "2", "content": ""},
        {"role": "tool", "tool_call_id": "3", "content": LINE},
        {"role": "user", "content": [text(OF_RESULTS), part, part]},
        {"role": "system", "content": "left: 1"},
    ]);
    assert_eq!(sent(&request, form(Api::ChatCompletions, &[])), expected);
    // Without roles for results, the images stay with their text.
    let plain = sent(&request, form(Api::ChatCompletions, &[BodyFallback::PlainRoles]));
    let text_of_results = format!("Result of f:\n{LINE}\n\nResult of f:\n\n\nResult of f:\n{LINE}");
    assert_eq!(plain[3], json!({"role": "user", "content": [text(&text_of_results), part, part]}));
}

#[test]
fn the_responses_api_takes_images_in_results() {
    let request = request(vec![user("Look: ", vec![image(99)]), calls(&["1"]), result("1", vec![image(99)])]);
    let part = json!({"type": "input_image", "image_url": "data:image/png;base64,…", "detail": "auto"});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let items = sent(&request, form(Api::Responses, &[]));
    assert!(request.encode_body(form(Api::Responses, &[])).unsent().is_empty());
    assert_eq!(items[0]["content"], json!([text(&format!("Look: {LINE}")), part]));
    assert_eq!(items[2]["output"], json!([text(LINE), part]));
}

#[test]
fn the_messages_api_takes_images_in_results() {
    let request = request(vec![user("Look: ", vec![image(99)]), calls(&["1"]), result("1", vec![image(99)])]);
    let source = json!({"type": "base64", "media_type": "image/png", "data": "…"});
    let part = json!({"type": "image", "source": source});
    let text = |text: &str| json!({"type": "text", "text": text});
    let local =
        BodyForm { server: Capabilities::of(Dialect::named("llama-cpp")), ..form(Api::Messages, &[]) };
    let messages = sent(&request, local);
    assert_eq!(messages[0]["content"], json!([text(&format!("Look: {LINE}")), part]));
    let result = json!({"type": "tool_result", "tool_use_id": "1", "content": [text(LINE), part]});
    assert_eq!(messages[2]["content"], json!([result]));
}

#[test]
fn an_image_that_is_not_sent_has_its_reason_in_the_text() {
    use BodyFallback::{NoImages, NoResultImages};
    let server = |dialect, images, audio| Capabilities { images, audio, ..Capabilities::of(dialect) };
    let any = Capabilities::default();
    let llama = |images| server(Dialect::named("llama-cpp"), images, Some(true));
    let line = |reason: &str| format!("{}; not sent: {reason}]", LINE.trim_end_matches(']'));
    let none = "the server takes no images";
    for (api, server, fallbacks, prompt, result_text) in [
        (Api::ChatCompletions, any, &[NoImages][..], line(none), line(none)),
        (Api::Responses, any, &[NoImages], line(none), line(none)),
        (
            Api::ChatCompletions,
            any,
            &[NoResultImages],
            LINE.to_owned(),
            line("the server takes no images of results"),
        ),
        (Api::ChatCompletions, llama(Some(false)), &[], line(none), line(none)),
        (Api::ChatCompletions, llama(Some(true)), &[], LINE.to_owned(), LINE.to_owned()),
        (Api::ChatCompletions, llama(None), &[], LINE.to_owned(), LINE.to_owned()),
    ] {
        let request = request(vec![user("", vec![image(99)]), calls(&["1"]), result("1", vec![image(99)])]);
        let form = BodyForm { server, ..form(api, fallbacks) };
        let messages = sent(&request, form);
        let text = |message: &Value| match &message
            [if message.get("output").is_some() { "output" } else { "content" }]
        {
            Value::Array(parts) => parts[0]["text"].clone(),
            text => text.clone(),
        };
        assert_eq!(
            (text(&messages[0]), text(&messages[2])),
            (prompt.into(), result_text.into()),
            "{messages}"
        );
    }
}

#[test]
fn audio_is_sent_only_where_it_is_known_to_be_accepted() {
    let unsent = "[audio: audio/wav, 12 bytes; not sent: the server takes no audio]";
    let part = json!({"type": "input_audio", "input_audio": {"data": "UklGRgAAAABXQVZF", "format": "wav"}});
    let heard = json!([{"type": "text", "text": "[audio: audio/wav, 12 bytes]"}, part]);
    let of = |dialect, audio| Capabilities { audio, ..Capabilities::of(dialect) };
    for (api, server, model, expected) in [
        (Api::ChatCompletions, Capabilities::default(), "gpt-audio", heard.clone()),
        (Api::ChatCompletions, Capabilities::default(), "gpt-5.6", json!(unsent)),
        (Api::ChatCompletions, of(Dialect::named("llama-cpp"), Some(true)), "m", heard),
        (Api::ChatCompletions, of(Dialect::named("llama-cpp"), None), "m", json!(unsent)),
        (Api::ChatCompletions, of(Dialect::named("vllm"), None), "audio", json!(unsent)),
        (
            Api::Responses,
            Capabilities::default(),
            "gpt-audio",
            json!([{"type": "input_text", "text": unsent}]),
        ),
    ] {
        let request = ChatRequest { model: model.to_owned(), ..request(vec![user("", vec![audio()])]) };
        let messages = sent(&request, BodyForm { server, ..form(api, &[]) });
        assert_eq!(messages[0]["content"], expected, "{model}");
    }
}

/// The newest images are sent. Each row: the model and URL, the sizes of the images, and those that are sent.
#[test]
fn the_limits_of_the_server_apply() {
    let small = vec![200; 101];
    for (model, dialect, sizes, expected) in [
        ("claude-opus", "", vec![3_932_160, 3_932_161], vec![3_932_160]),
        ("gpt-5.6", "", vec![3_932_160, 3_932_161], vec![3_932_160, 3_932_161]),
        ("claude-opus", "", small.clone(), small[1..].to_vec()),
        ("x", "anthropic", small.clone(), small[1..].to_vec()),
        ("x", "groq", vec![300; 6], vec![300; 5]),
        ("x", "groq", vec![2_000_000, 2_400_000], vec![2_400_000]),
        ("x", "", vec![19_000_000, 18_000_000, 17_000_000], vec![18_000_000, 17_000_000]),
    ] {
        let images = sizes.iter().map(|size| user("", vec![image(*size)])).collect();
        let request = ChatRequest { model: model.to_owned(), ..request(images) };
        let server = Capabilities::of(Dialect::named(dialect));
        let messages: Cow<'_, [Arc<Message>]> = Cow::Borrowed(&request.messages);
        let (sent, unsent) = sent_attachments(messages, &request, BodyForm { server, ..BodyForm::default() });
        assert_eq!(unsent.lines.len(), request.messages.len() - expected.len(), "{model} {dialect}");
        let sizes = |messages: &[Arc<Message>]| -> Vec<usize> {
            messages
                .iter()
                .flat_map(|message| message.attachments())
                .map(|image| image.size() as usize)
                .collect()
        };
        assert_eq!(sizes(&sent), expected, "{model} {dialect}");
    }
    let request = ChatRequest { model: String::from("claude"), ..request(vec![user("", vec![wide(8_001)])]) };
    let text = sent(&request, BodyForm::default())[0]["content"].to_string();
    assert!(text.contains("8001×100, 24 bytes; not sent: more than 8000 pixels wide or high"), "{text}");
}

/// Each row: the model, the widths of images, the oldest first, and the number of the newest that are sent.
#[test]
fn many_images_must_be_small() {
    for (model, widths, expected) in [
        ("claude", vec![2_001; 21], 20),
        ("claude", vec![2_000; 21], 21),
        ("claude", [vec![100; 20], vec![2_001]].concat(), 20),
        ("claude", [vec![2_001], vec![100; 19]].concat(), 20),
        ("claude", [vec![2_001], vec![100; 21]].concat(), 21),
        ("gpt-5.6", vec![2_001; 21], 21),
    ] {
        let images = widths.iter().map(|width| user("", vec![wide(*width)])).collect();
        let request = ChatRequest { model: model.to_owned(), ..request(images) };
        let messages: Cow<'_, [Arc<Message>]> = Cow::Borrowed(&request.messages);
        let (sent, _) = sent_attachments(messages, &request, BodyForm::default());
        let is_sent: Vec<bool> = sent.iter().map(|message| !message.attachments().is_empty()).collect();
        let (old, new) = is_sent.split_at(widths.len() - expected);
        assert!(old.iter().all(|sent| !sent) && new.iter().all(|sent| *sent), "{model} {widths:?}");
    }
}

#[test]
fn a_missing_image_is_a_line() {
    let stored = serde_json::to_string(&user("", vec![image(99)])).unwrap();
    assert!(!stored.contains("base64") && stored.len() < 300, "{stored}");
    let request = request(vec![serde_json::from_str(&stored).unwrap()]);
    let content = &sent(&request, BodyForm::default())[0]["content"];
    assert_eq!(content, &json!(format!("{}; not sent: it was not stored]", LINE.trim_end_matches(']'))));
}

/// A line that was cut off with the end of a long result.
#[test]
fn a_text_without_the_line_gets_it() {
    let message = Message::User { content: String::from("Look"), attachments: vec![image(99)] };
    let messages = sent(&request(vec![message]), form(Api::ChatCompletions, &[BodyFallback::NoImages]));
    let line = "[image: image/png, 100×100, 99 bytes; not sent: the server takes no images]";
    assert_eq!(messages[0]["content"], json!(format!("Look\n\n{line}")));
}

/// The server rejects a request with an image. It accepted the images before the last reply.
#[test]
fn rejected_images_are_those_since_the_last_reply_and_then_all() {
    let mut messages = vec![user("", vec![image(90)]), calls(&["1"]), result("1", vec![image(91)])];
    let mut rejected = |fallback| {
        let request = request(messages.clone());
        let body = request.encode_body(BodyForm::default().after(fallback, &request));
        for message in &mut messages {
            let mut shared = Arc::new(message.clone());
            remove_rejected(&mut shared, body.rejected());
            *message = Message::clone(&shared);
        }
        // What remains is sent as before.
        let remaining = self::request(messages.clone()).encode_body(BodyForm::default());
        assert_eq!((remaining.json(), remaining.rejected()), (body.json(), &[][..]));
        body.unsent().concat()
    };
    let line = |size| format!("[image: image/png, 100×100, {size} bytes; not sent: {REJECTED}]");
    assert_eq!(rejected(BodyFallback::NoNewImages), line(91));
    assert_eq!(rejected(BodyFallback::NoNewImages), "");
    // The line of an image before the last reply was reported with it.
    assert_eq!(rejected(BodyFallback::NoEarlierImages), "");
    let texts = sent(&request(messages), BodyForm::default());
    assert_eq!((&texts[0]["content"], &texts[2]["content"]), (&json!(line(90)), &json!(line(91))));
}

#[test]
fn what_is_not_sent_is_reported_once() {
    let fallbacks = form(Api::ChatCompletions, &[BodyFallback::NoImages]);
    let mut messages = vec![user("", vec![image(99)])];
    let unsent = |messages: &[Message]| request(messages.to_vec()).encode_body(fallbacks).unsent().to_vec();
    assert_eq!(unsent(&messages).len(), 1);
    messages.extend([calls(&["1"]), result("1", vec![])]);
    assert_eq!(unsent(&messages).len(), 0);
    messages.extend([calls(&["2"]), result("2", vec![image(99), image(98)])]);
    assert_eq!(unsent(&messages).len(), 2);
}

#[test]
fn later_turns_repeat_the_same_bytes() {
    let mut messages = vec![user("", vec![image(5_000)]), calls(&["1"]), result("1", vec![image(99)])];
    let mut encoder = BodyEncoder::default();
    let first = encoder.encode(&request(messages.clone()), BodyForm::default());
    messages.extend([calls(&["2"]), result("2", vec![image(300)])]);
    let second = encoder.encode(&request(messages.clone()), BodyForm::default());
    let fresh = request(messages).encode_body(BodyForm::default());
    assert_eq!(second.json(), fresh.json());
    let end = first.json().len() - br#"],"stream":true,"stream_options":{"include_usage":true}}"#.len();
    assert_eq!(first.json()[..end], second.json()[..end]);
    // Images have no tokens per byte.
    assert!(second.conversation_bytes() < 1_500, "{}", second.conversation_bytes());
}

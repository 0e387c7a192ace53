//! The operations of sequences of observations: `tests/requests/NAME.txt` with the expected spans in `NAME.json`.
//! `UPDATE_EXPECT=1` writes them.
//!
//! A line of a sequence is a time, a kind and JSON. `request` begins it: the session, and the options of the observer.

use std::path::Path;
use std::sync::Mutex;

use deftool_record::Secrets;
use opentelemetry::{Array, StringValue};
use serde_json::{Map, json};

use super::*;

/// Returns the spans of a sequence as JSON.
fn spans_of(sequence: &str) -> Value {
    let operations = Arc::new(Mutex::new(Vec::new()));
    let sent = Arc::clone(&operations);
    let sink: Sink = Arc::new(move |operation| sent.lock().unwrap().push(operation));
    let mut request: Option<Box<dyn RequestObserver>> = None;
    let mut spans = 0xa0_u64;
    let mut trace = RequestTrace::default();
    for line in sequence.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut words = line.splitn(3, ' ');
        let (at_ms, kind) = (words.next().unwrap().parse().unwrap(), words.next().unwrap());
        let value: Value = serde_json::from_str(words.next().unwrap_or("null")).expect(line);
        let mut next_span = || {
            spans += 1;
            trace.request.as_ref().and_then(|span| span.child(spans))
        };
        let Some(request) = &mut request else {
            assert_eq!(kind, "request", "{line}");
            let session: Session = serde_json::from_value(value["session"].clone()).unwrap();
            trace = session.trace.clone();
            let mut secrets = Secrets::default();
            secrets.add_value(value["secret"].as_str().unwrap_or_default());
            let observer = OperationObserver {
                sink: Arc::clone(&sink),
                redaction: Arc::new(Redaction::new(value["key"].as_str(), secrets)),
                captures_content: value["content"] == true,
            };
            request = Some(observer.begin(&session));
            continue;
        };
        match kind {
            "event" => {
                let event: Event = serde_json::from_value(value).expect(line);
                request.observe(at_ms, Observation::Event(&event));
            }
            "sent" => {
                let attempt = value["attempt"].as_u64().unwrap() as u32;
                let chat: ChatRequest = serde_json::from_value(value).expect(line);
                let span = next_span();
                request.observe(at_ms, Observation::Sent { span: span.as_ref(), attempt, request: &chat });
            }
            "rejected" => {
                let status = value.as_u64().map(|status| status as u16);
                request.observe(at_ms, Observation::Rejected { status });
            }
            "chunk" => request.observe(at_ms, Observation::Chunk),
            "replied" => {
                let reply: Reply = serde_json::from_value(value["reply"].clone()).expect(line);
                request.observe(at_ms, Observation::Replied { reply: &reply, id: value["id"].as_str() });
            }
            "calling" => {
                let call: ToolCall = serde_json::from_value(value).expect(line);
                let span = next_span();
                request.observe(at_ms, Observation::Calling { span: span.as_ref(), call: &call });
            }
            "suspended" => request.observe(at_ms, Observation::Suspended),
            other => panic!("unknown kind `{other}`"),
        }
    }
    drop(request);
    let operations = std::mem::take(&mut *operations.lock().unwrap());
    operations.into_iter().map(shown).collect()
}

fn shown(operation: Operation) -> Value {
    let attributes: Map<String, Value> = operation
        .attributes
        .iter()
        .map(|attribute| {
            let value = match &attribute.value {
                AttributeValue::String(text) => json!(text.as_str()),
                AttributeValue::Array(Array::String(texts)) => {
                    texts.iter().map(StringValue::as_str).collect()
                }
                AttributeValue::I64(number) => json!(number),
                AttributeValue::F64(number) => json!(number),
                AttributeValue::Bool(flag) => json!(flag),
                other => panic!("{other:?}"),
            };
            (attribute.key.to_string(), value)
        })
        .collect();
    let mut names: Vec<&str> = operation.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a repeated attribute: {names:?}");
    let spans = operation.spans.as_ref();
    json!({
        "name": operation.name(),
        "span": spans.map(|spans| spans.own.traceparent()),
        "parent": spans.and_then(|spans| spans.parent).map(|(id, is_remote)| format!("{id:016x}{}", if is_remote { " remote" } else { "" })),
        "ms": [operation.start_ms, operation.end_ms],
        "gaps_ms": operation.gaps_ms,
        "attributes": attributes,
    })
}

#[test]
fn sequences_become_spans() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let found = spans_of(&std::fs::read_to_string(&path).unwrap());
        let found = serde_json::to_string_pretty(&found).unwrap() + "\n";
        let expected = path.with_extension("json");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&expected, &found).unwrap();
        }
        let expected = std::fs::read_to_string(&expected).unwrap_or_default();
        assert!(found == expected, "{}: UPDATE_EXPECT=1 updates it\n{found}", path.display());
        count += 1;
    }
    assert!(count >= 8);
}

//! The built-in tables: they have no findings, their words are those of the code, and each row has an effect.

use deftool_lang::spec::reference::{Key, KeyValue, Plist, key, keys};
use deftool_lang::spec::{self, Api, DIALECTS, FileKind};
use deftool_lang::syntax::parse;
use deftool_lang::text::Sources;
use serde_json::{Map, Value};

use super::known::{FILES, known};
use super::rows::{ErrorRows, Rows};
use super::*;
use crate::body::change::BodyFallback;
use crate::fallback::{Family, FormSet};
use crate::finish::FinishMeaning;
use crate::stream::report_of;

#[test]
fn the_built_in_files_have_no_findings() {
    let mut names = Vec::new();
    for text in FILES {
        let source = Sources::default().id_ahead(0);
        let (tree, syntax) = parse(source, text);
        let (definitions, findings) = spec::lower(source, text, &tree, FileKind::Specs);
        assert!(syntax.is_empty() && findings.is_empty(), "{syntax:?} {findings:?}");
        for dialect in definitions.dialects {
            assert_reads(dialect.rows);
            names.push(dialect.name.value);
        }
    }
    assert_eq!(names, DIALECTS);
}

#[test]
fn the_words_of_the_language_are_those_of_the_code() {
    let words = |plist, name| match key(plist, name).unwrap().value {
        KeyValue::Words(words) | KeyValue::WordList(words) => words,
        other => panic!("{name}: {other:?}"),
    };
    let code = |name: &Value| name.as_str().unwrap().replace('_', "-");
    let changes = BodyFallback::OTHERS.map(|change| code(&serde_json::to_value(change).unwrap()));
    assert_eq!(words(Plist::ErrorRow, "send"), changes);
    let forms: Vec<String> =
        Family::ALL.iter().map(|form| code(&serde_json::to_value(form).unwrap())).collect();
    assert_eq!(words(Plist::Model, "forms"), forms);
    let features: Vec<Feature> = words(Plist::Feature, "feature")
        .iter()
        .map(|name| serde_json::from_value(Value::from(*name)).unwrap())
        .collect();
    assert_eq!(features, Feature::ALL);
    let read = |plist, name, is_read: fn(Value) -> bool| {
        for word in words(plist, name) {
            assert!(is_read(Value::from(*word)), "{name}: {word}");
        }
    };
    read(Plist::ErrorRow, "means", |word| serde_json::from_value::<ErrorMeaning>(word).is_ok());
    read(Plist::Finish, "means", |word| serde_json::from_value::<FinishMeaning>(word).is_ok());
    read(Plist::Feature, "support", |word| serde_json::from_value::<Support>(word).is_ok());
    read(Plist::Model, "call-ids", |word| serde_json::from_value::<CallIds>(word).is_ok());
    read(Plist::Model, "reasoning", |word| serde_json::from_value::<ReasoningScope>(word).is_ok());
    read(Plist::Dialect, "details", |word| serde_json::from_value::<Details>(word).is_ok());
    read(Plist::Dialect, "api", |word| serde_json::from_value::<Api>(word).is_ok());
}

/// A form with all keys and the largest numbers has no findings, and is read whole.
#[test]
fn every_key_of_the_language_is_read() {
    let text = format!("(defdialect {})", all_keys(Plist::Dialect));
    let source = Sources::default().id_ahead(0);
    let (tree, _) = parse(source, &text);
    let (definitions, findings) = spec::lower(source, &text, &tree, FileKind::Specs);
    assert!(findings.is_empty(), "{text}\n{findings:?}");
    assert_reads(definitions.dialects.into_iter().next().unwrap().rows);
}

fn assert_reads(rows: Map<String, Value>) {
    let (after_errors, rows): (Map<_, _>, Map<_, _>) =
        rows.into_iter().partition(|(key, _)| ErrorRows::has(key));
    serde_json::from_value::<Rows>(Value::Object(rows)).unwrap();
    serde_json::from_value::<ErrorRows>(Value::Object(after_errors)).unwrap();
}

fn all_keys(plist: Plist) -> String {
    let pair = |key: &Key| format!(":{} {}", key.name, largest(key.value));
    keys(plist).iter().map(pair).collect::<Vec<_>>().join(" ")
}

fn largest(value: KeyValue) -> String {
    match value {
        KeyValue::Text => String::from("\"x\""),
        KeyValue::List => String::from("[\"x\"]"),
        KeyValue::Dialect => String::from("kimi"),
        KeyValue::Flag => String::from("t"),
        KeyValue::Number => u32::MAX.to_string(),
        KeyValue::Status => String::from("599"),
        KeyValue::Statuses => String::from("[100 599]"),
        KeyValue::Quantity => String::from("\"8760h\""),
        KeyValue::Any => String::from("(:error nil)"),
        KeyValue::Words(words) => words.last().unwrap().to_string(),
        KeyValue::WordList(words) => format!("[{}]", words.join(" ")),
        KeyValue::Plist(inner) => format!("({})", all_keys(inner)),
        KeyValue::Plists(inner) => format!("(({}))", all_keys(inner)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_row_has_a_source() {
    for dialect in Dialects::built_in().iter() {
        let rows = dialect.own().next().unwrap();
        assert!(!dialect.source().is_empty(), "{dialect:?}");
        let sources = rows.features.iter().map(|row| &row.source);
        let sources = sources.chain(rows.errors().iter().map(|row| &row.source));
        let sources = sources.chain(rows.finish.iter().map(|row| &row.source));
        let sources = sources.chain(rows.delays().iter().map(|row| &row.source));
        let mut sources = sources.chain(rows.models.iter().map(|row| &row.source));
        assert!(sources.all(|source| !source.is_empty()), "{dialect:?}");
    }
}

/// What the server of the example sends has the effect of the row, and not without the row.
#[test]
fn every_error_row_decides_about_its_example() {
    for dialect in Dialects::built_in().iter() {
        for row in dialect.own_errors() {
            let example = row.example.as_ref().unwrap_or_else(|| panic!("{dialect:?}: {row:?}"));
            let report = report_of(example.status, example.body().to_string().as_bytes());
            let (means, send) = dialect.tables("").explain(&report);
            let without = dialect.tables("").explain_without(&report, Some(row));
            assert!(
                row.means.is_none_or(|meaning| means == Some(meaning)),
                "{dialect:?}: {row:?}: {means:?}"
            );
            assert!(row.send.is_empty() || send == row.send, "{dialect:?}: {row:?}: {send:?}");
            assert_ne!((means, send), without, "{dialect:?}: the row is not needed: {row:?}");
            if row.names_text() {
                assert_eq!(Tables::default().explain(&report), (means, send), "on another server: {row:?}");
            }
        }
    }
}

#[test]
fn every_delay_row_decides_about_its_example() {
    for dialect in Dialects::built_in().iter() {
        for row in dialect.own_delays() {
            let example = row.example.as_ref().unwrap_or_else(|| panic!("{dialect:?}: {row:?}"));
            let body = example.body();
            let report = report_of(example.status, body.to_string().as_bytes());
            assert!(example.wait.is_some(), "{row:?}");
            assert_eq!(row.delay(&body, &report.message), example.wait, "{row:?}");
        }
    }
}

#[test]
fn each_finish_reason_has_one_meaning() {
    let mut known: Vec<&String> = Vec::new();
    for dialect in Dialects::built_in().iter() {
        for (reasons, meaning, _) in dialect.own_finish_reasons() {
            for reason in reasons {
                assert_eq!(dialect.finish_meaning(reason), Some(meaning), "{reason}");
                assert!(!known.contains(&reason), "{reason}");
                assert!(!reason.contains(|char: char| char == ':' || char.is_ascii_uppercase()), "{reason}");
                known.push(reason);
            }
        }
    }
    for (reason, meaning) in [
        ("STOP", Some(FinishMeaning::Finished)),
        ("MAX_TOKENS", Some(FinishMeaning::CutShort)),
        ("content_filter: SAFETY", Some(FinishMeaning::Filtered)),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", Some(FinishMeaning::Failed)),
        ("", None),
        ("stopped", None),
    ] {
        assert_eq!(Dialect::default().finish_meaning(reason), meaning, "{reason}");
    }
}

#[test]
fn hosts_and_models_name_their_dialects() {
    let dialects = Dialects::built_in();
    for (host, name) in [
        ("api.openai.com", Some("openai-com")),
        ("me.openai.azure.com", Some("azure")),
        ("openrouter.ai", Some("openrouter")),
        ("api.moonshot.cn", Some("kimi")),
        ("api.openai.com.example.org", None),
        ("127.0.0.1", None),
    ] {
        assert_eq!(dialects.of_host(host).map(Dialect::name), name, "{host}");
    }
    for (model, name) in [
        ("moonshotai/Kimi-K2.5", Some("kimi")),
        ("glm-5", Some("glm")),
        ("anthropic.claude-opus-4-8", Some("anthropic")),
        ("m", None),
        ("starling-7b", None),
    ] {
        assert_eq!(dialects.of_model(model).map(Dialect::name), name, "{model}");
    }
}

/// The rows of a user come first, also those of a dialect that the built-in ones are like.
#[test]
fn rows_of_users_precede_those_that_are_built_in() {
    let read = |text: &str| {
        let source = Sources::default().id_ahead(0);
        let (tree, _) = parse(source, text);
        let (definitions, findings) = spec::lower(source, text, &tree, FileKind::Specs);
        assert!(findings.is_empty(), "{findings:?}");
        definitions.dialects
    };
    let own = read(
        r#"(defdialect :name "mine" :like kimi :hosts ["llm.example.com"] :errors ((:says ["too big"] :means overflow)))
           (defdialect :name "openai" :finish ((:reasons ["bored"] :means finished)))"#,
    );
    let dialects = Dialects::with(&own);
    let mine = dialects.of_host("llm.example.com").unwrap();
    let report = |status, message: &str| Report {
        status: Some(status),
        codes: Vec::new(),
        message: message.to_owned(),
    };
    assert_eq!(mine.tables("").explain(&report(400, "It is TOO BIG")).0, Some(ErrorMeaning::Overflow));
    assert_eq!(mine.tables("").explain(&report(503, "x")).0, Some(ErrorMeaning::Busy), "of openai");
    assert_eq!(mine.provider(), "moonshot_ai", "of kimi");
    assert_eq!(dialects.named("groq").unwrap().finish_meaning("bored"), Some(FinishMeaning::Finished));
    assert_eq!(Dialect::named("groq").finish_meaning("bored"), None);
    assert_eq!(Dialects::with(&own).named("mine"), Some(mine), "equal dialects are stored once");
    assert_eq!(known("mine"), Some(mine));
    // Rows are added to a built-in dialect, whose hosts, probes and native calls stay.
    let own = read(
        r#"(defdialect :name "openai-com" :errors ((:says ["mine"] :means quota)))
        (defdialect :name "llama-cpp" :errors ((:says ["mine"] :means quota)))"#,
    );
    let dialects = Dialects::with(&own);
    let hosted = dialects.of_host("api.openai.com").unwrap();
    assert!(hosted.name() == "openai-com" && hosted.has_native_calls());
    assert_eq!(hosted.tables("").explain(&report(400, "mine")).0, Some(ErrorMeaning::Quota));
    let llama = |probe: (Dialect, &'static Probe)| {
        probe.0.name() == "llama-cpp" && probe.1.header.as_deref() == Some("llama.cpp")
    };
    assert!(dialects.probes().any(llama) && dialects.named("llama-cpp").unwrap().is_local());
    // Two dialects that are like each other.
    let own = read(r#"(defdialect :name "a" :like b) (defdialect :name "b" :like a :local t)"#);
    assert!(Dialects::with(&own).named("a").unwrap().is_local());
}

#[test]
fn models_are_known_by_their_names() {
    let forms = |families: &[Family]| families.iter().copied().collect::<FormSet>();
    for (name, families) in [
        ("Qwen/Qwen3-8B", &[Family::Hermes, Family::Qwen3Coder][..]),
        ("unsloth/GLM-4.6-GGUF:Q4_K_M", &[Family::Glm]),
        ("/models/gpt-oss-20b.gguf", &[Family::Harmony, Family::HarmonyStripped]),
        ("starling-7b", &[]),
        ("default", &[]),
    ] {
        assert_eq!(Dialect::default().text_forms(name), forms(families), "{name}");
    }
    let both = Dialect::default().text_forms("DeepSeek-R1-Distill-Qwen-7B");
    assert!(both.contains(Family::DeepSeek) && both.contains(Family::Hermes));
}

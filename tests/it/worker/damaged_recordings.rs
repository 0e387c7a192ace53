//! Recordings that are damaged, redacted or written by hand: errors and differences.

use std::sync::Arc;

use deftool_record::{Recorder, Recording, Redaction, ReplayOptions, Secrets};
use deftool_test_support::server::{Answer, Server};
use deftool_worker::{SubmitRequest, Worker};

use super::harness::*;
use super::recorded::{play, slow_recording};

/// Only an interrupted writer leaves an incomplete line, and only as the last one.
#[test]
fn an_invalid_line_is_an_error_unless_it_is_an_incomplete_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let good = slow_recording();
    let lines: Vec<&str> = good.lines().collect();
    let session = lines[0];
    let second = session.replacen("{\"", "{\"request\":2,\"", 1);
    let twice = "duplicate `session` line for this request";
    for (text, expected) in [
        (good.clone(), None),
        (format!("{session}\n{}\n{{\"record\":\"da", lines[1]), None),
        (format!("{session}\n{{\"record\":\"da\n{}\n", lines[1]), Some((2, "not a line of a recording"))),
        (format!("{session}\n{{\"record\":\"da\n"), Some((2, "not a line of a recording"))),
        // Only what is not JSON is incomplete, and never the first line.
        (String::from("{\"record\":\"se"), Some((1, "EOF while parsing a string"))),
        (format!("{session}\n{session}"), Some((2, twice))),
        (format!("{session}\n{session}\n"), Some((2, twice))),
        (format!("{session}\n{second}\n"), Some((2, twice))),
        (format!("{session}\n{}\n", second.replace("req_1", "req_2")), None),
        (format!("{}\n", lines[1]), Some((1, "expected a `session` line first"))),
        (String::new(), Some((1, "the file is empty"))),
    ] {
        std::fs::write(&path, &text).unwrap();
        match (Recording::read(&path), expected) {
            (Ok(_), None) => {}
            (Err(error), Some((line, why))) => {
                let error = error.to_string();
                assert!(error.contains(&format!("r.jsonl:{line}: ")) && error.contains(why), "{error}");
            }
            (read, expected) => panic!("{text}: {read:?}, not {expected:?}"),
        }
    }
}

/// A mark equals any text; the text around it is compared.
#[tokio::test]
async fn differences_next_to_a_secret_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let server = Server::script([Answer::text("fine")]);
    let with_system = |system: &str| {
        let mut config = config();
        config.run.system = Some(system.to_owned());
        config
    };
    let mut secrets = Secrets::default();
    secrets.add_value("hunter22");
    let recorder = Arc::new(Recorder::create(&path, Redaction::new(None, secrets)).unwrap());
    let worker = worker(&server, with_system("Log in as me with hunter22, then wait."));
    let request = SubmitRequest { recorder: Some(recorder.clone()), ..SubmitRequest::prompt("hello") };
    let id = worker.submit(request).unwrap();
    finish(&worker, &id).await;
    recorder.close().unwrap();
    for (system, is_same) in [
        ("Log in as me with hunter22, then wait.", true),
        ("Log in as me with something else, then wait.", true),
        ("Log in as you with hunter22, then wait.", false),
        ("Log in as me with hunter22, then go.", false),
    ] {
        let options = ReplayOptions { lenient: true, ..ReplayOptions::default() };
        let (_, differences) = play(&path, with_system(system), echo(), options).await;
        assert_eq!(differences.is_empty(), is_same, "{system}: {differences:?}");
    }
    drop::<Worker>(worker);
}

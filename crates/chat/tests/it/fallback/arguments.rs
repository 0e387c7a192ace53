//! The arguments of calls that are JSON objects, under any key.

use deftool_chat::request::Fallback;
use serde_json::Value;

use super::read::{Expected, families, reader};

/// Every key of arguments.
const KEYS: [&str; 5] = ["arguments", "parameters", "input", "args", "params"];

#[test]
fn arguments_are_read_under_any_key_and_never_lost() {
    let mut read_families = Vec::new();
    for family in families().into_iter().filter(|family| family.marked) {
        for specimen in family.hits() {
            let Expected::Calls { calls, signals, .. } = &specimen.expected else { continue };
            let is_filled =
                |(_, arguments): &(String, Value)| arguments.as_object().is_some_and(|it| !it.is_empty());
            let written = KEYS.map(|key| format!("\"{key}\":"));
            let mut own = written.iter().filter(|key| specimen.text.contains(key.as_str()));
            let (Some(own), None) = (own.next(), own.next()) else { continue };
            if !calls.iter().chain(signals).all(is_filled) {
                continue;
            }
            let how = format!("{}, {}", family.name, specimen.title);
            for key in &written {
                let read = reader(Fallback::Auto).read(&specimen.text.replace(own, key));
                assert_eq!((&read.calls, &read.signals), (calls, signals), "{how}, {key}");
            }
            let read = reader(Fallback::Auto).read(&specimen.text.replace(own, "\"inputs\":"));
            assert!(read.calls.is_empty(), "{how}: {read:?}");
            assert_eq!(read.failed.is_some(), !calls.is_empty(), "{how}: {read:?}");
            assert_eq!(read.signals.len(), signals.len(), "{how}: {read:?}");
            assert!(read.signals.iter().all(|(_, arguments)| arguments.is_string()), "{how}: {read:?}");
            read_families.push(family.name.clone());
        }
    }
    read_families.dedup();
    assert!(read_families.len() >= 7, "{read_families:?}");
}

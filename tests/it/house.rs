//! The house keeps its order: imports run downward only, and a heavy crate has one home.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules from the ground up; each may import only from those before it.
const ROOMS: [&str; 12] = [
    "text",
    "diagnostic",
    "syntax",
    "spec",
    "schema",
    "tool",
    "script",
    "project",
    "chat",
    "request",
    "worker",
    "cli",
];

/// Heavy crates and the rooms they may be used in.
const HOMES: [(&str, &[&str]); 12] = [
    ("lexpr", &["syntax"]),
    ("jsonschema", &["schema"]),
    ("mlua", &["script"]),
    ("reqwest", &["worker"]),
    ("notify", &["project"]),
    ("clap", &["cli"]),
    ("annotate_snippets", &["diagnostic"]),
    ("cap_std", &["script"]),
    ("unicode_names2", &["syntax"]),
    ("sha2", &["schema"]),
    ("indicatif", &["cli"]),
    ("similar", &["cli"]),
];

/// Rooms that do no IO, spawn nothing and read no clock.
const PURE: [&str; 8] = ["text", "diagnostic", "syntax", "spec", "schema", "tool", "chat", "request"];

const IMPURE: [&str; 8] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::thread::spawn",
    "tokio::",
    "Instant::now",
    "SystemTime::now",
    "std::env::",
];

fn sources() -> Vec<(String, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut pending = vec![root.clone()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let room = path.strip_prefix(&root).unwrap().components().next().unwrap();
                let room = room.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
                let text = fs::read_to_string(&path).unwrap();
                // Tests may use what they like.
                let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                found.push((room, path, text));
            }
        }
    }
    assert!(found.len() > 40, "the house is not where it is looked for");
    found
}

fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"))
}

#[test]
fn imports_run_downward() {
    let mut wrong = Vec::new();
    for (room, path, text) in sources() {
        let Some(height) = ROOMS.iter().position(|known| *known == room) else {
            assert!(matches!(room.as_str(), "lib" | "main"), "{} is in no room", path.display());
            continue;
        };
        for line in code_lines(&text) {
            for (at, _) in line.match_indices("crate::") {
                let rest = &line[at + "crate::".len()..];
                let target: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                if let Some(other) = ROOMS.iter().position(|known| *known == target)
                    && other > height
                {
                    wrong.push(format!("{}: {room} imports {target}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "imports that run upward:\n{}", wrong.join("\n"));
}

#[test]
fn heavy_crates_have_one_home() {
    let mut wrong = Vec::new();
    for (room, path, text) in sources() {
        for (name, homes) in HOMES {
            let used = code_lines(&text).any(|line| {
                line.starts_with(&format!("use {name}"))
                    || line.contains(&format!(" {name}::"))
                    || line.contains(&format!("({name}::"))
            });
            if used && !homes.contains(&room.as_str()) {
                wrong.push(format!("{}: {name} lives in {homes:?}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "crates away from home:\n{}", wrong.join("\n"));
}

#[test]
fn pure_rooms_do_no_io() {
    let mut wrong = Vec::new();
    for (room, path, text) in sources().into_iter().filter(|(room, ..)| PURE.contains(&room.as_str())) {
        for line in code_lines(&text) {
            for impure in IMPURE.iter().filter(|impure| line.contains(**impure)) {
                wrong.push(format!("{}: {room} uses {impure}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "IO in a pure room:\n{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_stands_in_one_file() {
    for (_, path, text) in sources() {
        let uses =
            code_lines(&text).any(|line| line.contains("unsafe ") || line.contains("allow(unsafe_code)"));
        let home = path.ends_with("script/interrupt.rs");
        assert!(!uses || home, "{} holds unsafe code", path.display());
    }
}

#[test]
fn the_crate_doc_lists_every_room_in_order() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let declared: Vec<&str> =
        lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let expected: Vec<&str> = ROOMS.into_iter().filter(|room| declared.contains(room)).collect();
    assert_eq!(declared, expected, "the mod lines stand in the order of the house");
    for room in declared {
        let is_listed =
            lib.contains(&format!("//! | [`{room}`]")) || lib.contains(&format!("//! | `{room}`"));
        assert!(is_listed, "the crate doc's map misses {room}");
    }
}

//! The house keeps its order: imports run downward only, and a heavy crate has one home.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules from the ground up; each may import only from those before it.
const ROOMS: [&str; 13] = [
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
    "serve",
    "cli",
];

/// Heavy crates and the rooms they may be used in.
const HOMES: [(&str, &[&str]); 23] = [
    ("lexpr", &["syntax"]),
    ("jsonschema", &["schema"]),
    ("mlua", &["script"]),
    ("luau_analysis", &["script"]),
    ("luau_common", &["script"]),
    ("luau_config", &["script"]),
    ("luau_syntax", &["script"]),
    ("reqwest", &["worker", "script"]),
    ("regex_automata", &["script", "worker"]),
    ("ignore", &["script"]),
    ("globset", &["script"]),
    ("notify", &["project"]),
    ("clap", &["cli"]),
    ("annotate_snippets", &["diagnostic"]),
    ("cap_std", &["script"]),
    ("unicode_names2", &["syntax"]),
    ("sha2", &["schema"]),
    ("indicatif", &["cli"]),
    ("rustyline", &["cli"]),
    ("similar", &["script", "cli"]),
    ("flate2", &["script", "serve", "worker"]),
    ("rustix", &["script", "project", "worker", "cli"]),
    ("url", &["spec", "script", "cli"]),
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

/// The rooms that the code of a file names from the crate's root: by `crate::`, in groups, too, or by enough of `super::`.
fn rooms_named(depth: usize, text: &str) -> Vec<String> {
    let code: Vec<&str> = code_lines(text).collect();
    let code = code.join("\n");
    let mut rooms = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        rooms.extend(first_names(&code[at + "crate::".len()..]));
    }
    for (at, _) in code.match_indices("super::").filter(|(at, _)| !code[..*at].ends_with("super::")) {
        let rest = code[at..].trim_start_matches("super::");
        let ups = (code.len() - at - rest.len()) / "super::".len();
        if ups >= depth {
            rooms.extend(first_names(rest));
        }
    }
    rooms
}

/// `a` of `a::b`, `a` and `c` of `{a::b, c::{d, e}}`.
fn first_names(path: &str) -> Vec<String> {
    let name = |path: &str| {
        path.trim_start().chars().take_while(|c| c.is_alphanumeric() || "_*".contains(*c)).collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut depth, mut names) = (0, vec![name(group)]);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names
}

/// How many modules a file lies in, its own included.
fn depth_of(path: &Path) -> usize {
    let inside = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    inside.components().count() - usize::from(path.ends_with("mod.rs"))
}

#[test]
fn imports_are_seen_however_they_are_written() {
    for (depth, code, rooms) in [
        (1, "use crate::spec::Tool;", &["spec"][..]),
        (2, "use crate::{\n    chat::{a, b},\n    cli,\n};", &["chat", "cli", ""]),
        (2, "use super::super::{text, worker::x};", &["text", "worker"]),
        (3, "use super::super::tree::Kind;", &[]),
        (1, "fn f() -> super::cli::Exit", &["cli"]),
        (1, "use crate::*;", &["*"]),
        (1, "// crate::cli", &[]),
    ] {
        assert_eq!(rooms_named(depth, code), rooms, "{code}");
    }
    assert_eq!(depth_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/syntax/print/mod.rs")), 2);
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
        for target in rooms_named(depth_of(&path), &text) {
            let other = ROOMS.iter().position(|known| *known == target);
            if other.is_some_and(|other| other > height) || target == "*" {
                wrong.push(format!("{}: {room} imports {target}", path.display()));
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

//! Architecture rules: modules import only lower modules, each heavy crate is used in one module, and removed wording
//! stays removed.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules from the lowest to the highest layer. Each may import only from those before it.
const LAYERS: [&str; 13] = [
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

/// Heavy crates and the modules that may use them.
const HOMES: [(&str, &[&str]); 23] = [
    ("lexpr", &["syntax"]),
    ("jsonschema", &["schema"]),
    ("mlua", &["script"]),
    ("luau_analysis", &["bin"]),
    ("luau_common", &["bin"]),
    ("luau_config", &["bin"]),
    ("luau_syntax", &["bin"]),
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

/// Modules without IO, threads and clocks.
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
                let module = path.strip_prefix(&root).unwrap().components().next().unwrap();
                let module = module.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned();
                let text = fs::read_to_string(&path).unwrap();
                // Unit tests are exempt.
                let text = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
                found.push((module, path, text));
            }
        }
    }
    assert!(found.len() > 40, "found only a few source files");
    found
}

/// Returns the top-level modules that a file imports: through `crate::`, also in groups, or through enough `super::`.
fn imported_modules(depth: usize, text: &str) -> Vec<String> {
    let code: Vec<&str> = code_lines(text).collect();
    let code = code.join("\n");
    let mut modules = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        modules.extend(first_names(&code[at + "crate::".len()..]));
    }
    for (at, _) in code.match_indices("super::").filter(|(at, _)| !code[..*at].ends_with("super::")) {
        let rest = code[at..].trim_start_matches("super::");
        let ups = (code.len() - at - rest.len()) / "super::".len();
        if ups >= depth {
            modules.extend(first_names(rest));
        }
    }
    modules
}

/// Returns `a` for `a::b`, and `a` and `c` for `{a::b, c::{d, e}}`.
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

/// Returns the nesting depth of a file's module.
fn depth_of(path: &Path) -> usize {
    let inside = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    inside.components().count() - usize::from(path.ends_with("mod.rs"))
}

#[test]
fn all_forms_of_imports_are_found() {
    for (depth, code, modules) in [
        (1, "use crate::spec::Tool;", &["spec"][..]),
        (2, "use crate::{\n    chat::{a, b},\n    cli,\n};", &["chat", "cli", ""]),
        (2, "use super::super::{text, worker::x};", &["text", "worker"]),
        (3, "use super::super::tree::Kind;", &[]),
        (1, "fn f() -> super::cli::Exit", &["cli"]),
        (1, "use crate::*;", &["*"]),
        (1, "// crate::cli", &[]),
    ] {
        assert_eq!(imported_modules(depth, code), modules, "{code}");
    }
    assert_eq!(depth_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/syntax/print/mod.rs")), 2);
}

fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"))
}

#[test]
fn modules_import_only_lower_layers() {
    let mut wrong = Vec::new();
    for (module, path, text) in sources() {
        let Some(height) = LAYERS.iter().position(|known| *known == module) else {
            assert!(
                matches!(module.as_str(), "lib" | "main" | "bin"),
                "{} is in no listed module",
                path.display()
            );
            continue;
        };
        for target in imported_modules(depth_of(&path), &text) {
            let other = LAYERS.iter().position(|known| *known == target);
            if other.is_some_and(|other| other > height) || target == "*" {
                wrong.push(format!("{}: {module} imports {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "imports of higher layers:\n{}", wrong.join("\n"));
}

#[test]
fn each_heavy_crate_is_used_in_its_modules() {
    let mut wrong = Vec::new();
    for (module, path, text) in sources() {
        for (name, homes) in HOMES {
            let used = code_lines(&text).any(|line| {
                line.starts_with(&format!("use {name}"))
                    || line.contains(&format!(" {name}::"))
                    || line.contains(&format!("({name}::"))
            });
            if used && !homes.contains(&module.as_str()) {
                wrong.push(format!("{}: {name} is reserved for {homes:?}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "crates used in other modules:\n{}", wrong.join("\n"));
}

#[test]
fn pure_modules_do_no_io() {
    let mut wrong = Vec::new();
    for (module, path, text) in sources().into_iter().filter(|(module, ..)| PURE.contains(&module.as_str())) {
        for line in code_lines(&text) {
            for impure in IMPURE.iter().filter(|impure| line.contains(**impure)) {
                wrong.push(format!("{}: {module} uses {impure}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "IO in a pure module:\n{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_is_in_one_file() {
    for (_, path, text) in sources() {
        let uses =
            code_lines(&text).any(|line| line.contains("unsafe ") || line.contains("allow(unsafe_code)"));
        let home = path.ends_with("script/interrupt.rs");
        assert!(!uses || home, "{} contains unsafe code", path.display());
    }
}

#[test]
fn the_crate_doc_lists_every_module_in_order() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let declared: Vec<&str> =
        lib.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let expected: Vec<&str> = LAYERS.into_iter().filter(|module| declared.contains(module)).collect();
    assert_eq!(declared, expected, "the mod lines are in the order of the layers");
    for module in declared {
        let is_listed =
            lib.contains(&format!("//! | [`{module}`]")) || lib.contains(&format!("//! | `{module}`"));
        assert!(is_listed, "the crate doc does not list {module}");
    }
}

#[test]
fn no_dependency_of_the_default_build_runs_before_main() {
    let tree = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "--edges", "normal,build", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8_lossy(&tree.stdout);
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"mlua"), "{tree}");
    for name in names {
        let is_another_luau = name.starts_with("luau-");
        let runs_early = ["ctor", "inventory", "linkme", "minstant"].contains(&name);
        assert!(!is_another_luau && !runs_early, "{name} is in the default build");
    }
}

/// Initializers that run before `main` slow down every start. Today's belong to Luau's flags, one per source file that
/// defines some, and to the C runtime. A dependency that adds one must be noticed.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_number_of_initializers_is_known() {
    let binary = fs::read(env!("CARGO_BIN_EXE_deftool")).unwrap();
    assert_eq!(section_size(&binary, ".init_array").unwrap() / 8, INITIALIZERS);
}

/// Entries of `.init_array` of a debug build.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const INITIALIZERS: u64 = 41;

/// Returns the size of a section of a 64-bit little-endian ELF file.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn section_size(file: &[u8], wanted: &str) -> Option<u64> {
    let number = |at: usize, bytes: usize| {
        let field = file.get(at..at + bytes)?;
        Some(field.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let table = usize::try_from(number(0x28, 8)?).ok()?;
    let (size, count, names) = (number(0x3A, 2)?, number(0x3C, 2)?, number(0x3E, 2)?);
    let header = |index: u64| table + usize::try_from(index * size).unwrap_or(usize::MAX - table);
    let names = usize::try_from(number(header(names) + 0x18, 8)?).ok()?;
    (0..count).map(header).find_map(|header| {
        let name = names + usize::try_from(number(header, 4)?).ok()?;
        let is_wanted = file.get(name..)?.starts_with(format!("{wanted}\0").as_bytes());
        is_wanted.then(|| number(header + 0x20, 8))?
    })
}

/// Wording of an earlier, private dialect. Each has a standard term, which CONTRIBUTING.md lists.
const REMOVED_WORDING: [&str; 17] = [
    " anew",
    "that is none",
    "that are none",
    "is another.",
    "is another,",
    "held against",
    "hold it against",
    "what is not there",
    "who asks",
    "whoever asks",
    "nothing is said",
    "so many times",
    "so many bytes",
    "from then on",
    "for ever ",
    "undertaker",
    "is told so",
];

#[test]
fn removed_wording_stays_removed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pending: Vec<PathBuf> = [
        "src",
        "tests/it",
        "docs",
        "benches",
        "README.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "SECURITY.md",
    ]
    .iter()
    .map(|path| root.join(path))
    .collect();
    let mut wrong = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(fs::read_dir(path).unwrap().flatten().map(|entry| entry.path()));
            continue;
        }
        let is_text = path
            .extension()
            .is_some_and(|extension| extension == "rs" || extension == "md" || extension == "lua");
        if !is_text || path.ends_with("architecture.rs") {
            continue;
        }
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let line = line.to_lowercase();
            for wording in REMOVED_WORDING.iter().filter(|wording| line.contains(**wording)) {
                wrong.push(format!("{}:{}: `{wording}`", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "see the glossary in CONTRIBUTING.md:\n{}", wrong.join("\n"));
}

//! Architecture rules: crates and modules depend only on lower ones, each heavy dependency has one home, and removed
//! wording stays removed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates from the lowest to the highest layer, each with the crates that it may depend on. `""` is the root.
pub(super) const CRATES: [(&str, &[&str]); 20] = [
    ("lang", &[]),
    ("process", &[]),
    ("chat", &["lang"]),
    ("eval", &["lang"]),
    ("script", &["lang", "process"]),
    ("project", &["lang", "process", "script"]),
    ("jsonrpc", &[]),
    ("record", &["lang", "process", "chat"]),
    ("worker", &["lang", "process", "chat", "script", "project", "record"]),
    ("durable", &["process", "chat", "record"]),
    ("otel", &["lang", "chat", "record", "worker"]),
    ("stub", &["lang", "chat"]),
    ("mcp", &["lang", "jsonrpc"]),
    ("engine", &["lang", "process", "chat", "script", "project", "record", "worker", "otel", "mcp"]),
    ("ide", &["lang", "script", "project"]),
    ("lsp", &["lang", "script", "project", "ide", "jsonrpc"]),
    ("rpc", &["lang", "chat", "script", "project", "worker", "jsonrpc"]),
    ("acp", &["lang", "chat", "worker", "jsonrpc"]),
    (
        "",
        &[
            "lang", "process", "chat", "eval", "script", "project", "record", "worker", "durable", "stub",
            "mcp", "engine", "lsp", "rpc", "acp",
        ],
    ),
    ("serve", &["lang", "process", "chat", "script", "project", "record", "worker", "engine"]),
];

/// Heavy dependencies and the crates that may have them.
const HOMES: [(&str, &[&str]); 38] = [
    ("lexpr", &["lang"]),
    ("jsonschema", &["lang"]),
    ("mlua", &["script"]),
    ("luau-analysis", &[""]),
    ("luau-common", &[""]),
    ("luau-config", &[""]),
    ("luau-syntax", &[""]),
    ("reqwest", &["script", "worker", "otel", "mcp"]),
    ("rustls", &["script", "mcp"]),
    ("regex-automata", &["script", "record"]),
    ("ignore", &["script", "project"]),
    ("globset", &["script"]),
    ("notify", &["project"]),
    ("clap", &["", "serve"]),
    ("annotate-snippets", &["lang"]),
    ("cap-std", &["process", "script"]),
    ("landlock", &["process"]),
    ("seccompiler", &["process"]),
    ("unicode_names2", &["lang"]),
    ("sha2", &["lang"]),
    ("indicatif", &[""]),
    ("rustyline", &[""]),
    ("similar", &["script", "ide", ""]),
    ("flate2", &["stub"]),
    ("rustix", &["process", "script", "project", "worker", "serve", ""]),
    (
        "tokio",
        &[
            "process", "script", "worker", "durable", "otel", "stub", "mcp", "engine", "rpc", "acp", "serve",
            "",
        ],
    ),
    ("agent-client-protocol", &["acp"]),
    ("rmcp", &["mcp"]),
    ("restate-sdk", &["serve"]),
    ("rusqlite", &["durable"]),
    ("opentelemetry", &["otel"]),
    ("opentelemetry-http", &["otel"]),
    ("opentelemetry-otlp", &["otel"]),
    ("opentelemetry_sdk", &["otel"]),
    ("url", &["lang", "script", "record", "lsp"]),
    ("gen-lsp-types", &["lsp"]),
    ("schemars", &["lang", "chat", "jsonrpc", "rpc"]),
    ("ts-rs", &["lang", "chat", "jsonrpc", "rpc"]),
];

/// The modules of `lang` from the lowest to the highest layer. Each may import only from those before it.
const LANG: [&str; 6] = ["text", "diagnostic", "syntax", "spec", "schema", "tool"];

/// Crates without IO, threads and clocks.
const PURE: [&str; 3] = ["lang", "chat", "eval"];

const IMPURE: [&str; 7] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::thread::spawn",
    "Instant::now",
    "SystemTime::now",
    "std::env::",
];

/// Crates that get the content of files from lower crates.
const WITHOUT_FILES: [&str; 1] = ["ide"];

const FILE_ACCESS: [&str; 6] =
    ["std::fs", "read_source", ".is_file()", ".is_dir()", ".exists()", ".metadata()"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the folder of a crate.
pub(super) fn folder(name: &str) -> PathBuf {
    if name.is_empty() { root().to_owned() } else { root().join("crates").join(name) }
}

/// A source file.
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// The top-level module, or `lib`.
    module: String,
    /// The nesting depth of the file's module.
    depth: usize,
    /// The text without unit tests.
    pub(super) text: String,
}

/// Returns the source files of a crate.
pub(super) fn sources(name: &str) -> Vec<Source> {
    let folder = folder(name).join("src");
    let mut found = Vec::new();
    let mut pending = vec![folder.clone()];
    while let Some(current) = pending.pop() {
        for entry in fs::read_dir(current).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let inside = path.strip_prefix(&folder).unwrap();
                let module = inside.components().next().unwrap().as_os_str().to_string_lossy();
                let text = fs::read_to_string(&path).unwrap();
                found.push(Source {
                    module: module.trim_end_matches(".rs").to_owned(),
                    depth: inside.components().count() - usize::from(path.ends_with("mod.rs")),
                    text: text.split("#[cfg(test)]").next().unwrap_or_default().to_owned(),
                    path,
                });
            }
        }
    }
    assert!(found.len() > 2, "found only a few source files of {name}");
    found
}

/// Returns the direct dependencies of a crate, without those of its tests.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = fs::read_to_string(folder(name).join("Cargo.toml")).unwrap();
    let mut is_listed = false;
    let mut found = BTreeSet::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            is_listed = section == "dependencies" || section.ends_with(".dependencies");
            is_listed &= !section.starts_with("workspace");
        } else if let Some((key, _)) = line.split_once('=').filter(|_| is_listed && !line.starts_with('#')) {
            found.insert(key.trim().trim_end_matches(".workspace").to_owned());
        }
    }
    assert!(!found.is_empty(), "found no dependencies of {name}");
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
}

pub(super) fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"))
}

/// The compiler ignores a file that no module declares, and with it its tests.
#[test]
fn every_test_file_is_declared_as_a_module() {
    let mut folders = vec![root().join("tests/it")];
    while let Some(folder) = folders.pop() {
        let text = |path: PathBuf| fs::read_to_string(path).unwrap_or_default();
        let parent = [folder.join("mod.rs"), folder.join("main.rs"), folder.with_extension("rs")];
        let declarations = parent.map(text).concat();
        for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_stem().unwrap().to_str().unwrap();
            if path.is_file() && path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let is_declared = declarations.contains(&format!("mod {name};"));
            assert!(is_declared || ["mod", "main"].contains(&name), "{} is not compiled", path.display());
            folders.extend(path.is_dir().then_some(path));
        }
    }
}

#[test]
fn crates_depend_only_on_lower_crates() {
    let listed: BTreeSet<&str> = CRATES.iter().map(|(name, _)| *name).chain(["test-support"]).collect();
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    for entry in fs::read_dir(root().join("crates")).unwrap().flatten() {
        let name = entry.file_name();
        let name = name.to_str().unwrap();
        assert!(listed.contains(name), "the crate {name} is not listed");
        let is_tested = manifest.contains(&format!("\"crates/{name}\","));
        assert_eq!(
            is_tested,
            !["otel", "serve"].contains(&name),
            "`cargo test` tests all crates of the default features: {name}"
        );
    }
    for (index, (name, allowed)) in CRATES.iter().enumerate() {
        let own = dependencies(name);
        let own: BTreeSet<&str> = own
            .iter()
            .filter_map(|name| name.strip_prefix("deftool"))
            .map(|name| name.trim_start_matches('-'))
            .collect();
        assert_eq!(own, allowed.iter().copied().collect(), "crates that `{name}` depends on");
        let lower: Vec<&str> = CRATES[..index].iter().map(|(name, _)| *name).collect();
        assert!(own.iter().all(|other| lower.contains(other)), "{name} depends on a higher crate");
    }
}

#[test]
fn each_heavy_dependency_has_one_home() {
    for (name, _) in CRATES {
        for heavy in dependencies(name) {
            let homes = HOMES.iter().find(|(known, _)| *known == heavy).map(|(_, homes)| homes);
            assert!(homes.is_none_or(|homes| homes.contains(&name)), "{heavy} is reserved for {homes:?}");
        }
    }
}

#[test]
fn modules_import_only_lower_layers() {
    let mut wrong = Vec::new();
    for Source { path, module, depth, text } in sources("lang") {
        let height = LANG.iter().position(|known| *known == module);
        assert!(height.is_some() || module == "lib", "{} is in no listed module", path.display());
        let imported = imported_modules(depth, &text);
        let is_higher = |target: &&String| {
            let other = LANG.iter().position(|known| known == target);
            other.is_some_and(|other| height.is_some_and(|height| other > height)) || *target == "*"
        };
        wrong.extend(imported.iter().filter(is_higher).map(|to| format!("{} imports {to}", path.display())));
    }
    // The protocol modules do not import the request machine.
    for Source { path, module, depth, text } in sources("chat") {
        if module != "request" && imported_modules(depth, &text).iter().any(|to| to == "request") {
            wrong.push(format!("{} imports request", path.display()));
        }
    }
    assert!(wrong.is_empty(), "imports of higher layers:\n{}", wrong.join("\n"));
}

#[test]
fn pure_crates_do_no_io() {
    let mut wrong = Vec::new();
    for (crates, forbidden) in [(&PURE[..], &IMPURE[..]), (&WITHOUT_FILES, &FILE_ACCESS)] {
        for source in crates.iter().flat_map(|name| sources(name)) {
            for line in code_lines(&source.text) {
                for impure in forbidden.iter().filter(|impure| line.contains(**impure)) {
                    wrong.push(format!("{} uses {impure}", source.path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "IO in a crate without IO:\n{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_is_in_one_file() {
    for Source { path, text, .. } in CRATES.iter().flat_map(|(name, _)| sources(name)) {
        let uses =
            code_lines(&text).any(|line| line.contains("unsafe ") || line.contains("allow(unsafe_code)"));
        let home = path.ends_with("crates/script/src/ffi.rs");
        assert!(!uses || home, "{} contains unsafe code", path.display());
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

/// Initializers that run before `main` slow down every start. The current ones belong to Luau's flags (one per source
/// file that defines flags) and to the C runtime. The test fails if a dependency adds an initializer.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_number_of_initializers_is_known() {
    let binary = fs::read(env!("CARGO_BIN_EXE_deftool")).unwrap();
    assert_eq!(section_size(&binary, ".init_array").unwrap() / 8, INITIALIZERS);
}

/// Entries of `.init_array` of a debug build.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const INITIALIZERS: u64 = 40;

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

/// Wording of an earlier, private dialect. Use standard terms instead.
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
    let mut pending: Vec<PathBuf> = [
        "src",
        "crates",
        "tests/it",
        "docs",
        "benches",
        "README.md",
        "CONTRIBUTING.md",
        "ARCHITECTURE.md",
        "SECURITY.md",
    ]
    .iter()
    .map(|path| root().join(path))
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
    assert!(wrong.is_empty(), "use the standard terms:\n{}", wrong.join("\n"));
}

/// `cargo test` does not run unit tests of a library with `test = false`.
#[test]
fn libraries_that_are_not_tested_have_no_unit_tests() {
    for name in CRATES.iter().map(|(name, _)| *name).chain(["test-support"]) {
        let manifest = fs::read_to_string(folder(name).join("Cargo.toml")).unwrap();
        if manifest.contains("[lib]\ntest = false") {
            for Source { path, .. } in sources(name) {
                let text = fs::read_to_string(&path).unwrap();
                assert!(!text.contains("#[cfg(test)]"), "{}", path.display());
            }
        }
    }
}

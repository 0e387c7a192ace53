//! The pages of `tests/commands`, which describe the behaviour of a command with its output.
//!
//! Each section begins with `##` and has a folder of its own with the files of the page's introduction. A block with a
//! file name in its first line writes the file. The output shows both streams and the exit code: lines of stderr follow
//! those of stdout and begin with `2> `, and `[exit 1]` is an exit code other than 0. `[TMP]` is the folder above the
//! section's `project` and `state`, and control characters are escaped.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::pages::{Part, Shell, check_page, run_page, write_file};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands")
}

/// A section of a page.
struct Section {
    folder: tempfile::TempDir,
    shell: Shell,
}

impl Section {
    fn new(files: &[(String, String)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shell = Shell { folder: folder.path().join("project"), state: folder.path().join("state") };
        for path in [&shell.folder, &shell.state] {
            fs::create_dir(path).unwrap();
        }
        for (name, text) in files {
            write_file(&shell.folder, name, text);
        }
        Self { folder, shell }
    }

    fn run(&mut self, command: &str) -> String {
        self.shell.run(command).map_or_else(String::new, |output| self.shown(&output))
    }

    fn shown(&self, output: &Output) -> String {
        let text = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            escaped(&text.replace(self.folder.path().to_str().unwrap(), "[TMP]"))
        };
        let mut shown = text(&output.stdout);
        if !shown.is_empty() && !shown.ends_with('\n') {
            shown.push('\n');
        }
        for line in text(&output.stderr).lines() {
            writeln!(shown, "2> {line}").unwrap();
        }
        if !output.status.success() {
            let code = output.status.code().map_or_else(|| "signal".to_owned(), |code| code.to_string());
            writeln!(shown, "[exit {code}]").unwrap();
        }
        shown
    }
}

/// Escapes what a page cannot show.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if is_hidden(c) {
            escaped.extend(c.escape_default());
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Reports whether a character is a control character, has no width, or changes the direction of the text.
fn is_hidden(c: char) -> bool {
    const FORMAT: [std::ops::RangeInclusive<char>; 4] =
        ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2066}'..='\u{2069}', '\u{feff}'..='\u{feff}'];
    (c.is_control() && !matches!(c, '\n' | '\t')) || FORMAT.iter().any(|range| range.contains(&c))
}

fn compare(name: &str) {
    let mut introduction = Vec::new();
    let mut section = None;
    let checked = check_page(&folder().join(name).with_extension("md"), |part| {
        match part {
            Part::Section => section = Some(Section::new(&introduction)),
            Part::File { name, text } => match &section {
                Some(section) => write_file(&section.folder.path().join("project"), name, text),
                None => introduction.push((name.to_owned(), text.to_owned())),
            },
            Part::Command(command) => {
                return section.get_or_insert_with(|| Section::new(&introduction)).run(command);
            }
            Part::Script(_) => return "use a console block, which has output to compare\n".to_owned(),
        }
        String::new()
    });
    assert!(checked.unwrap_or_else(|differences| panic!("{differences}")) > 0, "{name} has no commands");
}

/// Writes the files of a page's introduction.
pub(super) fn write_introduction(name: &str, to: &Path) {
    let page = fs::read_to_string(folder().join(name).with_extension("md")).unwrap();
    let introduction = page.split("\n## ").next().unwrap();
    run_page(introduction, |part| {
        if let Part::File { name, text } = part {
            write_file(to, name, text);
        }
        String::new()
    });
}

macro_rules! pages {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                compare(stringify!($name));
            }
        )*

        #[test]
        fn every_page_has_a_test() {
            let names = [$(stringify!($name)),*];
            for entry in fs::read_dir(folder()).unwrap() {
                let name = entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned();
                assert!(names.contains(&name.as_str()), "{name}");
            }
        }
    };
}

pages! {
    asks,
    call,
    chat,
    check,
    check_formats,
    check_lists,
    check_projects,
    compile,
    diff,
    doctor,
    eval,
    fix,
    findings,
    fmt,
    home_paths,
    import,
    init,
    mcp,
    org,
    outputs,
    preview,
    repairs,
    results,
    rule,
    run,
    run_batch,
    command_tools,
    script_tests,
    several_projects,
    stub,
    test,
    tool_forms,
    toolbox,
    trust,
    types,
    user_toolbox,
    user_tools,
    view,
    write_grants,
}

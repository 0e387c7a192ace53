//! The toolbox: the tools in `specs/` and `scripts/` of this repository.

/// A tool of the toolbox: its spec, its script and the script's tests.
pub(super) struct ToolboxTool {
    pub(super) name: &'static str,
    /// File paths in the project, with their contents.
    pub(super) files: &'static [(&'static str, &'static str)],
}

macro_rules! tools {
    ($($name:literal: [$($file:literal),* $(,)?]),* $(,)?) => {
        &[$(ToolboxTool {
            name: $name,
            files: &[$(($file, include_str!(concat!("../../../../", $file)))),*],
        }),*]
    };
}

/// All tools, sorted by name.
pub(super) const TOOLBOX: &[ToolboxTool] = tools! {
    "calculate": ["specs/calculate.eld", "scripts/calculate.lua", "scripts/calculate_test.lua"],
    "current_time": ["specs/current_time.eld", "scripts/current_time.lua", "scripts/current_time_test.lua"],
    "edit_file": ["specs/edit_file.eld", "scripts/edit_file.lua", "scripts/edit_file_test.lua"],
    "find_files": ["specs/find_files.eld", "scripts/find_files.lua", "scripts/find_files_test.lua"],
    "git_diff": ["specs/git_diff.eld", "scripts/git_diff.lua", "scripts/git_diff_test.lua"],
    "git_status": ["specs/git_status.eld", "scripts/git_status.lua", "scripts/git_status_test.lua"],
    "http_get": ["specs/http_get.eld", "scripts/http_get.lua", "scripts/http_get_test.lua"],
    "list_directory": ["specs/list_directory.eld", "scripts/list_directory.lua", "scripts/list_directory_test.lua"],
    "need_help": ["specs/need_help.eld"],
    "read_file": ["specs/read_file.eld", "scripts/read_file.lua", "scripts/read_file_test.lua"],
    "run_command": ["specs/run_command.eld", "scripts/run_command.lua", "scripts/run_command_test.lua"],
    "search_text": ["specs/search_text.eld", "scripts/search_text.lua", "scripts/search_text_test.lua"],
    "task_complete": ["specs/task_complete.eld"],
    "write_file": ["specs/write_file.eld", "scripts/write_file.lua", "scripts/write_file_test.lua"],
};

/// The settings of a project with tools of the toolbox: their asks are a preview.
pub(super) const SETTINGS: [(&str, &str); 1] =
    [("specs/project.eld", include_str!("../../../../specs/project.eld"))];

/// Modules that the scripts require.
const LIBRARY: [(&str, &str); 5] = [
    ("scripts/lib/attempt.lua", include_str!("../../../../scripts/lib/attempt.lua")),
    ("scripts/lib/files.lua", include_str!("../../../../scripts/lib/files.lua")),
    ("scripts/lib/expression.lua", include_str!("../../../../scripts/lib/expression.lua")),
    ("scripts/lib/git.lua", include_str!("../../../../scripts/lib/git.lua")),
    ("scripts/lib/html.lua", include_str!("../../../../scripts/lib/html.lua")),
];

/// Returns the tool of this name.
pub(super) fn find(name: &str) -> Option<&'static ToolboxTool> {
    TOOLBOX.iter().find(|tool| tool.name == name)
}

/// Returns the modules that the scripts require, directly or through other modules.
pub(super) fn modules_of(scripts: &[&str]) -> Vec<(&'static str, &'static str)> {
    let requires = |text: &str, path: &str| {
        let name = path.trim_start_matches("scripts/lib/").trim_end_matches(".lua");
        ["./lib/", "./"].iter().any(|folder| text.contains(&format!("require(\"{folder}{name}\")")))
    };
    let mut found: Vec<(&str, &str)> = Vec::new();
    loop {
        let texts = || scripts.iter().copied().chain(found.iter().map(|(_, text)| *text));
        let missing = LIBRARY.iter().find(|(path, _)| {
            !found.iter().any(|(known, _)| known == path) && texts().any(|text| requires(text, path))
        });
        match missing {
            Some(module) => found.push(*module),
            None => return found,
        }
    }
}

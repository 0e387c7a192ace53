use crate::diagnostic::{Diagnostic, rule};
use crate::spec::{HomeFolder, HostGrant};
use crate::text::{Location, Spanned};

rule! {
    /// a permission that defeats the sandbox
    ///
    /// The model writes the arguments, and text from a web page can contain instructions that the model follows. If
    /// `:allow` grants the whole disk, every host or a shell, the author of that text can control the machine. A
    /// program that runs other programs is equivalent to a shell: an interpreter, a build tool, git with its settings
    /// and hooks. So is a folder that defines tools, such as `specs/`. If you need such a tool, add the line `;; deftool: allow(wide-permission)`.
    ///
    /// ```eld fails
    /// (deftool :name "note" :description "Read a note." :allow (:read ["/"]))
    /// ```
    ///
    /// ```eld repaired
    /// (deftool :name "note" :description "Read a note." :allow (:read ["notes/"]))
    /// ```
    pub(crate) WIDE_PERMISSION, "DT116", "wide-permission", Warning
}

/// Programs that execute text passed to them.
const SHELLS: [&str; 45] = [
    "sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "csh", "tcsh", "nu", "cmd", "cmd.exe", "powershell", "pwsh",
    "env", "xargs", "sudo", "doas", "su", "eval", "busybox", "nohup", "nice", "timeout", "setsid", "ssh", "python", "perl",
    "ruby", "node", "deno", "bun", "php", "lua", "luajit", "luau", "awk", "gawk", "mawk", "tclsh", "Rscript", "osascript",
    "emacs", "vim", "gdb",
];

/// Programs that execute other programs named by their options, settings or the files around them.
const LAUNCHERS: [&str; 31] = [
    "git", "find", "fd", "tar", "rsync", "scp", "sed", "man", "less", "make", "ninja", "cmake", "just", "cargo", "go", "npm",
    "npx", "pnpm", "yarn", "pip", "uv", "mvn", "gradle", "docker", "podman", "kubectl", "systemctl", "crontab", "at", "watch",
    "tmux",
];

/// Checks whether `grant`, one of the values of `key`, is too wide.
pub(in crate::spec) fn check(at: Location, key: &str, grant: &Spanned<String>) -> Option<Diagnostic> {
    let text = grant.value.trim();
    let message = match key {
        "read" | "write" => {
            let up = text.trim_end_matches(['/', '.']);
            let is_up = |path: &str| path.split('/').all(|part| matches!(part, ".." | "." | ""));
            let leaves = text.starts_with("..") && is_up(text);
            let in_home = HomeFolder::split(text).ok().flatten();
            if text == "/" || (text.starts_with('/') && up.is_empty()) {
                format!("`:{key}` of \"{text}\" allows the whole disk")
            } else if text == "*" || text == "**" {
                format!("`:{key}` takes directories and files; \"{text}\" is a name, not a pattern")
            } else if in_home.is_some_and(|(_, rest)| is_up(rest)) {
                format!("`:{key}` of \"{text}\" allows a whole folder of the user")
            } else if leaves {
                format!("`:{key}` of \"{text}\" is outside the project")
            } else if key == "write" && defines_tools(text) {
                format!("`:{key}` of \"{text}\" lets the tool define tools, which could run anything")
            } else {
                return None;
            }
        }
        "net" => {
            let granted = HostGrant::parse(text).ok()?;
            match granted.top() {
                _ if granted.is_all() => format!("`:net` of \"{text}\" allows every host"),
                Some(top) => format!("`:net` of \"{text}\" allows every host under `{top}`"),
                None => return None,
            }
        }
        "run" => {
            let program = text.rsplit('/').next().unwrap_or(text);
            if text == "*" {
                String::from("`:run` of \"*\" allows every program")
            } else if SHELLS.contains(&without_version(program)) {
                format!("`:run` of \"{text}\" allows every program: it executes its input")
            } else if LAUNCHERS.contains(&without_version(program)) {
                format!("`:run` of \"{text}\" allows every program: its options, settings or files can run other programs")
            } else {
                return None;
            }
        }
        "env" if text == "*" => String::from("`:env` of \"*\" allows every variable, including the API key"),
        _ => return None,
    };
    let finding = Diagnostic::new(&WIDE_PERMISSION, at, message);
    Some(finding.note("list only what the script needs; the model chooses the arguments"))
}

/// Whether a path in the project is in a folder that defines its tools.
fn defines_tools(path: &str) -> bool {
    let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    !path.starts_with('/') && parts.next().is_some_and(|first| matches!(first, "specs" | "scripts"))
}

/// Removes the version: `python3.12` becomes `python`.
pub(super) fn without_version(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
}

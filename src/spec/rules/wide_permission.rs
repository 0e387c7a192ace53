use crate::diagnostic::{Diagnostic, rule};
use crate::spec::HostGrant;
use crate::text::{Location, Spanned};

rule! {
    /// a grant that takes the sandbox away
    ///
    /// A model writes the arguments, and what it read on a web page may have told it what to write. With the whole disk, every
    /// host or a shell in `:allow`, whoever controls that text controls the machine. A program that runs others is as good as a
    /// shell: an interpreter, a build tool, git with its settings and hooks. Where such a tool is meant, a line
    /// `;; deftool: allow(wide-permission)` says so.
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

/// Programs that run what they are given as text.
const SHELLS: [&str; 45] = [
    "sh", "bash", "zsh", "fish", "dash", "ash", "ksh", "csh", "tcsh", "nu", "cmd", "cmd.exe", "powershell", "pwsh",
    "env", "xargs", "sudo", "doas", "su", "eval", "busybox", "nohup", "nice", "timeout", "setsid", "ssh", "python", "perl",
    "ruby", "node", "deno", "bun", "php", "lua", "luajit", "luau", "awk", "gawk", "mawk", "tclsh", "Rscript", "osascript",
    "emacs", "vim", "gdb",
];

/// Programs that run what their options, settings or the files around them name.
const LAUNCHERS: [&str; 31] = [
    "git", "find", "fd", "tar", "rsync", "scp", "sed", "man", "less", "make", "ninja", "cmake", "just", "cargo", "go", "npm",
    "npx", "pnpm", "yarn", "pip", "uv", "mvn", "gradle", "docker", "podman", "kubectl", "systemctl", "crontab", "at", "watch",
    "tmux",
];

/// What is wide about `grant`, one of those of `key`.
pub(in crate::spec) fn check(at: Location, key: &str, grant: &Spanned<String>) -> Option<Diagnostic> {
    let text = grant.value.trim();
    let message = match key {
        "read" | "write" => {
            let up = text.trim_end_matches(['/', '.']);
            let leaves = text.starts_with("..") && text.split('/').all(|part| matches!(part, ".." | "." | ""));
            if text == "/" || (text.starts_with('/') && up.is_empty()) {
                format!("`:{key}` of \"{text}\" is the whole disk")
            } else if text == "*" || text == "**" {
                format!("`:{key}` takes folders and files; \"{text}\" is no pattern but a name")
            } else if leaves {
                format!("`:{key}` of \"{text}\" leaves the project")
            } else {
                return None;
            }
        }
        "net" => {
            let granted = HostGrant::parse(text).ok()?;
            match granted.top() {
                _ if granted.is_all() => format!("`:net` of \"{text}\" is every host"),
                Some(top) => format!("`:net` of \"{text}\" is every host under `{top}`"),
                None => return None,
            }
        }
        "run" => {
            let program = text.rsplit('/').next().unwrap_or(text);
            if text == "*" {
                String::from("`:run` of \"*\" is every program")
            } else if SHELLS.contains(&without_version(program)) {
                format!("`:run` of \"{text}\" is every program: it runs what it is given")
            } else if LAUNCHERS.contains(&without_version(program)) {
                format!("`:run` of \"{text}\" is every program: its options, settings or files can name others")
            } else {
                return None;
            }
        }
        "env" if text == "*" => String::from("`:env` of \"*\" is every variable, the API key among them"),
        _ => return None,
    };
    let finding = Diagnostic::new(&WIDE_PERMISSION, at, message);
    Some(finding.note("name what the script needs; the model decides what it is called with"))
}

/// `python` of `python3.12`.
fn without_version(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
}

//! The spec files of a git revision, read with git's plumbing commands. No command of the repository is executed: hooks,
//! filters, textconv, the file system monitor and missing objects of a partial clone are not used.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use deftool_lang::text::one_line;
use deftool_project::{Input, Overlay, SourceText, is_visible_spec, read_stream};

use crate::cli::outcome::CliError;
use crate::cli::project::programs::find_program;

/// The files of a revision that are compared with those at a path now.
#[derive(Default)]
pub(in crate::cli) struct Revision {
    /// The spec files. They do not exist: [`texts`](Self::texts) has their content.
    pub(in crate::cli) input: Input,
    pub(in crate::cli) texts: Overlay,
    /// The file, if it contains JSON definitions.
    pub(in crate::cli) json: Option<SourceText>,
}

impl Revision {
    /// Reads the files that revision `name` has at `path`: a file, a folder or a project that exists now. Links are not
    /// followed.
    ///
    /// # Errors
    /// When `name` is not a revision, git is missing, or a file is not UTF-8.
    pub(in crate::cli) fn read(name: &Path, path: &Path, current: &Path) -> Result<Self, CliError> {
        let Some(name) = name.to_str().filter(|name| !name.starts_with('-')) else {
            return Err(CliError::Usage(format!(
                "`{}` is neither a path nor a git revision",
                name.display()
            )));
        };
        let real = std::fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
        let folder = if real.is_dir() { &*real } else { real.parent().unwrap_or(&real) };
        let git = Git::at(folder)?;
        let top = git.text(&["rev-parse", "--show-toplevel"]).map_err(|_| {
            CliError::Usage(format!("`{name}` does not exist, and this is not a git repository"))
        })?;
        let commit = git
            .text(&["rev-parse", "--verify", "--quiet", "--end-of-options", &format!("{name}^{{commit}}")])
            .map_err(|_| CliError::Usage(unknown_revision(name, git.is_shallow())))?;
        let inside =
            real.strip_prefix(std::fs::canonicalize(&top).map_err(|error| unreadable(path, &error))?);
        let mut inside = inside.map_or_else(|_| PathBuf::new(), Path::to_owned);
        if real.join("specs").is_dir() {
            inside.push("specs");
        }
        let mut revision = Self::default();
        for (file, content) in git.files(&commit, &inside, real.is_file())? {
            let shown = current.join(format!("{name}:{file}"));
            let text = read_stream(&shown.to_string_lossy(), content.as_slice())?;
            if is_json(&real) {
                revision.json = Some(text);
                continue;
            }
            let Some(text) = text.into_text() else {
                return Err(CliError::Usage(format!("`{name}:{file}` is not UTF-8")));
            };
            revision.texts.set(&shown, text);
            revision.input.files.push(shown);
        }
        Ok(revision)
    }
}

/// Returns whether a path has the extension of JSON definitions.
pub(in crate::cli) fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Returns the message for a name that is not a revision. A shallow clone lacks most revisions.
fn unknown_revision(name: &str, is_shallow: bool) -> String {
    let message = format!("`{name}` is neither a path nor a git revision");
    if !is_shallow {
        return message;
    }
    format!(
        "{message} of this shallow clone; fetch the history with `git fetch --unshallow origin \
         '+refs/heads/*:refs/remotes/origin/*'`, or in GitHub Actions with `fetch-depth: 0` of actions/checkout"
    )
}

fn unreadable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::Usage(format!("cannot read {}: {error}", path.display()))
}

/// Git in a repository.
struct Git {
    program: PathBuf,
    folder: PathBuf,
}

impl Git {
    fn at(folder: &Path) -> Result<Self, CliError> {
        let program = find_program("git", folder).ok_or_else(|| {
            CliError::Usage(String::from("a revision is read with git, which is not in PATH; install git"))
        })?;
        Ok(Self { program, folder: folder.to_owned() })
    }

    /// Runs git with `input` as its stdin and returns its stdout.
    fn run(&self, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, CliError> {
        let failed =
            |why: &str| CliError::Usage(format!("git {}: {}", arguments.join(" "), one_line(why.to_owned())));
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).args(["--no-pager", "--no-replace-objects", "--literal-pathspecs"]);
        for setting in ["core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never"] {
            command.args(["-c", setting]);
        }
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0");
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(&error.to_string()))?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // Git answers before it has read everything. It may end early, which its status reports.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        });
        let output = output.map_err(|error| failed(&error.to_string()))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(failed(String::from_utf8_lossy(&output.stderr).trim()))
    }

    /// Runs git and returns its output without the line end.
    fn text(&self, arguments: &[&str]) -> Result<String, CliError> {
        let output = self.run(arguments, b"")?;
        Ok(String::from_utf8_lossy(&output).trim_end_matches(['\r', '\n']).to_owned())
    }

    /// Returns whether the repository is a clone without its whole history.
    fn is_shallow(&self) -> bool {
        self.text(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true")
    }

    /// Returns the paths and contents of the file `inside`, or of the spec files below the folder `inside`, in `commit`.
    fn files(&self, commit: &str, inside: &Path, is_file: bool) -> Result<Vec<(String, Vec<u8>)>, CliError> {
        let mut arguments = vec!["ls-tree", "-r", "-z", "--full-tree", commit, "--"];
        let inside = inside.to_string_lossy().replace('\\', "/");
        arguments.extend((!inside.is_empty()).then_some(&*inside));
        let listed = self.run(&arguments, b"")?;
        let listed = String::from_utf8_lossy(&listed);
        // An entry: `100644 blob OBJECT\tPATH`. A link has another mode.
        let entries = listed.split('\0').filter_map(|entry| {
            let (about, path) = entry.split_once('\t')?;
            let object = about.strip_prefix("100644 blob ").or_else(|| about.strip_prefix("100755 blob "))?;
            let below = Path::new(path.strip_prefix(&*inside)?.trim_start_matches('/'));
            (is_file || is_visible_spec(below)).then_some((path, object))
        });
        let entries: Vec<(&str, &str)> = entries.collect();
        let objects: String = entries.iter().flat_map(|(_, object)| [*object, "\n"]).collect();
        let contents = self.run(&["cat-file", "--batch"], objects.as_bytes())?;
        let mut rest = contents.as_slice();
        let mut files = Vec::new();
        for (path, _) in entries {
            let Some(content) = next_object(&mut rest) else {
                return Err(CliError::Usage(format!(
                    "git has no content of {path} in this clone; fetch it first"
                )));
            };
            files.push((path.to_owned(), content));
        }
        Ok(files)
    }
}

/// Takes the next object from the output of `git cat-file --batch`: `OBJECT blob SIZE`, a line end, the content, and a
/// line end. Returns `None` for a missing object.
fn next_object(output: &mut &[u8]) -> Option<Vec<u8>> {
    let end = output.iter().position(|byte| *byte == b'\n')?;
    let (head, rest) = output.split_at_checked(end)?;
    let size: usize = std::str::from_utf8(head).ok()?.split_once(" blob ")?.1.parse().ok()?;
    let content = rest.get(1..=size)?;
    *output = rest.get(size + 2..)?;
    Some(content.to_vec())
}

//! The files of a git revision, read with git's plumbing commands. No command of the repository is executed: hooks,
//! filters, textconv, the file system monitor and missing objects of a partial clone are not used.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use deftool_lang::text::one_line;
use deftool_project::{
    Input, Overlay, find_root, has_specs, is_tool_list, is_visible_spec, normalize, read_stream,
};

use crate::cli::outcome::CliError;
use crate::cli::project::programs::find_program;

/// A git revision, and its files that are compared with those at a path now. Links are not followed.
pub(in crate::cli) struct Revision {
    name: String,
    commit: String,
    git: Git,
    /// The root of the repository.
    top: PathBuf,
    /// File names in messages are relative to this folder.
    current: PathBuf,
    /// The files. They do not exist: [`texts`](Self::texts) has their content.
    pub(in crate::cli) inputs: Vec<Input>,
    pub(in crate::cli) texts: Overlay,
}

impl Revision {
    /// Opens revision `name` of the repository around `path`, which exists now.
    ///
    /// # Errors
    /// When `name` is not a revision, or git is missing.
    pub(in crate::cli) fn open(name: &Path, path: &Path, current: &Path) -> Result<Self, CliError> {
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
        let top = std::fs::canonicalize(&top).map_err(|error| unreadable(path, &error))?;
        let (name, current) = (name.to_owned(), current.to_owned());
        Ok(Self { name, commit, git, top, current, inputs: Vec::new(), texts: Overlay::default() })
    }

    /// Adds the files that the revision has at `path`: a file, a folder or a project that exists now.
    ///
    /// # Errors
    /// When a file is not UTF-8.
    pub(in crate::cli) fn add(&mut self, path: &Path) -> Result<(), CliError> {
        let real = std::fs::canonicalize(path).map_err(|error| unreadable(path, &error))?;
        let mut inside = self.inside(&real);
        if real.join("specs").is_dir() {
            inside.push("specs");
        }
        let mut files = Vec::new();
        for (file, content) in self.git.files(&self.commit, &inside, real.is_file())? {
            files.push(self.read(&file, &content)?);
        }
        if files.is_empty() && is_tool_list(path) {
            return Err(CliError::Usage(format!("revision `{}` has no such file", self.name)));
        }
        self.inputs.push(Input { files, ..Input::default() });
        Ok(())
    }

    /// Adds the projects that the revision has in `folder` and below it, and the project around it. If the user named the
    /// folder, adds also its files outside of projects. `now`: what the folder contains now; a project that is there but
    /// was not found is ignored by git and left out. Returns the folder in the revision.
    ///
    /// # Errors
    /// When a file is not UTF-8.
    pub(in crate::cli) fn add_projects(
        &mut self,
        folder: &Path,
        now: &[Input],
        is_named: bool,
    ) -> Result<PathBuf, CliError> {
        let real = std::fs::canonicalize(folder).map_err(|error| unreadable(folder, &error))?;
        let (inside, folder) = (self.inside(&real), normalize(folder));
        let base = self.current.join(format!("{}:", self.name)).join(&inside);
        let takes_loose = is_named && !folder.join("specs").is_dir();
        let is_now = |root: &Path| now.iter().any(|input| input.root.as_deref() == Some(root));
        let is_ignored = |project: &Path| {
            let root = folder.join(project);
            !project.as_os_str().is_empty() && !is_now(&root) && has_specs(&root)
        };
        let mut projects: BTreeMap<Option<PathBuf>, Vec<PathBuf>> = BTreeMap::new();
        for (file, content) in self.git.files(&self.commit, &inside, false)? {
            let below = Path::new(&file).strip_prefix(&inside).unwrap_or(Path::new(&file));
            let project = project_of(below);
            if project.map_or(takes_loose, |project| !is_ignored(project)) {
                let shown = self.read(&file, &content)?;
                projects.entry(project.map(|project| base.join(project))).or_default().push(shown);
            }
        }
        self.inputs.extend(projects.into_iter().map(|(root, files)| Input {
            root,
            files,
            ..Input::default()
        }));
        let around = find_root(&folder).ok().filter(|root| !is_named && *root != folder);
        around.map_or(Ok(()), |root| self.add(&root))?;
        Ok(base)
    }

    /// Returns a path relative to the root of the repository.
    fn inside(&self, real: &Path) -> PathBuf {
        real.strip_prefix(&self.top).map_or_else(|_| PathBuf::new(), Path::to_owned)
    }

    /// Stores the content of a file, and returns the path under which it is read.
    fn read(&mut self, file: &str, content: &[u8]) -> Result<PathBuf, CliError> {
        let shown = self.current.join(format!("{}:{file}", self.name));
        let Some(text) = read_stream(&shown.to_string_lossy(), content)?.into_text() else {
            return Err(CliError::Usage(format!("`{}:{file}` is not UTF-8", self.name)));
        };
        self.texts.set(&shown, text);
        Ok(shown)
    }
}

/// Returns the project of a spec file: the folder with the outermost `specs` around it.
fn project_of(file: &Path) -> Option<&Path> {
    file.ancestors().skip(1).filter(|folder| folder.ends_with("specs")).last()?.parent()
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

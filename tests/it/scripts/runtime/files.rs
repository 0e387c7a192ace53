//! `fs`: access is limited to the granted paths.

use super::*;

#[test]
fn reading_a_file_requires_a_grant() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes");
    std::fs::create_dir_all(notes.join("deep")).unwrap();
    std::fs::write(notes.join("today.md"), "# Today\n").unwrap();
    std::fs::write(notes.join("deep/bytes.bin"), [0xFF, 0xFE]).unwrap();
    std::fs::write(folder.path().join("secret.txt"), "secret").unwrap();
    std::fs::write(folder.path().join("one.txt"), "one").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.txt", notes.join("link.txt")).unwrap();
    let read = |function: &str, path: &str| {
        let source = format!("return function(path) return fs.{function}(path) end");
        let mut script = with_parameters(&source, &["path"]);
        script.permissions.read =
            vec![PathGrant::new("notes/", &notes), PathGrant::new("one.txt", folder.path().join("one.txt"))];
        run(script, json!({"path": path}))
    };
    assert_eq!(read("read", "notes/today.md").unwrap(), json!("# Today\n"));
    assert_eq!(read("read", "./notes//deep/../today.md").unwrap(), json!("# Today\n"));
    assert_eq!(read("read", "other/../one.txt").unwrap(), json!("one"));
    assert_eq!(read("read", notes.join("today.md").to_str().unwrap()).unwrap(), json!("# Today\n"));
    assert_eq!(read("read", "one.txt").unwrap(), json!("one"));
    let names: Vec<String> = read("list", "notes")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| format!("{} {}", entry["name"].as_str().unwrap(), entry["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(names, ["deep directory", "link.txt symlink", "today.md file"]);
    for escape in
        ["secret.txt", "notes/../secret.txt", "/etc/passwd", "notes/link.txt", "../x", "one.txt/x", ""]
    {
        let error = read("read", escape).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Permission, "{escape}: {error}");
        assert!(error.message.contains(":allow (:read ["), "{error}");
        assert!(error.message.starts_with("scripts/probe.lua:1: fs.read: "), "{error}");
    }
    assert!(read("read", "notes/deep/bytes.bin").unwrap_err().message.contains("not UTF-8"));
    assert!(read("read", "notes/absent").unwrap_err().message.contains("No such file"));
    #[cfg(unix)]
    {
        let made = std::process::Command::new("mkfifo").arg(notes.join("pipe")).status().unwrap();
        assert!(made.success());
        assert!(read("read", "notes/pipe").unwrap_err().message.contains("not a regular file"));
    }
    assert!(read("read", "notes/deep").unwrap_err().message.contains("not a regular file"));
    let error = run_source("return function() return fs.list('.') end").unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Permission);
    assert!(error.message.contains("may not read any file"), "{error}");
}

#[test]
fn a_grant_may_contain_dot_dot() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    for name in ["project/notes", "other/deep", "beside"] {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    for name in ["top.txt", "other/x", "other/deep/y", "beside/z", "project/secret.txt", "project/notes/n"] {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("../beside/z", folder.path().join("other/link")).unwrap();
    // Resolve names against the project root, as the `project` module does.
    let read = |grants: &[&str], path: &str| {
        let mut script = with_parameters("return function(path) return fs.read(path) end", &["path"]);
        script.permissions.read =
            grants.iter().map(|name| PathGrant::new(*name, project.join(name))).collect();
        run(script, json!({"path": path}))
    };
    for (grant, path, expected) in [
        ("../other/", "../other/x", "other/x"),
        ("../other/", "./notes/../../other//deep/y", "other/deep/y"),
        ("../other/", "../other/deep/../x", "other/x"),
        ("../other/x", "../other/x", "other/x"),
        ("notes/../../other", "../other/x", "other/x"),
        ("..", "../top.txt", "top.txt"),
        ("../", "../other/x", "other/x"),
        (".", "notes/../secret.txt", "project/secret.txt"),
        ("notes/..", "secret.txt", "project/secret.txt"),
    ] {
        assert_eq!(read(&[grant], path), Ok(json!(expected)), "{grant} {path}");
    }
    let full = folder.path().join("project/notes/../../other/x");
    assert_eq!(read(&["../other/"], full.to_str().unwrap()), Ok(json!("other/x")));

    for (grant, path, advised) in [
        ("notes/", "notes/../secret.txt", Some("secret.txt")),
        ("../other/", "../other/../beside/z", Some("../beside/z")),
        (".", "../other/x", Some("../other/x")),
        ("..", "../../x", None),
        ("../other/", "../other/link", None),
    ] {
        let error = read(&[grant], path).unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Permission, "{grant} {path}: {error}");
        assert!(error.message.contains(":allow (:read ["), "{error}");
        if let Some(advised) = advised {
            assert!(error.message.contains(&format!(":allow (:read [\"{advised}\"])")), "{error}");
            assert!(read(&[grant, advised], path).is_ok(), "{grant} {path}");
        }
    }
    let error = read(&["notes/"], "").unwrap_err();
    assert!(error.message.contains(":allow (:read [\".\"])"), "{error}");
    let error = read(&["notes/"], "a\"b\\c").unwrap_err();
    assert!(error.message.contains(r#":allow (:read ["a\"b\\c"])"#), "{error}");
}

/// Results are held outside of the memory limit, so a call may only run a few listings at a time.
#[test]
fn concurrent_listings_of_a_call_are_limited() {
    // Without a limit, all listings would always be early. With a limit, they are all early only if the first ones end
    // before the last ones start, which can happen on a loaded machine.
    let bounded = (0..10).any(|_| early_and_late()[1].as_i64().unwrap() >= 5);
    assert!(bounded, "all listings started before the first result was received");
}

/// Returns how many of 50 listings ran before the folder changed, and how many after. While the script is blocked, all
/// permitted listings run, then the folder changes.
fn early_and_late() -> Value {
    let folder = tempfile::tempdir().unwrap();
    for name in 0..500 {
        std::fs::write(folder.path().join(name.to_string()), "").unwrap();
    }
    let added = folder.path().join("new");
    let sink = ScriptSink::new(move |_| {
        std::thread::sleep(Duration::from_millis(300));
        std::fs::write(&added, "").unwrap();
    });
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, sink, ..RunnerOptions::default() });
    let source = "return function()
        local early, late = 0, 0
        for i = 1, 50 do
          task.spawn(function()
            if #fs.list('.') == 500 then early += 1 else late += 1 end
          end)
        end
        task.spawn(print, 'all have started')
        repeat task.wait(0.01) until early + late == 50
        return { early, late }
      end";
    let mut script = script(source);
    script.permissions.read = vec![PathGrant::new(".", folder.path())];
    block_on(runner.call(Arc::new(script), call(json!({})), CallContext::default())).unwrap()
}

/// A project folder with files and grants, in which scripts run.
pub(super) struct TestProject {
    pub(super) folder: tempfile::TempDir,
    read: Vec<&'static str>,
    write: Vec<&'static str>,
}

impl TestProject {
    pub(super) fn new(read: &[&'static str], write: &[&'static str], files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self { folder, read: read.to_vec(), write: write.to_vec() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn run(&self, body: &str) -> Result<Value, ToolError> {
        let mut script = script(&format!("return function() {body} end"));
        let grant =
            |names: &[&str]| names.iter().map(|name| PathGrant::new(*name, self.path(name))).collect();
        script.permissions.read = grant(&self.read);
        script.permissions.write = grant(&self.write);
        script.root = Some(self.folder.path().to_path_buf());
        // These tests do not test timeouts.
        script.timeout = Some(Duration::from_secs(300));
        run(script, json!({}))
    }

    pub(super) fn error_message(&self, body: &str) -> String {
        let error = self.run(body).expect_err(body);
        assert!(!error.message.contains("os error"), "{error}");
        error.message
    }

    pub(super) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_file_is_read_in_pages() {
    let long = "x".repeat(9 << 20);
    let many = (1..=3_000).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
    let project = TestProject::new(
        &["."],
        &[],
        &[("a.txt", "one\r\ntwo\n\nfour"), ("many", &many), ("long", &long), ("empty", "")],
    );
    for (body, expected) in [
        (
            "local lines, more = fs.lines('a.txt') return { lines, more }",
            json!([["one", "two", "", "four"], false]),
        ),
        (
            "local lines, more = fs.lines('a.txt', { from = 2, count = 1 }) return { lines, more }",
            json!([["two"], true]),
        ),
        ("local lines, more = fs.lines('a.txt', { from = 5 }) return { lines, more }", json!([[], false])),
        ("local lines, more = fs.lines('empty') return { lines, more }", json!([[], false])),
        (
            "local lines, more = fs.lines('many', { from = 2999, count = 2 }) return { lines, more }",
            json!([["line 2999", "line 3000"], false]),
        ),
        ("local lines, more = fs.lines('many') return { #lines, more }", json!([1000, true])),
        ("return fs.read_bytes('a.txt', { offset = 1, limit = 3 })", json!("ne\r")),
        ("return fs.read_bytes('a.txt', { offset = 99 })", json!("")),
        ("return #fs.read_bytes('long', { offset = 5, limit = 8 * 1024 * 1024 })", json!(8 << 20)),
        ("return #fs.read_bytes('long', { offset = 1024 * 1024 })", json!(8 << 20)),
        ("return fs.read('empty')", json!("")),
    ] {
        assert_eq!(project.run(body), Ok(expected), "{body}");
    }
    for (body, expected) in [
        ("fs.read('long')", "longer than 8 MiB; use fs.lines or fs.read_bytes to read a part"),
        ("fs.lines('long')", "more than 8 MiB in line 1; read it with fs.read_bytes"),
        ("fs.read_bytes('long')", "more than 8 MiB; set limit to read a part"),
        ("fs.lines('a.txt', { form = 1 })", "unknown option `form`, expected one of `from`, `count`"),
        ("fs.lines('a.txt', { from = 0 })", "expected from to be a whole number from 1 to"),
        ("fs.lines('a.txt', { from = 1.5 })", "to 9007199254740992, got 1.5"),
        ("fs.lines('a.txt', { from = 'x' })", "from 1 to 9007199254740992, got string"),
        ("fs.lines('a.txt', 5)", "expected a table of options"),
        ("fs.read({})", "expected a string, got table"),
        ("fs.read(string.rep('a/', 5000))", "the path is longer than 4096 bytes"),
        ("fs.read('a\\0b')", "a\u{FFFD}b: "),
    ] {
        let message = project.error_message(body);
        assert!(message.contains(expected), "{body}: {message}");
    }
}

#[test]
fn writes_are_atomic_and_limited_to_granted_paths() {
    let project =
        TestProject::new(&["notes/"], &["out/", "report.md"], &[("notes/a", "a"), ("out/old.txt", "old")]);
    project.run("fs.write('out/new.txt', 'new') fs.write('out/old.txt', 'changed')").unwrap();
    project.run("fs.append('out/old.txt', '!') fs.append('out/log', '1') fs.append('out/log', '2')").unwrap();
    project.run("fs.write('report.md', '# 1') fs.write('report.md', '# 2\\0\\255')").unwrap();
    project.run("fs.write('out/a/b/c', 'deep', { parents = true })").unwrap();
    assert_eq!(project.text("out/new.txt"), "new");
    assert_eq!(project.text("out/old.txt"), "changed!");
    assert_eq!(project.text("out/log"), "12");
    assert_eq!(std::fs::read(project.path("report.md")).unwrap(), b"# 2\0\xFF");
    assert_eq!(project.text("out/a/b/c"), "deep");
    assert_eq!(project.names("out"), ["a", "log", "new.txt", "old.txt"], "no temporary file is left");
    // A write grant allows listing and `stat`, but not reading.
    assert_eq!(project.run("return fs.stat('out/log').size"), Ok(json!(2)));
    assert_eq!(project.run("return { #fs.list('out'), #(fs.glob('out/**')) }"), Ok(json!([4, 4])));
    for (body, expected) in [
        ("fs.read('out/log')", "this tool may only write it; to allow it, add :allow (:read [\"out/log\"])"),
        (
            "fs.write('notes/a', '')",
            "this tool may only read it; to allow it, add :allow (:write [\"notes/a\"])",
        ),
        (
            "fs.write('elsewhere', '')",
            "this tool may only write \"out/\" \"report.md\"; to allow it, add :allow (:write [\"elsewhere\"])",
        ),
        ("fs.append('out/../notes/a', '')", ":allow (:write [\"notes/a\"])"),
        ("fs.mkdir('made')", ":allow (:write [\"made\"])"),
        ("fs.remove('notes/a')", ":allow (:write [\"notes/a\"])"),
        ("fs.rename('out/log', 'notes/log')", ":allow (:write [\"notes/log\"])"),
        ("fs.rename('notes/a', 'out/a2')", ":allow (:write [\"notes/a\"])"),
        ("fs.stat('elsewhere')", "this tool may only access \"notes/\" \"out/\" \"report.md\""),
    ] {
        let error = project.run(body).expect_err(body);
        assert_eq!(error.kind, ToolErrorKind::Permission, "{body}: {error}");
        assert!(error.message.contains(expected), "{body}: {error}");
    }
    for (body, expected) in [
        ("fs.write('out/x/y', '')", "fs.write: out/x/y: No such file or directory"),
        ("fs.write('out', '')", "is the granted folder itself"),
        ("fs.write('out/a', '')", "is not a regular file"),
        ("fs.append('out/a/b', '')", "is not a regular file"),
        ("fs.write('out/new.txt/x', '')", "Not a directory"),
        ("fs.write('out/y', '', { parent = true })", "unknown option `parent`"),
        ("fs.write('out/y')", "expected a string, got nothing"),
    ] {
        let message = project.error_message(body);
        assert!(message.contains(expected), "{body}: {message}");
    }
    assert_eq!(project.text("notes/a"), "a");
}

/// `parents = true` also creates a missing granted folder.
#[test]
fn a_missing_granted_folder_can_be_created() {
    let files = [("here", "")];
    for (body, made) in [
        ("fs.mkdir('deep/out', { parents = true })", "deep/out"),
        ("fs.write('deep/out/a/b', 'x', { parents = true })", "deep/out/a/b"),
        ("fs.append('deep/out/b', 'x', { parents = true })", "deep/out/b"),
        ("fs.write('one/file', 'x', { parents = true })", "one/file"),
    ] {
        let project = TestProject::new(&[], &["deep/out/", "one/file"], &files);
        assert_eq!(project.run("return fs.exists('deep/out/a')"), Ok(json!(false)));
        assert_eq!(project.run("return fs.glob('deep/out/*')"), Ok(json!([])));
        for missing in ["fs.list('deep/out')", "fs.mkdir('deep/out')", "fs.write('deep/out/a', '')"] {
            let message = project.error_message(missing);
            assert!(message.contains("No such file or directory"), "{missing}: {message}");
        }
        project.run(body).unwrap();
        assert!(project.path(made).exists(), "{body}");
    }
}

#[test]
fn folders_are_created_removed_and_renamed() {
    let project =
        TestProject::new(&["kept/notes/"], &["."], &[("a/b/c", "c"), ("d", "d"), ("kept/notes/n", "n")]);
    project
        .run("fs.mkdir('new') fs.mkdir('new/x/y', { parents = true }) fs.mkdir('new', { parents = true })")
        .unwrap();
    assert!(project.path("new/x/y").is_dir());
    for (body, expected) in [
        ("fs.mkdir('new')", "already exists"),
        ("fs.mkdir('d')", "already exists and is not a folder"),
        ("fs.mkdir('d/e', { parents = true })", "Not a directory"),
        ("fs.remove('a')", "is not empty; pass recursive = true"),
        ("fs.remove('absent')", "No such file or directory"),
        ("fs.remove('.', { recursive = true })", "is the granted folder itself"),
        ("fs.rename('d', 'a')", "already exists and is not a regular file"),
        ("fs.rename('absent', 'x')", "absent: No such file"),
        ("fs.rename('a', 'kept/notes')", "is a granted path or contains one"),
        ("fs.rename('kept', 'other')", "kept is a granted path or contains one"),
        ("fs.rename('a', 'a/b/inner')", "Invalid argument"),
    ] {
        let message = project.error_message(body);
        assert!(message.contains(expected), "{body}: {message}");
    }
    project
        .run("fs.rename('d', 'new/e') fs.rename('a/b', 'moved') fs.write('f', '') fs.rename('f', 'new/e')")
        .unwrap();
    assert_eq!(project.names("."), ["a", "kept", "moved", "new"]);
    assert_eq!(project.text("new/e"), "");
    project.run("fs.remove('a') fs.remove('new', { recursive = true }) fs.remove('moved/c')").unwrap();
    assert_eq!(project.names("."), ["kept", "moved"]);
}

#[test]
fn files_are_found_by_pattern() {
    let project = TestProject::new(
        &[".", ".github", "src/.hidden.rs"],
        &[],
        &[
            (".gitignore", "target/\n*.log\n!keep.log\n/only_top\n"),
            ("src/a.rs", ""),
            ("src/a/b.rs", ""),
            ("src/a/deep/c.rs", ""),
            ("src/a/only_top", ""),
            ("src/x.log", ""),
            ("src/keep.log", ""),
            ("src/.gitignore", "generated.rs\n"),
            ("src/.ignore", "ignored.rs\n"),
            ("src/generated.rs", ""),
            ("src/ignored.rs", ""),
            ("src/.hidden.rs", ""),
            ("target/t.rs", ""),
            (".git/config", ""),
            (".github/ci.yml", ""),
            ("only_top", ""),
            ("é[1].txt", ""),
        ],
    );
    #[cfg(unix)]
    std::os::unix::fs::symlink("..", project.path("src/up")).unwrap();
    let found = |call: &str| {
        project.run(&format!("local paths, more = fs.glob({call}) return {{ paths, more }}")).unwrap()
    };
    for (call, paths, more) in [
        ("'src/*.rs'", &["src/a.rs", "src/generated.rs", "src/ignored.rs"][..], false),
        ("'*.rs', { root = 'src' }", &["src/a.rs", "src/generated.rs", "src/ignored.rs"], false),
        ("'src/**/*.rs', { gitignore = true }", &["src/a.rs", "src/a/b.rs", "src/a/deep/c.rs"], false),
        (
            "'**', { gitignore = true, root = 'src/a' }",
            &["src/a/b.rs", "src/a/deep/c.rs", "src/a/only_top"],
            false,
        ),
        ("'**/*.{log,yml}', { gitignore = true, hidden = true }", &[".github/ci.yml", "src/keep.log"], false),
        ("'**/*.rs', { limit = 2 }", &["src/a.rs", "src/a/b.rs"], true),
        (
            "'**/*.rs', { depth = 2, root = './' }",
            &["src/a.rs", "src/generated.rs", "src/ignored.rs", "target/t.rs"],
            false,
        ),
        ("'**', { kind = 'directory' }", &["src", "src/a", "src/a/deep", "target"], false),
        (
            "'src/*', { kind = 'any', gitignore = true }",
            &["src/a.rs", "src/a", "src/keep.log", "src/up"],
            false,
        ),
        ("'.github/*'", &[".github/ci.yml"], false),
        ("'src/.*.rs'", &["src/.hidden.rs"], false),
        ("'é[[]1[]].txt'", &["é[1].txt"], false),
        ("'src/a.rs'", &["src/a.rs"], false),
        ("'absent/**'", &[], false),
        ("'only_*', { gitignore = true }", &[], false),
    ] {
        assert_eq!(found(call), json!([paths, more]), "{call}");
    }
    for (call, expected) in [
        ("'a{b'", "invalid pattern a{b: "),
        ("'*', { root = 'absent' }", "absent"),
        ("'*', { kind = 'socket' }", "kind to be \"file\", \"directory\" or \"any\""),
        ("string.rep('*', 1001)", "the pattern is longer than 1000 bytes"),
        ("'../**'", ":allow (:read [\"..\"])"),
        ("'/etc/*'", ":allow (:read [\"/etc\"])"),
    ] {
        let message = project.error_message(&format!("fs.glob({call})"));
        assert!(message.contains(expected), "{call}: {message}");
    }
}

#[test]
fn writes_of_a_call_are_limited() {
    let project = TestProject::new(&[], &["."], &[]);
    let message =
        project.error_message("local mib = string.rep('x', 1048576) for i = 1, 65 do fs.write('a', mib) end");
    assert!(message.contains("a call may write at most 64 MiB"), "{message}");
    let message = project.error_message("fs.write('b', string.rep('x', 65 * 1048576))");
    assert!(message.contains("at most 64 MiB") || message.contains("memory limit"), "{message}");
    // A new call starts at zero.
    assert_eq!(project.run("fs.write('a', 'x') return fs.stat('a').size"), Ok(json!(1)));
}

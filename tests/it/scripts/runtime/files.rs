//! `fs`: access is limited to the granted paths. Most of it is tested in `tests/test_command/scripts/scripts/fs_test.lua`.

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
    block_on(runner.value_of(Arc::new(script), call(json!({})), CallContext::default())).unwrap()
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

/// Links are found, but they are not followed, and they do not lead out of a granted folder.
#[cfg(unix)]
#[test]
fn links_are_found_and_not_followed() {
    let project = TestProject::new(&["src"], &[], &[("src/a", ""), ("src/d/b", "")]);
    std::os::unix::fs::symlink("..", project.path("src/up")).unwrap();
    let found = project.run("return fs.glob('src/**', { kind = 'any' })");
    assert_eq!(found, Ok(json!(["src/a", "src/d", "src/d/b", "src/up"])));
    let error = project.run("return fs.read('src/up/src/a')").unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Permission);
    assert!(error.message.contains(":allow (:read ["), "{error}");
}

#[test]
fn a_text_that_exceeds_two_limits_is_not_written() {
    let message =
        TestProject::new(&[], &["."], &[]).error_message("fs.write('b', string.rep('x', 65 * 1048576))");
    assert!(message.contains("at most 64 MiB") || message.contains("memory limit"), "{message}");
}

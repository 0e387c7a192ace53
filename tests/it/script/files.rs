//! `fs`: beneath its grants only.

use super::*;

#[test]
fn files_are_read_under_a_grant_only() {
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
    assert!(error.message.contains("may read nothing"), "{error}");
}

#[test]
fn a_grant_may_lead_up_and_no_further() {
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
    // As the layer above joins names to the project's root.
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

/// What was listed waits outside the memory limit: a call has few such lists at a time.
#[test]
fn a_call_lists_few_folders_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("old"), "").unwrap();
    let added = folder.path().join("new");
    // Every listing that may run does so while the script is held here; then the folder changes.
    let sink = ScriptSink::new(move |_| {
        std::thread::sleep(Duration::from_millis(500));
        std::fs::write(&added, "").unwrap();
    });
    let runner = ScriptRunner::new(RunnerOptions { threads: 1, sink, ..RunnerOptions::default() });
    let source = "return function()
        local early, late = 0, 0
        for i = 1, 50 do
          task.spawn(function()
            if #fs.list('.') == 1 then early += 1 else late += 1 end
          end)
        end
        task.spawn(print, 'all have started')
        repeat task.wait(0.01) until early + late == 50
        return { early, late }
      end";
    let mut script = script(source);
    script.permissions.read = vec![PathGrant::new(".", folder.path())];
    let ended = block_on(runner.call(Arc::new(script), call(json!({})), CallContext::default())).unwrap();
    let late = ended[1].as_i64().unwrap();
    assert!(late >= 25, "early and late: {ended}");
}

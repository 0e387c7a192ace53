//! Untrusted clones: without trust, nothing is sent to a server that a spec names, no hidden file is read, changed or
//! sent, and no link out of the project is followed.
//!
//! Each test prints how many attacks succeeded (`--nocapture`). Uses the real binary, real files and a real server.

use super::*;

const CANARY: &str = "CANARY-91c4-of-this-long";

/// A project with secrets in hidden files and visible links to them.
struct Clone {
    home: Home,
    outside: tempfile::TempDir,
}

/// The hidden files. Each contains the canary.
const SECRETS: [&str; 6] =
    [".env", ".git/config", ".git/hooks/post-commit", ".config/app/token", "notes/.draft", "notes/deep/.x/y"];

impl Clone {
    fn new() -> Self {
        let clone = Self { home: Home::of(&[]), outside: tempfile::tempdir().unwrap() };
        for secret in SECRETS {
            clone.home.project.write(secret, CANARY);
        }
        clone.home.project.write("notes/a.md", "plain");
        clone.home.project.write("notes/deep/b.md", "plain");
        fs::create_dir(clone.outside.path().join("folder")).unwrap();
        fs::write(clone.outside.path().join("secret"), CANARY).unwrap();
        fs::write(clone.outside.path().join("folder/secret"), CANARY).unwrap();
        #[cfg(unix)]
        for (target, link) in [
            (".env", "visible"),
            ("visible", "twice"),
            (".git", "git"),
            ("../.env", "notes/up"),
            (".draft", "notes/draft"),
            ("deep/.x", "notes/x"),
            (".", "self"),
            (".config/app", "app"),
            ("missing/../.env", "odd"),
        ] {
            std::os::unix::fs::symlink(target, clone.home.project.path(link)).unwrap();
        }
        clone
    }

    /// Runs `deftool call` for a script with these permissions.
    fn call(&self, allow: &str, body: &str) -> Ended {
        self.home.project.write("specs/probe.eld", tool("probe", allow));
        self.home.project.write("scripts/probe.lua", format!("return function()\n{body}\nend\n"));
        self.home.run(&["call", "probe", "--trust"])
    }

    /// Returns the secrets that were changed.
    fn changed(&self) -> Vec<&'static str> {
        let has_changed =
            |name: &&str| fs::read_to_string(self.home.project.path(name)).ok().as_deref() != Some(CANARY);
        SECRETS.into_iter().filter(has_changed).collect()
    }
}

/// Prints the number of successful attacks of a kind, and panics if there are any.
fn assert_none_succeeded(kind: &str, attacks: usize, succeeded: &[String]) {
    println!("{kind:<40} {attacks:>3} attacks, {:>3} got through", succeeded.len());
    assert!(succeeded.is_empty(), "{kind}:\n{}", succeeded.join("\n"));
}

/// Tries to read a hidden file below a granted folder.
#[cfg(unix)]
#[test]
fn no_script_reads_a_hidden_file_below_a_granted_folder() {
    let clone = Clone::new();
    let full = clone.home.project.path(".env");
    let full = full.to_str().unwrap();
    let paths = [
        ".env",
        "./.env",
        ".//.env",
        "././.env",
        "notes/../.env",
        "notes/deep/../../.env",
        "self/.env",
        "self/self/.env",
        ".env/",
        ".env/.",
        "visible",
        "./visible",
        "twice",
        "notes/up",
        "notes/deep/../up",
        "odd",
        ".git/config",
        "./.git/../.git/config",
        "git/config",
        "git/hooks/post-commit",
        "git/../.env",
        "self/git/config",
        ".config/app/token",
        "app/token",
        "notes/.draft",
        "notes/draft",
        "notes/x/y",
        "notes/deep/.x/y",
        full,
    ];
    let mut succeeded = Vec::new();
    for path in paths {
        let body = format!(
            "local got = json.array({{}})
             for _, read in {{ fs.read, fs.lines, fs.read_bytes }} do
               local ok, text = pcall(read, {path:?}) if ok then table.insert(got, text) end
             end
             return got"
        );
        let ended = clone.call(":read [\".\" \"notes\"]", &body);
        assert_eq!(ended.code, Some(0), "{path}: {ended:?}");
        if ended.stdout.contains(CANARY) {
            succeeded.push(format!("read {path}"));
        }
    }
    assert_none_succeeded("reading hidden files", paths.len(), &succeeded);
}

/// Names and sizes of hidden files must not be visible either.
#[cfg(unix)]
#[test]
fn no_script_lists_a_hidden_file_below_a_granted_folder() {
    let clone = Clone::new();
    let looks = [
        "fs.list('.')",
        "fs.list('')",
        "fs.list('notes')",
        "fs.list('self')",
        "fs.list('.git')",
        "fs.list('git')",
        "fs.list('notes/x')",
        "fs.list('app')",
        "fs.glob('**', { hidden = true })",
        "fs.glob('**', { hidden = true, kind = 'any' })",
        "fs.glob('.env')",
        "fs.glob('.*')",
        "fs.glob('.git/**')",
        "fs.glob('**', { root = '.git' })",
        "fs.glob('**', { root = 'git' })",
        "fs.glob('git/**')",
        "fs.glob('.g*/**', { hidden = true })",
        "fs.glob('notes/**/.*')",
        "fs.glob('self/.*')",
        "fs.glob('[.]env')",
        "fs.glob('{.env,.git/config}')",
        "fs.glob('**/.x/*', { gitignore = true })",
        "fs.stat('.env')",
        "fs.stat('visible')",
        "fs.exists('.env')",
        "fs.exists('.git/config')",
        "fs.exists('git/config')",
        "fs.stat('notes/x/y')",
    ];
    let names = ["env", "config", "hooks", "token", "draft\"", "\"y\"", "/y\"", ".x", "\"size\":24"];
    let mut succeeded = Vec::new();
    for look in looks {
        let body = format!(
            "local ok, found = pcall(function() return {look} end)
             if not ok then return 'refused' end
             if found == true then return 'env' end
             local text = json.encode(found == nil and '' or found)
             -- What links are called was never a secret.
             for _, link in {{ 'visible', 'twice', 'odd', 'notes/draft', 'draft' }} do text = text:gsub('\"' .. link .. '\"', '') end
             return {{ text }}"
        );
        let ended = clone.call(":read [\".\"]", &body);
        assert_eq!(ended.code, Some(0), "{look}: {ended:?}");
        let said = ended.stdout.replace("\\\"", "\"");
        if names.iter().any(|name| said.contains(name)) {
            succeeded.push(format!("{look}: {said}"));
        }
    }
    assert_none_succeeded("listing hidden files", looks.len(), &succeeded);
}

#[cfg(unix)]
#[test]
fn no_script_changes_a_hidden_file_below_a_granted_folder() {
    let writes = [
        "fs.write('.env', 'x')",
        "fs.append('.env', 'x')",
        "fs.write('./notes/../.env', 'x')",
        "fs.write('visible', 'x')",
        "fs.append('visible', 'x')",
        "fs.append('twice', 'x')",
        "fs.write('notes/up', 'x')",
        "fs.write('git/config', 'x')",
        "fs.append('git/hooks/post-commit', 'x')",
        "fs.write('.git/config', 'x')",
        "fs.write('self/.env', 'x')",
        "fs.remove('.env')",
        "fs.remove('git/config')",
        "fs.remove('.git', { recursive = true })",
        "fs.remove('notes', { recursive = true })",
        "fs.remove('notes/deep', { recursive = true })",
        "fs.remove('notes/x/y')",
        "fs.rename('.env', 'env.txt')",
        "fs.rename('.git', 'gitdir')",
        "fs.rename('git/config', 'config.txt')",
        "fs.rename('notes/a.md', '.env')",
        "fs.rename('notes/a.md', 'git/config')",
        "fs.write('.git/hooks/pre-commit', 'x', { parents = true })",
        "fs.write('git/hooks/pre-push', 'x')",
        "fs.write('.new/deep/file', 'x', { parents = true })",
        "fs.write('git/objects/x', 'x', { parents = true })",
        "fs.mkdir('.git/new')",
        "fs.mkdir('git/new')",
        "fs.mkdir('.hidden/new', { parents = true })",
        "fs.rename('notes/a.md', '.git/hooks/pre-rebase')",
        "fs.rename('notes/deep', '.deep')",
    ];
    let made = [
        ".git/hooks/pre-commit",
        ".git/hooks/pre-push",
        ".new",
        ".git/objects",
        ".git/new",
        ".hidden",
        ".git/hooks/pre-rebase",
        ".deep",
        "gitdir",
        "env.txt",
        "config.txt",
    ];
    let mut succeeded = Vec::new();
    for write in writes {
        let clone = Clone::new();
        let ended =
            clone.call(":read [\".\"] :write [\".\"]", &format!("pcall(function() {write} end) return 1"));
        assert_eq!(ended.code, Some(0), "{write}: {ended:?}");
        let made: Vec<&str> =
            made.into_iter().filter(|name| clone.home.project.path(name).exists()).collect();
        let changed = clone.changed();
        if !made.is_empty() || !changed.is_empty() {
            succeeded.push(format!("{write}: {changed:?} {made:?}"));
        }
    }
    assert_none_succeeded("changing hidden files", writes.len(), &succeeded);
}

/// A permission for a visible link does not include its hidden target.
#[cfg(unix)]
#[test]
fn a_granted_link_does_not_expose_a_hidden_file() {
    let clone = Clone::new();
    let grants = [
        ("visible", "visible"),
        ("twice", "twice"),
        ("git", "git/config"),
        ("app", "app/token"),
        ("notes/draft", "notes/draft"),
        ("notes/x", "notes/x/y"),
        ("self/git", "self/git/config"),
        ("notes/../visible", "visible"),
    ];
    let mut succeeded = Vec::new();
    for (grant, path) in grants {
        for with in ["", " \"notes\""] {
            let allow = format!(":read [\"{grant}\"{with}]");
            let ended = clone.call(&allow, &format!("return fs.read('{path}')"));
            if ended.stdout.contains(CANARY) {
                succeeded.push(format!("{allow} {path}"));
            } else {
                assert!(ended.stderr.contains("error[permission]"), "{allow}: {ended:?}");
            }
        }
    }
    assert_none_succeeded("grants that are links", grants.len() * 2, &succeeded);
}

/// A hidden file is accessible if the permission names it, or a hidden folder above it.
#[cfg(unix)]
#[test]
fn hidden_files_are_accessible_if_named_explicitly() {
    let clone = Clone::new();
    for (allow, body, expected) in [
        (":read [\".\" \".env\"]", "return fs.read('.env')", Ok(CANARY)),
        (":read [\".env\"]", "return fs.read('./.env')", Ok(CANARY)),
        (":read [\".git\"]", "return fs.read('.git/hooks/post-commit')", Ok(CANARY)),
        (":read [\".\" \".git/\"]", "return fs.read('git/config')", Ok(CANARY)),
        (":read [\"notes/deep/.x\"]", "return fs.read('notes/deep/.x/y')", Ok(CANARY)),
        (":read [\".\" \".git\"]", "return #(fs.glob('.git/**'))", Ok("2")),
        (":read [\".\" \".git\"]", "return #(fs.glob('**/con*', { hidden = true }))", Ok("1")),
        (":read [\".\" \".env\"]", "return fs.list('.')[1].name", Ok(".env")),
        (
            ":write [\"notes\" \"notes/.draft\" \"notes/deep/.x\"]",
            "fs.remove('notes/deep', { recursive = true }) return 'gone'",
            Ok("gone"),
        ),
        (":read [\".\"]", "return fs.read('.env')", Err("add :allow (:read [\".env\"])")),
        (":read [\".\"]", "return fs.read('.git/hooks/post-commit')", Err("add :allow (:read [\".git\"])")),
        (":read [\".\"]", "return fs.read('visible')", Err("add :allow (:read [\".env\"])")),
        (":read [\".git\"]", "return fs.read('.git/.lock')", Err("add :allow (:read [\".git/.lock\"])")),
        (":write [\".\"]", "fs.write('.env', '')", Err("add :allow (:write [\".env\"])")),
        (":read [\"visible\"]", "return fs.read('visible')", Err("add :allow (:read [\".env\"])")),
        (":write [\".\"]", "fs.remove('notes', { recursive = true })", Err("which is hidden")),
    ] {
        let ended = clone.call(allow, body);
        match expected {
            Ok(expected) => {
                assert_eq!(
                    (ended.code, ended.stdout.contains(expected)),
                    (Some(0), true),
                    "{allow} {body}: {ended:?}"
                );
            }
            Err(advice) => {
                assert_eq!(ended.code, Some(1), "{allow} {body}: {ended:?}");
                assert!(ended.stderr.contains(advice), "{allow} {body}: {ended:?}");
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_bios_cannot_be_a_hidden_file() {
    let clone = Clone::new();
    let link = |target: &std::path::Path, name: &str| {
        std::os::unix::fs::symlink(target, clone.home.project.path(name)).unwrap();
    };
    // `scripts` may be a link to another folder, but a BIOS file must not be in it.
    fs::remove_dir_all(clone.home.project.path("scripts")).unwrap_or_default();
    link(&clone.outside.path().join("folder"), "scripts");
    link(&clone.outside.path().join("secret"), "plain.txt");
    let server = Server::answering(|_, _| Answer::text("hi"));
    let names = [
        ".env",
        "./.env",
        "././.env",
        ".git/config",
        "visible",
        "twice",
        "git/config",
        "notes/up",
        "notes/.draft",
        "notes/draft",
        "notes/x/y",
        "self/.env",
        "self/visible",
        "app/token",
        "notes/../.env",
        "scripts/secret",
        "plain.txt",
        "odd",
        &clone.home.project.path(".env").display().to_string(),
        &clone.home.project.path("visible").display().to_string(),
    ];
    let mut succeeded = Vec::new();
    for name in names {
        clone
            .home
            .project
            .write("specs/w.eld", format!("(defworker :name \"w\" :model \"m\" :bios \"{name}\")\n"));
        let before = server.posts().len();
        let ended = clone.home.run(&["run", "hello", "--endpoint", &server.endpoint(), "--trust"]);
        let sent = server.posts().split_off(before);
        if sent.iter().any(|request| request.body.to_string().contains(CANARY)) {
            succeeded.push(name.to_owned());
        } else {
            assert_ne!(ended.code, Some(0), "{name}: {ended:?}");
        }
    }
    assert_none_succeeded("hidden files as a BIOS", names.len(), &succeeded);
}

/// Returns spellings of addresses that are not loopback but reach a server on this machine.
fn non_loopback_endpoints(server: &Server) -> Vec<String> {
    let port = server.address().port();
    ["0.0.0.0", "[::ffff:127.0.0.1]", "0", "user:password@0.0.0.0", "127.0.0.1@0.0.0.0"]
        .map(|host| format!("http://{host}:{port}/v1"))
        .to_vec()
}

/// A remote endpoint in a spec requires trust, with or without a key.
#[test]
fn nothing_is_sent_to_a_server_in_a_spec_without_trust() {
    let server = Server::answering_all(|_, request| {
        let models = r#"{"object": "list", "data": [{"id": "m"}]}"#;
        if request.line.starts_with("GET") { Answer::whole(200, &[], models) } else { Answer::text("hi") }
    });
    let commands = [
        &["run", "hello"][..],
        &["run", "hello", "--json"],
        &["chat", "hello", "--no-save"],
        &["chat", "hello", "--no-save", "--json"],
        &["doctor"],
        &["doctor", "--json", "--worker", "w"],
    ];
    let (mut attacks, mut succeeded) = (0, Vec::new());
    for endpoint in non_loopback_endpoints(&server) {
        let home = Home::of(&[("reader", ":read [\".\"]")]);
        let worker = format!("(defworker :name \"w\" :endpoint \"{endpoint}\" :model \"m\")\n");
        home.project.write("specs/w.eld", worker);
        for (arguments, key) in
            commands.iter().flat_map(|command| [(*command, None), (*command, Some("s3cret"))])
        {
            let before = server.connections();
            let mut command = home.command(arguments);
            command.envs(key.map(|key| ("OPENAI_API_KEY", key)));
            let ended = Ended::of(command.output().unwrap());
            attacks += 1;
            if server.connections() > before {
                succeeded.push(format!("{arguments:?} {endpoint} {key:?}"));
                continue;
            }
            let told = format!("{}{}", ended.stdout, ended.stderr);
            assert!(
                told.contains("worker `w` requires :net [") && told.contains("`deftool trust grant`"),
                "{ended:?}"
            );
            if arguments[0] != "doctor" {
                assert_eq!(ended.code, Some(2), "{ended:?}");
            }
        }
    }
    assert_none_succeeded("endpoints of untrusted projects", attacks, &succeeded);
}

/// An endpoint that the user names requires no trust, nor does a replay.
#[test]
fn an_endpoint_named_by_the_user_requires_no_trust() {
    let server = Server::answering(|_, _| Answer::text("hi"));
    let [typed, other] = [&non_loopback_endpoints(&server)[0], "http://0.0.0.0:1/v1"];
    let home = Home::of(&[]);
    let names = |endpoint: &str| {
        home.project.write("specs/w.eld", format!("(defworker :name \"w\" {endpoint} :model \"m\")\n"));
    };
    names(&format!(":endpoint \"{other}\""));
    let recorded = home.run(&["run", "hello", "--endpoint", typed, "--record", "a.jsonl"]);
    assert_eq!((recorded.code, recorded.stdout.as_str()), (Some(0), "hi\n"), "{recorded:?}");
    assert_eq!(home.run(&["chat", "hello", "--no-save", "--endpoint", typed]).code, Some(0));
    let posts = server.posts().len();
    for arguments in [&["run", "--replay", "a.jsonl", "hello"][..], &["replay", "a.jsonl"]] {
        let ended = home.run(arguments);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    }
    assert_eq!(server.posts().len(), posts, "a replay sends nothing");
    names("");
    let by_environment = home.command(&["run", "hello"]).env("OPENAI_BASE_URL", typed).output().unwrap();
    assert_eq!(Ended::of(by_environment).code, Some(0));
    // A local server, and a server trusted for one run or permanently.
    names(&format!(":endpoint \"{}\"", server.endpoint()));
    assert_eq!(home.run(&["run", "hello"]).code, Some(0));
    names(&format!(":endpoint \"{typed}\""));
    assert_eq!(
        (home.run(&["run", "hello"]).code, home.run(&["run", "hello", "--trust"]).code),
        (Some(2), Some(0))
    );
    let granted = home.run(&["trust", "grant"]);
    assert!(
        granted.stdout.contains(&format!(":net [\"0.0.0.0:{}\"]", server.address().port())),
        "{granted:?}"
    );
    assert_eq!(home.run(&["run", "hello"]).code, Some(0));
    assert_eq!(server.posts().last().unwrap().header("authorization"), None, "no key was set");
}

/// Links out of the project, in place of specs, spec folders and scripts.
#[cfg(unix)]
#[test]
fn no_scan_leaves_the_project() {
    use std::os::unix::fs::symlink;

    let spec = format!("(deftool :name \"stolen\" :description \"{CANARY}.\" :args ())\n");
    let outside = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| {
        let path = outside.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("a.eld", &spec);
    put("folder/deep/b.eld", &spec);
    put("specs/c.eld", &spec);
    put("lib/stolen.lua", "return 1");
    put("lib/deep/s_test.lua", &format!("test('{CANARY}', function() error('{CANARY}') end)"));
    let target = |name: &str| outside.path().join(name);
    // Link names, targets, and whether the load must succeed.
    let links = [
        ("specs/x.eld", target("a.eld")),
        ("specs/deep/x.eld", target("a.eld")),
        ("specs/x.lisp", target("folder/deep/b.eld")),
        ("specs/folder", target("folder")),
        ("specs/deep/folder", target("folder/deep")),
        ("specs/all", PathBuf::from("/")),
        ("specs/parent", PathBuf::from("../..")),
        ("specs/chain", target("chain")),
        ("scripts/deep", target("lib/deep")),
        ("scripts/all", PathBuf::from("/")),
        ("scripts/lib/all", PathBuf::from("/")),
    ];
    symlink(target("folder"), target("chain")).unwrap();
    let (mut attacks, mut succeeded) = (0, Vec::new());
    for (name, to) in &links {
        let home = Home::of(&[("own", "")]);
        let path = home.project.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, &path).unwrap();
        for arguments in [&["check", "--format", "concise"][..], &["compile"], &["test"], &["fmt", "--check"]]
        {
            let ended = home.run(arguments);
            attacks += 1;
            let told = format!("{}{}", ended.stdout, ended.stderr);
            if told.contains(CANARY) || told.contains("stolen") {
                succeeded.push(format!("{name} {arguments:?}: {}", told.lines().next().unwrap_or_default()));
            }
            let is_reported = ended.code != Some(0) && told.contains("the link leads out of the project to ");
            if name.starts_with("specs/") && arguments[0] != "test" && !is_reported {
                succeeded.push(format!("{name} {arguments:?} was not reported: {ended:?}"));
            }
        }
    }
    // The specs folder itself.
    let home = Home::of(&[("own", "")]);
    fs::remove_dir_all(home.project.path("specs")).unwrap();
    for to in [target("specs"), PathBuf::from("/")] {
        symlink(to, home.project.path("specs")).unwrap();
        let ended = home.run(&["check"]);
        attacks += 1;
        if ended.stdout.contains("1 tool") || ended.code != Some(2) {
            succeeded.push(format!("specs: {ended:?}"));
        }
        fs::remove_file(home.project.path("specs")).unwrap();
    }
    assert_none_succeeded("links that lead out", attacks, &succeeded);
}

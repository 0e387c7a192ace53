//! The folder for attacks with permissions. `box/` may be granted. It contains links, special files, and hidden files
//! that the grant does not cover. `outside/` is never granted.

use super::*;

/// The content of files that attacks must not read.
pub(super) const CANARY: &str = "CANARY-7f3a";

/// Number of entries in `box/many`, if an attack uses it.
const MANY: usize = 20_000;

pub(super) struct Fixture {
    folder: tempfile::TempDir,
}

impl Fixture {
    /// Creates the folder with the files that the source `attack` uses.
    pub(super) fn new(attack: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["box/dir/inner", "box/trap", "box/.git", "outside/dir"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        for (name, text) in [
            ("box/a.txt", "inside"),
            ("box/dir/b.txt", "inside"),
            ("outside/secret", CANARY),
            ("outside/dir/x", CANARY),
            ("box/.env", CANARY),
            ("box/.git/config", CANARY),
        ] {
            std::fs::write(root.join(name), text).unwrap();
        }
        std::fs::File::create(root.join("box/sparse")).unwrap().set_len(1 << 40).unwrap();
        let attack = String::from_utf8_lossy(attack);
        if attack.contains("box/many") {
            std::fs::create_dir(root.join("box/many")).unwrap();
            for index in 0..MANY {
                std::fs::File::create(root.join(format!("box/many/{index}"))).unwrap();
            }
        }
        if attack.contains("box/deep") {
            let steps = ["d"; 300].join("/");
            std::fs::create_dir_all(root.join("box/deep").join(steps)).unwrap();
        }
        #[cfg(unix)]
        create_special_files(root);
        Self { folder }
    }

    /// Adds the grants `allows` to `script`.
    pub(super) fn grant(&self, script: &mut Script, allows: &[(String, String)]) {
        let root = self.folder.path();
        script.root = Some(root.to_path_buf());
        let of = |selected: &'static str| {
            allows.iter().filter(move |(key, _)| key == selected).map(|(_, grant)| grant.clone())
        };
        let paths = |key| of(key).map(|name| PathGrant::new(&*name, root.join(&name))).collect();
        script.permissions.read = paths("read");
        script.permissions.write = paths("write");
        script.permissions.run = of("run").collect();
        script.permissions.env = of("env").collect();
    }

    /// Returns a description of changed files that must not change.
    pub(super) fn damage(&self) -> Option<String> {
        let outside = self.folder.path().join("outside");
        let names = |folder: &Path| {
            let mut names: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
                .collect();
            names.sort();
            names.join(" ")
        };
        let found = format!("{} {}", names(&outside), names(&outside.join("dir")));
        let closed = ["outside/secret", "outside/dir/x", "box/.env", "box/.git/config"];
        let texts =
            closed.map(|name| std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default());
        let hidden = names(&self.folder.path().join("box/.git"));
        (found != "dir secret x" || hidden != "config" || texts.iter().any(|text| text != CANARY))
            .then(|| format!("outside: {found}, hidden: {hidden}, contents: {texts:?}"))
    }
}

#[cfg(unix)]
fn create_special_files(root: &Path) {
    use std::os::unix::fs::symlink;

    for (target, link) in [
        ("../outside", "box/link_dir"),
        ("../outside/secret", "box/link_file"),
        ("dir", "box/link_inside"),
        (".env", "box/link_env"),
        (".git", "box/link_git"),
        ("loop", "box/loop"),
        ("nothing", "box/dangling"),
        ("/proc/self/environ", "box/link_proc"),
    ] {
        symlink(target, root.join(link)).unwrap();
    }
    symlink(root.join("outside/secret"), root.join("box/link_full")).unwrap();
    std::fs::hard_link(root.join("outside/secret"), root.join("box/twin")).unwrap();
    std::fs::write(root.join("box/esc\u{1b}[31m\nname"), "inside").unwrap();
    let make = |name: &str, rest: &[&str]| {
        // Creating a device requires privileges. Without them it is missing, and reading it fails too.
        let _ = std::process::Command::new("mknod").arg(root.join(name)).args(rest).output();
    };
    make("box/pipe", &["p"]);
    make("box/trap/.gitignore", &["p"]);
    make("box/zero", &["c", "1", "5"]);
    drop(std::os::unix::net::UnixListener::bind(root.join("box/socket")));
}

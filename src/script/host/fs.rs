//! `fs`: `read(path)` (a UTF-8 text file) and `list(path)` (`{ name, kind, size }` by name), under `:allow (:read …)`.
//!
//! A path is named as its grant is (`notes/today.md` under the grant `notes/`, `../other/x` under `../other/`) or in
//! full. `.` and `..` are resolved by the text alone, in paths as in grants; what is then beneath no grant is refused,
//! and the error names the permission that would allow it. The rest is opened beneath the granted folder's handle
//! (cap-std), which refuses absolute links and links that lead out. Files are read on a blocking thread, never on the
//! script's.
//!
//! A granted folder is opened at each use, not once: one that was replaced meanwhile (a checkout, a mount) is seen, and
//! who can replace it could have changed what is in it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, FileType};
use mlua::{Lua, MultiValue, Table};
use tokio::sync::Semaphore;

use super::{FunctionDoc, Host, TableDoc, text_argument};
use crate::script::Script;
use crate::script::error::{HostError, clean};
use crate::script::io;
use crate::script::permission::{PathGrant, plain};
use crate::tool::ToolErrorKind;

/// Longest file that is read, in bytes.
const MAX_FILE: u64 = 8 << 20;
/// Most entries that are listed.
const MAX_ENTRIES: usize = 10_000;
/// Most files and folders that a call reads at a time.
const MAX_READS: usize = 4;

pub(super) const DOC: TableDoc = TableDoc {
    permissions: &["read"],
    types: "type FileEntry = { name: string, kind: \"file\" | \"directory\" | \"symlink\" | \"other\", size: number }",
    functions: &[
        FunctionDoc::new("read", "(path: string) -> string", "The text of a UTF-8 file."),
        FunctionDoc::new(
            "list",
            "(path: string) -> { FileEntry }",
            "The entries of a folder, by name; sizes in bytes.",
        ),
    ],
    ..TableDoc::new("fs", "Files and folders beneath the folders that the spec grants.")
};

pub(super) fn table(lua: &Lua, host: &Rc<Host>, script: &Script) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let grants: Arc<[PathGrant]> = script.permissions.read.clone().into();
    // What was read waits outside the script's memory limit until the script takes it.
    let reads = Rc::new(Semaphore::new(MAX_READS));
    let shared = Rc::clone(host);
    let (roots, turns) = (Arc::clone(&grants), Rc::clone(&reads));
    table.raw_set(
        "read",
        lua.create_async_function(move |lua, arguments: MultiValue| {
            let (shared, roots, turns) = (Rc::clone(&shared), Arc::clone(&roots), Rc::clone(&turns));
            async move {
                let _waiting = shared.wait("fs.read")?;
                let path = text_argument("fs.read", &arguments, 0)?;
                let _turn = turns.acquire().await.map_err(mlua::Error::external)?;
                let text = blocking("fs.read", move || read(&roots, &path)).await?;
                lua.create_string(text)
            }
        })?,
    )?;
    let shared = Rc::clone(host);
    table.raw_set(
        "list",
        lua.create_async_function(move |lua, arguments: MultiValue| {
            let (shared, roots, turns) = (Rc::clone(&shared), Arc::clone(&grants), Rc::clone(&reads));
            async move {
                let _waiting = shared.wait("fs.list")?;
                let path = text_argument("fs.list", &arguments, 0)?;
                let _turn = turns.acquire().await.map_err(mlua::Error::external)?;
                let entries = blocking("fs.list", move || list(&roots, &path)).await?;
                let listed = lua.create_table_with_capacity(entries.len(), 0)?;
                for (index, entry) in entries.into_iter().enumerate() {
                    let row = lua.create_table_with_capacity(0, 3)?;
                    row.raw_set("name", entry.name)?;
                    row.raw_set("kind", entry.kind)?;
                    row.raw_set("size", entry.size)?;
                    listed.raw_seti(index + 1, row)?;
                }
                Ok(listed)
            }
        })?,
    )?;
    Ok(table)
}

struct Entry {
    name: String,
    kind: &'static str,
    size: u64,
}

async fn blocking<T: Send + 'static>(
    function: &'static str,
    work: impl FnOnce() -> Result<T, HostError> + Send + 'static,
) -> mlua::Result<T> {
    let done = io::blocking(work).await;
    done.map_err(|error| HostError::lua(error.kind, format!("{function}: {}", error.message)))
}

fn read(grants: &[PathGrant], path: &str) -> Result<String, HostError> {
    let (root, rest) = open_root(grants, path)?;
    // Looked at before it is opened: opening a pipe would wait for a writer.
    let about = root.metadata(&rest).map_err(|error| failed(path, &error))?;
    if !about.is_file() {
        return Err(wrong(format!("{} is not a regular file", shown(path))));
    }
    let too_long = || wrong(format!("{} is longer than {} MiB", shown(path), MAX_FILE >> 20));
    if about.len() > MAX_FILE {
        return Err(too_long());
    }
    let file = root.open(&rest).map_err(|error| failed(path, &error))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| failed(path, &error))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(too_long());
    }
    String::from_utf8(bytes).map_err(|error| {
        wrong(format!("{} is not UTF-8 text (at byte {})", shown(path), error.utf8_error().valid_up_to() + 1))
    })
}

fn list(grants: &[PathGrant], path: &str) -> Result<Vec<Entry>, HostError> {
    let (root, rest) = open_root(grants, path)?;
    let folder = if rest == Path::new(".") {
        root
    } else {
        root.open_dir(&rest).map_err(|error| failed(path, &error))?
    };
    let mut entries = Vec::new();
    for entry in folder.entries().map_err(|error| failed(path, &error))? {
        let entry = entry.map_err(|error| failed(path, &error))?;
        if entries.len() >= MAX_ENTRIES {
            return Err(wrong(format!("{} has more than {MAX_ENTRIES} entries", shown(path))));
        }
        // An entry that vanished meanwhile is no entry.
        let Ok(about) = entry.metadata() else { continue };
        entries.push(Entry {
            name: entry.file_name().to_string_lossy().into_owned(),
            kind: kind(about.file_type()),
            size: about.len(),
        });
    }
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn kind(file: FileType) -> &'static str {
    if file.is_dir() {
        "directory"
    } else if file.is_file() {
        "file"
    } else if file.is_symlink() {
        "symlink"
    } else {
        "other"
    }
}

/// The handle of the grant that covers `path`, and the path beneath it (`.` for the grant itself).
fn open_root(grants: &[PathGrant], path: &str) -> Result<(Dir, PathBuf), HostError> {
    let wanted = plain(Path::new(path));
    for grant in grants {
        let Some(rest) = grant.rest(&wanted) else { continue };
        let granted = plain(&grant.path);
        let about = std::fs::metadata(&granted).map_err(|error| failed(&grant.name, &error))?;
        if about.is_dir() {
            let root = Dir::open_ambient_dir(&granted, ambient_authority())
                .map_err(|error| failed(&grant.name, &error))?;
            let rest = if rest.as_os_str().is_empty() { PathBuf::from(".") } else { rest };
            return Ok((root, rest));
        }
        // A single file was granted: it is opened beneath its folder's handle.
        if let (true, Some(parent), Some(name)) =
            (rest.as_os_str().is_empty(), granted.parent(), granted.file_name())
        {
            let root = Dir::open_ambient_dir(parent, ambient_authority())
                .map_err(|error| failed(&grant.name, &error))?;
            return Ok((root, PathBuf::from(name)));
        }
    }
    Err(outside(grants, path, &wanted))
}

/// `wanted`: `path` as it was looked for.
fn outside(grants: &[PathGrant], path: &str, wanted: &Path) -> HostError {
    let allowed = if grants.is_empty() {
        String::from("this tool may read nothing")
    } else {
        let names: Vec<String> = grants.iter().map(|grant| quoted(&grant.name)).collect();
        format!("this tool may read {} only", names.join(" "))
    };
    let wanted = wanted.to_string_lossy();
    let needed = match &*wanted {
        "" => String::from("\".\""),
        // What cannot be shown whole is not to be copied either.
        wanted if shown(wanted) != wanted => String::from("…"),
        wanted => quoted(wanted),
    };
    HostError {
        kind: ToolErrorKind::Permission,
        message: format!(
            "{} is not allowed: {allowed}; to allow it, add :allow (:read [{needed}]) to the spec",
            shown(path)
        ),
    }
}

/// `name` as a spec has it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", shown(name).replace('\\', "\\\\").replace('"', "\\\""))
}

fn failed(path: &str, error: &std::io::Error) -> HostError {
    // What cap-std answers when a path, after its links, would leave the folder.
    if error.kind() == std::io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        let path = shown(path);
        return HostError {
            kind: ToolErrorKind::Permission,
            message: format!(
                "{path} is not allowed: it leads out of the granted folder; to allow its target, add it to \
                 :allow (:read […]) in the spec"
            ),
        };
    }
    wrong(format!("{}: {error}", shown(path)))
}

fn wrong(message: String) -> HostError {
    HostError { kind: ToolErrorKind::Script, message }
}

fn shown(path: &str) -> String {
    clean(path, 200)
}

//! The BIOS file of a worker, which `:bios` names.
//!
//! Its text is sent to a server, so a file in the project must not be hidden: a spec cannot send `.env`. A file outside of
//! the project requires trust, and is read only when a worker starts. Checks read the others, to report errors early.
//! Placeholders are described at [`deftool_lang::spec::bios_pieces`].

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use deftool_lang::spec::{BiosPiece, BiosSource, HomeFolder, Placeholder, WorkerSpec, bios_pieces, nearest};
use deftool_lang::text::Location;
use deftool_script::{hidden_names, resolve_path};

use super::outside::sendable;
use super::read::{Known, read_regular};
use crate::model::Load;
use crate::paths::{normalize, resolve_links};
use crate::rules;
use crate::rules::bios_placeholder::UnknownPlaceholder;

/// Maximum size of a BIOS in bytes. It is sent with every turn.
const MAX_BYTES: u64 = 256 << 10;

/// Returns the BIOS file of `worker`, with links resolved, if it is outside of the project at `root`. It may be read only if
/// the user trusts the project with it. Returns `None` for a link out of the project, which is never followed.
pub fn outside_bios(root: &Path, worker: &WorkerSpec) -> Option<PathBuf> {
    let BiosSource::File(named) = &worker.bios else { return None };
    let path = normalize(&resolve_path(root, &named.value).ok()?);
    if path.starts_with(normalize(root)) {
        return None;
    }
    Some(resolve_links(&path)).filter(|path| !path.starts_with(resolve_links(root)))
}

/// Returns the text of the BIOS of `worker` in the project at `root`. The text is empty if the BIOS is off. Returns
/// `None` for the built-in BIOS. The caller has checked the permission for [`outside_bios`].
///
/// # Errors
/// If the file cannot be used. The message names the file.
pub fn read_bios(root: &Path, worker: &WorkerSpec) -> Result<Option<String>, String> {
    let named = match &worker.bios {
        BiosSource::BuiltIn => return Ok(None),
        BiosSource::Off => return Ok(Some(String::new())),
        BiosSource::File(named) => named,
    };
    let name = &named.value;
    let error = |why: &str| format!("the BIOS `{name}` of worker `{}`: {why}", worker.name.value);
    let path = resolve_path(root, name).map_err(|why| error(&why))?;
    let found = match outside_bios(root, worker) {
        Some(path) => Ok(path),
        None if is_hidden_in(root, &path) => {
            return Err(error("hidden files are not sent; copy the text to a file that is not hidden"));
        }
        None => sendable(root, &path),
    };
    let read = found.and_then(|found| read_regular(&found, Known::Nothing, MAX_BYTES + 1));
    let bytes = read.map_err(|cause| error(&deftool_lang::text::one_line(cause.to_string())))?.bytes;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(error("larger than 256 KiB, and it is sent with every turn"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| error("not UTF-8"))
}

/// Returns whether a name in `path` below `root` is hidden.
fn is_hidden_in(root: &Path, path: &Path) -> bool {
    let (path, root) = (normalize(path), normalize(root));
    path.strip_prefix(root).is_ok_and(|inside| hidden_names(inside).next().is_some())
}

/// Returns whether the file is in the project on every machine.
fn is_in_project(name: &str) -> bool {
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    HomeFolder::split(name) == Ok(None) && Path::new(name).components().all(is_inside)
}

/// Reports unusable BIOS files in the project, and unknown placeholders in them.
pub(super) fn report_bios(load: &mut Load) {
    for worker in &mut load.workers {
        let (Some(source), BiosSource::File(named)) = (worker.source, &worker.bios) else { continue };
        if !is_in_project(&named.value) {
            continue;
        }
        let Some(root) = load.roots.get(&source) else { continue };
        let at = Location { source, span: named.span };
        match read_bios(root, worker) {
            Ok(Some(text)) => load.findings.extend(
                unknown(&text)
                    .into_iter()
                    .map(|unknown| rules::bios_placeholder::finding(at, &named.value, &unknown)),
            ),
            Ok(None) => {}
            Err(why) => {
                load.findings.push(rules::bios_file::finding(at, &why));
                worker.valid = false;
            }
        }
    }
}

/// Maximum number of unknown placeholders reported per file. A file with more is probably code.
const MAX_UNKNOWN: usize = 20;

/// Returns each unknown placeholder once. Braces after `$`, a backslash or a word are taken for code and skipped,
/// unless their content is similar to a placeholder.
fn unknown(text: &str) -> Vec<UnknownPlaceholder<'_>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        let mut before = "";
        for piece in bios_pieces(line) {
            match piece {
                BiosPiece::Text(plain) => before = plain,
                BiosPiece::Placeholder(_) => before = "",
                BiosPiece::Unknown(word) => {
                    let is_code =
                        before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '$' | '\\' | '_'));
                    let meant = nearest(word, Placeholder::ALL.map(Placeholder::as_str));
                    if (meant.is_some() || !is_code) && seen.insert(word) {
                        found.push(UnknownPlaceholder { line: index + 1, word, meant });
                    }
                    before = "}";
                }
            }
            if found.len() >= MAX_UNKNOWN {
                return found;
            }
        }
    }
    found
}

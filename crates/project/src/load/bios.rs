//! The BIOS file of a worker, which `:bios` names.
//!
//! It is read when a worker starts, and by checks, which report errors early. Its text is sent to a server, so the file
//! must be inside the project and not hidden: a spec cannot send `.env`. Placeholders are described at
//! [`deftool_lang::spec::bios_pieces`].

use std::collections::HashSet;
use std::path::{Component, Path};

use deftool_lang::spec::{BiosPiece, BiosSource, Placeholder, WorkerSpec, bios_pieces, nearest};
use deftool_lang::text::Location;
use deftool_script::hidden_names;

use super::outside::sendable;
use super::read::{Known, read_regular};
use crate::model::Load;
use crate::rules;
use crate::rules::bios_placeholder::UnknownPlaceholder;

/// Maximum size of a BIOS in bytes. It is sent with every turn.
const MAX_BYTES: u64 = 256 << 10;

/// Returns the text of the BIOS of `worker` in the project at `root`. The text is empty if the BIOS is off. Returns
/// `None` for the built-in BIOS.
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
    let is_inside =
        Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_inside || name.is_empty() {
        return Err(error("not a path inside the project"));
    }
    if hidden_names(Path::new(name)).next().is_some() {
        return Err(error("hidden files are not sent; copy the text to a file that is not hidden"));
    }
    let read = sendable(root, &root.join(name))
        .and_then(|found| read_regular(&found, Known::Nothing, MAX_BYTES + 1));
    let bytes = read.map_err(|cause| error(&deftool_lang::text::one_line(cause.to_string())))?.bytes;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(error("larger than 256 KiB, and it is sent with every turn"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| error("not UTF-8"))
}

/// Reports unusable BIOS files and unknown placeholders in them.
pub(super) fn report_bios(load: &mut Load) {
    for worker in &mut load.workers {
        let (Some(source), BiosSource::File(named)) = (worker.source, &worker.bios) else { continue };
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

//! The file that a worker's `:bios` names.
//!
//! It is read when a worker starts, and by a check to say what would be wrong then. Like a script it must lie in the project:
//! what is in it goes to a server.

use std::path::{Component, Path};

use super::load::Load;
use super::outside::refuse_outside;
use super::read::read_regular;
use super::rules;
use crate::spec::{BIOS_PLACEHOLDERS, WorkerSpec, nearest};
use crate::text::Location;

/// A BIOS larger than this is none, in bytes: it is sent with every turn.
const MAX_BYTES: u64 = 256 << 10;

/// The text of the BIOS of `worker`, which stands in the project at `root`; `None`: it names no file.
///
/// # Errors
/// Why it cannot be had, in a clause that names the file.
pub fn read_bios(root: &Path, worker: &WorkerSpec) -> Result<Option<String>, String> {
    let Some(named) = &worker.bios else { return Ok(None) };
    let name = &named.value;
    let told = |why: &str| format!("the BIOS `{name}` of worker `{}`: {why}", worker.name.value);
    let is_inside =
        Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_inside || name.is_empty() {
        return Err(told("it is no path inside of the project"));
    }
    let path = root.join(name);
    let read = refuse_outside(root, &path).and_then(|()| read_regular(&path, MAX_BYTES + 1));
    let bytes = read.map_err(|error| told(&crate::text::one_line(error.to_string())))?.bytes;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(told("it is larger than 256 KiB, and is sent with every turn"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| told("it is not UTF-8"))
}

/// Workers whose BIOS cannot be had, or means something else by its braces than is there.
pub(super) fn tell_bios(load: &mut Load) {
    for worker in &mut load.workers {
        let (Some(source), Some(named)) = (worker.source, &worker.bios) else { continue };
        let Some(root) = load.roots.get(&source) else { continue };
        let at = Location { source, span: named.span };
        match read_bios(root, worker) {
            Ok(Some(text)) => load.findings.extend(mistaken(&text).into_iter().map(|(line, word, meant)| {
                rules::bios_placeholder::finding(at, &named.value, line, word, meant)
            })),
            Ok(None) => {}
            Err(why) => {
                load.findings.push(rules::bios_file::finding(at, &why));
                worker.valid = false;
            }
        }
    }
}

/// Words in braces that are nearly a placeholder, with their lines.
fn mistaken(text: &str) -> Vec<(usize, &str, &'static str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for piece in line.split('{').skip(1) {
            let Some((word, _)) = piece.split_once('}') else { continue };
            let is_word =
                !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
            if is_word
                && !BIOS_PLACEHOLDERS.contains(&word)
                && let Some(meant) = nearest(word, BIOS_PLACEHOLDERS)
            {
                found.push((index + 1, word, meant));
            }
        }
    }
    found
}

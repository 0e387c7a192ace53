//! The size of results for the model.
//!
//! A result of megabytes fills the context of a model and ends the request. Its start is usually enough, with a line
//! that states how much is missing. Events, recordings and journals contain the whole result.

/// Returns `text`, or if it is longer than `limit` bytes, its beginning, and a last line with the size of both:
/// `[cut: 64 KiB of 3.2 MiB]`. The beginning ends at the end of a line if it keeps at least half of the limit, otherwise
/// between two characters.
pub fn cut_result(text: String, limit: u64) -> String {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if text.len() <= limit {
        return text;
    }
    let kept = text.get(..beginning(&text, limit)).unwrap_or_default();
    let line = format!("[cut: {} of {}]", rounded_down(kept.len()), rounded_up(text.len()));
    if kept.is_empty() { line } else { format!("{kept}\n{line}") }
}

/// Returns the length of the beginning of a text that is longer than `limit`.
fn beginning(text: &str, limit: usize) -> usize {
    let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    // A line that ends exactly there is complete.
    let line_end =
        text.as_bytes().get(..=end).and_then(|bytes| bytes.iter().rposition(|byte| *byte == b'\n'));
    line_end.filter(|line_end| *line_end >= limit.div_ceil(2)).unwrap_or(end)
}

/// The units of sizes, the largest first.
const UNITS: [(usize, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

/// Returns a size with at most one decimal. Rounding in different directions, a part and its whole differ.
fn rounded_down(bytes: usize) -> String {
    shown(bytes, |tenths, unit| tenths / unit)
}

fn rounded_up(bytes: usize) -> String {
    shown(bytes, usize::div_ceil)
}

fn shown(bytes: usize, divide: fn(usize, usize) -> usize) -> String {
    let Some((unit, name)) = UNITS.into_iter().find(|(unit, _)| bytes >= *unit) else {
        return format!("{bytes} B");
    };
    let tenths = divide(bytes.saturating_mul(10), unit);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} {name}"),
        (whole, tenth) => format!("{whole}.{tenth} {name}"),
    }
}

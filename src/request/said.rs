//! What others said in a conversation, and whether a text stands in it.
//!
//! In: users' texts and tools' results, made comparable (`alike`). A few texts are looked for by reading it all; from then on an
//! index of its blocks says where each could stand, so that a reply of many calls costs little in a long conversation. What is
//! shorter than two blocks, or consists of nothing but blocks that stand everywhere, is still looked for by reading.

use super::alike::comparable;

/// So many texts are looked for without an index, which costs as much as reading all a few dozen times.
const PLAIN_LOOKUPS: usize = 8;

/// Length of a block, in bytes.
const BLOCK: usize = 16;

/// How many of a text's blocks are looked up at each alignment.
const MAX_BLOCKS: usize = 8;

/// What others said.
#[derive(Debug, Clone)]
pub(super) struct Said {
    /// All of it, with a character between any two texts that no comparable text has.
    all: Vec<u8>,
    lookups: usize,
    /// Where each whole block begins, by what it holds.
    blocks: Option<Vec<u32>>,
    /// How often all of it was read.
    reads: usize,
}

impl Said {
    pub(super) fn new<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let mut all = Vec::new();
        for text in texts {
            all.extend_from_slice(comparable(text).as_bytes());
            all.push(0);
        }
        Self { all, lookups: 0, blocks: None, reads: 0 }
    }

    /// Whether `text`, made comparable, stands in it.
    pub(super) fn holds(&mut self, text: &str) -> bool {
        let text = comparable(text);
        let text = text.as_bytes();
        self.lookups += 1;
        if self.lookups > PLAIN_LOOKUPS && self.blocks.is_none() {
            self.blocks = Some(index(&self.all));
        }
        let found = self.blocks.as_deref().and_then(|blocks| find(&self.all, blocks, text));
        found.unwrap_or_else(|| {
            self.reads += 1;
            memchr::memmem::find(&self.all, text).is_some()
        })
    }
}

fn index(all: &[u8]) -> Vec<u32> {
    let whole = all.len() / BLOCK * BLOCK;
    let mut blocks: Vec<u32> = (0..whole).step_by(BLOCK).map_while(|at| u32::try_from(at).ok()).collect();
    blocks.sort_unstable_by_key(|at| block(all, *at));
    blocks
}

fn block(all: &[u8], at: u32) -> &[u8] {
    usize::try_from(at).ok().and_then(|at| all.get(at..at + BLOCK)).unwrap_or_default()
}

/// Whether `text` stands in `all`; none: too many places may hold it, or too little of it is known.
fn find(all: &[u8], blocks: &[u32], text: &[u8]) -> Option<bool> {
    // Wherever a text of this length stands, it holds a whole block; and every byte must be in the index.
    if text.len() < 2 * BLOCK || u32::try_from(all.len()).is_err() {
        return None;
    }
    // Comparing may cost no more than reading.
    let mut left = all.len();
    for offset in 0..BLOCK {
        // The rarest of the blocks that it would hold, were it to begin so far before one.
        let here = text.get(offset..).unwrap_or_default().chunks_exact(BLOCK).take(MAX_BLOCKS);
        let places = here.enumerate().map(|(nth, held)| {
            let from = blocks.partition_point(|at| block(all, *at) < held);
            let rest = blocks.get(from..).unwrap_or_default();
            let places = rest.get(..rest.partition_point(|at| block(all, *at) == held)).unwrap_or_default();
            (offset + nth * BLOCK, places)
        });
        let Some((before, places)) = places.min_by_key(|(_, places)| places.len()) else { continue };
        for at in places {
            let start = usize::try_from(*at).ok().and_then(|at| at.checked_sub(before));
            let Some(rest) = start.and_then(|start| all.get(start..)) else { continue };
            let alike = rest.iter().zip(text).take_while(|(one, other)| one == other).count();
            if alike == text.len() {
                return Some(true);
            }
            left = left.checked_sub(alike + 1)?;
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: usize) -> String {
        format!(r#"{{"id":{n},"name":"look","arguments":{{"q":"row{n}ofit"}}}},"#)
    }

    #[test]
    fn the_index_finds_what_reading_finds() {
        let rows: String = (0..500).map(row).collect();
        let texts = [rows.as_str(), "", "short", &"a".repeat(5_000), "日本語のテキストがここにある。"];
        let mut said = Said::new(texts.into_iter());
        let needles = |said: &Said| -> Vec<String> {
            let all = String::from_utf8(said.all.clone()).unwrap();
            let starts = (0..all.len()).step_by(61).filter(|at| all.is_char_boundary(*at));
            starts
                .flat_map(|at| [1, 31, 32, 40, 90, 700].map(|length| (at, at + length)))
                .filter_map(|(from, to)| all.get(from..to).map(str::to_owned))
                // Of two texts.
                .filter(|needle| !needle.contains('\0'))
                .collect()
        };
        for needle in needles(&said) {
            assert!(said.holds(&needle), "{needle}");
            let other = format!("{needle}!");
            assert!(!said.holds(&other), "{other}");
        }
        assert!(said.blocks.is_some());
        // What stands in two texts at once stands in neither.
        assert!(!said.holds(&format!("{}short", row(499))));
    }

    #[test]
    fn many_lookups_read_it_a_few_times() {
        let rows: String = (0..2_000).map(row).collect();
        let mut said = Said::new([rows.as_str()].into_iter());
        for n in 0..300 {
            assert!(!said.holds(&format!(r#"{{"name": "look", "arguments": {{"q": "{n}"}}}}"#)));
            assert!(!said.holds(&format!(r#"{{"name": "look", "arguments": {{"q": "row {n} of this"}}}}"#)));
            assert!(said.holds(&row(n)));
        }
        assert_eq!(said.reads, PLAIN_LOOKUPS);
        // Blocks that stand everywhere, and nothing else: read.
        let mut said = Said::new([format!("{}ab", "a".repeat(20_000)).as_str()].into_iter());
        (0..20).for_each(|_| assert!(!said.holds(&format!("{}b!", "a".repeat(1_000)))));
        assert_eq!(said.reads, 20);
    }
}

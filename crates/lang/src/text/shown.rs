//! Text from outside, as it is shown to people.
//!
//! Text of models, servers, scripts and specs may contain characters that a reader does not see, or that change how the
//! rest is displayed. Everything that shows such text to people uses one of these functions, which write a hidden
//! character as an escape such as `\u{202e}`:
//!
//! - [`exact`] for everything that a person decides on: the questions of trust and approval. It shows only characters
//!   that a reader can tell apart.
//! - [`readable`] for other text, such as the reply of a model. It also shows the line ends, the spaces, and the
//!   invisible characters without which some writing systems and emoji cannot be read. [`one_line`] is the same on one
//!   line.
//!
//! Data for programs is not changed, except that JSON escapes are used where they mean the same.

use unicode_general_category::{GeneralCategory as Category, get_general_category};

/// Maximum number of marks after a letter. Thai and Vietnamese need two.
const MAX_MARKS: usize = 3;

/// Returns whether a reader can see `character` and tell it apart: a letter, mark, number, punctuation mark, symbol, or
/// the space.
fn is_exact(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    match get_general_category(character) {
        Category::UppercaseLetter
        | Category::LowercaseLetter
        | Category::TitlecaseLetter
        | Category::ModifierLetter
        | Category::OtherLetter
        | Category::NonspacingMark
        | Category::SpacingMark
        | Category::EnclosingMark
        | Category::DecimalNumber
        | Category::LetterNumber
        | Category::OtherNumber
        | Category::ConnectorPunctuation
        | Category::DashPunctuation
        | Category::OpenPunctuation
        | Category::ClosePunctuation
        | Category::InitialPunctuation
        | Category::FinalPunctuation
        | Category::OtherPunctuation
        | Category::MathSymbol
        | Category::CurrencySymbol
        | Category::ModifierSymbol
        | Category::OtherSymbol => !is_blank(character),
        _ => false,
    }
}

/// Returns whether a letter, mark or symbol has no visible form: those with the Unicode property
/// `Default_Ignorable_Code_Point`, and blank letters and symbols of several scripts.
fn is_blank(character: char) -> bool {
    is_selector(character)
        || matches!(
            character,
            '\u{034F}'
                | '\u{115F}'
                | '\u{1160}'
                | '\u{17B4}'
                | '\u{17B5}'
                | '\u{2800}'
                | '\u{303F}'
                | '\u{3164}'
                | '\u{FFA0}'
                | '\u{FFFC}'
                | '\u{13441}'
                | '\u{13442}'
                | '\u{16FE4}'
                | '\u{1D159}'
        )
}

/// Returns whether `character` selects the form of the character before it.
fn is_selector(character: char) -> bool {
    matches!(character, '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

/// Returns whether `character` is shown in text to read: if it can be seen, if it is white space, or if it selects or
/// joins the forms of others.
pub fn is_readable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~' | '\n' | '\t');
    }
    match get_general_category(character) {
        Category::SpaceSeparator => true,
        // The joiners, and signs around Arabic, Syriac and Kaithi numbers, which have a visible form.
        Category::Format => matches!(
            character,
            '\u{200C}' | '\u{200D}' | '\u{0600}'
                ..='\u{0605}'
                    | '\u{06DD}'
                    | '\u{070F}'
                    | '\u{0890}'
                    | '\u{0891}'
                    | '\u{08E2}'
                    | '\u{110BD}'
                    | '\u{110CD}'
        ),
        // A newer version of Unicode may assign these to letters or emoji.
        Category::Unassigned => !is_never_visible(character),
        _ => is_exact(character) || is_selector(character),
    }
}

/// Returns whether an unassigned code point cannot become visible: a noncharacter or a reserved format character.
fn is_never_visible(character: char) -> bool {
    matches!(character, '\u{2065}' | '\u{FDD0}'..='\u{FDEF}' | '\u{FFF0}'..='\u{FFF8}' | '\u{E0000}'..='\u{E0FFF}')
        || u32::from(character) & 0xFFFE == 0xFFFE
}

/// Returns text for a question of trust or approval: on one line, with an escape for each character that a reader cannot
/// see or tell apart, and for each mark after several marks, which would cover the text around it.
pub fn exact(text: &str) -> String {
    let mut marks = 0;
    escaped(text, |character| {
        marks = if is_mark(character) { marks + 1 } else { 0 };
        is_exact(character) && marks <= MAX_MARKS
    })
}

fn is_mark(character: char) -> bool {
    let marks = [Category::NonspacingMark, Category::SpacingMark, Category::EnclosingMark];
    !character.is_ascii() && marks.contains(&get_general_category(character))
}

/// Returns text to read, with an escape for each hidden character.
pub fn readable(text: &str) -> String {
    escaped(text, is_readable)
}

/// Like [`readable`], but on one line: line ends and tabs are escaped, too.
pub fn one_line(text: String) -> String {
    let is_shown = |character| is_readable(character) && !matches!(character, '\n' | '\t');
    if text.chars().all(is_shown) { text } else { escaped(&text, is_shown) }
}

fn escaped(text: &str, mut is_shown: impl FnMut(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_shown(character) {
            shown.push(character);
        } else {
            shown.extend(character.escape_default());
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters that hide text or change its display: terminal and bidirectional controls, line and paragraph
    /// separators, invisible format characters, tags, blanks, private and unassigned ones.
    const HIDDEN: &str = "\0\u{7}\u{8}\r\u{1b}\u{7f}\u{85}\u{9b}\u{ad}\u{34f}\u{61c}\u{115f}\u{17b4}\u{180e}\u{200b}\
        \u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2064}\u{2065}\u{2066}\u{2069}\u{206f}\u{2800}\u{3164}\
        \u{303f}\u{fffc}\u{13441}\u{16fe4}\u{1d159}\u{e000}\u{fdd0}\u{feff}\u{ffa0}\u{fff0}\u{fff9}\u{ffff}\u{1d173}\u{e0001}\u{e0041}\u{e007f}\u{f0000}\u{10ffff}";

    #[test]
    fn hidden_characters_are_escaped() {
        for character in HIDDEN.chars() {
            let (text, escape) = (format!("a{character}b"), format!("a{}b", character.escape_default()));
            assert!(escape.is_ascii() && !is_readable(character), "{escape}");
            for shown in [exact(&text), readable(&text), one_line(text)] {
                assert_eq!(shown, escape);
            }
        }
    }

    #[test]
    fn questions_show_few_marks_after_a_letter() {
        let stacked = format!("a{}b", "\u{338}".repeat(5));
        assert_eq!(exact(&stacked), "a\u{338}\u{338}\u{338}\\u{338}\\u{338}b");
        assert_eq!(readable(&stacked), stacked);
    }

    #[test]
    fn text_is_readable_in_every_script() {
        for text in [
            "plain ASCII ~ \"quoted\" \\u{202e}",
            "naïve, nai\u{308}ve, Ω, 日本語, 한국어, हिन्दी, தமிழ், עברית, العربية, ไทย, ≠ € № ⑨",
            "😀 👍🏽 🇩🇪",
        ] {
            for shown in [exact(text), readable(text), one_line(text.to_owned())] {
                assert_eq!(shown, text);
            }
        }
        // Joiners, selectors and other spaces.
        for text in [
            "👩\u{200d}💻 ❤\u{fe0f}",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            "葛\u{e0100}",
            "a\u{a0}b\u{3000}c",
            "\u{6dd}١",
        ] {
            assert_eq!([readable(text), one_line(text.to_owned())], [text; 2]);
            assert!(exact(text).contains("\\u{"), "{text}");
        }
        assert_eq!(readable("a\n\tb"), "a\n\tb");
        assert_eq!([exact("a\n\tb\r"), one_line(String::from("a\n\tb\r"))], ["a\\n\\tb\\r"; 2]);
    }
}

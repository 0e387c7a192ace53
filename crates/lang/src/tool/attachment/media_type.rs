//! The types of attachments, and what the first bytes of a file show.

use serde::{Deserialize, Serialize};

/// The type of an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "definitions", derive(schemars::JsonSchema, ts_rs::TS))]
pub enum MediaType {
    /// An image in PNG.
    #[serde(rename = "image/png")]
    Png,
    /// An image in JPEG.
    #[serde(rename = "image/jpeg")]
    Jpeg,
    /// An image in GIF.
    #[serde(rename = "image/gif")]
    Gif,
    /// An image in WebP.
    #[serde(rename = "image/webp")]
    Webp,
    /// Audio in WAV.
    #[serde(rename = "audio/wav")]
    Wav,
    /// Audio in MP3.
    #[serde(rename = "audio/mpeg")]
    Mp3,
}

impl MediaType {
    /// Returns the type of a file by its first bytes. A declared type is often wrong, and servers compare both.
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let riff = |form: &[u8]| bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(form);
        Some(match bytes {
            _ if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => Self::Png,
            [0xff, 0xd8, 0xff, ..] => Self::Jpeg,
            _ if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") => Self::Gif,
            _ if riff(b"WEBP") => Self::Webp,
            _ if riff(b"WAVE") => Self::Wav,
            // A tag, or the header of a frame of layer III.
            [b'I', b'D', b'3', ..] => Self::Mp3,
            [0xff, second, ..] if second & 0xe6 == 0xe2 => Self::Mp3,
            _ => return None,
        })
    }

    /// Returns the name: `image/png`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
            Self::Wav => "audio/wav",
            Self::Mp3 => "audio/mpeg",
        }
    }

    /// Whether it is an image; otherwise it is audio.
    pub fn is_image(self) -> bool {
        match self {
            Self::Png | Self::Jpeg | Self::Gif | Self::Webp => true,
            Self::Wav | Self::Mp3 => false,
        }
    }
}

/// Returns the width and height of an image in pixels, if its header contains them.
pub(super) fn dimensions(media_type: MediaType, bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let short = |at: usize| Some(u32::from(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?)));
    match media_type {
        MediaType::Png => Some((big(16)?, big(20)?)),
        MediaType::Gif => Some((short(6)?, short(8)?)),
        MediaType::Jpeg => jpeg_dimensions(bytes),
        MediaType::Webp => match bytes.get(12..16)? {
            b"VP8 " => Some((short(26)? & 0x3fff, short(28)? & 0x3fff)),
            b"VP8L" => {
                let bits = u32::from_le_bytes(*bytes.get(21..)?.first_chunk()?);
                Some(((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1))
            }
            b"VP8X" => {
                let three = |at: usize| Some(short(at)? | u32::from(*bytes.get(at + 2)?) << 16);
                Some((three(24)? + 1, three(27)? + 1))
            }
            _ => None,
        },
        MediaType::Wav | MediaType::Mp3 => None,
    }
}

/// Follows the segments of a JPEG file to the frame header.
fn jpeg_dimensions(bytes: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    let mut at = 2;
    loop {
        // Segments may be separated by padding.
        while bytes.get(at..at + 2)? == [0xff, 0xff] {
            at += 1;
        }
        let [0xff, marker] = *bytes.get(at..)?.first_chunk()? else { return None };
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            return Some((u32::from(number(at + 7)?), u32::from(number(at + 5)?)));
        }
        let length = match marker {
            0x01 | 0xd0..=0xd8 => 0,
            _ => usize::from(number(at + 2)?).max(2),
        };
        at += 2 + length;
    }
}

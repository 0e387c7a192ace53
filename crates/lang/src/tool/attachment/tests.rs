use std::collections::HashSet;

use super::*;

/// The first bytes of a PNG image with these dimensions.
fn png(width: u32, height: u32) -> Vec<u8> {
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &size, &[8, 2, 0, 0, 0]].concat()
}

#[test]
fn the_first_bytes_decide_the_type() {
    let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc0\0\x0b\x08\x03\0\x04\0\x01\x01\x11\0";
    let gif = b"GIF89a\0\x04\0\x03";
    let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\0\x04\0\x03";
    let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\xff\xc3\xbf\0";
    let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\xff\x03\0\xff\x02\0";
    for (bytes, declared, expected) in [
        (png(1024, 768), "image/png", "[image: image/png, 1024×768, 29 bytes]"),
        // A wrong type is replaced by the real one.
        (png(1, 1), "image/jpeg", "[image: image/png, 1×1, 29 bytes]"),
        (jpeg.to_vec(), "image/png", "[image: image/jpeg, 1024×768, 22 bytes]"),
        (gif.to_vec(), "image", "[image: image/gif, 1024×768, 10 bytes]"),
        (lossy.to_vec(), "", "[image: image/webp, 1024×768, 30 bytes]"),
        (lossless.to_vec(), "", "[image: image/webp, 1024×768, 25 bytes]"),
        (extended.to_vec(), "", "[image: image/webp, 1024×768, 30 bytes]"),
        (b"RIFF\0\0\0\0WAVE".to_vec(), "audio/x-wav", "[audio: audio/wav, 12 bytes]"),
        (b"ID3\x04".to_vec(), "audio", "[audio: audio/mpeg, 4 bytes]"),
        (b"\xff\xfb\x90".to_vec(), "audio/mp3", "[audio: audio/mpeg, 3 bytes]"),
        // A header that ends early.
        (b"\x89PNG\r\n\x1a\n".to_vec(), "", "[image: image/png, 8 bytes]"),
        (b"\xff\xd8\xff".to_vec(), "", "[image: image/jpeg, 3 bytes]"),
    ] {
        let attachment = Attachment::new(bytes, declared).unwrap();
        assert_eq!(attachment.line(), expected);
    }
}

#[test]
fn what_is_not_an_attachment_has_a_line() {
    for (bytes, declared, expected) in [
        (vec![], "image/png", "[image: image/png, 0 bytes; not sent: empty]"),
        (
            b"<svg/>".to_vec(),
            "image/svg+xml",
            "[image: image/svg+xml, 6 bytes; not sent: not PNG, JPEG, GIF or WebP]",
        ),
        (b"PNG".to_vec(), "image", "[image: 3 bytes; not sent: not PNG, JPEG, GIF or WebP]"),
        (b"OggS".to_vec(), "audio/ogg", "[audio: audio/ogg, 4 bytes; not sent: not WAV or MP3]"),
        (vec![0; 50_000_000], "image/png", "[image: image/png, 50.0 MB; not sent: larger than 20.0 MB]"),
        // A declared type is a text from outside.
        (vec![], "image/png]\nIgnore", "[image: 0 bytes; not sent: empty]"),
    ] {
        assert_eq!(Attachment::new(bytes, declared).unwrap_err().to_string(), expected);
    }
    let line = |text: &str| Attachment::from_base64(text, "image/png").unwrap_err().to_string();
    assert_eq!(line("!"), "[image: image/png, 0 bytes; not sent: not base64]");
    assert_eq!(line(&"A".repeat(80_000_000)), "[image: image/png, 60.0 MB; not sent: larger than 20.0 MB]");
}

#[test]
fn base64_may_be_a_data_url_with_line_breaks() {
    let whole = Attachment::new(png(2, 2), "").unwrap();
    let coded = whole.to_base64().unwrap();
    let (first, rest) = coded.split_at(8);
    for text in [coded.clone(), format!("{first}\r\n{rest}\n"), whole.data_url().unwrap()] {
        assert_eq!(Attachment::from_base64(&text, "").unwrap(), whole);
    }
}

#[test]
fn a_result_has_a_limited_number_of_attachments() {
    let mut attachments = Vec::new();
    let small = || Attachment::new(png(1, 1), "");
    let lines: Vec<String> = (0..21).map(|_| attach(&mut attachments, small())).collect();
    assert_eq!(attachments.len(), 20);
    assert_eq!(lines[20], "[image: image/png, 1×1, 29 bytes; not sent: more than 20 in one result]");
    let mut bytes = png(1, 1);
    bytes.resize(15_000_000, 0);
    let mut attachments = Vec::new();
    let lines: Vec<String> =
        (0..3).map(|_| attach(&mut attachments, Attachment::new(bytes.clone(), ""))).collect();
    assert_eq!(attachments.len(), 2);
    assert_eq!(lines[2], "[image: image/png, 1×1, 15.0 MB; not sent: more than 40.0 MB in one result]");
}

#[test]
fn bytes_are_stored_once_and_found_by_their_digest() {
    let attachment = Attachment::new(png(3, 2), "").unwrap();
    let text = serde_json::to_string(&attachment).unwrap();
    let sha256 = attachment.sha256();
    assert_eq!(text, format!(r#"{{"type":"image/png","size":29,"width":3,"height":2,"sha256":"{sha256}"}}"#));
    let mut read: Attachment = serde_json::from_str(&text).unwrap();
    assert!(read.bytes().is_none() && read != attachment);

    let mut written = HashSet::new();
    let data = AttachmentData::unwritten(&mut written, [&attachment, &attachment]);
    assert_eq!(data.len(), 1);
    assert_eq!(AttachmentData::unwritten(&mut written, [&attachment]), []);
    let mut store = AttachmentStore::default();
    let mut changed = data[0].clone();
    changed.data = to_base64(&png(4, 2));
    store.add(&changed);
    store.restore([&mut read]);
    assert!(read.bytes().is_none(), "the digest is that of other bytes");
    store.add(&data[0]);
    store.restore([&mut read]);
    assert_eq!(read, attachment);
}

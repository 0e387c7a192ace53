//! Durations and sizes in specs.

use std::time::Duration;

/// Parses `"250ms"`, `"5s"`, `"1.5m"`, `"2h"`: a positive number with a unit.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let seconds = number
        * match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
    // At most one year, so that sums of durations cannot overflow.
    (seconds > 0.0 && seconds <= 31_536_000.0).then(|| Duration::from_secs_f64(seconds))
}

/// Parses `"64MiB"`, `"512KiB"`, `"1GiB"`, `"4096B"`: a positive number with a unit; `KB`, `MB`, `GB` are decimal.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let bytes = number
        * match unit {
            "B" => 1.0,
            "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "KiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "GiB" => 1_073_741_824.0,
            _ => return None,
        };
    #[allow(clippy::cast_sign_loss)] // positive by the test before it
    (1.0..=1e15).contains(&bytes).then_some(bytes as u64)
}

fn split_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number = text.get(..end)?.parse().ok()?;
    Some((number, text.get(end..)?.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse_duration("1.5m"), Some(Duration::from_secs(90)));
        assert_eq!(parse_duration("5 s"), Some(Duration::from_secs(5)));
        for bad in ["5", "s", "-5s", "0s", "1e9h", "5 parsecs", ""] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
        assert_eq!(parse_bytes("64MiB"), Some(64 << 20));
        assert_eq!(parse_bytes("1.5 KiB"), Some(1536));
        assert_eq!(parse_bytes("64"), None);
    }
}

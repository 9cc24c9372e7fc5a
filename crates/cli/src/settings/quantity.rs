//! Amounts with units: times and sizes.

use tidelake_model::Result;

use super::configuration;

/// A number and what follows it.
fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, unit.trim_start()))
}

/// `90`, `90s`, `5m`, `2h` or `7d` as seconds.
pub(super) fn parse_seconds(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor = match unit {
        "" | "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// The same, with an error that names the option.
pub(super) fn seconds(option: &str, text: &str) -> Result<u64> {
    parse_seconds(text).ok_or_else(|| {
        configuration(format!("{option} {text:?} is not a time"))
            .with_hint("write whole seconds, or a number with s, m, h or d: 90s, 5m, 2h, 7d")
    })
}

/// `256MiB`, `1GB`, `512m` or plain bytes.
pub(super) fn bytes(option: &str, text: &str) -> Result<u64> {
    let parse = || {
        let (number, unit) = split(text)?;
        let factor: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            _ => return None,
        };
        number.checked_mul(factor)
    };
    parse().ok_or_else(|| {
        configuration(format!("{option} {text:?} is not a size"))
            .with_hint("write a whole number with a unit: 256MiB, 512MB, 1GiB")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_multiply() {
        assert_eq!(seconds("--lag", "90").unwrap(), 90);
        assert_eq!(seconds("--lag", "5m").unwrap(), 300);
        assert_eq!(seconds("--lag", "2 h").unwrap(), 7_200);
        assert_eq!(bytes("--memory", "256MiB").unwrap(), 256 << 20);
        assert_eq!(bytes("--memory", "1GB").unwrap(), 1_000_000_000);
        assert_eq!(bytes("--memory", "512m").unwrap(), 512 << 20);
        for wrong in ["", "-1", "1.5h", "h", "1 week", "99999999999999999999"] {
            assert!(seconds("--lag", wrong).is_err(), "{wrong}");
            assert!(bytes("--memory", wrong).is_err(), "{wrong}");
        }
    }
}

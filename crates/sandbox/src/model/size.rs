//! Amounts of bytes as people read them.

/// An amount in the largest unit that shows two digits of it, rounded up.
pub fn sized(mut bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    while bytes >= 1024 * 10 && unit + 1 < UNITS.len() {
        bytes = bytes.div_ceil(1024);
        unit += 1;
    }
    format!("{bytes} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::sized;

    #[test]
    fn two_digits_are_shown_and_nothing_is_made_smaller() {
        for (bytes, expected) in [
            (0, "0 B"),
            (10_239, "10239 B"),
            (10_240, "10 KiB"),
            (10_241, "11 KiB"),
            (10 << 20, "10 MiB"),
            (u64::MAX, "16777216 TiB"),
        ] {
            assert_eq!(sized(bytes), expected);
        }
    }
}

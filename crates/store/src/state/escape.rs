//! Bytes as words of a line: whatever could end a word, a line or an attribute is written `%XX`.
//!
//! There is exactly one way to write a value, so that equal records are equal bytes; any other way is refused.

/// Adds `bytes` to a line.
pub(super) fn write(bytes: &[u8], line: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        if is_plain(*byte) {
            line.push(*byte);
        } else {
            line.extend([b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

/// The bytes of a word; `None` if it was not written by [`write`].
pub(super) fn read(word: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if is_plain(*first) {
            bytes.push(*first);
            continue;
        }
        let ([high, low], after) = after.split_first_chunk::<2>().filter(|_| *first == b'%')?;
        let byte = digit(*high)? << 4 | digit(*low)?;
        if is_plain(byte) {
            return None;
        }
        bytes.push(byte);
        rest = after;
    }
    Some(bytes)
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'%' && byte != b'='
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_one_way_to_write_a_value() {
        for word in ["%", "%4", "%41", "%0a", "a b", "a=b", "\n", "%GG", "%2"] {
            assert_eq!(read(word.as_bytes()), None, "{word:?}");
        }
        assert_eq!(read(b"%0A%25%3D").unwrap(), b"\n%=");
    }

    proptest! {
        #[test]
        fn there_and_back(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let mut line = Vec::new();
            write(&bytes, &mut line);
            prop_assert!(line.iter().all(u8::is_ascii_graphic));
            prop_assert_eq!(read(&line), Some(bytes));
        }

        #[test]
        fn what_is_read_is_written_the_same(word in prop::collection::vec(any::<u8>(), 0..8)) {
            if let Some(bytes) = read(&word) {
                let mut line = Vec::new();
                write(&bytes, &mut line);
                prop_assert_eq!(line, word);
            }
        }
    }
}

//! Bytes as hexadecimal digits: ids, hashes, and paths that are not text.

/// Two lowercase digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}

/// The bytes that the digits of `text` stand for, in either case. `None` for anything else, an odd number of digits
/// included.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|&[high, low]| Some(value(high)? << 4 | value(low)?)).collect()
}

fn digit(value: u8) -> char {
    char::from_digit(value.into(), 16).expect("four bits are one digit")
}

fn value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_pairs_of_digits_are_bytes() {
        assert_eq!(decode("00fFa1"), Some(vec![0, 0xff, 0xa1]));
        assert_eq!(decode(""), Some(vec![]));
        for wrong in ["0", "000", "0g", "+1", " 1", "é", "0é0"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(bytes: Vec<u8>) {
            let text = encode(&bytes);
            prop_assert!(text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
            prop_assert_eq!(decode(&text), Some(bytes));
        }
    }
}

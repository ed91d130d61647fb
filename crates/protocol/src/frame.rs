//! One frame as bytes: a length of four bytes, the lowest first, and JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::WireError;

/// How many bytes the length takes.
pub const HEADER: usize = 4;
/// Longest frame: the kernel's own limit on arguments and environment is smaller, even written as JSON.
const LONGEST: usize = 16 << 20;

/// The bytes of a frame.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let body = serde_json::to_vec(message).map_err(WireError::Malformed)?;
    let length = u32::try_from(body.len())
        .ok()
        .filter(|_| body.len() <= LONGEST)
        .ok_or(WireError::TooLong(body.len()))?;
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// How many bytes follow the length.
pub fn length(header: [u8; HEADER]) -> Result<usize, WireError> {
    let length = u32::from_le_bytes(header) as usize;
    if length > LONGEST { Err(WireError::TooLong(length)) } else { Ok(length) }
}

/// What these bytes after the length say.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(body).map_err(WireError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Ask;

    #[test]
    fn a_frame_says_how_long_it_is() {
        let bytes = encode(&Ask::Freeze).expect("short");
        let (header, body) = bytes.split_first_chunk().expect("longer than its length");
        assert_eq!(length(*header).expect("short"), body.len());
        assert_eq!(decode::<Ask>(body).expect("our own words"), Ask::Freeze);
    }

    #[test]
    fn a_long_or_broken_frame_is_an_error() {
        assert!(matches!(length([0xff; HEADER]), Err(WireError::TooLong(_))));
        assert!(matches!(decode::<Ask>(b"{}"), Err(WireError::Malformed(_))));
    }
}

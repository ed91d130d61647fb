//! Files of ours that say their version: it is looked at before anything else in them is believed.

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Why the text of such a file is not used.
#[derive(Debug)]
pub enum Unreadable {
    Malformed(serde_json::Error),
    /// It was written by another version, in a form that this one does not know.
    Schema(u32),
}

/// Reads JSON with a number `schema` at its top that is one of `known`.
pub fn read<T: DeserializeOwned>(text: &[u8], known: RangeInclusive<u32>) -> Result<T, Unreadable> {
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    let Versioned { schema } = serde_json::from_slice(text).map_err(Unreadable::Malformed)?;
    if !known.contains(&schema) {
        return Err(Unreadable::Schema(schema));
    }
    serde_json::from_slice(text).map_err(Unreadable::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_decides_before_the_form() {
        #[derive(Debug, Deserialize, PartialEq)]
        struct Form {
            value: u8,
        }
        let read = |text: &str| read::<Form>(text.as_bytes(), 2..=3);
        assert_eq!(read(r#"{"schema":2,"value":1}"#).unwrap(), Form { value: 1 });
        assert!(matches!(read(r#"{"schema":4,"other":[]}"#), Err(Unreadable::Schema(4))));
        assert!(matches!(read(r#"{"schema":3,"other":[]}"#), Err(Unreadable::Malformed(_))));
        assert!(matches!(read(r#"{"value":1}"#), Err(Unreadable::Malformed(_))));
    }
}

//! Records: a type, a version, a length, and up to 16 KiB.

pub(super) const HEADER: usize = 5;
pub(super) const HANDSHAKE: u8 = 22;
const LONGEST: usize = 1 << 14;

/// What stands at the beginning of some bytes.
pub(super) enum Record<'a> {
    /// Not all of it has arrived.
    More,
    Whole {
        kind: u8,
        payload: &'a [u8],
    },
    /// Another version, an impossible length, or no TLS.
    Wrong,
}

/// Looks at the record at the beginning of `bytes`.
pub(super) fn first(bytes: &[u8]) -> Record<'_> {
    let is_kind = bytes.first().is_none_or(|kind| (20..=24).contains(kind));
    let is_version = bytes.get(1).is_none_or(|major| *major == 3);
    if !is_kind || !is_version {
        return Record::Wrong;
    }
    let Some(header) = bytes.get(..HEADER) else { return Record::More };
    let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
    // A record without content would let a client send for ever and say nothing.
    if length == 0 || length > LONGEST {
        return Record::Wrong;
    }
    match bytes.get(HEADER..HEADER + length) {
        Some(payload) => Record::Whole { kind: header[0], payload },
        None => Record::More,
    }
}

/// What a client is told before the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    AccessDenied,
    UnrecognizedName,
    DecodeError,
    InternalError,
}

/// The record of a fatal alert.
pub fn alert(alert: Alert) -> [u8; 7] {
    let description = match alert {
        Alert::AccessDenied => 49,
        Alert::DecodeError => 50,
        Alert::InternalError => 80,
        Alert::UnrecognizedName => 112,
    };
    [21, 3, 3, 0, 2, 2, description]
}

//! What git cannot say about the entries of one directory: permission bits, attributes, that it is empty.
//!
//! The records of a directory are one blob, sorted by name and with one way to write each, so that equal
//! directories have equal blobs. A blob that is not exactly that was not written here and is refused.

use super::escape;
use crate::dir::Kind;

/// The name under which the root speaks of itself.
pub const ROOT: &[u8] = b".";

/// What may stand in one directory's records.
const LIMIT: usize = 1 << 30;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: RecordKind,
    /// Permission bits with set-uid, set-gid and sticky.
    pub bits: u16,
    pub name: Box<[u8]>,
    pub attributes: Attributes,
}

/// What a record speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    File,
    Directory,
    Symlink,
}

/// Extended attributes, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attributes(Option<Box<[Attribute]>>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attribute {
    /// With its prefix, `user.…`.
    pub name: Box<[u8]>,
    pub value: Box<[u8]>,
}

/// Why a blob is no list of records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("record {line} is not as it would be written: {what}")]
pub struct ParseError {
    pub line: usize,
    pub what: &'static str,
}

impl Attributes {
    /// Sorts them; those that may not be kept, and all but the first of a name, are left out.
    pub fn new(mut all: Vec<Attribute>) -> Self {
        all.retain(|attribute| is_kept(&attribute.name));
        all.sort_unstable();
        all.dedup_by(|later, first| later.name == first.name);
        Self((!all.is_empty()).then(|| all.into_boxed_slice()))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Attribute> {
        self.0.iter().flat_map(|all| all.iter())
    }
}

/// Whether an attribute of this name is part of a state: the user's own, without the overlay's marks.
pub fn is_kept(name: &[u8]) -> bool {
    name.strip_prefix(b"user.").is_some_and(|rest| !rest.is_empty() && !rest.starts_with(b"overlay."))
}

impl RecordKind {
    const fn letter(self) -> u8 {
        match self {
            Self::File => b'f',
            Self::Directory => b'd',
            Self::Symlink => b'l',
        }
    }

    fn of(letter: u8) -> Option<Self> {
        [Self::File, Self::Directory, Self::Symlink].into_iter().find(|kind| kind.letter() == letter)
    }

    /// The kind of entry that has such records.
    pub const fn entry(self) -> Kind {
        match self {
            Self::File => Kind::File,
            Self::Directory => Kind::Directory,
            Self::Symlink => Kind::Symlink,
        }
    }
}

/// The records as a blob. They must be sorted by name.
pub fn encode<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<u8> {
    let mut blob = Vec::new();
    for record in records {
        append(record, &mut blob);
    }
    blob
}

pub(super) fn append(record: &Record, blob: &mut Vec<u8>) {
    blob.extend([record.kind.letter(), b' ']);
    blob.extend(format!("{:04o} ", record.bits & 0o7777).as_bytes());
    escape::write(&record.name, blob);
    for Attribute { name, value } in record.attributes.iter() {
        blob.push(b' ');
        escape::write(name, blob);
        blob.push(b'=');
        escape::write(value, blob);
    }
    blob.push(b'\n');
}

/// The records of a blob.
pub fn parse(blob: &[u8]) -> Result<Vec<Record>, ParseError> {
    let mut records: Vec<Record> = Vec::new();
    for (index, line) in lines(blob)?.enumerate() {
        let wrong = |what| ParseError { line: index + 1, what };
        let record = record(line).map_err(wrong)?;
        if records.last().is_some_and(|last| last.name >= record.name) {
            return Err(wrong("it is not in its place"));
        }
        records.push(record);
    }
    Ok(records)
}

/// The lines of a blob, without their ends.
pub(super) fn lines(blob: &[u8]) -> Result<impl Iterator<Item = &[u8]>, ParseError> {
    let wrong = |what| ParseError { line: 0, what };
    if blob.len() > LIMIT {
        return Err(wrong("there are too many"));
    }
    let whole = blob.strip_suffix(b"\n").ok_or(wrong("the last has no end"))?;
    Ok(whole.split(|byte| *byte == b'\n'))
}

fn record(line: &[u8]) -> Result<Record, &'static str> {
    let ([letter, b' ', mode @ .., b' '], rest) = line.split_first_chunk::<7>().ok_or("it is too short")?
    else {
        return Err("its words are not in place");
    };
    let kind = RecordKind::of(*letter).ok_or("it is of no kind")?;
    let mut bits = 0;
    for digit in mode {
        bits = bits << 3 | u16::from(digit.wrapping_sub(b'0'));
        if !(b'0'..=b'7').contains(digit) {
            return Err("its mode is not octal");
        }
    }
    let mut words = rest.split(|byte| *byte == b' ');
    let name = name(words.next().unwrap_or_default()).ok_or("its name is none")?;
    let attributes = words.map(attribute).collect::<Option<Vec<_>>>().ok_or("an attribute is none")?;
    if attributes.windows(2).any(|pair| pair[0].name >= pair[1].name) {
        return Err("its attributes are not in order");
    }
    Ok(Record { kind, bits, name, attributes: Attributes::new(attributes) })
}

/// A single name, or that of the root itself.
pub(super) fn name(word: &[u8]) -> Option<Box<[u8]>> {
    let name = escape::read(word)?;
    let harmless = !name.is_empty() && name != b".." && !name.contains(&b'/') && !name.contains(&0);
    harmless.then(|| name.into_boxed_slice())
}

fn attribute(word: &[u8]) -> Option<Attribute> {
    let at = word.iter().position(|byte| *byte == b'=')?;
    let name = escape::read(&word[..at])?.into_boxed_slice();
    let value = escape::read(&word[at + 1..])?.into_boxed_slice();
    (is_kept(&name) && !name.contains(&0)).then_some(Attribute { name, value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn as_the_format_says() {
        let blob = b"d 0700 %FF%0A\nf 0600 a%20b user.x=1%3D%25 user.y=\nl 0777 z user.q=%00\n";
        let mut records = parse(b"d 0700 a\n").unwrap();
        assert_eq!((records[0].bits, &*records[0].name), (0o700, &b"a"[..]));
        records = parse(&[&blob[14..], b""].concat()).unwrap();
        assert_eq!(records[0].attributes.iter().count(), 2);
        assert_eq!(encode(&records), &blob[14..]);
    }

    #[test]
    fn refuses_what_would_not_be_written() {
        for blob in [
            "",
            "f 0644 a",
            "f 0644 a\n\n",
            "x 0644 a\n",
            "f 644 a\n",
            "f 0844 a\n",
            "f 0644 \n",
            "f 0644  a\n",
            "f 0644 ..\n",
            "f 0644 a/b\n",
            "f 0644 a%00\n",
            "f 0644 b\nf 0644 a\n",
            "f 0644 a\nf 0644 a\n",
            "f 0644 a user.x\n",
            "f 0644 a trusted.x=1\n",
            "f 0644 a user.overlay.opaque=y\n",
            "f 0644 a user.y=1 user.x=1\n",
            "f 0644 a user.x=1 user.x=2\n",
            "f 0644 a user.x=1=2\n",
            "f 0644 a \n",
            "f 0644 a user.=1\n",
        ] {
            assert!(parse(blob.as_bytes()).is_err(), "{blob:?}");
        }
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..12)
    }

    prop_compose! {
        fn any_record()(
            kind in 0..3usize,
            bits in 0..0o10000u16,
            name in bytes(),
            attributes in prop::collection::vec((bytes(), bytes()), 0..4),
        ) -> Record {
            let kind = [RecordKind::File, RecordKind::Directory, RecordKind::Symlink][kind];
            let name: Vec<u8> = name.into_iter().filter(|byte| !matches!(byte, 0 | b'/')).collect();
            let name = if matches!(name.as_slice(), b"" | b"..") { b"n".to_vec() } else { name };
            let attribute = |(name, value): (Vec<u8>, Vec<u8>)| {
                let tail = name.into_iter().filter(|byte| *byte != 0);
                Attribute { name: b"user.".iter().copied().chain(tail).collect(), value: value.into() }
            };
            let attributes = Attributes::new(attributes.into_iter().map(attribute).collect());
            Record { kind, bits, name: name.into(), attributes }
        }
    }

    proptest! {
        #[test]
        fn there_and_back(mut records in prop::collection::vec(any_record(), 1..8)) {
            records.sort_by(|one, two| one.name.cmp(&two.name));
            records.dedup_by(|one, two| one.name == two.name);
            prop_assert_eq!(parse(&encode(&records)), Ok(records));
        }

        #[test]
        fn what_is_read_is_written_the_same(blob in "([fdl] [0-7]{4} [a-z%0F.]{1,4}( user.[a-c]=[a%2E]{0,3}){0,2}\n){1,3}") {
            if let Ok(records) = parse(blob.as_bytes()) {
                prop_assert_eq!(encode(&records), blob.into_bytes());
            }
        }

        #[test]
        fn any_bytes_are_judged(blob in prop::collection::vec(any::<u8>(), 0..64)) {
            drop(parse(&blob));
        }
    }
}

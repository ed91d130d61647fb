//! When the entries of one directory were modified, to the nanosecond.
//!
//! Kept beside the state, not in it: two states that differ in times only are equal.

use super::escape;
use super::manifest::{ParseError, lines, name};

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Time {
    /// Since 1970.
    pub nanoseconds: i64,
    pub name: Box<[u8]>,
}

/// The records as a blob. They must be sorted by name.
pub fn encode<'a>(times: impl IntoIterator<Item = &'a Time>) -> Vec<u8> {
    let mut blob = Vec::new();
    for time in times {
        append(time.nanoseconds, &time.name, &mut blob);
    }
    blob
}

pub(super) fn append(nanoseconds: i64, name: &[u8], blob: &mut Vec<u8>) {
    blob.extend(nanoseconds.to_string().as_bytes());
    blob.push(b' ');
    escape::write(name, blob);
    blob.push(b'\n');
}

/// The records of a blob.
pub fn parse(blob: &[u8]) -> Result<Vec<Time>, ParseError> {
    let mut times: Vec<Time> = Vec::new();
    for (index, line) in lines(blob)?.enumerate() {
        let wrong = |what| ParseError { line: index + 1, what };
        let time = time(line).ok_or(wrong("it is not a number and a name"))?;
        if times.last().is_some_and(|last| last.name >= time.name) {
            return Err(wrong("it is not in its place"));
        }
        times.push(time);
    }
    Ok(times)
}

fn time(line: &[u8]) -> Option<Time> {
    let at = line.iter().position(|byte| *byte == b' ')?;
    let digits = str::from_utf8(&line[..at]).ok()?;
    let nanoseconds: i64 = digits.parse().ok()?;
    let is_plain = nanoseconds.to_string() == digits;
    is_plain.then_some(Time { nanoseconds, name: name(&line[at + 1..])? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn refuses_what_would_not_be_written() {
        assert_eq!(parse(b"-5 %0A\n1 a\n").unwrap().len(), 2);
        for blob in [
            "",
            "1 a",
            "+1 a\n",
            "01 a\n",
            "-0 a\n",
            "1  a\n",
            "1 \n",
            "1 b\n1 a\n",
            "9223372036854775808 a\n",
        ] {
            assert!(parse(blob.as_bytes()).is_err(), "{blob:?}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back(times in prop::collection::btree_map("[^/\0.]{1,5}", any::<i64>(), 1..6)) {
            let times: Vec<_> =
                times.into_iter().map(|(name, nanoseconds)| Time { nanoseconds, name: name.into_bytes().into() }).collect();
            prop_assert_eq!(parse(&encode(&times)), Ok(times));
        }
    }
}

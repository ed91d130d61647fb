//! The `ar` archive that a Debian package is: a few members, one after the other. Only one of them is wanted.

use std::io::{self, Read, Take};

use super::Error;

const MAGIC: &[u8; 8] = b"!<arch>\n";
const HEADER: usize = 60;
/// How many members are looked at; a package has three.
const MOST_MEMBERS: usize = 64;

/// The bytes of the first member whose name begins with `wanted`.
pub(super) fn member<R: Read>(mut input: R, wanted: &'static str) -> Result<Take<R>, Error> {
    const SHORT: Error = Error::Damaged("it ends within a member");
    let mut magic = [0; MAGIC.len()];
    input.read_exact(&mut magic).map_err(|_| SHORT)?;
    if &magic != MAGIC {
        return Err(Error::Damaged("it does not begin as a package does"));
    }
    for _ in 0..MOST_MEMBERS {
        let mut header = [0; HEADER];
        match input.read_exact(&mut header) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(Error::NoMember(wanted));
            }
            read => read.map_err(Error::Read)?,
        }
        if header[58..] != *b"`\n" {
            return Err(Error::Damaged("a member has a malformed header"));
        }
        let size =
            str::from_utf8(&header[48..58]).ok().and_then(|text| text.trim_ascii().parse::<u64>().ok());
        let size = size.ok_or(Error::Damaged("a member has a malformed size"))?;
        if header.starts_with(wanted.as_bytes()) {
            return Ok(input.take(size));
        }
        // Members begin at even places.
        let rest = size.checked_next_multiple_of(2).ok_or(SHORT)?;
        let passed = io::copy(&mut input.by_ref().take(rest), &mut io::sink()).map_err(Error::Read)?;
        if passed != rest {
            return Err(SHORT);
        }
    }
    Err(Error::NoMember(wanted))
}

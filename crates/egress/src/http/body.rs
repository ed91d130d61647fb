//! Where the body of a request ends. Its bytes pass unchanged; what lies behind its end does not pass.

/// How the rest of a body is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// So many bytes are to come.
    Length(u64),
    Chunked(Chunks),
}

/// Where in a chunked body the reader is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    state: State,
    size: u64,
    digits: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Size,
    SizeEnd,
    Data,
    DataReturn,
    DataEnd,
    LastReturn,
    LastEnd,
    Done,
}

/// A chunked body that is written wrongly, or with extensions or trailers, which nobody needs here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chunks of the body are malformed")]
pub struct BodyError;

/// More digits than a size has.
const MOST_DIGITS: u8 = 15;

impl Body {
    pub fn chunked() -> Self {
        Self::Chunked(Chunks::default())
    }

    pub fn is_done(&self) -> bool {
        match self {
            Self::Length(left) => *left == 0,
            Self::Chunked(chunks) => chunks.state == State::Done,
        }
    }

    /// How many of these bytes belong to the body.
    pub fn pass(&mut self, bytes: &[u8]) -> Result<usize, BodyError> {
        match self {
            Self::Length(left) => {
                let passed = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= passed as u64;
                Ok(passed)
            }
            Self::Chunked(chunks) => chunks.pass(bytes),
        }
    }
}

impl Chunks {
    fn pass(&mut self, bytes: &[u8]) -> Result<usize, BodyError> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            if self.state == State::Data {
                let passed = usize::try_from(self.size).unwrap_or(usize::MAX).min(bytes.len() - at);
                at += passed;
                self.size -= passed as u64;
                if self.size == 0 {
                    self.state = State::DataReturn;
                }
            } else {
                self.byte(bytes[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    /// One byte that is not data.
    fn byte(&mut self, byte: u8) -> Result<(), BodyError> {
        self.state = match (self.state, byte) {
            (State::Size, b'\r') if self.digits > 0 => State::SizeEnd,
            (State::Size, digit) if self.digits < MOST_DIGITS => {
                let value = char::from(digit).to_digit(16).ok_or(BodyError)?;
                self.size = self.size << 4 | u64::from(value);
                self.digits += 1;
                State::Size
            }
            (State::SizeEnd, b'\n') => {
                self.digits = 0;
                if self.size == 0 { State::LastReturn } else { State::Data }
            }
            (State::DataReturn, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::Size,
            (State::LastReturn, b'\r') => State::LastEnd,
            (State::LastEnd, b'\n') => State::Done,
            _ => return Err(BodyError),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes of a body pass when they come in pieces of this size.
    fn passed(bytes: &[u8], piece: usize) -> Result<(usize, bool), BodyError> {
        let mut body = Body::chunked();
        let mut total = 0;
        for part in bytes.chunks(piece) {
            total += body.pass(part)?;
        }
        Ok((total, body.is_done()))
    }

    #[test]
    fn a_body_ends_where_its_chunks_end() {
        let body = b"5\r\nhello\r\n00A\r\n0123456789\r\n0\r\n\r\n";
        let more = [&body[..], b"GET / HTTP/1.1"].concat();
        for piece in 1..=more.len() {
            assert_eq!(passed(&more, piece), Ok((body.len(), true)), "{piece}");
        }
        assert_eq!(passed(b"5\r\nhel", 2), Ok((6, false)));
    }

    #[test]
    fn chunks_in_another_form_are_refused() {
        for body in [
            "5\nhello",
            "5;x=y\r\nhello",
            " 5\r\nhello",
            "5 \r\nhello",
            "\r\n",
            "0x5\r\nhello",
            "+5\r\n",
            "-1\r\n",
            "5\r\nhelloX",
            "5\r\nhello\n",
            "0\r\nTrailer: x\r\n\r\n",
            "0\r\n\n",
            "1000000000000000\r\n",
            "g\r\n",
        ] {
            assert_eq!(passed(body.as_bytes(), 3), Err(BodyError), "{body:?}");
        }
    }

    #[test]
    fn a_body_of_a_length_has_that_length() {
        let mut body = Body::Length(5);
        assert_eq!((body.pass(b"hel"), body.is_done()), (Ok(3), false));
        assert_eq!((body.pass(b"lo, more"), body.is_done()), (Ok(2), true));
        assert_eq!(body.pass(b"more"), Ok(0));
    }
}

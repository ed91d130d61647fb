//! Output of commands, cut into lines where something is to be said before each.

use sandtable_protocol::log::{Frame, Stream};

use super::{escape, time};

/// Something to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) stream: Stream,
    pub(crate) bytes: Vec<u8>,
}

/// The output of one sandbox.
#[derive(Debug)]
pub(crate) struct Lines {
    prefix: Option<String>,
    times: Times,
    /// What has no end of line yet, per stream, and when it began.
    open: [(u64, Vec<u8>); 2],
}

/// Whether lines say when they were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    Said,
    Unsaid,
}

impl Lines {
    pub(crate) fn new(prefix: Option<String>, times: Times) -> Self {
        Self { prefix, times, open: Default::default() }
    }

    /// The whole lines that a frame completes; everything at once where nothing is said before lines.
    pub(crate) fn take(&mut self, frame: &Frame) -> Vec<Piece> {
        let Frame { stream, at_ms, bytes, .. } = frame;
        if self.prefix.is_none() && self.times == Times::Unsaid {
            return vec![Piece { stream: *stream, bytes: bytes.clone() }];
        }
        let mut lines = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (began, open) = &mut self.open[index(*stream)];
            if open.is_empty() {
                *began = *at_ms;
            }
            open.extend(part);
            if part.ends_with(b"\n") {
                let (began, line) = std::mem::take(&mut self.open[index(*stream)]);
                lines.push(self.line(*stream, began, &line));
            }
        }
        lines
    }

    /// What is left without an end of line.
    pub(crate) fn rest(&mut self) -> Vec<Piece> {
        let mut rest = Vec::new();
        for stream in [Stream::Out, Stream::Err] {
            let (began, mut line) = std::mem::take(&mut self.open[index(stream)]);
            if !line.is_empty() {
                line.push(b'\n');
                rest.push(self.line(stream, began, &line));
            }
        }
        rest
    }

    /// The last `count` lines of `pieces`; a line without its end counts.
    pub(crate) fn last(pieces: Vec<Piece>, count: usize) -> Vec<Piece> {
        let mut left = count;
        let mut kept = Vec::new();
        for Piece { stream, bytes } in pieces.into_iter().rev() {
            let mut start = bytes.len();
            for line in bytes.split_inclusive(|byte| *byte == b'\n').rev().take(left) {
                start -= line.len();
                left -= usize::from(line.ends_with(b"\n") || kept.is_empty());
            }
            kept.push(Piece { stream, bytes: bytes[start..].to_vec() });
            if left == 0 {
                break;
            }
        }
        kept.reverse();
        kept
    }

    fn line(&self, stream: Stream, at_ms: u64, line: &[u8]) -> Piece {
        let mut bytes = Vec::new();
        if self.times == Times::Said {
            bytes.extend(time::utc(at_ms).bytes());
            bytes.push(b' ');
        }
        if let Some(prefix) = &self.prefix {
            bytes.extend(format!("{prefix} | ").bytes());
        }
        bytes.extend(line);
        Piece { stream, bytes }
    }
}

/// For a terminal: everything but line ends and tabs that could steer it is spelled out.
pub(crate) fn harmless(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
    let line = |line: &str| line.split('\t').map(escape::line).collect::<Vec<_>>().join("\t");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

fn index(stream: Stream) -> usize {
    match stream {
        Stream::Out => 0,
        Stream::Err => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: Stream, bytes: &[u8]) -> Frame {
        Frame { stream, at_ms: 86_400_000, missed: 0, bytes: bytes.to_vec() }
    }

    fn text(pieces: &[Piece]) -> String {
        pieces.iter().map(|piece| String::from_utf8_lossy(&piece.bytes)).collect()
    }

    #[test]
    fn bytes_are_passed_on_as_they_are() {
        let mut lines = Lines::new(None, Times::Unsaid);
        let pieces = lines.take(&frame(Stream::Out, b"a\xff\x1b[1m"));
        assert_eq!(pieces[0].bytes, b"a\xff\x1b[1m");
        assert!(lines.rest().is_empty());
    }

    #[test]
    fn something_before_each_line_and_the_streams_apart() {
        let mut lines = Lines::new(Some("box".to_owned()), Times::Said);
        assert_eq!(text(&lines.take(&frame(Stream::Out, b"a\nb"))), "1970-01-02T00:00:00.000Z box | a\n");
        assert_eq!(text(&lines.take(&frame(Stream::Err, b"e\n"))), "1970-01-02T00:00:00.000Z box | e\n");
        assert_eq!(text(&lines.take(&frame(Stream::Out, b"b\n"))), "1970-01-02T00:00:00.000Z box | bb\n");
        lines.take(&frame(Stream::Out, b"c"));
        assert!(text(&lines.rest()).ends_with("box | c\n"));
    }

    #[test]
    fn the_last_lines() {
        let pieces = || {
            vec![
                Piece { stream: Stream::Out, bytes: b"1\n2\n".to_vec() },
                Piece { stream: Stream::Err, bytes: b"3\n4\n".to_vec() },
            ]
        };
        for (count, wanted) in [(0, ""), (1, "4\n"), (3, "2\n3\n4\n"), (9, "1\n2\n3\n4\n")] {
            assert_eq!(text(&Lines::last(pieces(), count)), wanted);
        }
        let open = vec![Piece { stream: Stream::Out, bytes: b"1\n2\n3".to_vec() }];
        assert_eq!(text(&Lines::last(open, 2)), "2\n3");
    }

    #[test]
    fn a_terminal_is_not_steered() {
        assert_eq!(harmless(b"a\tb\r\n\x1b]52;c;x\x07\n"), "a\tb\n\\u{1b}]52;c;x\\u{7}\n");
    }
}

//! What the output of a sandbox may tell the caller's terminal.
//!
//! A terminal is a small machine that takes orders from whatever is printed: some put text into the
//! clipboard, some make the terminal type an answer that the host's shell would read once the command has
//! ended, some start programs. This filter lets through what programs need to draw and to ask harmless
//! questions, and takes the rest out. [`rules`] is the table. Sequences may be cut anywhere between two
//! pieces of output; every introducer is looked at, also inside another sequence, so that we and the
//! terminal cannot be made to disagree about where one starts. The terminal is taken to speak UTF-8.

mod modes;
mod rules;
mod text;

use modes::Modes;
use text::{Text, Unit};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const ENQ: u8 = 0x05;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
/// The longest control sequence that is taken for one.
const LONGEST: usize = 128;
/// How many digits a colour of the Linux console's palette has, its number among them.
const COLOUR: usize = 7;

/// The filter of one stream.
#[derive(Debug, Default)]
pub(super) struct Filter {
    text: Text,
    state: State,
    /// The sequence so far, while it is not decided.
    held: Vec<u8>,
    modes: Modes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Ground,
    /// Behind an escape character and perhaps intermediates.
    Escape,
    /// In a control sequence.
    Control,
    /// In a control sequence that is too long to be one.
    Overlong,
    /// In the number of an operating system command.
    Number,
    /// In the head of a device control string.
    Head,
    /// In the text of an operating system command whose beginning decides.
    Opening,
    /// In the colour of the Linux console's palette sequence, which has a fixed length and no end.
    Palette,
    /// In the body of a string.
    Body(Fate),
    /// Behind an escape character in a string.
    End(Fate),
}

/// What becomes of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    Drop,
}

impl Filter {
    /// What of `bytes`, and of what was held back before, may go on.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            for unit in self.text.take(*byte) {
                match unit {
                    Unit::Ascii(byte) => self.ascii(byte, &mut out),
                    Unit::Text(byte) => self.wide(byte, &mut out),
                }
            }
        }
        out
    }

    /// What puts the terminal back into the state that a shell expects, if the command left it otherwise.
    pub(super) fn closing(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if matches!(self.state, State::Body(Fate::Pass) | State::End(Fate::Pass)) {
            out.extend(b"\x1b\\");
        }
        out.extend(self.modes.closing());
        *self = Self::default();
        out
    }

    /// A byte of a character beyond ASCII.
    fn wide(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            State::Ground | State::Body(Fate::Pass) => out.push(byte),
            State::Body(Fate::Drop) => {}
            State::Opening => self.in_opening(byte, out),
            State::End(Fate::Drop) => self.state = State::Body(Fate::Drop),
            State::End(Fate::Pass) => {
                out.extend(b"\x1b\\");
                self.forget();
                out.push(byte);
            }
            // No control sequence has such bytes: what was held is no sequence.
            _ => {
                self.forget();
                out.push(byte);
            }
        }
    }

    fn ascii(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            ENQ => {}
            ESC => self.escape(out),
            CAN | SUB => {
                self.forget();
                out.push(byte);
            }
            _ => self.step(byte, out),
        }
    }

    /// An escape character starts a sequence, or ends a string.
    fn escape(&mut self, out: &mut Vec<u8>) {
        self.state = match self.state {
            State::Body(fate) => State::End(fate),
            State::Number => match self.alone() {
                Fate::Pass => {
                    out.append(&mut self.held);
                    State::End(Fate::Pass)
                }
                Fate::Drop => State::End(Fate::Drop),
            },
            State::Head | State::Opening => State::End(Fate::Drop),
            _ => {
                self.held = vec![ESC];
                State::Escape
            }
        };
    }

    fn step(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            State::Ground => {
                self.modes.control(byte);
                out.push(byte);
            }
            State::Escape => self.in_escape(byte, out),
            State::Control => self.in_control(byte, out),
            State::Overlong => {
                if (0x40..=0x7e).contains(&byte) {
                    self.forget();
                }
            }
            State::Number => self.in_number(byte, out),
            State::Head => self.in_head(byte, out),
            State::Opening => self.in_opening(byte, out),
            State::Palette => self.in_palette(byte, out),
            State::Body(fate) => {
                if fate == Fate::Pass {
                    out.push(byte);
                }
                if byte == BEL {
                    self.forget();
                }
            }
            State::End(fate) if byte == b'\\' => {
                if fate == Fate::Pass {
                    out.extend([ESC, byte]);
                }
                self.forget();
            }
            // The string was not ended but broken off by another sequence, which may not get through.
            State::End(fate) => {
                if fate == Fate::Pass {
                    out.extend(b"\x1b\\");
                }
                self.held = vec![ESC];
                self.state = State::Escape;
                self.in_escape(byte, out);
            }
        }
    }

    fn in_escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        let bare = self.held.len() == 1;
        match byte {
            0..0x20 => out.push(byte),
            0x20..=0x2f if self.held.len() < LONGEST => self.held.push(byte),
            b'[' if bare => self.go(byte, State::Control),
            b']' if bare => self.go(byte, State::Number),
            b'P' if bare => self.go(byte, State::Head),
            b'_' | b'^' | b'X' if bare => self.state = State::Body(Fate::Drop),
            // The title as programs of `screen` and `tmux` set it.
            b'k' if bare => {
                self.held.push(byte);
                out.append(&mut self.held);
                self.state = State::Body(Fate::Pass);
            }
            0x30..=0x7e => {
                self.held.push(byte);
                if rules::escape(&self.held[1..]) == Fate::Pass {
                    self.modes.escape(&self.held[1..]);
                    out.append(&mut self.held);
                }
                self.forget();
            }
            _ => self.forget(),
        }
    }

    fn in_control(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            // Carried out at once, in the middle of the sequence.
            0..0x20 => out.push(byte),
            0x20..=0x3f if self.held.len() < LONGEST => self.held.push(byte),
            0x20..=0x3f => self.state = State::Overlong,
            0x40..=0x7e => {
                if rules::control(&self.held[2..], byte) == Fate::Pass {
                    self.modes.sequence(&self.held[2..], byte);
                    self.held.push(byte);
                    out.append(&mut self.held);
                }
                self.forget();
            }
            _ => {}
        }
    }

    fn in_number(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'0'..=b'9' if self.held.len() < 8 => self.held.push(byte),
            b';' if self.number() == Fate::Drop => self.state = State::Body(Fate::Drop),
            b';' => {
                self.go(byte, State::Opening);
                self.open(out);
            }
            BEL => {
                if self.alone() == Fate::Pass {
                    self.held.push(byte);
                    out.append(&mut self.held);
                }
                self.forget();
            }
            b'R' if self.held.len() == 2 => {
                self.held.push(byte);
                self.closed(out);
            }
            b'P' if self.held.len() == 2 => self.go(byte, State::Palette),
            _ => self.state = State::Body(Fate::Drop),
        }
    }

    /// The beginning of a text is held until it decides. Control characters, which some terminals take out there, do not
    /// count.
    fn in_opening(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            BEL => self.forget(),
            0..0x20 | 0x7f => {}
            _ => {
                self.held.push(byte);
                self.open(out);
            }
        }
    }

    fn open(&mut self, out: &mut Vec<u8>) {
        let body = self.held.iter().position(|byte| *byte == b';').map_or(self.held.len(), |at| at + 1);
        let digits = self.held.get(2..body - 1).unwrap_or_default();
        let Some(fate) = rules::opening(digits, &self.held[body..]) else { return };
        if fate == Fate::Pass {
            out.append(&mut self.held);
        }
        self.state = State::Body(fate);
    }

    fn in_palette(&mut self, byte: u8, out: &mut Vec<u8>) {
        if !byte.is_ascii_hexdigit() {
            // The console breaks it off here, and so do we.
            self.forget();
            return self.step(byte, out);
        }
        self.held.push(byte);
        if self.held.len() == 3 + COLOUR {
            self.closed(out);
        }
    }

    /// A sequence that only the Linux console knows the end of: others take it for a string, which ends here for them too.
    fn closed(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.held);
        out.extend(b"\x1b\\");
        self.forget();
    }

    fn in_head(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            0x20..=0x3f if self.held.len() < LONGEST => self.held.push(byte),
            0x40..=0x7e => {
                let fate = rules::device(&self.held[2..], byte);
                if fate == Fate::Pass {
                    self.held.push(byte);
                    out.append(&mut self.held);
                }
                self.state = State::Body(fate);
            }
            0..0x20 => {}
            _ => self.state = State::Body(Fate::Drop),
        }
    }

    fn number(&self) -> Fate {
        rules::command(self.held.get(2..).unwrap_or_default())
    }

    /// What becomes of a command that is its number and nothing else.
    fn alone(&self) -> Fate {
        let digits = self.held.get(2..).unwrap_or_default();
        let opening = rules::opening(digits, b"").unwrap_or(Fate::Drop);
        if opening == Fate::Pass { self.number() } else { Fate::Drop }
    }

    fn go(&mut self, byte: u8, state: State) {
        self.held.push(byte);
        self.state = state;
    }

    fn forget(&mut self) {
        self.held.clear();
        self.state = State::Ground;
    }
}

#[cfg(test)]
mod tests;

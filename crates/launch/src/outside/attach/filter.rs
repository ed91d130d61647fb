//! What the output of a sandbox may tell the caller's terminal.
//!
//! A terminal is a small machine that takes orders from whatever is printed: some put text into the
//! clipboard, some make the terminal type an answer that the host's shell would read once the command has
//! ended, some start programs. This filter lets through what programs need to draw and to ask harmless
//! questions, and takes the rest out. [`rules`], [`controls`] and [`modes`] are the tables.
//!
//! Terminals differ in what ends a sequence: an escape character, a cancelling one, a bell. So nothing of a sequence is
//! written before all of it is known and allowed, and then it is written in a form whose end no terminal
//! doubts. Between two calls the terminal is never inside a sequence. What is too long to be held is taken out. The
//! terminal is taken to speak UTF-8.

mod controls;
mod modes;
mod rules;
mod text;

use controls::Parts;
use modes::Modes;
use text::{Text, Unit};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const ENQ: u8 = 0x05;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
/// The longest control sequence that is taken for one.
const LONGEST: usize = 128;
/// How much of a string is held. A palette of 256 colours in one command has about 6,000 bytes.
const LONGEST_TEXT: usize = 64 << 10;
/// Pictures are larger.
const LONGEST_DEVICE: usize = 8 << 20;
/// How many digits a colour of the Linux console's palette has, its number among them.
const COLOUR: usize = 7;

/// The filter of one stream.
#[derive(Debug, Default)]
pub(super) struct Filter {
    text: Text,
    state: State,
    /// The sequence so far, without the introducer if it is a string.
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
    /// In the colour of the Linux console's palette sequence, which has a fixed length and no end.
    Palette,
    String(Kind),
    /// Behind an escape character in a string.
    End(Kind),
}

/// Strings by what begins them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// An operating system command.
    Command,
    /// A device control string.
    Device,
    /// The title as programs of `screen` and `tmux` set it.
    Title,
    /// Whatever never passes, or is too long to.
    Dropped,
}

impl Kind {
    fn most(self) -> usize {
        if self == Self::Device { LONGEST_DEVICE } else { LONGEST_TEXT }
    }
}

/// How a string ends. A terminal answers a command with the end that the command had.
const BELL: &[u8] = &[BEL];
const TERMINATOR: &[u8] = b"\x1b\\";

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
        let out = self.modes.closing();
        *self = Self::default();
        out
    }

    /// A byte of a character beyond ASCII.
    fn wide(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            State::String(kind) => return self.hold(kind, byte),
            State::End(kind) => self.finish(kind, TERMINATOR, out),
            // No control sequence has such bytes: what was held is no sequence.
            _ => self.forget(),
        }
        out.push(byte);
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
        match self.state {
            State::String(kind) => self.state = State::End(kind),
            State::End(kind) => {
                self.finish(kind, TERMINATOR, out);
                self.begin();
            }
            _ => self.begin(),
        }
    }

    fn step(&mut self, byte: u8, out: &mut Vec<u8>) {
        match self.state {
            State::Ground => self.control_character(byte, out),
            State::Escape => self.in_escape(byte, out),
            State::Control => self.in_control(byte, out),
            State::Overlong => {
                if (0x40..=0x7e).contains(&byte) {
                    self.forget();
                }
            }
            State::Palette => self.in_palette(byte, out),
            State::String(kind) => self.in_string(kind, byte, out),
            State::End(kind) => {
                self.finish(kind, TERMINATOR, out);
                if byte != b'\\' {
                    // The string was not ended but broken off by another sequence.
                    self.begin();
                    self.in_escape(byte, out);
                }
            }
        }
    }

    /// A character that is drawn or carried out at once, in the middle of a sequence too.
    fn control_character(&mut self, byte: u8, out: &mut Vec<u8>) {
        self.modes.control(byte);
        out.push(byte);
    }

    fn in_escape(&mut self, byte: u8, out: &mut Vec<u8>) {
        let bare = self.held.len() == 1;
        match byte {
            0..0x20 => self.control_character(byte, out),
            0x20..=0x2f if self.held.len() < LONGEST => self.held.push(byte),
            b'[' if bare => {
                self.held.push(byte);
                self.state = State::Control;
            }
            b']' if bare => self.open(Kind::Command),
            b'P' if bare => self.open(Kind::Device),
            b'k' if bare => self.open(Kind::Title),
            b'_' | b'^' | b'X' if bare => self.open(Kind::Dropped),
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
            0..0x20 => self.control_character(byte, out),
            0x20..=0x3f if self.held.len() < LONGEST => self.held.push(byte),
            0x20..=0x3f => self.state = State::Overlong,
            0x40..=0x7e => {
                let held = std::mem::take(&mut self.held);
                self.forget();
                if let Some(kept) = self.kept(&held[2..], byte) {
                    out.extend(b"\x1b[");
                    out.extend(kept.as_bytes());
                    out.push(byte);
                }
            }
            _ => {}
        }
    }

    /// What passes of a control sequence, without introducer and letter.
    fn kept(&mut self, held: &[u8], letter: u8) -> Option<String> {
        let parts = Parts::of(held)?;
        if matches!(letter, b'h' | b'l') {
            return self.modes.switch(parts, letter);
        }
        controls::passes(parts, letter).then(|| {
            self.modes.sequence(parts, letter);
            [parts.mark, parts.numbers, parts.intermediates].concat()
        })
    }

    /// Control characters are taken out of strings: terminals disagree whether they belong to the text.
    fn in_string(&mut self, kind: Kind, byte: u8, out: &mut Vec<u8>) {
        match byte {
            BEL => self.finish(kind, if kind == Kind::Command { BELL } else { TERMINATOR }, out),
            0..0x20 | 0x7f => {}
            b'R' if kind == Kind::Command && self.held.is_empty() => self.console(b"R", out),
            b'P' if kind == Kind::Command && self.held.is_empty() => self.state = State::Palette,
            _ => self.hold(kind, byte),
        }
    }

    fn in_palette(&mut self, byte: u8, out: &mut Vec<u8>) {
        if !byte.is_ascii_hexdigit() {
            // The console breaks it off here, and so do we.
            self.forget();
            return self.step(byte, out);
        }
        self.held.push(byte);
        if self.held.len() == COLOUR {
            let sequence = [b"P", self.held.as_slice()].concat();
            self.console(&sequence, out);
        }
    }

    /// A sequence that only the Linux console knows the end of: others take it for a string, which ends here for them too.
    fn console(&mut self, sequence: &[u8], out: &mut Vec<u8>) {
        self.modes.palette(sequence);
        out.extend([b"\x1b]", sequence, TERMINATOR].concat());
        self.forget();
    }

    /// All of a string is known.
    fn finish(&mut self, kind: Kind, end: &[u8], out: &mut Vec<u8>) {
        let held = std::mem::take(&mut self.held);
        self.state = State::Ground;
        let (introducer, text) = match kind {
            Kind::Command => (b']', self.command(&held)),
            Kind::Device => (b'P', rules::device(&held)),
            Kind::Title => (b'k', Some(rules::readable(&held).into_bytes())),
            Kind::Dropped => return,
        };
        let Some(text) = text else { return };
        out.extend([ESC, introducer]);
        out.extend(text);
        out.extend(end);
    }

    fn command(&mut self, held: &[u8]) -> Option<Vec<u8>> {
        let (number, text) = rules::command(held)?;
        self.modes.command(number, text.as_deref().unwrap_or_default());
        Some(text.map_or_else(|| number.to_string(), |text| format!("{number};{text}")).into_bytes())
    }

    fn hold(&mut self, kind: Kind, byte: u8) {
        if kind == Kind::Dropped {
            return;
        }
        self.held.push(byte);
        if self.held.len() > kind.most() {
            self.open(Kind::Dropped);
        }
    }

    fn begin(&mut self) {
        self.held = vec![ESC];
        self.state = State::Escape;
    }

    fn open(&mut self, kind: Kind) {
        self.held = Vec::new();
        self.state = State::String(kind);
    }

    fn forget(&mut self) {
        self.held.clear();
        self.state = State::Ground;
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod tests;

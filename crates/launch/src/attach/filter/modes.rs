//! What a command switched on in the terminal and did not switch off again.

use std::collections::BTreeSet;

use super::rules::first_number;

/// Private modes that a shell expects to be off.
const OFF: &[(u16, &str)] = &[
    (1, "cursor keys send other codes"),
    (5, "the screen is reversed"),
    (6, "rows count from the scrolling region"),
    (9, "the mouse types"),
    (47, "the alternate screen"),
    (66, "the keypad sends other codes"),
    (1000, "the mouse types"),
    (1001, "the mouse types"),
    (1002, "the mouse types"),
    (1003, "the mouse types"),
    (1004, "focus types"),
    (1005, "how the mouse types"),
    (1006, "how the mouse types"),
    (1007, "the wheel types"),
    (1015, "how the mouse types"),
    (1016, "how the mouse types"),
    (1047, "the alternate screen"),
    (1049, "the alternate screen"),
    (2004, "pasted text is marked"),
    (2026, "the screen is frozen during an update"),
    (2031, "a change of theme types"),
    (2048, "a change of size types"),
];
/// Private modes that a shell expects to be on: automatic line breaks and the cursor.
const ON: &[u16] = &[7, 25];

/// What is not as a shell expects it.
#[derive(Debug, Default)]
pub(super) struct Modes {
    on: BTreeSet<u16>,
    off: BTreeSet<u16>,
    /// How many keyboard modes are on kitty's stack.
    pushed: u32,
    others: BTreeSet<Other>,
}

/// Settings that are no modes, in the order in which they are put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Other {
    Region,
    KeyboardSet,
    ModifiedKeys,
    Keypad,
    Letters,
    Shifted,
    CursorShape,
    Style,
}

impl Other {
    fn back(self) -> &'static str {
        match self {
            Self::Region => "\x1b7\x1b[r\x1b8",
            Self::KeyboardSet => "\x1b[=0u",
            Self::ModifiedKeys => "\x1b[>4m",
            Self::Keypad => "\x1b>",
            Self::Letters => "\x1b(B",
            Self::Shifted => "\x0f",
            Self::CursorShape => "\x1b[0 q",
            Self::Style => "\x1b[m",
        }
    }
}

impl Modes {
    /// A control character.
    pub(super) fn control(&mut self, byte: u8) {
        match byte {
            0x0e => self.set(Other::Shifted, Switch::On),
            0x0f => self.set(Other::Shifted, Switch::Off),
            _ => {}
        }
    }

    /// An escape sequence without its escape character.
    pub(super) fn escape(&mut self, sequence: &[u8]) {
        match sequence {
            b"c" => *self = Self::default(),
            b"=" => self.set(Other::Keypad, Switch::On),
            b">" => self.set(Other::Keypad, Switch::Off),
            [b'(', set] => self.set(Other::Letters, Switch::from(*set != b'B')),
            _ => {}
        }
    }

    /// A control sequence without its introducer.
    pub(super) fn sequence(&mut self, parameters: &[u8], letter: u8) {
        match (parameters, letter) {
            ([b'?', numbers @ ..], b'h') => self.modes(numbers, Switch::On),
            ([b'?', numbers @ ..], b'l') => self.modes(numbers, Switch::Off),
            ([b'>', ..], b'u') => self.pushed = self.pushed.saturating_add(1),
            ([b'<', count @ ..], b'u') => {
                let count = first_number(count).unwrap_or(1).max(1);
                self.pushed = self.pushed.saturating_sub(count);
            }
            ([b'=', flags @ ..], b'u') => {
                self.set(Other::KeyboardSet, Switch::from(first_number(flags) != Some(0)));
            }
            ([b'>', b'4', rest @ ..], b'm') => {
                self.set(Other::ModifiedKeys, Switch::from(!matches!(rest, b"" | b";" | b";0")));
            }
            ([rest @ .., b' '], b'q') => {
                self.set(Other::CursorShape, Switch::from(first_number(rest) != Some(0)));
            }
            (numbers, b'm') if numbers.iter().all(|byte| !matches!(byte, b'<'..=b'?')) => {
                self.set(Other::Style, Switch::from(!matches!(numbers, b"" | b"0")));
            }
            (numbers, b'r') if numbers.iter().all(|byte| matches!(byte, b'0'..=b'9' | b';')) => {
                self.set(Other::Region, Switch::from(!matches!(numbers, b"" | b";")));
            }
            _ => {}
        }
    }

    /// What puts everything back.
    pub(super) fn closing(&self) -> Vec<u8> {
        let mut out = String::new();
        if self.others.contains(&Other::Region) {
            out.push_str(Other::Region.back());
        }
        // The keyboard's stack belongs to the screen that is left with the modes.
        let stack = (self.pushed > 0).then(|| format!("\x1b[<{}u", self.pushed));
        let modes = self.on.iter().map(|mode| format!("\x1b[?{mode}l"));
        let missing = self.off.iter().map(|mode| format!("\x1b[?{mode}h"));
        out.extend(stack.into_iter().chain(modes).chain(missing));
        let rest = self.others.iter().filter(|other| **other != Other::Region);
        rest.for_each(|other| out.push_str(other.back()));
        out.into_bytes()
    }

    fn modes(&mut self, numbers: &[u8], switch: Switch) {
        for number in numbers.split(|byte| *byte == b';') {
            let Some(number) = first_number(number).and_then(|number| u16::try_from(number).ok()) else {
                continue;
            };
            let odd = match switch {
                Switch::On => OFF.iter().any(|(mode, _)| *mode == number),
                Switch::Off => ON.contains(&number),
            };
            self.on.remove(&number);
            self.off.remove(&number);
            if odd {
                let set = if switch == Switch::On { &mut self.on } else { &mut self.off };
                set.insert(number);
            }
        }
    }

    fn set(&mut self, other: Other, switch: Switch) {
        match switch {
            Switch::On => self.others.insert(other),
            Switch::Off => self.others.remove(&other),
        };
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    On,
    Off,
}

impl From<bool> for Switch {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

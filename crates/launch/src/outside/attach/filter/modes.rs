//! What a command changed in the terminal and did not change back. Only what is in the tables here passes, so that
//! everything that passed can be put back.

use std::collections::BTreeSet;

use super::controls::{Parts, value};

/// Modes that a program may set: whether they are private, their number, how a shell expects them, and what they are. What
/// is not here is taken out: 2 (locks the keyboard), 12 and 20 (echo, line ends), private 2 (another language), 3 (columns), 9001 (keys of
/// Windows), 5522 (the clipboard), and what nobody knows yet.
const MODES: &[(Class, u16, Usual, &str)] = &[
    (Class::Ansi, 4, Usual::Off, "text is inserted"),
    (Class::Ansi, 34, Usual::On, "the cursor of `screen` is the usual one"),
    (Class::Private, 1, Usual::Off, "cursor keys send other codes"),
    (Class::Private, 5, Usual::Off, "the screen is reversed"),
    (Class::Private, 6, Usual::Off, "rows count from the scrolling region"),
    (Class::Private, 7, Usual::On, "automatic line breaks"),
    (Class::Private, 9, Usual::Off, "the mouse types"),
    (Class::Private, 12, Usual::Off, "the cursor blinks"),
    (Class::Private, 25, Usual::On, "the cursor is seen"),
    (Class::Private, 45, Usual::Off, "backspace goes up a line"),
    (Class::Private, 47, Usual::Off, "the alternate screen"),
    (Class::Private, 66, Usual::Off, "the keypad sends other codes"),
    (Class::Private, 69, Usual::Off, "margins at the sides"),
    (Class::Private, 80, Usual::Off, "where pictures are drawn"),
    (Class::Private, 1000, Usual::Off, "the mouse types"),
    (Class::Private, 1002, Usual::Off, "the mouse types"),
    (Class::Private, 1003, Usual::Off, "the mouse types"),
    (Class::Private, 1004, Usual::Off, "focus types"),
    (Class::Private, 1005, Usual::Off, "how the mouse types"),
    (Class::Private, 1006, Usual::Off, "how the mouse types"),
    (Class::Private, 1007, Usual::Off, "the wheel types"),
    (Class::Private, 1015, Usual::Off, "how the mouse types"),
    (Class::Private, 1016, Usual::Off, "how the mouse types"),
    (Class::Private, 1047, Usual::Off, "the alternate screen"),
    (Class::Private, 1048, Usual::Either, "the cursor is saved"),
    (Class::Private, 1049, Usual::Off, "the alternate screen"),
    (Class::Private, 2004, Usual::Off, "pasted text is marked"),
    (Class::Private, 2026, Usual::Off, "the screen is frozen during an update"),
    (Class::Private, 2027, Usual::Off, "how wide characters are"),
    (Class::Private, 2031, Usual::Off, "a change of theme types"),
    (Class::Private, 2048, Usual::Off, "a change of size types"),
    (Class::Private, 8452, Usual::Off, "where the cursor is behind a picture"),
];
/// Modes that leave a screen, which comes before everything that belongs to the screen below.
const SCREENS: [u16; 3] = [47, 1047, 1049];
/// What is saved and restored with the cursor.
const SAVED: [Setting; 6] = [
    Setting::Mode(Class::Private, 6),
    Setting::Mode(Class::Private, 7),
    Setting::Letters,
    Setting::OtherLetters,
    Setting::Shifted,
    Setting::Style,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Ansi,
    Private,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Usual {
    On,
    Off,
    /// There is nothing to put back.
    Either,
}

/// What is not as a shell expects it.
#[derive(Debug, Default)]
pub(super) struct Modes {
    odd: BTreeSet<Setting>,
    /// What was not, at some time when the cursor was saved. Terminals have one place for that, or one for each screen.
    saved: BTreeSet<Setting>,
    /// How many keyboard modes are on kitty's stack.
    pushed: u32,
}

/// One thing that can be otherwise, in the order in which they are put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Setting {
    Region,
    Mode(Class, u16),
    KeyboardSet,
    ModifiedKeys,
    Keypad,
    Letters,
    OtherLetters,
    Shifted,
    CursorShape,
    ConsoleCursor,
    Font,
    Style,
    /// An operating system command, by the number of the one that takes it back.
    Command(u16),
    Palette,
}

impl Setting {
    fn back(self) -> String {
        let fixed = match self {
            Self::Region => "\x1b7\x1b[r\x1b8",
            Self::KeyboardSet => "\x1b[=0u",
            Self::ModifiedKeys => "\x1b[>4m",
            Self::Keypad => "\x1b>",
            Self::Letters => "\x1b(B",
            Self::OtherLetters => "\x1b)B",
            Self::Shifted => "\x0f",
            Self::CursorShape => "\x1b[0 q",
            Self::ConsoleCursor => "\x1b[?0c",
            Self::Font => "\x1b[10m",
            Self::Style => "\x1b[m",
            Self::Palette => "\x1b]R\x1b\\",
            Self::Command(8) => "\x1b]8;;\x1b\\",
            Self::Command(9) => "\x1b]9;4;0;\x1b\\",
            Self::Command(22) => "\x1b]22;\x1b\\",
            Self::Command(number) => return format!("\x1b]{number}\x1b\\"),
            Self::Mode(class, number) => {
                let mark = if class == Class::Private { "?" } else { "" };
                let letter = if usual(class, number) == Some(Usual::On) { 'h' } else { 'l' };
                return format!("\x1b[{mark}{number}{letter}");
            }
        };
        fixed.to_string()
    }
}

fn usual(class: Class, number: u16) -> Option<Usual> {
    let known = MODES.iter().find(|(of, known, ..)| *of == class && *known == number);
    known.map(|(_, _, usual, _)| *usual)
}

/// How a setting is now.
#[derive(Clone, Copy, Debug)]
enum Now {
    Odd,
    Usual,
}

impl From<bool> for Now {
    fn from(odd: bool) -> Self {
        if odd { Self::Odd } else { Self::Usual }
    }
}

impl Modes {
    /// A control character.
    pub(super) fn control(&mut self, byte: u8) {
        match byte {
            0x0e => self.set(Setting::Shifted, Now::Odd),
            0x0f => self.set(Setting::Shifted, Now::Usual),
            _ => {}
        }
    }

    /// An escape sequence without its escape character.
    pub(super) fn escape(&mut self, sequence: &[u8]) {
        match sequence {
            b"7" => self.save(),
            b"8" => self.restore(),
            // What a reset leaves of colours differs between terminals.
            b"c" => {
                self.odd.retain(|setting| matches!(setting, Setting::Command(_) | Setting::Palette));
                self.pushed = 0;
            }
            b"=" => self.set(Setting::Keypad, Now::Odd),
            b">" => self.set(Setting::Keypad, Now::Usual),
            [b'(', set] => self.set(Setting::Letters, Now::from(*set != b'B')),
            [b')', set] => self.set(Setting::OtherLetters, Now::from(*set != b'B')),
            _ => {}
        }
    }

    /// What of a list of modes passes.
    pub(super) fn switch(&mut self, parts: Parts<'_>, letter: u8) -> Option<String> {
        let class = match (parts.mark, parts.intermediates) {
            ("", "") => Class::Ansi,
            ("?", "") => Class::Private,
            _ => return None,
        };
        let mut kept = Vec::new();
        for number in parts.numbers.split(';') {
            let Some(number) = value(number).and_then(|number| u16::try_from(number).ok()) else { continue };
            let Some(usual) = usual(class, number) else { continue };
            kept.push(number.to_string());
            if usual != Usual::Either {
                self.set(Setting::Mode(class, number), Now::from((usual == Usual::On) != (letter == b'h')));
            }
            if class == Class::Private && matches!(number, 1048 | 1049) {
                if letter == b'h' { self.save() } else { self.restore() }
            }
        }
        (!kept.is_empty()).then(|| format!("{}{}", parts.mark, kept.join(";")))
    }

    /// A control sequence that passes and is no list of modes.
    pub(super) fn sequence(&mut self, parts: Parts<'_>, letter: u8) {
        let Parts { mark, numbers, intermediates } = parts;
        match (mark, intermediates, letter) {
            (">", "", b'u') => self.pushed = self.pushed.saturating_add(1),
            ("<", "", b'u') => {
                let count = numbers.split(';').next().and_then(value).unwrap_or(1).max(1);
                self.pushed = self.pushed.saturating_sub(count);
            }
            ("=", "", b'u') => self.set(Setting::KeyboardSet, Now::from(!matches!(numbers, "0" | "0;1"))),
            (">", "", b'm') => {
                self.set(Setting::ModifiedKeys, Now::from(!matches!(numbers, "4" | "4;" | "4;0")));
            }
            (">", "", b'n') => self.set(Setting::ModifiedKeys, Now::Odd),
            ("", " ", b'q') => self.set(Setting::CursorShape, Now::from(numbers != "0")),
            ("?", "", b'c') => self.set(Setting::ConsoleCursor, Now::from(numbers != "0")),
            ("", "", b's') => self.save(),
            ("", "", b'u') => self.restore(),
            ("", "", b'r') => self.set(Setting::Region, Now::from(!numbers.is_empty())),
            ("", "", b'm') => {
                self.set(Setting::Style, Now::from(!matches!(numbers, "" | "0")));
                self.fonts(numbers);
            }
            _ => {}
        }
    }

    /// An operating system command that passes: its number and its text.
    pub(super) fn command(&mut self, number: u16, text: &str) {
        let sets = || text.split(';').skip(1).step_by(2).any(|colour| colour != "?");
        match number {
            4 | 5 if sets() => self.set(Setting::Command(100 + number), Now::Odd),
            8 => self.set(
                Setting::Command(8),
                Now::from(text.split_once(';').is_some_and(|(_, target)| !target.is_empty())),
            ),
            9 if text.starts_with("4;") => self.set(Setting::Command(9), Now::from(text != "4;0;")),
            // Several colours are those of the numbers that follow.
            10..20 => {
                for (number, colour) in (number..20).zip(text.split(';')) {
                    if colour != "?" {
                        self.set(Setting::Command(100 + number), Now::Odd);
                    }
                }
            }
            22 if !text.starts_with('?') => self.set(Setting::Command(22), Now::from(!text.is_empty())),
            104 | 105 if text.is_empty() => self.set(Setting::Command(number), Now::Usual),
            110..120 => self.set(Setting::Command(number), Now::Usual),
            _ => {}
        }
    }

    /// The palette of the Linux console was changed, or all of it put back.
    pub(super) fn palette(&mut self, sequence: &[u8]) {
        self.set(Setting::Palette, Now::from(sequence != b"R"));
    }

    /// What puts everything back.
    pub(super) fn closing(&mut self) -> Vec<u8> {
        if self.odd.contains(&Setting::Mode(Class::Private, 1049)) {
            self.restore();
        }
        let (screens, others): (Vec<Setting>, Vec<Setting>) = self.odd.iter().partition(
            |setting| matches!(setting, Setting::Mode(Class::Private, number) if SCREENS.contains(number)),
        );
        // The keyboard's stack belongs to the screen that is left with the modes.
        let stack = (self.pushed > 0).then(|| format!("\x1b[<{}u", self.pushed));
        let (first, rest): (Vec<Setting>, Vec<Setting>) =
            others.into_iter().partition(|setting| *setting == Setting::Region);
        let settings = |list: Vec<Setting>| list.into_iter().map(Setting::back);
        let all = settings(first).chain(stack).chain(settings(screens)).chain(settings(rest));
        all.collect::<String>().into_bytes()
    }

    /// The Linux console draws with these fonts.
    fn fonts(&mut self, numbers: &str) {
        for number in numbers.split(';').filter_map(value) {
            match number {
                10 => self.set(Setting::Font, Now::Usual),
                11..=20 => self.set(Setting::Font, Now::Odd),
                _ => {}
            }
        }
    }

    fn save(&mut self) {
        self.saved.extend(self.odd.iter().filter(|setting| SAVED.contains(setting)));
    }

    fn restore(&mut self) {
        self.odd.extend(&self.saved);
    }

    fn set(&mut self, setting: Setting, now: Now) {
        match now {
            Now::Odd => self.odd.insert(setting),
            Now::Usual => self.odd.remove(&setting),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_has_a_reason_and_stands_once() {
        assert!(MODES.iter().all(|(.., why)| why.len() > 5));
        let once: BTreeSet<_> = MODES.iter().map(|(class, number, ..)| (class, number)).collect();
        assert_eq!(once.len(), MODES.len());
    }
}

//! A terminal beside the filter, written from ECMA-48 and from what xterm, tmux and the VT500 do, and sharing no line with
//! the filter. Terminals differ in what ends a string, so it is built in every combination of these habits:
//! what reaches a user must be harmless in all of them.

const ESC: u8 = 0x1b;

/// In what terminals differ, a bit each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits(u8);

/// BEL ends every string, not only operating system commands.
const BELL_ENDS_ALL: u8 = 1;
/// CAN and SUB break a string off. Otherwise they are part of it.
const CANCELS: u8 = 2;
/// An escape character that is not followed by a backslash begins a new sequence. Otherwise the string goes on.
const ESCAPE_BREAKS: u8 = 4;
/// `ESC k` begins a title.
const TITLES: u8 = 8;
/// The Linux console: a palette sequence has seven digits and no end.
const CONSOLE: u8 = 16;

impl Habits {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..32).map(Self)
    }

    fn has(self, habit: u8) -> bool {
        self.0 & habit != 0
    }
}

/// What a terminal was ordered to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Escape(Vec<u8>),
    Control(Vec<u8>),
    /// An introducer, and the text of the string.
    Text(u8, Vec<u8>),
    Character(u8),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Ground,
    Escape(Vec<u8>),
    Control(Vec<u8>),
    Text(u8, Vec<u8>),
    /// Behind an escape character in a string.
    Perhaps(u8, Vec<u8>),
    Palette(Vec<u8>),
}

#[derive(Debug)]
pub(super) struct Terminal {
    habits: Habits,
    place: Place,
    pub(super) orders: Vec<Order>,
}

impl Terminal {
    pub(super) fn new(habits: Habits) -> Self {
        Self { habits, place: Place::Ground, orders: Vec::new() }
    }

    pub(super) fn is_in_ground(&self) -> bool {
        self.place == Place::Ground
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    fn byte(&mut self, byte: u8) {
        self.place = match std::mem::take(&mut self.place) {
            Place::Text(kind, text) => self.in_text(kind, text, byte),
            Place::Perhaps(kind, text) => self.behind_escape(kind, text, byte),
            Place::Palette(mut digits) if byte.is_ascii_hexdigit() => {
                digits.push(byte);
                if digits.len() == 7 {
                    self.order(Order::Text(b']', b"P".to_vec()))
                } else {
                    Place::Palette(digits)
                }
            }
            Place::Palette(_) | Place::Ground => self.plain(byte),
            _ if byte == ESC => Place::Escape(Vec::new()),
            _ if byte == 0x18 || byte == 0x1a => self.order(Order::Character(byte)),
            place if byte < 0x20 => {
                self.orders.push(Order::Character(byte));
                place
            }
            place if byte == 0x7f => place,
            Place::Escape(held) => self.in_escape(held, byte),
            Place::Control(mut held) => {
                held.push(byte);
                if (0x40..0x7f).contains(&byte) {
                    self.order(Order::Control(held))
                } else {
                    Place::Control(held)
                }
            }
        };
    }

    fn plain(&mut self, byte: u8) -> Place {
        if byte == ESC { Place::Escape(Vec::new()) } else { self.order(Order::Character(byte)) }
    }

    fn in_escape(&mut self, mut held: Vec<u8>, byte: u8) -> Place {
        let bare = held.is_empty();
        held.push(byte);
        match byte {
            b'[' if bare => Place::Control(Vec::new()),
            b']' | b'P' | b'_' | b'^' | b'X' if bare => Place::Text(byte, Vec::new()),
            b'k' if bare && self.habits.has(TITLES) => Place::Text(byte, Vec::new()),
            0x20..0x30 => Place::Escape(held),
            _ => self.order(Order::Escape(held)),
        }
    }

    fn in_text(&mut self, kind: u8, mut text: Vec<u8>, byte: u8) -> Place {
        match byte {
            ESC => return Place::Perhaps(kind, text),
            0x07 if kind == b']' || self.habits.has(BELL_ENDS_ALL) => {
                return self.order(Order::Text(kind, text));
            }
            0x18 | 0x1a if self.habits.has(CANCELS) => return Place::Ground,
            b'P' if kind == b']' && text.is_empty() && self.habits.has(CONSOLE) => {
                return Place::Palette(Vec::new());
            }
            b'R' if kind == b']' && text.is_empty() && self.habits.has(CONSOLE) => {
                return self.order(Order::Text(b']', b"R".to_vec()));
            }
            // Taken out by some: a number with something in it is still that number.
            0..0x20 | 0x7f => {}
            _ => text.push(byte),
        }
        Place::Text(kind, text)
    }

    fn behind_escape(&mut self, kind: u8, mut text: Vec<u8>, byte: u8) -> Place {
        if byte == b'\\' {
            return self.order(Order::Text(kind, text));
        }
        if self.habits.has(ESCAPE_BREAKS) {
            self.orders.push(Order::Text(kind, text));
            self.place = Place::Escape(Vec::new());
            self.byte(byte);
            return std::mem::take(&mut self.place);
        }
        if byte >= 0x20 {
            text.push(byte);
        }
        if byte == ESC { Place::Perhaps(kind, text) } else { Place::Text(kind, text) }
    }

    fn order(&mut self, order: Order) -> Place {
        self.orders.push(order);
        Place::Ground
    }
}

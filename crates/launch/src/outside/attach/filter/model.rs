//! A terminal beside the filter, written from ECMA-48 and from what xterm, tmux and the VT500 do, and sharing no line with
//! the filter. Terminals differ in what ends a string, so it is built in every combination of these habits:
//! what reaches a user must be harmless in all of them.

use std::collections::{BTreeMap, BTreeSet};

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

/// What a list of orders leaves behind: each setting that is not as a shell expects it.
pub(super) fn left_behind(orders: &[Order]) -> BTreeMap<String, String> {
    let mut settings = Settings::default();
    for order in orders {
        settings.order(order);
    }
    settings.now
}

#[derive(Debug, Default)]
struct Settings {
    now: BTreeMap<String, String>,
    saved: BTreeMap<String, String>,
}

/// What saving the cursor saves with it.
const SAVED: [&str; 5] = ["style", "G0", "G1", "shift", "?6"];

impl Settings {
    fn put(&mut self, name: &str, value: &str, usual: &str) {
        if value == usual {
            self.now.remove(name);
        } else {
            self.now.insert(name.to_string(), value.to_string());
        }
    }

    fn order(&mut self, order: &Order) {
        match order {
            Order::Character(0x0e) => self.put("shift", "G1", "G0"),
            Order::Character(0x0f) => self.put("shift", "G0", "G0"),
            Order::Escape(sequence) => self.escape(&String::from_utf8_lossy(sequence)),
            Order::Control(sequence) => self.control(&String::from_utf8_lossy(sequence)),
            Order::Text(b']', text) => self.command(&String::from_utf8_lossy(text)),
            Order::Character(_) | Order::Text(..) => {}
        }
    }

    fn escape(&mut self, sequence: &str) {
        match sequence {
            "7" => self.save(),
            "8" => self.restore(),
            // What a reset leaves of colours differs.
            "c" => self.now.retain(|name, _| name.starts_with("colour")),
            "=" | ">" => self.put("keypad", sequence, ">"),
            "D" | "E" | "M" | "6" | "9" | "\\" | "%G" | "#8" => {}
            _ if sequence.starts_with('k') => {}
            _ if sequence.starts_with('(') => self.put("G0", sequence, "(B"),
            _ if sequence.starts_with(')') => self.put("G1", sequence, ")B"),
            _ => self.put(&format!("ESC {sequence}"), "sent", ""),
        }
    }

    fn save(&mut self) {
        self.saved = self.now.iter().filter(|(name, _)| SAVED.contains(&name.as_str())).map(owned).collect();
    }

    fn restore(&mut self) {
        self.now.retain(|name, _| !SAVED.contains(&name.as_str()));
        self.now.extend(self.saved.iter().map(owned));
    }

    fn control(&mut self, sequence: &str) {
        let (parameters, letter) = sequence.split_at(sequence.len() - 1);
        let first = parameters.split([';', ':']).next().unwrap_or_default();
        match (parameters.chars().next(), letter) {
            (_, "h" | "l") => self.modes(parameters, letter),
            (Some('>'), "u") => self.stack(1),
            (Some('<'), "u") => self.stack(-parameters[1..].parse().unwrap_or(1_i64).max(1)),
            (Some('='), "u") => self.put("keyboard", parameters, "=0"),
            (Some('?'), "u" | "m" | "J" | "K" | "n") | (Some('>' | '='), "c" | "q") => {}
            (Some('?'), "c") => self.put("console cursor", parameters, "?0"),
            (Some('>'), "m" | "n") => self.put("modified keys", parameters, ">4"),
            (Some('?'), "p") if parameters.ends_with('$') => {}
            (_, "q") if parameters.ends_with(' ') => self.put("cursor", parameters, "0 "),
            (_, "p") if parameters == "!" || parameters.ends_with('$') => {}
            (_, "s") => self.save(),
            (_, "u") => self.restore(),
            (_, "m") => {
                if parameters != "10" {
                    self.put("style", if parameters == "0" { "" } else { parameters }, "");
                }
                self.font(parameters);
            }
            (_, "r") if !parameters.ends_with('$') => self.put("region", parameters, ""),
            (_, "t") if matches!(first.parse::<u64>(), Ok(14..=16 | 18 | 19 | 22 | 23)) => {}
            (_, "n") if matches!(first.parse::<u64>(), Ok(5 | 6)) => {}
            (_, "c") if matches!(first.parse::<u64>(), Err(_) | Ok(0)) => {}
            (_, "t" | "n" | "i" | "g" | "y" | "x" | "W" | "\"" | "|" | "}" | "~" | "p" | "w" | "c")
                if !parameters.ends_with(['$', '\'']) =>
            {
                self.put(&format!("CSI {sequence}"), "sent", "");
            }
            _ => {}
        }
    }

    fn font(&mut self, parameters: &str) {
        for number in parameters.split(';') {
            match number.parse() {
                Ok(10) => self.put("font", "10", "10"),
                Ok(11_u64..=20) => self.put("font", number, "10"),
                _ => {}
            }
        }
    }

    fn stack(&mut self, change: i64) {
        let before: i64 = self.now.get("stack").map_or(0, |depth| depth.parse().unwrap_or(0));
        self.put("stack", &(before + change).max(0).to_string(), "0");
    }

    fn modes(&mut self, parameters: &str, letter: &str) {
        let mark = if parameters.starts_with('?') { "?" } else { "" };
        for number in parameters.trim_start_matches('?').split(';') {
            let Ok(number) = number.parse::<u64>() else {
                self.put(&format!("CSI {parameters}{letter}"), "sent", "");
                continue;
            };
            let name = format!("{mark}{number}");
            match (name.as_str(), letter) {
                ("?1048" | "?1049", "h") => self.save(),
                ("?1048" | "?1049", _) => self.restore(),
                _ => {}
            }
            let usual = if ["?7", "?25", "34"].contains(&name.as_str()) { "h" } else { "l" };
            if name != "?1048" {
                self.put(&name, letter, usual);
            }
        }
    }

    fn command(&mut self, text: &str) {
        let (number, rest) = text.split_once(';').unwrap_or((text, ""));
        match number.parse::<u32>() {
            Ok(8) => self.put("link", rest.split_once(';').map_or("", |(_, target)| target), ""),
            Ok(9) if rest.starts_with("4;") => {
                self.put("progress", if rest == "4;0;" { "" } else { rest }, "");
            }
            Ok(22) if !rest.starts_with('?') => self.put("pointer", rest, ""),
            Ok(set @ (4 | 5)) if rest.split(';').skip(1).step_by(2).any(|colour| colour != "?") => {
                self.put(&format!("colour {set}"), "set", "");
            }
            Ok(back @ (104 | 105)) if rest.is_empty() => self.put(&format!("colour {}", back - 100), "", ""),
            Ok(first @ 10..20) => {
                for (number, colour) in (first..20).zip(rest.split(';')) {
                    if !colour.is_empty() && colour != "?" {
                        self.put(&format!("colour {number}"), "set", "");
                    }
                }
            }
            Ok(back @ 110..120) => self.put(&format!("colour {}", back - 100), "", ""),
            _ if number == "P" => self.put("colour P", "set", ""),
            _ if number == "R" => self.put("colour P", "", ""),
            _ => {}
        }
    }
}

fn owned((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

/// The modes that may be touched at all.
pub(super) fn known_modes() -> BTreeSet<&'static str> {
    "4 34 ?1 ?5 ?6 ?7 ?9 ?12 ?25 ?45 ?47 ?66 ?69 ?80 ?1000 ?1002 ?1003 ?1004 ?1005 ?1006 ?1007 ?1015 ?1016 ?1047 ?1048 \
     ?1049 ?2004 ?2026 ?2027 ?2031 ?2048 ?8452"
        .split(' ')
        .collect()
}

//! Random streams through the filter, cut at random places, and what every kind of terminal makes of the rest.

use super::Filter;
use super::model::{Habits, Order, Terminal, known_modes, left_behind};

/// What streams are made of: beginnings, ends and middles of sequences, and what breaks them.
#[rustfmt::skip]
const PIECES: &[&[u8]] = &[
    b"\x1b", b"\x1b", b"\x1b", b"\x1b\\", b"\x07", b"\x18", b"\x1a", b"\x7f", b"\0", b"\x05", b"\n", b"\x0e", b"\x0f", b"]", b"P", b"[",
    b"_", b"^", b"X", b"k", b"\\", b"0", b"1", b"2", b"5", b"52;c;eA==", b"337;File=:x", b"113;ac=send", b";", b":", b"?", b">", b"<",
    b"=", b"!", b"$", b" ", b"\"", b"'", b"*", b"#", b"%@", b"%G", b"(0", b"(B", b")0", b"(K", b"h", b"l", b"t", b"q", b"+q", b"544e", b"m",
    b"n", b"u", b"c", b"s", b"r", b"i", b"y", b"p", b"7", b"8", b"word", b"\xc3\xa9", b"\xc2\x9d", b"\x9d", b"\x9c", b"\xe2", b"\xe2\x80",
    b"\x1b]0;t", b"\x1b]5", b"\x1b]1", b"\x1b]52;c;eA==\x07", b"\x1b]8;;http://a/", b"\x1b]9;4;1;50\x07", b"\x1b]11;red\x1b\\",
    b"\x1b]P0ffffff", b"\x1b]R", b"\x1bPq~~", b"\x1bP+q", b"\x1bP=1s", b"\x1bPtmux;\x1b", b"\x1b_Gx", b"\x1bkname", b"\x1b[?", b"\x1b[",
    b"\x1b[?1049", b"\x1b[?1000", b"\x1b[2h", b"\x1b[?2l", b"\x1b[?9001h", b"\x1b[4h", b"\x1b[20h", b"\x1b[12l", b"\x1b G", b"\x1bn", b"\x1b)0",
    b"\x1bl", b"\x1b[?3h", b"\x1b[?5522h", b"\x1b[2t", b"\x1b[8;1;1t", b"\x1b[21t", b"\x1b[65557t", b"\x1b[277t", b"\x1b[>1u", b"\x1b[<u",
    b"\x1b[=5u", b"\x1b[=0;2u", b"\x1b[>4;2m", b"\x1b[5 q", b"\x1b[31m", b"\x1b[11m", b"\x1b[m", b"\x1b7", b"\x1b8", b"\x1b[2;5r", b"\x1b[?1000s",
    b"\x1b[?1000r", b"\x1b[?25l", b"\x1bc", b"\x1b[?6h", b"\x1b[?6l", b"\x1b[4;12;20;34l", b"\x1b[[A", b"\x1b[62;0\"p",
];

/// Operating system commands that may reach a terminal.
const COMMANDS: &[u64] = &[
    0, 1, 2, 4, 5, 8, 9, 10, 11, 12, 17, 19, 22, 104, 105, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119,
    133, 777,
];

struct Dice(u64);

impl Dice {
    /// Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).expect("below a usize")
    }

    fn stream(&mut self) -> Vec<u8> {
        let pieces = 1 + self.below(24);
        (0..pieces).flat_map(|_| PIECES[self.below(PIECES.len())]).copied().collect()
    }
}

fn forbidden(order: &Order) -> bool {
    match order {
        Order::Character(byte) => *byte == 0x05,
        Order::Text(b']', text) if text == b"P" || text == b"R" || text.starts_with(b"P") => false,
        Order::Text(b']', text) => {
            let text = String::from_utf8_lossy(text);
            let number = text.split(';').next().and_then(|number| number.parse().ok());
            !number.is_some_and(|number| COMMANDS.contains(&number))
        }
        Order::Text(b'P', text) => {
            let letter = text.iter().position(|byte| (0x40..0x7f).contains(byte));
            let head = letter.map_or(text.as_slice(), |at| &text[..=at]);
            let picture = head.ends_with(b"q")
                && head[..head.len() - 1].iter().all(|byte| b"0123456789;".contains(byte));
            !(picture || [b"+q".as_slice(), b"=1s", b"=2s"].contains(&head))
        }
        Order::Text(b'k', _) => false,
        Order::Text(..) => true,
        Order::Control(sequence) => forbidden_control(&String::from_utf8_lossy(sequence)),
        Order::Escape(sequence) => {
            sequence == b"%@" || sequence.starts_with(b" ") || b"nolmFVWNOHZ".contains(&sequence[0])
        }
    }
}

fn forbidden_control(sequence: &str) -> bool {
    let (parameters, letter) = sequence.split_at(sequence.len() - 1);
    match letter {
        "h" | "l" => {
            let (mark, numbers) = match parameters.strip_prefix('?') {
                Some(numbers) => ("?", numbers),
                None => ("", parameters),
            };
            let known = known_modes();
            !numbers
                .split(';')
                .all(|number| known.contains(format!("{mark}{}", number.trim_start_matches('0')).as_str()))
        }
        "i" | "g" | "W" | "]" | "[" | "w" => true,
        "s" | "r" => parameters.starts_with(['?', '>']),
        "t" => {
            !matches!(
                parameters.split(';').next().and_then(|first| first.parse::<u64>().ok()),
                Some(14..=16 | 18 | 19 | 22 | 23)
            ) && !parameters.ends_with('$')
        }
        "p" => parameters.ends_with('"'),
        _ => false,
    }
}

#[track_caller]
fn check(stream: &[u8], cuts: &mut Dice) {
    let mut filter = Filter::default();
    let mut terminals: Vec<Terminal> = Habits::all().map(Terminal::new).collect();
    let mut rest = stream;
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(1 + cuts.below(rest.len()));
        let out = filter.pass(piece);
        for terminal in &mut terminals {
            terminal.take(&out);
            assert!(terminal.is_in_ground(), "{} leaves open {terminal:?}", stream.escape_ascii());
        }
        rest = later;
    }
    let closing = filter.closing();
    for terminal in &mut terminals {
        terminal.take(&closing);
        assert!(terminal.is_in_ground(), "{} ends with open {terminal:?}", stream.escape_ascii());
        if let Some(order) = terminal.orders.iter().find(|order| forbidden(order)) {
            panic!("{} orders {order:?} in {terminal:?}", stream.escape_ascii());
        }
        let left = left_behind(&terminal.orders);
        assert!(
            left.is_empty(),
            "{} leaves {left:?}; closing was {}",
            stream.escape_ascii(),
            closing.escape_ascii()
        );
    }
}

#[test]
fn what_attackers_sent_is_harmless_in_every_terminal() {
    let mut dice = Dice(1);
    for out in [&b"\x1b\x7f"[..], b"\x1b[i", b"\x1b%@", b"\x1b_x\x1b\\", b"\x18", b""] {
        for begun in [
            &b"\x1b]5\x1b"[..],
            b"\x1b]0;t\x1b",
            b"\x1bPq\x1b",
            b"\x1bP+q\x1b",
            b"\x1bkt\x1b",
            b"\x1b]8;;http://a/\x1b",
        ] {
            check(&[begun, out, b"2;c;Y3VybCBldmlsfHNoCg==\x07"].concat(), &mut dice);
            check(&[begun, out, b"113;ac=send"].concat(), &mut dice);
            check(&[begun, out].concat(), &mut dice);
        }
    }
}

#[test]
fn random_streams_are_harmless_in_every_terminal() {
    for seed in 0..4000 {
        let mut dice = Dice(seed);
        let stream = dice.stream();
        check(&stream, &mut dice);
    }
}

/// The model is worth something: it sees what is wrong when nothing is filtered.
#[test]
fn the_model_notices_what_the_filter_must_take_out() {
    let bad: &[&[u8]] = &[
        b"\x1b]52;c;x\x07",
        b"\x1b]1337;File=:x\x1b\\",
        b"\x1bPtmux;x\x1b\\",
        b"\x1b_Gx\x1b\\",
        b"\x1b[21t",
        b"\x1b[2h",
        b"\x1b[?2l",
        b"\x1b[?9001h",
        b"\x1b G",
        b"\x1b[8;1;1t",
        b"\x1b[5i",
        b"\x1b[?1000s",
    ];
    for bytes in bad {
        for habits in Habits::all() {
            let mut terminal = Terminal::new(habits);
            terminal.take(bytes);
            assert!(terminal.orders.iter().any(forbidden), "{} in {terminal:?}", bytes.escape_ascii());
        }
    }
    let kept: &[&[u8]] = &[
        b"\x1b[?1049h",
        b"\x1b(0",
        b"\x0e",
        b"\x1b[31m",
        b"\x1b(0\x1b7\x1b(B\x1b8",
        b"\x1b]11;red\x07",
        b"\x1b]8;;x\x07",
        b"\x1b[2;5r",
    ];
    for bytes in kept {
        let mut terminal = Terminal::new(Habits::all().next().expect("there are some"));
        terminal.take(bytes);
        assert!(!left_behind(&terminal.orders).is_empty(), "{}", bytes.escape_ascii());
    }
}

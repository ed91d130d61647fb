//! Which control sequences go on to the terminal: those that draw, those that ask a harmless question, and those whose
//! effect [`super::modes`] takes back when the command has ended. Whatever is not in a table is taken out: terminals have
//! sequences that lock the keyboard, shrink the window, change what later sequences mean, or make keys send other bytes.

/// A mark before the numbers, intermediates behind them, letters, which numbers, and why it passes. What that keeps away,
/// among others: `CSI 20 t` and `21 t` (type a title that the sandbox chose), other window operations (size, icon),
/// `i` (prints), `* y` (a checksum of the screen), `g` and `W` (tab stops), `" p` (how the terminal reads), `? s` and `? r`
/// (modes past our books).
const CONTROLS: &[(&str, &str, &str, Numbers, &str)] = &[
    ("", "", "@ABCDEFGHIJKLMPXZ`abdef", Numbers::Any, "moves the cursor, inserts, erases, repeats"),
    ("", "", "ST", Numbers::One, "scrolls; with more numbers it is about the mouse"),
    ("", " ", "@A", Numbers::Any, "scrolls sideways"),
    ("", "$", "rtvxz{", Numbers::Any, "draws in a rectangle"),
    ("", "'", "}~", Numbers::Any, "inserts and deletes columns"),
    ("?", "", "JK", Numbers::Any, "erases"),
    ("", "", "m", Numbers::Any, "colours and styles, put back"),
    ("", "", "r", Numbers::Any, "the scrolling region, put back"),
    ("", "", "su", Numbers::Any, "saves and restores the cursor; margins, put back with mode 69"),
    ("", "!", "p", Numbers::Any, "puts modes back"),
    ("", " ", "q", Numbers::Any, "the shape of the cursor, put back"),
    ("?", "", "c", Numbers::Any, "the same on the Linux console, put back"),
    (">", "", "m", Numbers::First(&[4]), "how keys with modifiers are sent, put back"),
    (">", "", "n", Numbers::First(&[4]), "likewise"),
    ("=", "", "u", Numbers::Any, "kitty's keyboard flags, put back"),
    (">", "", "u", Numbers::Any, "the same on a stack, taken off"),
    ("<", "", "u", Numbers::Any, "takes off that stack"),
    ("?", "", "u", Numbers::Any, "asks for these flags"),
    ("?", "", "m", Numbers::Any, "asks how keys are sent"),
    ("", "", "c", Numbers::First(&[0]), "asks what the terminal is"),
    (">", "", "c", Numbers::First(&[0]), "likewise"),
    ("=", "", "c", Numbers::First(&[0]), "likewise"),
    (">", "", "q", Numbers::First(&[0]), "asks for its version"),
    ("", "", "n", Numbers::First(&[5, 6]), "asks whether it works, and where the cursor is"),
    ("?", "", "n", Numbers::First(&[6, 996]), "asks where the cursor is, and for light or dark"),
    ("", "$", "p", Numbers::Any, "asks for a mode"),
    ("?", "$", "p", Numbers::Any, "likewise"),
    ("?", "", "S", Numbers::Second(&[1, 4]), "asks what pictures may be like; the other numbers change it"),
    ("", "", "t", Numbers::First(&[14, 15, 16, 18, 19]), "asks for sizes"),
    ("", "", "t", Numbers::First(&[22, 23]), "keeps the title and takes it back"),
];

/// Which numbers a sequence may have.
#[derive(Clone, Copy, Debug)]
enum Numbers {
    Any,
    /// At most one.
    One,
    /// The first is one of these.
    First(&'static [u32]),
    /// The second is one of these.
    Second(&'static [u32]),
}

impl Numbers {
    fn fit(self, numbers: &str) -> bool {
        let mut each = numbers.split(';').map(|number| number.split(':').next().and_then(value));
        match self {
            Self::Any => true,
            Self::One => each.count() == 1,
            Self::First(known) => each.next().flatten().is_some_and(|first| known.contains(&first)),
            Self::Second(known) => each.nth(1).flatten().is_some_and(|second| known.contains(&second)),
        }
    }
}

/// A number as all terminals read it: none is zero, and one that is too large for some is none of ours.
pub(super) fn value(digits: &str) -> Option<u32> {
    if digits.is_empty() { Some(0) } else { digits.parse().ok() }
}

/// A control sequence without introducer and letter, in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    pub(super) mark: &'a str,
    pub(super) numbers: &'a str,
    pub(super) intermediates: &'a str,
}

impl<'a> Parts<'a> {
    /// Nothing where they are out of order: terminals differ in what they make of that.
    pub(super) fn of(held: &'a [u8]) -> Option<Self> {
        let held = std::str::from_utf8(held).ok()?;
        let (mark, rest) = held.split_at(usize::from(held.starts_with(['<', '=', '>', '?'])));
        let end = rest
            .find(|byte: char| !byte.is_ascii_digit() && !matches!(byte, ';' | ':'))
            .unwrap_or(rest.len());
        let (numbers, intermediates) = rest.split_at(end);
        let sound = intermediates.bytes().all(|byte| (0x20..0x30).contains(&byte));
        sound.then_some(Self { mark, numbers, intermediates })
    }
}

/// Whether a sequence that sets no modes passes.
pub(super) fn passes(parts: Parts<'_>, letter: u8) -> bool {
    CONTROLS.iter().any(|(mark, intermediates, letters, numbers, _)| {
        *mark == parts.mark
            && *intermediates == parts.intermediates
            && letters.bytes().any(|known| known == letter)
            && numbers.fit(parts.numbers)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_reason() {
        assert!(CONTROLS.iter().all(|(.., why)| why.len() > 5));
    }

    #[test]
    fn parts_are_in_order() {
        let parts = Parts { mark: "?", numbers: "1;2:3", intermediates: "$" };
        assert_eq!(Parts::of(b"?1;2:3$"), Some(parts));
        for odd in [&b"1?"[..], b"1$2", b"??1", b"1 ;"] {
            assert_eq!(Parts::of(odd), None, "{}", odd.escape_ascii());
        }
    }

    #[test]
    fn numbers_that_wrap_around_are_none_of_ours() {
        for number in ["20", "21", "021", "277", "65557", "4294967317", "4294967310", "2:14"] {
            assert!(!passes(Parts { mark: "", numbers: number, intermediates: "" }, b't'), "{number}");
        }
        assert!(passes(Parts { mark: "", numbers: "14", intermediates: "" }, b't'));
    }
}

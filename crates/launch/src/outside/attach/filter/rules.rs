//! Which escape sequences and strings go on to the terminal; control sequences are in [`super::controls`]. Strings of the kinds APC, PM and SOS and the control characters
//! of the upper set never do; the terminal's answers to what passes hold nothing that a sandbox can choose.

use super::Fate;

/// Operating system commands that pass; every other number is taken out. What that keeps away: 52 and 5522
/// (the clipboard), 50 (asks for a font name the sandbox set), 1337 (files, clipboard, links of iTerm2),
/// 5113 (file transfer of kitty), 633 (the editor's idea of what was typed), and what nobody knows yet.
const COMMANDS: &[(u16, &str)] = &[
    (0, "window and icon title"),
    (1, "icon title"),
    (2, "window title"),
    (4, "a colour of the palette, set or asked for"),
    (5, "a special colour"),
    (8, "a link: it leads nowhere until the user clicks it, and terminals show where to"),
    (9, "progress or a notification, as far as [`OPENINGS`] lets it"),
    (10, "the text colour, set or asked for: editors choose a theme by it"),
    (11, "the background colour, likewise"),
    (12, "the cursor colour"),
    (17, "the highlight colour"),
    (19, "the highlighted text's colour"),
    (22, "the shape of the pointer"),
    (104, "palette back to what it was"),
    (105, "special colours back"),
    (110, "text colour back"),
    (111, "background colour back"),
    (112, "cursor colour back"),
    (117, "highlight colour back"),
    (119, "highlighted text's colour back"),
    (133, "marks around prompts"),
    (777, "a notification, likewise"),
];

/// How the text of some commands must begin, which would otherwise do more than their number tells.
const OPENINGS: &[(u16, Opening, &str)] = &[
    (9, Opening::Words, "a number chooses what ConEmu does: it waits, runs a macro or starts a program"),
    (9, Opening::Exactly("4;"), "progress, the one number that only draws"),
    (777, Opening::Exactly("notify;"), "the other words call extensions of rxvt"),
];

/// What a text begins with.
#[derive(Clone, Copy, Debug)]
enum Opening {
    /// Anything but a digit.
    Words,
    Exactly(&'static str),
}

impl Opening {
    fn fits(self, text: &str) -> bool {
        match self {
            Self::Words => text.starts_with(|first: char| !first.is_ascii_digit()),
            Self::Exactly(wanted) => text.starts_with(wanted),
        }
    }
}

/// Escape sequences that pass, without the escape character. What that keeps away: `%@` (leaves UTF-8, and with it everything
/// that this filter is built on), ` F` and ` G` (how answers are written), locking shifts and other sets of letters, tab stops, memory locks,
/// protected areas and double lines.
const ESCAPES: &[(&str, &[&str], &str)] = &[
    ("", &["7", "8"], "saves and restores the cursor"),
    ("", &["D", "E", "M", "6", "9"], "moves the cursor, scrolls"),
    ("", &["=", ">"], "the keypad, put back"),
    ("", &["c"], "puts everything back"),
    ("", &["\\"], "the end of a string, where there is none"),
    ("(", &["0", "A", "B"], "letters or lines, put back"),
    (")", &["0", "A", "B"], "likewise, in the other set"),
    ("%", &["G"], "text is UTF-8"),
    ("#", &["8"], "fills the screen"),
];

/// Device control strings that pass: what must stand between introducer and letter, the letter, and what may follow. What
/// that keeps away: user-defined keys, status strings (`$q`), kitty's remote control, and the
/// pass-through of `tmux` and `screen`, which would carry anything past this table.
const DEVICES: &[(Parameters, u8, Content, &str)] = &[
    (Parameters::Numbers, b'q', Content::Picture, "pictures (sixel)"),
    (
        Parameters::Exactly(b"+"),
        b'q',
        Content::Names,
        "asks for a capability by name, which comes back in the answer",
    ),
    (Parameters::Exactly(b"=1"), b's', Content::None, "an update of the screen begins"),
    (Parameters::Exactly(b"=2"), b's', Content::None, "it ends"),
];

/// What a device control string is made of.
#[derive(Clone, Copy, Debug)]
enum Content {
    None,
    /// Hexadecimal digits.
    Names,
    Picture,
}

impl Content {
    fn fits(self, text: &[u8]) -> bool {
        match self {
            Self::None => text.is_empty(),
            Self::Names => text.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b';'),
            Self::Picture => text.is_ascii(),
        }
    }
}

/// What stands between introducer and letter.
#[derive(Clone, Copy, Debug)]
enum Parameters {
    /// Nothing but numbers.
    Numbers,
    Exactly(&'static [u8]),
}

impl Parameters {
    fn fit(self, given: &[u8]) -> bool {
        match self {
            Self::Numbers => given.iter().all(|byte| byte.is_ascii_digit() || *byte == b';'),
            Self::Exactly(wanted) => given == wanted,
        }
    }
}

/// An escape sequence without the escape character.
pub(super) fn escape(sequence: &[u8]) -> Fate {
    let fits = |(before, ends, _): &(&str, &[&str], &str)| {
        sequence
            .strip_prefix(before.as_bytes())
            .is_some_and(|rest| ends.iter().any(|end| end.as_bytes() == rest))
    };
    if ESCAPES.iter().any(fits) { Fate::Pass } else { Fate::Drop }
}

/// An operating system command that passes: its number, and mostly a text.
pub(super) fn command(held: &[u8]) -> Option<(u16, Option<String>)> {
    let text = readable(held);
    let (digits, text) = match text.split_once(';') {
        Some((digits, text)) => (digits, Some(text)),
        None => (text.as_str(), None),
    };
    let plain = (1..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse::<u16>().ok().filter(|_| plain)?;
    let known = COMMANDS.iter().any(|(known, _)| *known == number);
    let mut openings = OPENINGS.iter().filter(|(of, ..)| *of == number).peekable();
    let fits =
        openings.peek().is_none() || openings.any(|(_, opening, _)| opening.fits(text.unwrap_or_default()));
    (known && fits).then(|| (number, text.map(str::to_string)))
}

/// A device control string.
pub(super) fn device(held: &[u8]) -> Option<Vec<u8>> {
    let letter = held.iter().position(|byte| (0x40..=0x7e).contains(byte))?;
    let (before, text) = (&held[..letter], &held[letter + 1..]);
    let fits = |(wanted, end, content, _): &(Parameters, u8, Content, &str)| {
        *end == held[letter] && wanted.fit(before) && content.fits(text)
    };
    DEVICES.iter().any(fits).then(|| held.to_vec())
}

/// A text in whole characters: the end of a string could be taken for the rest of one.
pub(super) fn readable(held: &[u8]) -> String {
    String::from_utf8_lossy(held).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_reason() {
        let reasons = COMMANDS.iter().map(|(_, why)| *why);
        let reasons = reasons.chain(ESCAPES.iter().map(|(_, _, why)| *why));
        let reasons = reasons.chain(DEVICES.iter().map(|(_, _, _, why)| *why));
        let reasons = reasons.chain(OPENINGS.iter().map(|(_, _, why)| *why));
        assert!(reasons.into_iter().all(|why| why.len() > 5));
    }
}

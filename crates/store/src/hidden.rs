//! Characters that a reader does not see, or that a terminal obeys. One table for everything that is printed, for JSON,
//! and for the review of merges.

/// First and last of each range, and what they are. In order, none twice.
const INVISIBLE: [(char, char, &str); 20] = [
    ('\u{ad}', '\u{ad}', "soft hyphen"),
    ('\u{34f}', '\u{34f}', "combining grapheme joiner"),
    ('\u{61c}', '\u{61c}', "Arabic letter mark: turns the direction"),
    ('\u{115f}', '\u{1160}', "Hangul fillers: letters without a picture"),
    ('\u{17b4}', '\u{17b5}', "Khmer vowels that are not drawn"),
    ('\u{180b}', '\u{180f}', "Mongolian variation selectors and vowel separator"),
    ('\u{200b}', '\u{200f}', "zero width space, joiners, and marks of direction"),
    ('\u{2028}', '\u{202e}', "line and paragraph separators, embeddings and overrides of direction"),
    ('\u{2060}', '\u{206f}', "word joiner, invisible operators, isolates of direction"),
    ('\u{2800}', '\u{2800}', "Braille pattern without a dot"),
    ('\u{3164}', '\u{3164}', "Hangul filler"),
    ('\u{fe00}', '\u{fe0f}', "variation selectors"),
    ('\u{feff}', '\u{feff}', "zero width no-break space, the byte order mark"),
    ('\u{ffa0}', '\u{ffa0}', "half-width Hangul filler"),
    ('\u{fff0}', '\u{fffb}', "reserved, and marks of annotations"),
    ('\u{16fe4}', '\u{16fe4}', "Khitan filler"),
    ('\u{1bca0}', '\u{1bca3}', "shorthand controls"),
    ('\u{1d173}', '\u{1d17a}', "controls of musical notation"),
    ('\u{e0000}', '\u{e01ef}', "tags and the other variation selectors"),
    ('\u{e01f0}', '\u{e0fff}', "reserved for more of them"),
];

/// Controls of both sets, and everything in the table.
pub fn is_hidden(char: char) -> bool {
    char.is_control() || is_invisible(char)
}

/// Shown as nothing or as a blank, or changes how its neighbours are shown.
pub fn is_invisible(char: char) -> bool {
    let place = INVISIBLE.partition_point(|(_, last, _)| *last < char);
    INVISIBLE.get(place).is_some_and(|(first, ..)| *first <= char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_says_what_each_is() {
        let mut before = '\0';
        for (first, last, what) in INVISIBLE {
            assert!(before < first && first <= last && what.len() > 5, "{what}");
            before = last;
        }
    }

    #[test]
    fn every_range_is_hidden_from_end_to_end_and_letters_are_not() {
        for (first, last, what) in INVISIBLE {
            assert!((first..=last).all(is_hidden), "{what}");
        }
        assert!(is_hidden('\u{1b}') && is_hidden('\u{9b}') && is_hidden('\u{7f}') && !is_invisible('\u{9b}'));
        for plain in ['a', ' ', '\u{a0}', 'é', 'ß', '日', '한', '⠁', '😀', '\u{fff}', '\u{10ffff}'] {
            assert!(!is_hidden(plain), "{plain:?}");
        }
    }
}

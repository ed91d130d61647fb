use super::*;

fn passed(bytes: &[u8]) -> Vec<u8> {
    let whole = Filter::default().pass(bytes);
    // Wherever the output is cut, the same goes through.
    for cut in 0..=bytes.len() {
        let mut filter = Filter::default();
        let mut pieces = filter.pass(&bytes[..cut]);
        pieces.extend(filter.pass(&bytes[cut..]));
        assert_eq!(pieces, whole, "cut at {cut}");
    }
    let mut filter = Filter::default();
    let single: Vec<u8> = bytes.iter().flat_map(|byte| filter.pass(&[*byte])).collect();
    assert_eq!(single, whole, "byte by byte");
    whole
}

#[track_caller]
fn unchanged(text: &str) {
    assert_eq!(String::from_utf8_lossy(&passed(text.as_bytes())), text);
}

#[track_caller]
fn becomes(bytes: &[u8], rest: &str) {
    assert_eq!(String::from_utf8_lossy(&passed(bytes)), rest);
}

#[test]
fn what_programs_draw_with_goes_through() {
    unchanged("plain\r\n\ttext \u{7}\u{8} größe 日本 🦀 НН\n");
    unchanged("\x1b[31;1mred\x1b[0m\x1b[2J\x1b[H\x1b[?1049h\x1b[?25l\x1b(B\x1b)0\x1b7\x1b8\x1b=\x1b>");
    unchanged("\x1b[38:2::1:2:3m\x1b[4:3m\x1b[>c\x1b[6n\x1b[?u\x1b[>1u\x1b[22;0t\x1b[14t");
    unchanged(
        "\x1b]0;title НН\x07\x1b]2;ti;tle\x1b\\\x1b]11;?\x1b\\\x1b]104\x07\x1b]8;;http://a/\x1b\\a\x1b]8;;\x1b\\",
    );
    unchanged("\x1bPq#0;2;0;0;0~~\x1b\\\x1bP+q544e\x1b\\\x1bP=1s\x1b\\\x1bktitle\x1b\\");
}

#[test]
fn sequences_of_the_linux_console_leave_no_string_open() {
    becomes(b"\x1b]Rrest", "\x1b]R\x1b\\rest");
    becomes(b"\x1b]P0ffffffrest", "\x1b]P0ffffff\x1b\\rest");
    becomes(b"\x1b]P0fffxyz", "xyz");
    becomes(b"\x1b]P0ff\x1b]52;c;x\x07b", "b");
    becomes("\x1b]P0é".as_bytes(), "é");
    assert_eq!(left_on(b"\x1b]P0fff"), "");
}

#[test]
fn notifications_are_words_and_progress() {
    unchanged(
        "\x1b]9;done\x07\x1b]9;fertig: größe\x1b\\\x1b]9;é\x07\x1b]9;4;1;50\x07\x1b]777;notify;a;b\x1b\\rest",
    );
    for dropped in [
        "9;6;calc",
        "9;7;calc",
        "9;5",
        "9;1;9000",
        "9;12",
        "9;4",
        "9;",
        "9",
        "9;04;1",
        "9;\x016;calc",
        "9;6\x01;calc",
        "777;open;x",
        "777;notif",
        "777;",
        "777",
        "777;\x01popup;x",
        "777;é",
    ] {
        for end in ["\x07", "\x1b\\"] {
            becomes(format!("a\x1b]{dropped}{end}b").as_bytes(), "ab");
        }
    }
    becomes(b"a\x1b]9;\x1b]52;c;x\x07b", "ab");
    becomes(b"a\x1b]9;4\x18b", "a\x18b");
}

#[test]
fn the_clipboard_is_out_of_reach() {
    becomes(b"a\x1b]52;c;cm0gLXJmIH4=\x07b", "ab");
    becomes(b"a\x1b]52;c;cm0gLXJmIH4=\x1b\\b", "ab");
    becomes(b"a\x1b]052;c;x\x07b\x1b]5522;type=read\x1b\\c\x1b]1337;Copy=:x\x07d", "abcd");
    becomes(b"\x1b]0;t\x1b]52;c;x\x07b", "\x1b]0;t\x1b\\b");
    becomes(b"\x1b]52;c;\x1b]52;c;x\x07b", "b");
    becomes(b"\x1b]52\x1b\\b\x1b]\x07c\x1b]\x1b\\d", "bcd");
}

#[test]
fn nothing_makes_the_terminal_type_what_a_sandbox_chose() {
    becomes(b"a\x1b[21tb\x1b[20tc\x1b[021;0td", "abcd");
    becomes(b"a\x1b[2\n1tb", "a\nb");
    becomes(b"a\x1bP$qm\x1b\\b\x1bP1$tx\x1b\\c", "abc");
    becomes(b"a\x05b\x1b]50;?\x07c", "abc");
    becomes(b"a\x1b[1;1;1;1;5;5*yb\x1b[5ic\x1b[?4id", "abcd");
    becomes(b"a\x1bP0;1|17/6c73\x1b\\b", "ab");
}

#[test]
fn nothing_is_carried_past_the_table() {
    becomes(b"a\x1bPtmux;\x1b\x1b]52;c;x\x07\x1b\\b", "a\x1b\\b");
    becomes(b"a\x1bP\x1b]52;c;x\x07\x1b\\b", "a\x1b\\b");
    becomes(b"a\x1bP@kitty-cmd{}\x1b\\b\x1b_Gf=100,t=f;L2V0Yw==\x1b\\c\x1b^x\x1b\\d\x1bXx\x1b\\e", "abcde");
    becomes(b"a\x1b%@b\x1b%Gc", "ab\x1b%Gc");
    let long = [b"a\x1b[".as_slice(), &[b'0'; 400], b"21tb"].concat();
    becomes(&long, "ab");
}

#[test]
fn only_modes_that_are_known_are_switched() {
    for dropped in [
        "[2h",
        "[?2l",
        "[?9001h",
        "[20h",
        "[12l",
        " G",
        " F",
        "n",
        "l",
        "[?3h",
        "[?5522h",
        "[2t",
        "[8;1;1t",
        "[?1001h",
        "H",
        "[3g",
        "[?1049s",
        "[?1049r",
        "[62\"p",
        "[1q",
        "(K",
        "[9;0]",
        "[1>m",
        "[65537h",
        "[?65537h",
        "[:4h",
        "[h",
        "[?h",
        "[4;5;6;7;8T",
    ] {
        becomes(format!("a\x1b{dropped}b").as_bytes(), "ab");
    }
    becomes(b"a\x1b[?1;2;25l\x1b[2;4h\x1b[?3;4lb", "a\x1b[?1;25l\x1b[4hb");
}

#[test]
fn nothing_of_a_string_is_written_before_its_end() {
    for open in ["\x1b]0;title", "\x1b]104", "\x1bPq~~", "\x1bP+q544e", "\x1bktitle", "\x1b]8;;http://a/"] {
        becomes(open.as_bytes(), "");
        becomes(format!("{open}\x1b").as_bytes(), "");
        becomes(format!("{open}\x1b[1m").as_bytes(), &format!("{open}\x1b\\\x1b[1m"));
        becomes(format!("{open}\x1b\x1b\x7fa").as_bytes(), &format!("{open}\x1b\\a"));
        becomes(format!("{open}\x18a").as_bytes(), "\x18a");
        becomes(format!("{open}\x1b\x18a").as_bytes(), "\x18a");
    }
    becomes(b"\x1b]0;ti\n\x7ftle\xe2\x1b\\a", "\x1b]0;title\u{fffd}\x1b\\a");
    becomes(b"\x1b]5\x012;c;x\x07a", "a");
    becomes(b"\x1bP+q;0a;\x1b\\\x1bP+qls;\x1b\\\x1bP=1sx\x1b\\a", "\x1bP+q;0a;\x1b\\a");
    for (open, most) in [("\x1b]0;", LONGEST_TEXT - 2), ("\x1bPq", LONGEST_DEVICE - 1)] {
        let mut filter = Filter::default();
        let fits = [open.as_bytes(), &vec![b'~'; most], b"\x1b\\"].concat();
        assert!(filter.pass(&fits) == fits);
        let longer = [open.as_bytes(), &vec![b'~'; most + 1], b"\x1b\\a"].concat();
        assert_eq!(filter.pass(&longer), b"a");
    }
}

#[test]
fn upper_control_characters_are_taken_out_however_they_are_written() {
    becomes(b"a\x9d52;c;x\x07b", "a52;c;x\x07b");
    becomes(b"a\xc2\x9d52;c;x\x07b", "a52;c;x\x07b");
    becomes(b"a\xe0\x9d52;c;x\x07b".as_slice(), "a\u{fffd}52;c;x\x07b");
    becomes(b"a\x9b21tb\xc2\x9b21t", "a21tb21t");
    becomes("a\u{a0}ß\u{2019}\u{10348}".as_bytes(), "a\u{a0}ß\u{2019}\u{10348}");
    becomes(b"a\xe2\x1b]52;c;x\x07b", "a\u{fffd}b");
}

#[test]
fn cancelled_sequences_are_forgotten() {
    becomes(b"a\x1b[2\x181tb", "a\x181tb");
    becomes(b"a\x1b]52;c;\x18b", "a\x18b");
    becomes("a\x1b[2é1t".as_bytes(), "aé1t");
}

fn left_on(bytes: &[u8]) -> String {
    let mut filter = Filter::default();
    filter.pass(bytes);
    let closing = String::from_utf8(filter.closing()).expect("ASCII");
    assert_eq!(filter.closing(), b"", "only once");
    closing
}

#[test]
fn what_was_left_on_is_switched_off() {
    assert_eq!(left_on(b"plain \x1b[1mbold\x1b[0m"), "");
    assert_eq!(
        left_on(b"\x1b[?1049h\x1b[?2004h\x1b[?1000;1006h\x1b[?25l"),
        "\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1006l\x1b[?2004l"
    );
    assert_eq!(left_on(b"\x1b[?1049h\x1b[?25l\x1b[?25h\x1b[?1049l"), "");
    assert_eq!(
        left_on(b"\x1b[>1u\x1b[>1u\x1b[<u\x1b[>4;2m\x1b=\x1b[31m\x1b[2;5r"),
        "\x1b7\x1b[r\x1b8\x1b[<1u\x1b[>4m\x1b>\x1b[m"
    );
    assert_eq!(left_on(b"\x1b(0\x0e\x1b[5 q"), "\x1b(B\x0f\x1b[0 q");
    assert_eq!(left_on(b"\x1b]2;half a title"), "");
    assert_eq!(left_on(b"\x1b[?1049h\x1bc"), "");
    assert_eq!(left_on(b"\x1b[4h\x1b)0\x1b[?69h\x1b[11m"), "\x1b[4l\x1b[?69l\x1b)B\x1b[10m\x1b[m");
    assert_eq!(left_on(b"\x1b(0\x1b7\x1b(B\x1b8"), "\x1b(B");
    assert_eq!(left_on(b"\x1b[\x0em\x1b[=5u\x1b[=0;2u"), "\x1b[=0u\x0f");
    assert_eq!(
        left_on(b"\x1b]11;red\x07\x1b]10;?\x07\x1b]4;1;red;2;?\x07\x1b]8;;http://a/;\x07\x1b]9;4;1;5\x07\x1b]P0ffffff"),
        "\x1b]8;;\x1b\\\x1b]9;4;0;\x1b\\\x1b]104\x1b\\\x1b]111\x1b\\\x1b]R\x1b\\"
    );
    assert_eq!(left_on(b"\x1b]12;red\x07\x1b]112\x07\x1b]8;;http://a/\x07\x1b]8;;\x07"), "");
}

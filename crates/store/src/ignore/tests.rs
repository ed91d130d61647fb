use super::*;

fn is_ignored(text: &str, path: &str) -> bool {
    let (path, kind) = match path.strip_suffix('/') {
        Some(path) => (path, EntryKind::Directory),
        None => (path, EntryKind::Other),
    };
    Rules::default().and(text.as_bytes(), b"").unwrap().verdict(path.as_bytes(), kind) == Verdict::Ignored
}

#[test]
fn as_the_manual_says() {
    for (text, path, ignored) in [
        ("*.o", "a/b.o", true),
        ("*.o", "b.oo", false),
        ("/*.o", "a/b.o", false),
        ("build/", "a/build/", true),
        ("build/", "a/build", false),
        ("a/build", "x/a/build", false),
        ("**/build", "x/a/build", true),
        ("**/build", "build", true),
        ("a/**/b", "a/b", true),
        ("a/**/b", "a/x/y/b", true),
        ("a/**", "a/x/y", true),
        ("a/*/b", "a/x/y/b", false),
        ("*.o\n!keep.o", "keep.o", false),
        ("\\!x", "!x", true),
        ("\\#x", "#x", true),
        ("# x\n\nx  \r\ny\\ ", "x", true),
        ("y\\ ", "y ", true),
        ("[a-c]?", "bz", true),
        ("[!a-c]", "b", false),
        ("[[:digit:]]x", "4x", true),
        ("a/[/]b", "a//b", false),
        ("trailing\\", "trailing", false),
        ("[", "[", false),
        ("\u{feff}bom", "bom", true),
    ] {
        assert_eq!(is_ignored(text, path), ignored, "{text:?} {path:?}");
    }
}

#[test]
fn the_nearest_file_decides() {
    let rules = Rules::default().and(b"*.o\n", b"").unwrap();
    let below = rules.and(b"!x.o\n/y\n", b"d/").unwrap();
    let verdict = |rules: &Rules, path: &[u8]| rules.verdict(path, EntryKind::Other);
    assert_eq!(verdict(&rules, b"x.o"), Verdict::Ignored);
    assert_eq!(verdict(&below, b"d/x.o"), Verdict::Kept);
    assert_eq!(verdict(&below, b"d/z.o"), Verdict::Ignored);
    assert_eq!(verdict(&below, b"d/y"), Verdict::Ignored);
    assert_eq!(verdict(&below, b"d/e/y"), Verdict::Kept);
}

#[test]
fn stars_do_not_take_for_ever() {
    let pattern = "*a".repeat(300);
    let name = "a".repeat(200) + "b";
    assert!(!is_ignored(&pattern, &name));
    assert!(!is_ignored(&("**/a/".repeat(300) + "b"), &("a/".repeat(2000) + "c")));
}

#[test]
fn ten_thousand_levels_of_rules_are_let_go() {
    let mut rules = Rules::default();
    for _ in 0..10_000 {
        rules = rules.and(b"x\n", b"").unwrap();
    }
    drop(rules);
    let many = "x\n".repeat(RULES + 1);
    assert!(Rules::default().and(many.as_bytes(), b"").is_none());
}

/// Stars upon stars: what takes other matchers for ever takes this one pattern times name.
#[test]
fn no_pattern_costs_more_than_its_length_times_the_name() {
    use super::effort::Effort;
    const STEPS: u64 = 1 << 40;
    let path = ["a"; 400].join("/");
    for pattern in
        ["**/".repeat(20) + "x", "*a/".repeat(40) + "b", "a/**/".repeat(60) + "b", "a/[a-b]*".repeat(30)]
    {
        let effort = Effort::of(STEPS);
        let rule = Pattern::parse(pattern.as_bytes()).unwrap();
        assert!(!rule.matches((path.as_bytes(), b"a"), EntryKind::Other, &effort), "{pattern}");
        let spent = STEPS - effort.left();
        let most = (pattern.len() + 1) as u64 * path.len() as u64;
        assert!(0 < spent && spent <= most, "{pattern}: {spent} of {most}");
    }
}

#[test]
fn rules_that_cost_too_much_ignore_nothing_more() {
    let rules = Rules::default().and(b"*.o\nx", b"").unwrap();
    let level = rules.0.as_ref().unwrap();
    assert_eq!(rules.verdict(b"x", EntryKind::Other), Verdict::Ignored);
    level.effort.spend(usize::MAX);
    assert_eq!(rules.verdict(b"x", EntryKind::Other), Verdict::Kept);
    let below = rules.and(b"y", b"d/").unwrap();
    assert_eq!(below.verdict(b"d/y", EntryKind::Other), Verdict::Kept, "one effort for a whole tree");
}

//! The file `packed-refs`, rewritten with loose references added.

use std::cmp::Ordering;

/// The beginning of the header.
const HEADER: &[u8] = b"# pack-refs with:";

/// A reference as a line of the file, without its end.
#[derive(Debug)]
pub(super) struct Line {
    text: Vec<u8>,
    /// Length of the id.
    width: usize,
}

impl Line {
    pub(super) fn new(id: &[u8], name: &[u8]) -> Self {
        Self { text: [id, b" ", name].concat(), width: id.len() }
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.text[self.width + 1..]
    }
}

/// The list with `lines` added; they replace entries of the same name. `None` if the list is not as git writes it.
///
/// `width` is the length of an id in hexadecimal.
pub(super) fn packed_with(list: &[u8], width: usize, lines: &mut [Line]) -> Option<Vec<u8>> {
    let (header, list) = header(list)?;
    lines.sort_unstable_by(|one, other| one.name().cmp(other.name()));
    let added: usize = lines.iter().map(|line| line.text.len() + 1).sum();
    let mut text = Vec::with_capacity(HEADER.len() + 32 + list.len() + added);
    text.extend_from_slice(HEADER);
    text.extend_from_slice(header.kept(lines));
    let mut lines = lines.iter().peekable();
    let put = |text: &mut Vec<u8>, line: &Line| {
        text.extend_from_slice(&line.text);
        text.push(b'\n');
    };
    let mut before: Option<&[u8]> = None;
    for entry in entries(list, width) {
        let (name, block) = entry?;
        if before.is_some_and(|before| before >= name) {
            return None;
        }
        before = Some(name);
        while let Some(line) = lines.next_if(|line| line.name() < name) {
            put(&mut text, line);
        }
        match lines.next_if(|line| line.name().cmp(name) == Ordering::Equal) {
            Some(line) => put(&mut text, line),
            None => text.extend_from_slice(block),
        }
    }
    lines.for_each(|line| put(&mut text, line));
    Some(text)
}

/// Whether the list claims to name the object behind every annotated tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    Peeled,
    Unknown,
}

impl Header {
    /// What is still true with `lines` added, of which only the ids are known.
    fn kept(self, lines: &[Line]) -> &'static [u8] {
        let has_tags = lines.iter().any(|line| line.name().starts_with(b"refs/tags/"));
        if self == Self::Peeled && !has_tags { b" peeled sorted \n" } else { b" sorted \n" }
    }
}

/// The header, and the rest of the list.
fn header(list: &[u8]) -> Option<(Header, &[u8])> {
    if !list.starts_with(b"#") {
        return Some((Header::Unknown, list));
    }
    let end = list.iter().position(|byte| *byte == b'\n')?;
    let mut words = list[..end].strip_prefix(HEADER)?.split(|byte| *byte == b' ');
    let is_peeled = words.any(|word| matches!(word, b"peeled" | b"fully-peeled"));
    Some((if is_peeled { Header::Peeled } else { Header::Unknown }, &list[end + 1..]))
}

/// Every name in the list with its lines: the reference, and the object behind a tag. The last item is `None` if git would
/// not have written it.
fn entries(list: &[u8], width: usize) -> impl Iterator<Item = Option<(&[u8], &[u8])>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((name, length)) = entry(rest, width) else {
            rest = &[];
            return Some(None);
        };
        let (block, after) = rest.split_at(length);
        rest = after;
        Some(Some((name, block)))
    })
}

/// The first name in a list, and the length of its lines.
fn entry(list: &[u8], width: usize) -> Option<(&[u8], usize)> {
    let end = list.iter().position(|byte| *byte == b'\n')?;
    let name = id_at(list, width)?.strip_prefix(b" ")?;
    let name = &name[..end.checked_sub(width + 1)?];
    if name.is_empty() {
        return None;
    }
    let Some(peeled) = list[end + 1..].strip_prefix(b"^") else { return Some((name, end + 1)) };
    id_at(peeled, width)?.strip_prefix(b"\n")?;
    Some((name, end + 1 + 1 + width + 1))
}

/// The text after an id.
fn id_at(text: &[u8], width: usize) -> Option<&[u8]> {
    let (id, rest) = text.split_at_checked(width)?;
    id.iter().all(u8::is_ascii_hexdigit).then_some(rest)
}

/// The id in the file of a reference. `None` if the reference is broken or symbolic.
pub(super) fn id_in(text: &[u8], width: usize) -> Option<Vec<u8>> {
    let rest = id_at(text, width)?;
    let id = &text[..width];
    let is_whole = rest.first().is_none_or(u8::is_ascii_whitespace);
    (is_whole && id.iter().any(|byte| *byte != b'0')).then(|| id.to_ascii_lowercase())
}

/// Whether a reference of this name can be in the list. Git refuses a list with an invalid name, and stores the references
/// of one worktree (`refs/bisect` and so on) in files only.
pub(super) fn can_be_packed(name: &[u8]) -> bool {
    const OWN: [&[u8]; 3] = [b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/"];
    let is_fine = |part: &[u8]| {
        !part.is_empty()
            && !part.starts_with(b".")
            && !part.ends_with(b".")
            && !part.ends_with(b".lock")
            && !part.windows(2).any(|two| matches!(two, b".." | b"@{"))
            && !part.iter().any(|byte| byte.is_ascii_control() || b" ~^:?*[\\".contains(byte))
    };
    name.starts_with(b"refs/")
        && name.split(|byte| *byte == b'/').all(is_fine)
        && !OWN.iter().any(|own| name.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    fn with(list: &str, names: &[&str]) -> Option<String> {
        let mut lines: Vec<Line> =
            names.iter().map(|name| Line::new(TWO.as_bytes(), name.as_bytes())).collect();
        packed_with(list.as_bytes(), 40, &mut lines).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn files_come_before_the_list_and_all_is_sorted() {
        let list = format!(
            "# pack-refs with: peeled fully-peeled sorted \n{ONE} refs/heads/b\n{ONE} refs/tags/v1\n^{TWO}\n{ONE} refs/tags/v2\n^{TWO}\n"
        );
        let merged = with(&list, &["refs/heads/c", "refs/heads/a", "refs/heads/b"]).unwrap();
        let tags = format!("{ONE} refs/tags/v1\n^{TWO}\n{ONE} refs/tags/v2\n^{TWO}\n");
        let heads = format!("{TWO} refs/heads/a\n{TWO} refs/heads/b\n{TWO} refs/heads/c\n");
        assert_eq!(merged, format!("# pack-refs with: peeled sorted \n{heads}{tags}"));
        let merged = with(&list, &["refs/tags/v1", "refs/tags/v3"]).unwrap();
        let tags = format!("{TWO} refs/tags/v1\n{ONE} refs/tags/v2\n^{TWO}\n{TWO} refs/tags/v3\n");
        assert_eq!(merged, format!("# pack-refs with: sorted \n{ONE} refs/heads/b\n{tags}"));
        assert_eq!(with("", &["refs/a"]).unwrap(), format!("# pack-refs with: sorted \n{TWO} refs/a\n"));
    }

    #[test]
    fn a_list_that_git_would_not_write_is_not_touched() {
        let good = format!("{ONE} refs/a\n");
        assert!(with(&good, &["refs/b"]).is_some());
        for bad in [
            format!("{ONE} refs/a"),
            format!("{ONE} \n"),
            format!("{ONE}\n"),
            format!("{ONE}0 refs/a\n"),
            format!("{good}\n"),
            format!("{good}# more\n"),
            format!("{good}^{ONE}\n^{ONE}\n"),
            format!("{good}^{ONE}0\n"),
            format!("^{ONE}\n{good}"),
            format!("# packed\n{good}"),
            format!("{good}{good}"),
            format!("{ONE} refs/b\n{good}"),
            "#".to_owned(),
            "1".to_owned(),
        ] {
            assert_eq!(with(&bad, &["refs/b"]), None, "{bad}");
        }
    }

    #[test]
    fn a_file_is_an_id_or_left_to_git() {
        let id = |text: &str| id_in(text.as_bytes(), 40);
        for good in [ONE.to_owned(), format!("{ONE}\n"), format!("{ONE} anything"), format!("{ONE}\r\n")] {
            assert_eq!(id(&good).unwrap(), ONE.as_bytes(), "{good}");
        }
        let none = "0".repeat(40);
        for bad in ["", "ref: refs/heads/a\n", &format!("{ONE}1\n"), &ONE[1..], &format!(" {ONE}"), &none] {
            assert_eq!(id(bad), None, "{bad}");
        }
        assert_eq!(id_in(&[b'F'; 64], 64).unwrap(), [b'f'; 64]);
        assert_eq!(id_in(&[b'f'; 64], 40), None);
    }

    #[test]
    fn a_name_is_one_that_git_would_make() {
        for good in ["refs/stash", "refs/heads/a/b-c_d", "refs/heads/@", "refs/heads/ä", "refs/bisection/x"]
        {
            assert!(can_be_packed(good.as_bytes()), "{good}");
        }
        for bad in [
            "HEAD",
            "refs/",
            "refs/.a",
            "refs/a..b",
            "refs/a.lock",
            "refs/a.",
            "refs/a b",
            "refs/a\nb",
            "refs/a\\b",
            "refs/a@{b",
            "refs/a~",
            "refs/a*",
            "refs/a[",
            "refs/a\x7f",
            "refs//a",
            "refs/bisect/bad",
            "refs/worktree/x",
            "refs/rewritten/x",
        ] {
            assert!(!can_be_packed(bad.as_bytes()), "{bad}");
        }
    }
}

//! Mounts as written: `SRC[:DST[:ro|rw|cow]]`. A backslash before a colon, a comma or a backslash takes
//! away its meaning; nothing else is special, so every path can be written.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use sandtable_sandbox::model::choice::UnknownWord;
use sandtable_sandbox::model::spec::{MountAccess, MountRequest};

/// Why a mount could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountError {
    #[error("mount `{0}` has no source")]
    NoSource(String),
    #[error("mount `{0}` has an empty destination")]
    NoTarget(String),
    #[error("mount `{text}` has destination `{target}`, which is not an absolute path")]
    RelativeTarget { text: String, target: String },
    #[error("mount `{text}` has no usable mode")]
    Access { text: String, source: UnknownWord },
    #[error("mount `{0}` has more than three parts")]
    TooManyParts(String),
}

/// Reads one mount. What is not said is: the same place inside, read-only.
pub fn parse(text: &OsStr) -> Result<MountRequest, MountError> {
    let shown = || text.to_string_lossy().into_owned();
    let mut parts = parts(text.as_bytes(), b':').into_iter().map(|part| plain(&part));
    let source =
        parts.next().filter(|source| !source.is_empty()).ok_or_else(|| MountError::NoSource(shown()))?;
    let target = parts.next().map(PathBuf::from);
    let access = parts.next().map(|word| access(&word, &shown)).transpose()?;
    if parts.next().is_some() {
        return Err(MountError::TooManyParts(shown()));
    }
    match &target {
        Some(target) if target.as_os_str().is_empty() => return Err(MountError::NoTarget(shown())),
        Some(target) if !target.is_absolute() => {
            let target = target.to_string_lossy().into_owned();
            return Err(MountError::RelativeTarget { text: shown(), target });
        }
        _ => {}
    }
    Ok(MountRequest { source: source.into(), target, access: access.unwrap_or(MountAccess::Read) })
}

/// Splits a comma list whose items need no escapes of their own.
pub fn words(text: &OsStr) -> Vec<OsString> {
    list(text).iter().map(|item| plain(item.as_bytes())).collect()
}

/// Splits a comma list of mounts; empty items are left out, so that a trailing comma does no harm.
pub fn list(text: &OsStr) -> Vec<OsString> {
    let items = parts(text.as_bytes(), b',');
    items.into_iter().filter(|item| !item.is_empty()).map(OsString::from_vec).collect()
}

fn access(word: &OsStr, shown: &dyn Fn() -> String) -> Result<MountAccess, MountError> {
    word.to_string_lossy().parse().map_err(|source| MountError::Access { text: shown(), source })
}

/// The pieces between separators that no backslash protects, escapes still in place.
fn parts(text: &[u8], separator: u8) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == separator {
            parts.push(Vec::new());
            continue;
        }
        let part = parts.last_mut().expect("there is always a first part");
        part.push(byte);
        if byte == b'\\' {
            part.extend(bytes.next());
        }
    }
    parts
}

/// A piece without its escapes.
fn plain(part: &[u8]) -> OsString {
    let mut out = Vec::with_capacity(part.len());
    let mut bytes = part.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match bytes.peek() {
            Some(b':' | b',' | b'\\') if byte == b'\\' => out.extend(bytes.next()),
            _ => out.push(byte),
        }
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &[u8]) -> Vec<u8> {
        let special = |byte: u8| matches!(byte, b':' | b',' | b'\\');
        text.iter().flat_map(|&byte| if special(byte) { vec![b'\\', byte] } else { vec![byte] }).collect()
    }

    fn request(source: &str, target: Option<&str>, access: MountAccess) -> MountRequest {
        MountRequest { source: source.into(), target: target.map(Into::into), access }
    }

    #[test]
    fn every_form_is_read() {
        let read = |text: &str| parse(OsStr::new(text)).expect(text);
        assert_eq!(read("/a"), request("/a", None, MountAccess::Read));
        assert_eq!(read("a:/b"), request("a", Some("/b"), MountAccess::Read));
        assert_eq!(read("/a:/b:rw"), request("/a", Some("/b"), MountAccess::Write));
        assert_eq!(read("/a:/b:cow"), request("/a", Some("/b"), MountAccess::Cow));
        assert_eq!(read(r"/a\:b:/c\\d"), request("/a:b", Some(r"/c\d"), MountAccess::Read));
        assert_eq!(read(r"C\x:/b"), request(r"C\x", Some("/b"), MountAccess::Read));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let refused = |text: &str| parse(OsStr::new(text)).expect_err(text).to_string();
        insta::assert_snapshot!(refused(""), @"mount `` has no source");
        insta::assert_snapshot!(refused(":/b"), @"mount `:/b` has no source");
        insta::assert_snapshot!(refused("/a:"), @"mount `/a:` has an empty destination");
        insta::assert_snapshot!(refused("/a:ro"), @"mount `/a:ro` has destination `ro`, which is not an absolute path");
        insta::assert_snapshot!(refused("/a:/b:rx"), @"mount `/a:/b:rx` has no usable mode");
        insta::assert_snapshot!(refused("/a:/b:ro:z"), @"mount `/a:/b:ro:z` has more than three parts");
    }

    #[test]
    fn lists_are_split_at_bare_commas_only() {
        let items = list(OsStr::new(r"/a:/b:rw,/c\,d,"));
        assert_eq!(items, ["/a:/b:rw", r"/c\,d"]);
        assert_eq!(parse(&items[1]).expect("one path").source, PathBuf::from("/c,d"));
    }

    proptest! {
        #[test]
        fn any_two_paths_can_be_written(
            source in proptest::collection::vec(1u8.., 1..20),
            target in proptest::collection::vec(1u8.., 0..20),
            access in proptest::sample::select(MountAccess::ALL),
        ) {
            let target = [b"/".as_slice(), &target].concat();
            let mut text = escaped(&source);
            text.push(b':');
            text.extend(escaped(&target));
            text.extend(format!(":{access}").bytes());
            let items = list(&OsString::from_vec(text));
            prop_assert_eq!(items.len(), 1);
            let mount = parse(&items[0]).expect("well-formed");
            prop_assert_eq!(mount.source.as_os_str().as_bytes(), &source[..]);
            let read = mount.target.expect("given");
            prop_assert_eq!(read.as_os_str().as_bytes(), &target[..]);
            prop_assert_eq!(mount.access, access);
        }

        #[test]
        fn no_text_makes_it_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let text = OsString::from_vec(text);
            if let Ok(mount) = parse(&text) {
                prop_assert!(!mount.source.as_os_str().is_empty());
                prop_assert!(mount.target.is_none_or(|target| target.is_absolute()));
            }
        }
    }
}

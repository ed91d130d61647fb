//! The one form in which the path of a request is judged and forwarded.

use std::fmt::Write as _;

/// The path in its normal form, with its query unchanged behind it; `None` where servers could disagree about which path
/// is meant. Letters that are encoded for no reason are decoded, other encodings get capital digits.
pub fn normal_path(target: &str) -> Option<(String, &str)> {
    let end = target.find('?').unwrap_or(target.len());
    let (path, query) = target.split_at(end);
    let mut normal = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        if first == '%' {
            let code = rest.get(1..3).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
            let byte = u8::from_str_radix(code, 16).expect("two hexadecimal digits");
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    normal.push(byte.into());
                }
                // What divides or ends a path, encodes it again, or is no text.
                b'/' | b'\\' | b'%' | b';' | b'?' | b'#' | 0..=0x1f | 0x7f => return None,
                _ => write!(normal, "%{byte:02X}").expect("a string takes everything"),
            }
            rest = &rest[3..];
        } else {
            let is_plain = first.is_ascii_alphanumeric() || "-._~!$&'()*+,=:@/".contains(first);
            normal.push(Some(first).filter(|_| is_plain)?);
            rest = &rest[first.len_utf8()..];
        }
    }
    let mut segments = normal.strip_prefix('/')?.split('/').rev();
    let last = segments.next().unwrap_or_default();
    let is_clear = |segment: &str| !matches!(segment, "." | "..");
    (is_clear(last) && segments.all(|segment| !segment.is_empty() && is_clear(segment)))
        .then_some((normal, query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clear_path_has_one_form() {
        for (target, expected) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a/", "/a/"),
            ("/%61%7eb", "/a~b"),
            ("/a%20b%c3%a4", "/a%20b%C3%A4"),
            ("/...", "/..."),
            ("/a:b@c,d=e", "/a:b@c,d=e"),
        ] {
            assert_eq!(normal_path(target), Some((expected.to_owned(), "")), "{target}");
        }
        assert_eq!(normal_path("/a?b=/../%2f"), Some(("/a".to_owned(), "?b=/../%2f")));
    }

    #[test]
    fn a_path_that_could_mean_two_is_none() {
        for target in [
            "",
            "a",
            "*",
            "/a/../b",
            "/a/./b",
            "/..",
            "/.",
            "/%2e%2e/b",
            "/%2E./b",
            "/a%2fb",
            "/a%5Cb",
            "/a\\b",
            "//b",
            "/a//b",
            "/a;x",
            "/a%3bx",
            "/%252e",
            "/a%00",
            "/a%0a",
            "/%",
            "/%4",
            "/%zz",
            "/%+1",
            "/a#b",
            "/a%23b",
            "/a%3fb",
            "/a b",
            "/ä",
            "/a|b",
            "/a<b",
            "/%ä",
        ] {
            assert_eq!(normal_path(target), None, "{target}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_normal_path_stays_as_it_is(target in "/[a.%2eEfF/;?x]{0,12}") {
            if let Some((path, _)) = normal_path(&target) {
                proptest::prop_assert_eq!(normal_path(&path), Some((path.clone(), "")));
                let plain = path.replace("%2E", ".");
                proptest::prop_assert!(!plain.split('/').any(|segment| segment == ".."));
            }
        }
    }
}

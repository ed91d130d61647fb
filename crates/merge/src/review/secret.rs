//! Text that looks like a secret: keys in their usual wrapping, tokens by how they begin, passwords in addresses.

use std::sync::LazyLock;

use super::rules::{Alphabet, RULES, Token};
use super::text::were_there;

/// How the block of a private key begins.
const BLOCKS: [&str; 4] =
    ["PRIVATE KEY-----", "PRIVATE KEY BLOCK-----", "PuTTY-User-Key-File-", "AGE-SECRET-KEY-1"];

/// Whether there is one, in a line that was not there before. A block of a key counts always: its first line says
/// nothing about the rest.
pub(super) fn has_secret(text: &str, old: impl FnOnce() -> Option<Vec<u8>>) -> bool {
    if BLOCKS.iter().any(|block| text.contains(block)) {
        return true;
    }
    let lines: Vec<&str> = text.split('\n').filter(|line| is_secret(line)).collect();
    !lines.is_empty() && !were_there(&lines, old)
}

fn is_secret(line: &str) -> bool {
    has_aws_key(line)
        || has_start(line)
            && (RULES.token.iter().any(|token| has_token(line, token))
                || has_web_token(line)
                || has_password(line))
}

/// What every token, web token and password in an address has in it, by its first byte.
static STARTS: LazyLock<[Vec<&'static [u8]>; 256]> = LazyLock::new(|| {
    let mut starts = [const { Vec::new() }; 256];
    let tokens = RULES.token.iter().map(|token| token.start.as_bytes());
    for start in tokens.chain([b"eyJ".as_slice(), b"://"]) {
        starts[usize::from(start[0])].push(start);
    }
    starts
});

/// Whether it is worth while to look closer: nearly all lines have nothing of it, and are gone over once for everything.
fn has_start(line: &str) -> bool {
    let line = line.as_bytes();
    line.iter()
        .enumerate()
        .any(|(at, first)| STARTS[usize::from(*first)].iter().any(|start| line[at..].starts_with(start)))
}

fn has_token(line: &str, token: &Token) -> bool {
    line.match_indices(&token.start).any(|(at, start)| {
        let alone = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        alone && length(&line[at + start.len()..], token.alphabet) >= token.least
    })
}

/// How many characters of the alphabet a text begins with.
fn length(text: &str, alphabet: Alphabet) -> usize {
    let found = text.bytes().take_while(|byte| is_of(*byte, alphabet)).count();
    super::steps::count(found);
    found
}

fn is_of(byte: u8, alphabet: Alphabet) -> bool {
    byte.is_ascii_alphanumeric() || (alphabet == Alphabet::Dashed && matches!(byte, b'-' | b'_'))
}

/// Three parts with dots between, the first two of them JSON: a JSON web token.
///
/// Each part is gone over once for each of the three places that it can have, however many of them begin alike.
fn has_web_token(line: &str) -> bool {
    let mut parts = line.split('.');
    let (Some(mut head), Some(mut claims)) = (parts.next(), parts.next()) else { return false };
    for signature in parts {
        if is_head(head) && is_claims(claims) && length(signature, Alphabet::Dashed) >= 16 {
            return true;
        }
        (head, claims) = (claims, signature);
    }
    false
}

/// Whether a text ends in the first part of a web token.
fn is_head(text: &str) -> bool {
    let end = text.bytes().rev().take_while(|byte| is_of(*byte, Alphabet::Dashed)).count();
    super::steps::count(end);
    // It is of the alphabet, so every byte is a character.
    let last = &text[text.len() - end..];
    last.find("eyJ").is_some_and(|at| last.len() - at >= 16)
}

fn is_claims(text: &str) -> bool {
    text.starts_with("eyJ") && text.len() >= 8 && length(text, Alphabet::Dashed) == text.len()
}

/// `scheme://user:password@host`, where the password is none that something else fills in.
fn has_password(line: &str) -> bool {
    line.match_indices("://").any(|(at, mark)| {
        let schemed = line[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        let rest = &line[at + mark.len()..];
        let end =
            rest.find(|c: char| c.is_whitespace() || "/\"'`<>\\?#,;()".contains(c)).unwrap_or(rest.len());
        let Some((who, host)) = rest[..end].rsplit_once('@') else { return false };
        let Some((user, password)) = who.split_once(':') else { return false };
        let filled_in =
            password.starts_with(['$', '{', '%', ':', '[']) || password.chars().all(|c| "*.xX_-".contains(c));
        let sample = user == password && ["localhost", "127.0.0.1"].iter().any(|name| host.starts_with(name));
        schemed && !password.is_empty() && !host.is_empty() && !filled_in && !sample
    })
}

/// Forty characters beside the name that Amazon gives its secret keys.
fn has_aws_key(line: &str) -> bool {
    let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '+');
    // Seldom, so it is asked first.
    if line.len() < 40 || !line.split(|c: char| !is_key(c)).any(|word| word.len() == 40) {
        return false;
    }
    let plain: String = line.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_lowercase();
    ["secretaccesskey", "awssecretkey", "awssecret"].iter().any(|name| plain.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LETTERS: &str = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ3lM6oP9rS2uV5xY8bD1gI4k";
    const FORTY: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

    fn finds(text: &str) -> bool {
        has_secret(text, || None)
    }

    #[test]
    fn every_shape_is_found() {
        assert_eq!(FORTY.len(), 40);
        for token in &RULES.token {
            let rest = LETTERS.get(..token.least).expect("long enough");
            assert!(finds(&format!("key = \"{}{rest}\"", token.start)), "{}", token.reason);
            assert!(
                !finds(&format!("key = \"{}{}\"", token.start, &rest[1..])),
                "one too short: {}",
                token.reason
            );
            assert!(!finds(&format!("x{}{rest}", token.start)), "inside a word: {}", token.reason);
        }
        for text in [
            "-----BEGIN PGP PRIVATE KEY BLOCK-----",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "PuTTY-User-Key-File-3: ssh-ed25519",
            "t = eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
            "url = https://user:hunter2@host.example/x",
            "git clone https://oauth2:a-b.c@git.example.org/r.git",
            "DB=\"postgres://app:s3cret@db.internal:5432/app\"",
            &format!("aws_secret_access_key = {FORTY}"),
            &format!("\"SecretAccessKey\": \"{FORTY}\""),
            &format!("export AWS_SECRET_ACCESS_KEY='{FORTY}'"),
        ] {
            assert!(finds(text), "{text}");
        }
    }

    /// Written out, since a rule that is not there any more is missing from the loop over the rules as well.
    #[test]
    fn tokens_of_services_are_found_by_how_they_begin() {
        for start in ["ghu_", "hf_", "sk-proj-", "sk_live_"] {
            for text in [format!("{start}{LETTERS}"), format!("key = \"{start}{LETTERS}\"")] {
                assert!(finds(&text), "{text}");
            }
        }
    }

    #[test]
    fn what_only_looks_alike_is_not() {
        for text in [
            "-----BEGIN PGP PUBLIC KEY BLOCK-----",
            "def hf_load_all_the_models_from_the_hub_by_name():",
            "npm_package_config_registry_and_more_words_here=1",
            "eyJhbGciOiJIUzI1NiJ9 alone",
            "https://example.org/a:b@c",
            "https://user@host/x",
            "https://user:$PASSWORD@host/x",
            "https://user:${PASSWORD}@host/x",
            "https://user:****@host/x",
            "https://user:<password>@host/x",
            "postgres://postgres:postgres@localhost:5432/test",
            "mailto:a@b and http://x/ then c:d@e",
            &format!("sha1 = {FORTY}"),
            "aws_secret_access_key = short",
        ] {
            assert!(!finds(text), "{text}");
        }
    }

    #[test]
    fn a_line_that_was_there_is_no_news_but_a_block_is() {
        let line = "https://user:hunter2@host.example/x";
        assert!(!has_secret(line, || Some(format!("a\n{line}\n").into_bytes())));
        let block = "-----BEGIN OPENSSH PRIVATE KEY-----";
        assert!(has_secret(block, || Some(block.as_bytes().to_vec())));
    }

    #[test]
    fn twice_the_text_is_twice_the_work() {
        for piece in ["eyJ", "eyJ.", "eyJhbGciOiJIUzI1NiJ9.eyJ.", "sk-", "AKIA", "a://b:c", "eyJ-_"] {
            let steps = |count: usize| super::super::steps::of(|| _ = finds(&piece.repeat(count)));
            let (one, two) = (steps(1_000), steps(2_000));
            assert!(two <= 2 * one + 100, "{piece}: {one} steps, then {two}");
        }
    }
}

//! File names that say secret. The session hands these to whoever walks the source.

use std::sync::LazyLock;

use sandtable_store::name_pattern::{Pattern, listed};
use serde::Deserialize;

use super::data::policy;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    patterns: Vec<Entry>,
}

/// One kind of secret.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// `*` stands for any characters, `?` for one.
    name: String,
    /// Names that fit all the same but hold no secret.
    #[serde(default)]
    except: Vec<String>,
    #[expect(dead_code, reason = "for whoever reads the policy; a test holds that it is there")]
    reason: String,
}

/// Whether the name of a file says secret.
pub fn says_secret(name: &[u8]) -> bool {
    listed(secret_names(), name)
}

/// The names, as the policy lists them.
pub fn secret_names() -> &'static [Pattern] {
    static NAMES: LazyLock<Vec<Pattern>> = LazyLock::new(|| {
        let file: File = policy!("secrets");
        let words = file.patterns.into_iter().flat_map(|entry| {
            let exceptions = entry.except.into_iter().map(|name| format!("!{name}"));
            std::iter::once(entry.name).chain(exceptions)
        });
        words.map(|word| word.parse().expect("the policy holds name patterns only")).collect()
    });
    &NAMES
}

#[cfg(test)]
mod tests {
    use sandtable_store::name_pattern::listed;

    use super::secret_names;

    #[test]
    fn secrets_are_told_from_their_examples() {
        let secret = |name: &str| listed(secret_names(), name.as_bytes());
        for name in
            [".env", ".env.local", "server.pem", "id_ed25519", "id_rsa", ".netrc", "prod.tfvars", "x.env"]
        {
            assert!(secret(name), "{name}");
        }
        for name in
            [".env.example", "id_ed25519.pub", "main.rs", "environment.toml", "README", "keys.rs", "env"]
        {
            assert!(!secret(name), "{name}");
        }
    }
}

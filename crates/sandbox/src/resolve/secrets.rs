//! File names that say secret. The session hands these to whoever walks the source.

use std::sync::LazyLock;

use serde::Deserialize;

use super::data::parsed;
use super::glob::matches;

/// A pattern for file names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretPattern {
    /// `*` stands for any characters, `?` for one.
    pub name: String,
    /// Names that fit all the same but hold no secret.
    #[serde(default)]
    pub except: Vec<String>,
    pub reason: String,
}

impl SecretPattern {
    /// Whether a file of this name (no directory) holds a secret, by its name.
    pub fn fits(&self, name: &str) -> bool {
        matches(&self.name, name) && !self.except.iter().any(|exception| matches(exception, name))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    patterns: Vec<SecretPattern>,
}

/// All patterns, as the policy lists them.
pub fn secret_patterns() -> &'static [SecretPattern] {
    static FILE: LazyLock<File> = LazyLock::new(|| parsed(include_str!("secrets.toml")));
    &FILE.patterns
}

#[cfg(test)]
mod tests {
    use super::secret_patterns;

    #[test]
    fn secrets_are_told_from_their_examples() {
        let secret = |name: &str| secret_patterns().iter().any(|pattern| pattern.fits(name));
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

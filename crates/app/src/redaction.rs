//! What no answer shows: the values of variables that the user passed in, and of those whose names say that they are
//! secret. Every surface answers through this.

use std::collections::BTreeMap;

use sandtable_sandbox::model::resolved::{ResolvedSpec, Secrecy, Variable};
use sandtable_sandbox::model::secret::REDACTED;

/// What the names of variables contain whose values are secrets.
const SECRET: [&str; 8] =
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH"];

/// The value of a variable as it may be shown.
pub fn shown<'a>(name: &str, variable: &'a Variable) -> &'a str {
    if variable.secrecy == Secrecy::Concealed || is_secret(name) { REDACTED } else { &variable.value }
}

/// A resolved request whose secrets are placeholders.
pub fn redacted(resolved: &ResolvedSpec) -> ResolvedSpec {
    let one = |(name, variable): (&String, &Variable)| {
        let value = shown(name, variable).to_owned();
        (name.clone(), Variable { value, ..variable.clone() })
    };
    let environment: BTreeMap<_, _> = resolved.environment.iter().map(one).collect();
    ResolvedSpec { environment, ..resolved.clone() }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandtable_testkit::fixtures::{resolved, spec};

    #[test]
    fn secrets_are_shown_in_no_form() {
        for name in ["GH_TOKEN", "api_key", "SSH_AUTH_SOCK", "DB_PASSWORD", "MY_SECRET_THING"] {
            assert!(is_secret(name), "{name}");
        }
        assert!(!is_secret("PATH"));
        let json = serde_json::to_string(&redacted(&resolved(&spec()))).unwrap();
        assert!(!json.contains("ghp_123") && json.contains("/usr/bin:/bin"));
        assert!(!json.contains("hunter2") && json.contains("PASSED"));
        let asked = serde_json::to_string(&spec()).unwrap();
        assert!(!asked.contains("hunter2") && asked.contains("PASSED"));
    }
}

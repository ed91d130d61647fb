//! Which programs a command looked for and did not find, by what it wrote.
//!
//! A step sees the tools it declares and the base programs, and nothing else. So a program that is not found is one that
//! was not declared, and shells, `make` and `env` say its name. What they say is from inside and could be forged; it
//! is used for a message and for nothing else.

/// How many names are told.
const MOST: usize = 8;

/// Names of programs that were not found, each once.
pub fn missing_commands(output: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in output.lines().filter_map(missing_in) {
        if !found.contains(&name) && found.len() < MOST {
            found.push(name);
        }
    }
    found
}

/// `sh: 1: m4: not found`, `bash: line 1: m4: command not found`, `make: m4: No such file or directory`,
/// `env: 'm4': No such file or directory`.
fn missing_in(line: &str) -> Option<String> {
    let line = line.trim_end();
    let said = line
        .strip_suffix(": not found")
        .or_else(|| line.strip_suffix(": command not found"))
        .or_else(|| {
            let rest = line.strip_suffix(": No such file or directory")?;
            let who = rest.split(':').next()?;
            let who = who.rsplit('/').next().unwrap_or(who);
            (who == "env" || who == "make" || who.starts_with("make[")).then_some(rest)
        })?;
    let word =
        said.rsplit(": ").next()?.trim_matches(|letter| matches!(letter, '\'' | '"' | '`' | '‘' | '’'));
    let name = word.rsplit('/').next().unwrap_or(word);
    let letters = |letter: char| letter.is_ascii_alphanumeric() || "-_+.".contains(letter);
    let plain = !name.is_empty() && name.len() <= 64 && name.chars().all(letters);
    // Without anybody who says so it is somebody's prose.
    (plain && said.contains(": ")).then(|| name.to_owned())
}

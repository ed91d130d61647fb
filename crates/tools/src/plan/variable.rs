//! Variables that a tool sets in every sandbox that has it: which cannot be set, and which do more than they say.

use sandtable_store::wildcard::{Syntax, matches};

/// Never set by a tool, as a whole name or, with `*`, as the beginning of one.
const REFUSED: &[(&str, &str)] = &[
    ("PATH", "it is made of the directories of all tools"),
    ("HOME", "it is the sandbox's own"),
    ("LD_*", "the loader puts code into every program"),
    ("DYLD_*", "the loader of macOS does the same"),
    ("GCONV_PATH", "the C library loads code from there"),
    ("GLIBC_TUNABLES", "it changes the C library of every program"),
    ("SANDTABLE_*", "they are ours"),
];

/// What some program runs, or loads as code, whenever it is started.
const OBEYED: &[(&str, &str)] = &[
    ("BASH_ENV", "bash runs it before every script"),
    ("ENV", "sh runs it when it starts"),
    ("ZDOTDIR", "zsh runs its files from there"),
    ("PROMPT_COMMAND", "bash runs it before every prompt"),
    ("PS1", "shells expand it, commands and all"),
    ("PS4", "shells expand it, commands and all"),
    ("EDITOR", "programs start it to edit"),
    ("VISUAL", "programs start it to edit"),
    ("PAGER", "programs start it to show text"),
    ("BROWSER", "programs start it to open addresses"),
    ("LESSOPEN", "less runs it for every file"),
    ("GIT_*", "git obeys it, and runs what some of them name"),
    ("SSH_ASKPASS", "ssh starts it to ask for a password"),
    ("RSYNC_RSH", "rsync starts it"),
    ("NODE_OPTIONS", "node loads the code it names"),
    ("NODE_PATH", "node loads code from there"),
    ("NPM_CONFIG_*", "npm takes registries and programs from it"),
    ("PYTHONSTARTUP", "python runs it when it starts"),
    ("PYTHONPATH", "python loads code from there"),
    ("PYTHONHOME", "python loads all of its library from there"),
    ("PYTHONINSPECT", "python goes on with a prompt"),
    ("PIP_*", "pip takes registries and options from it"),
    ("PERL5OPT", "perl loads the code it names"),
    ("PERL5LIB", "perl loads code from there"),
    ("PERL5DB", "perl runs it when it debugs"),
    ("RUBYOPT", "ruby loads the code it names"),
    ("RUBYLIB", "ruby loads code from there"),
    ("LUA_INIT*", "lua runs it when it starts"),
    ("JAVA_TOOL_OPTIONS", "java loads the agents it names"),
    ("_JAVA_OPTIONS", "java loads the agents it names"),
    ("JDK_JAVA_OPTIONS", "java loads the agents it names"),
    ("CLASSPATH", "java loads code from there"),
    ("DOTNET_STARTUP_HOOKS", "dotnet loads the code it names"),
    ("PHPRC", "php takes its settings from there"),
    ("PHP_INI_SCAN_DIR", "php takes its settings from there"),
    ("R_PROFILE*", "R runs it when it starts"),
    ("R_ENVIRON*", "R takes variables from it"),
    ("RUSTC*", "cargo starts it as the compiler"),
    ("RUSTFLAGS", "cargo passes it to the compiler, plug-ins and linkers too"),
    ("CARGO_*", "cargo takes registries and programs from it"),
    ("GOFLAGS", "go takes options from it, programs to start too"),
    ("MAKEFLAGS", "make takes options from it, and code to run"),
    ("MAKEFILES", "make reads it before every makefile"),
    ("CC", "builds start it as the compiler"),
    ("CXX", "builds start it as the compiler"),
    ("OPENSSL_CONF", "OpenSSL loads the modules it names"),
];

/// Whether a tool may set it: a name of letters, not among the refused, and a value that is one line.
pub(super) fn may_be_set(name: &str, value: &str) -> bool {
    let letters = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    letters && starts && line(REFUSED, name).is_none() && !value.chars().any(char::is_control)
}

/// What a program makes of a variable besides reading it.
pub fn obeyed(name: &str) -> Option<&'static str> {
    line(OBEYED, name)
}

fn line(table: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    // Some programs do not care for the case of these.
    let name = name.to_ascii_uppercase();
    table.iter().find(|(wanted, _)| matches(wanted, &name, Syntax::Star)).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_obey_is_known_and_what_the_loader_obeys_is_refused() {
        for name in ["BASH_ENV", "NODE_OPTIONS", "GIT_SSH_COMMAND", "npm_config_registry", "PYTHONPATH"] {
            assert!(obeyed(name).is_some() && may_be_set(name, "x"), "{name}");
        }
        for name in ["GREETING", "ENVIRONMENT", "MY_PATH", "JAVA_HOME", "CCACHE"] {
            assert!(obeyed(name).is_none() && may_be_set(name, "x"), "{name}");
        }
        for name in [
            "LD_PRELOAD",
            "DYLD_INSERT_LIBRARIES",
            "PATH",
            "HOME",
            "SANDTABLE_X",
            "GCONV_PATH",
            "1A",
            "A-B",
            "",
        ] {
            assert!(!may_be_set(name, "x"), "{name}");
        }
        assert!(!may_be_set("A", "x\ny"));
        assert!(REFUSED.iter().chain(OBEYED).all(|(_, why)| why.len() > 10));
    }
}

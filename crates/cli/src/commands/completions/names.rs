//! Which arguments take names that only the program knows, and what the scripts of the shells do about them: they call
//! `sandtable __complete`.

use std::fmt::Write as _;

use clap::{Arg, Command, ValueHint};

use crate::commands::complete::Names;

/// The arguments of commands.
const ARGUMENTS: [(&str, &str, Names); 20] = [
    ("exec", "name", Names::Sandboxes),
    ("stop", "names", Names::Sandboxes),
    ("rm", "names", Names::Sandboxes),
    ("inspect", "name", Names::Sandboxes),
    ("logs", "names", Names::Sandboxes),
    ("log", "target", Names::Sandboxes),
    ("snapshot", "target", Names::Sandboxes),
    ("snapshot", "parent", Names::States),
    ("diff", "from", Names::States),
    ("diff", "to", Names::States),
    ("checkout", "snapshot", Names::States),
    ("rollback", "snapshot", Names::States),
    ("rollback", "target", Names::Sandboxes),
    ("undo", "target", Names::Sandboxes),
    ("redo", "target", Names::Sandboxes),
    ("fork", "snapshot", Names::States),
    ("verify", "snapshot", Names::States),
    ("merge", "work", Names::States),
    ("apply", "work", Names::States),
    ("export", "work", Names::States),
];

/// Options that mean the same wherever they are.
const OPTIONS: [(&str, Names); 2] = [("agent_home", Names::Agents), ("profile", Names::Profiles)];

fn of(command: &str, argument: &str) -> Option<Names> {
    let here = ARGUMENTS.iter().find(|(at, id, _)| (*at, *id) == (command, argument));
    let anywhere = || OPTIONS.iter().find(|(id, _)| *id == argument).map(|(_, names)| *names);
    here.map(|(_, _, names)| *names).or_else(anywhere)
}

/// Every argument that takes such names, with its command.
fn all(root: &Command) -> Vec<(&str, &Arg, Names)> {
    let mut found = Vec::new();
    for command in root.get_subcommands() {
        for argument in command.get_arguments() {
            if let Some(names) = of(command.get_name(), argument.get_id().as_str()) {
                found.push((command.get_name(), argument, names));
            }
        }
    }
    found
}

/// The function that completes names, in front of clap's own.
pub(super) fn bash(root: &Command, script: &str) -> String {
    let mut cases = String::new();
    for command in root.get_subcommands() {
        let name = command.get_name();
        let options = command.get_arguments().filter(|arg| !arg.is_positional() && takes_value(arg));
        let mut positional = None;
        let mut others = Vec::new();
        for argument in options {
            match of(name, argument.get_id().as_str()) {
                Some(names) => case(&mut cases, &words(name, argument).join("|"), names),
                None => others.extend(words(name, argument)),
            }
        }
        for argument in command.get_positionals() {
            positional = positional.or(of(name, argument.get_id().as_str()));
        }
        if let Some(names) = positional {
            if !others.is_empty() {
                writeln!(cases, "        {}) return ;;", others.join("|")).expect("a string has room");
            }
            case(&mut cases, &format!("\"{name} \"*"), names);
        }
    }
    let function = BASH.replace("@CASES@", &cases);
    let registered = script.replace("complete -F _sandtable ", "complete -F _sandtable_names ");
    // Behind the definitions, in front of the registration.
    match registered.find("\nif [[ \"${BASH_VERSINFO[0]}\"") {
        Some(at) => format!("{}{function}{}", &registered[..at], &registered[at..]),
        None => registered,
    }
}

const BASH: &str = r#"
# Names that only the program knows; everything else is left to the function above.
_sandtable_names() {
    _sandtable "$@"
    (( COMP_CWORD > 1 )) || return
    local cur="${COMP_WORDS[COMP_CWORD]}" option="${COMP_WORDS[COMP_CWORD-1]}" kind="" word
    [[ $cur == "=" ]] && cur=""
    [[ $option == "=" ]] && option="${COMP_WORDS[COMP_CWORD-2]}"
    [[ $cur == -* ]] && return
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        [[ $word == -- ]] && return
    done
    case "${COMP_WORDS[1]} $option" in
@CASES@    esac
    [[ $kind ]] || return
    local names
    names=($(compgen -W "$("${COMP_WORDS[0]}" __complete "$kind" 2>/dev/null)" -- "$cur"))
    # A directory can be meant as well.
    (( ${#names[@]} )) && COMPREPLY=("${names[@]}")
}
"#;

fn case(cases: &mut String, pattern: &str, names: Names) {
    writeln!(cases, "        {pattern}) kind={} ;;", names.word()).expect("a string has room");
}

/// A command followed by each name of an option, as patterns of a shell.
fn words(command: &str, option: &Arg) -> Vec<String> {
    let long = option.get_long().map(|long| format!("\"{command} --{long}\""));
    let short = option.get_short().map(|short| format!("\"{command} -{short}\""));
    short.into_iter().chain(long).collect()
}

fn takes_value(argument: &Arg) -> bool {
    argument.get_action().takes_values()
}

/// The definition for zsh: marked with hints that nothing of ours has, of which [`zsh`] makes calls.
pub(super) fn marked(root: Command) -> Command {
    root.mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|argument| match of(&name, argument.get_id().as_str()) {
            // Words that are known beforehand would be taken instead.
            Some(names) => argument.value_parser(clap::value_parser!(String)).value_hint(mark(names).0),
            None => argument,
        })
    })
}

fn mark(names: Names) -> (ValueHint, &'static str) {
    match names {
        Names::Sandboxes => (ValueHint::Username, "_users"),
        Names::States => (ValueHint::Hostname, "_hosts"),
        Names::Agents => (ValueHint::Url, "_urls"),
        Names::Profiles => (ValueHint::EmailAddress, "_email_addresses"),
    }
}

pub(super) fn zsh(script: &str) -> String {
    let kinds = [Names::Sandboxes, Names::States, Names::Agents, Names::Profiles];
    let script = kinds.into_iter().fold(script.to_owned(), |script, names| {
        script.replace(&format!(":{}'", mark(names).1), &format!(":_sandtable_names {}'", names.word()))
    });
    match script.split_once('\n') {
        // The first line says to zsh what the file completes.
        Some((first, rest)) => format!("{first}\n{ZSH}{rest}"),
        None => script,
    }
}

const ZSH: &str = r#"
# Names that only the program knows, or else files.
_sandtable_names() {
    local -a names
    names=(${(f)"$(sandtable __complete ${@[-1]} 2>/dev/null)"})
    compadd "${@[1,-2]}" -a names || _files
}
"#;

/// Lines that add the names to clap's script.
pub(super) fn fish(root: &Command, script: &str) -> String {
    let mut script = script.to_owned();
    for (command, argument, names) in all(root) {
        let at = format!("__fish_sandtable_using_subcommand {command}");
        let (at, option) = match argument.get_long() {
            Some(long) => (at, format!(" -l {long} -x")),
            None => (format!("{at}; and not contains -- -- (commandline -opc)"), String::new()),
        };
        let call = format!("(sandtable __complete {} 2>/dev/null)", names.word());
        writeln!(script, "complete -c sandtable -n \"{at}\"{option} -a \"{call}\"")
            .expect("a string has room");
    }
    script
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::command_line::Cli;

    #[test]
    fn every_line_of_the_table_is_an_argument() {
        let root = Cli::command();
        let found = all(&root);
        for (command, id, _) in ARGUMENTS {
            assert!(found.iter().any(|(at, arg, _)| *at == command && arg.get_id() == id), "{command} {id}");
        }
        for (id, _) in OPTIONS {
            assert!(found.iter().any(|(at, arg, _)| *at == "run" && arg.get_id() == id), "{id}");
        }
    }

    #[test]
    fn whatever_takes_a_sandbox_or_a_snapshot_is_completed() {
        for command in Cli::command().get_subcommands() {
            for argument in command.get_arguments() {
                let value = argument.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
                let named = ["SANDBOX", "SNAPSHOT"].iter().any(|word| value.contains(word));
                let (at, id) = (command.get_name(), argument.get_id().as_str());
                assert!(!named || of(at, id).is_some(), "{at} {id}: {value}");
            }
        }
    }
}

//! How help is arranged: commands and options under headings, no wider than [`WIDTH`].
//!
//! `-h` shows what people use every day, each option on one line; `--help` shows everything.

use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;

/// Help is wrapped at this column, or at the terminal's edge where that comes first.
pub(crate) const WIDTH: usize = 100;

/// The commands under their headings, each exactly once.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Run", &["run", "shell", "exec", "stop", "rm", "prune"]),
    ("Inspect", &["ls", "inspect", "diff", "logs", "events"]),
    (
        "History",
        &["log", "snapshot", "onboard", "checkout", "rollback", "undo", "redo", "fork", "verify", "store"],
    ),
    ("Merge", &["merge", "apply", "export"]),
    ("Tools", &["tool"]),
    ("Setup", &["doctor", "policy", "trust", "completions", "man"]),
];

/// Options of commands under their headings, by the names of their fields. Settings have theirs in their table.
const OPTIONS: [(&str, &[&str]); 12] = [
    ("Workspace", &["directory"]),
    ("Selection", &["only", "exclude", "choose", "all", "older_than", "max_age", "ignored", "merge"]),
    ("Target", &["into", "branch", "patch", "bundle"]),
    ("History", &["message", "author", "committer", "history", "parent"]),
    ("Confirmation", &["approve", "dry_run", "yes", "force", "revoke"]),
    ("Checks", &["deep", "against", "attack", "allow_unavailable"]),
    ("Recipe", &["recipe", "plan"]),
    ("Platform", &["arch", "libc", "family", "rootfs"]),
    ("Containers", &["engine", "image", "pull"]),
    ("Build", &["deps", "keep", "clean"]),
    ("Limits", &["timeout", "grace"]),
    (
        "Output",
        &[
            "json",
            "quiet",
            "follow",
            "tail",
            "timestamps",
            "stat",
            "name_status",
            "exit_code",
            "graph",
            "list",
            "apparmor_profile",
        ],
    ),
];

/// The definition of the command line, with its help arranged.
pub(crate) fn command() -> Command {
    let command = under_headings(Cli::command().max_term_width(WIDTH));
    let template = template(&command);
    command.help_template(template)
}

/// The options of a command, and of those below it, under their headings.
fn under_headings(command: Command) -> Command {
    let command = command.mut_args(|argument| match heading(&argument) {
        Some(heading) => argument.help_heading(heading),
        None => argument,
    });
    command.mut_subcommands(under_headings)
}

fn heading(argument: &Arg) -> Option<&'static str> {
    if argument.is_positional() || argument.get_help_heading().is_some() {
        return None;
    }
    let named = |(_, names): &&(&str, &[&str])| names.contains(&argument.get_id().as_str());
    OPTIONS.iter().find(named).map(|(heading, _)| *heading)
}

/// The help of the whole program: clap has headings for options, not for commands.
fn template(command: &Command) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let widest = command.get_subcommands().map(|below| below.get_name().len()).max().unwrap_or_default();
    let mut text = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        write!(text, "\n{header}{heading}:{header:#}\n").expect("a string has room");
        for below in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let (name, about) = (below.get_name(), below.get_about().cloned().unwrap_or_default());
            let room = " ".repeat(widest - name.len());
            writeln!(text, "  {literal}{name}{literal:#}{room}  {about}").expect("a string has room");
        }
    }
    write!(text, "\n{header}Options:{header:#}\n{{options}}{{after-help}}").expect("a string has room");
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What people meet first fits a small window, and no line is cut.
    #[test]
    fn the_short_help_of_run_is_one_page() {
        let mut command = command();
        let help = command.find_subcommand_mut("run").expect("there is one");
        let help = help.clone().max_term_width(WIDTH).render_help().to_string();
        let lines: Vec<&str> = help.lines().collect();
        assert!(lines.len() <= 60, "{} lines", lines.len());
        assert_eq!(lines.iter().filter(|line| line.chars().count() > WIDTH).count(), 0, "{help}");
    }

    #[test]
    fn every_command_is_under_one_heading() {
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        let known: BTreeSet<&str> = command.get_subcommands().map(Command::get_name).collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(grouped.len(), known.len(), "one of them is listed twice");
    }

    #[test]
    fn every_name_in_the_table_of_options_is_one() {
        fn ids(command: &Command) -> Vec<String> {
            let own = command.get_arguments().map(|argument| argument.get_id().to_string());
            own.chain(command.get_subcommands().flat_map(ids)).collect()
        }
        let known = ids(&command());
        let named = OPTIONS.iter().flat_map(|(_, names)| names.iter());
        let unknown: Vec<&&str> = named.filter(|name| !known.contains(&(**name).to_owned())).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn every_option_is_under_a_heading() {
        fn look(command: &Command, path: &str, missing: &mut Vec<String>) {
            for option in command.get_arguments().filter(|argument| !argument.is_positional()) {
                let known = ["help", "version"].contains(&option.get_id().as_str());
                if !known && option.get_help_heading().is_none() {
                    missing.push(format!("{path} --{}", option.get_id()));
                }
            }
            for below in command.get_subcommands() {
                look(below, &format!("{path} {}", below.get_name()), missing);
            }
        }
        let mut missing = Vec::new();
        look(&command(), "", &mut missing);
        assert_eq!(missing, Vec::<String>::new());
    }

    /// The heading of options that are declared before it would be taken for its own.
    #[test]
    fn no_argument_is_under_a_heading_of_options() {
        for below in Cli::command().get_subcommands() {
            for argument in below.get_positionals() {
                assert_eq!(argument.get_help_heading(), None, "{} {}", below.get_name(), argument.get_id());
            }
        }
    }

    /// Values are named in the text, because clap's own list of them does not fit on the line of an option.
    #[test]
    fn an_option_names_the_words_it_takes() {
        for below in Cli::command().get_subcommands() {
            for argument in below.get_arguments().filter(|argument| argument.is_hide_possible_values_set()) {
                let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string);
                let help = help.unwrap_or_default();
                for value in argument.get_possible_values() {
                    let word = format!("`{}`", value.get_name());
                    assert!(help.contains(&word), "{} {}: {word}", below.get_name(), argument.get_id());
                }
            }
        }
    }
}

use sandtable_app::config::key::Key;

use super::*;

fn refused(words: &[&str]) -> CliError {
    let args: Vec<OsString> =
        std::iter::once("sandtable").chain(words.iter().copied()).map(Into::into).collect();
    match parse(&args) {
        Err(Stop::Refused(error)) => error,
        other => panic!("not refused: {other:?}"),
    }
}

fn answer(words: &[&str]) -> String {
    let args: Vec<OsString> =
        std::iter::once("sandtable").chain(words.iter().copied()).map(Into::into).collect();
    match parse(&args) {
        Err(Stop::Answer(text)) => text.to_string(),
        other => panic!("no answer: {other:?}"),
    }
}

fn rendered(words: &[&str]) -> String {
    let error = refused(words);
    assert_eq!(error.exit(), exit::Own::Input);
    error.rendered(crate::ui::style::Colour::Never)
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_setting_has_its_flag_with_help() {
    let command = Cli::command();
    let run = command.find_subcommand("run").expect("there is one");
    for key in Key::ALL {
        let name = key.flag().trim_start_matches('-');
        let arg = run.get_arguments().find(|arg| arg.get_long() == Some(name));
        assert!(arg.is_some_and(|arg| arg.get_help().is_some()), "{name}");
    }
}

#[test]
fn a_forgotten_dash_dash_is_explained() {
    insta::assert_snapshot!(rendered(&["run", "ls", "-la"]), @"
    sandtable: error: unexpected argument 'ls' found

    Usage: sandtable run [OPTIONS] -- <CMD>...
      try: the command goes behind `--`: sandtable run [options] -- CMD…
    ");
    insta::assert_snapshot!(rendered(&["exec", "try", "cat", "f"]), @"
    sandtable: error: unexpected argument 'cat' found

    Usage: sandtable exec [OPTIONS] <NAME> -- <CMD>...
      try: the command goes behind `--`: sandtable exec NAME [options] -- CMD…
    ");
    insta::assert_snapshot!(rendered(&["run"]), @"
    sandtable: error: the following required arguments were not provided:
      <CMD>...

    Usage: sandtable run -- <CMD>...
      try: the command goes behind `--`: sandtable run [options] -- CMD…
    ");
    assert!(!rendered(&["ls", "x"]).contains("behind"));
    assert!(!rendered(&["run", "--frob", "--", "x"]).contains("behind"));
}

#[test]
fn unknown_words_are_refused_with_the_known_ones() {
    insta::assert_snapshot!(rendered(&["run", "--network", "hots", "--", "x"]), @"
    sandtable: error: invalid value 'hots' for '--network <NETWORK>'
      [possible values: none, proxied, nat, host]

      tip: a similar value exists: 'host'
    ");
    for option in [
        "--engine",
        "--profile",
        "--mode",
        "--network",
        "--git-config",
        "--secrets",
        "--name",
        "--cpus",
        "--memory",
        "--pids",
        "--disk",
        "--timeout",
        "-m",
    ] {
        assert_eq!(refused(&["run", option, "No such word", "--", "x"]).exit(), exit::Own::Input, "{option}");
    }
    assert_eq!(refused(&["help", "nosuch"]).exit(), exit::Own::Input, "help");
    assert_eq!(refused(&["run", "--base=sauce", "--", "x"]).exit(), exit::Own::Input, "--base");
}

#[test]
fn no_command_is_an_error_that_helps() {
    for (words, heading) in [(&[][..], "\nInspect:\n"), (&["policy"], "\nCommands:\n")] {
        let text = rendered(words);
        assert!(text.starts_with("sandtable: error: which command?\n") && text.contains(heading), "{text}");
    }
}

#[test]
fn a_misspelt_command_is_recognised() {
    for (word, meant) in [("rnu", "run"), ("mrege", "merge"), ("snapshto", "snapshot"), ("undoo", "undo")] {
        let text = rendered(&[word]);
        let tip = text.contains(&format!("'{meant}'")) || text.contains(&format!("`sandtable {meant}`"));
        assert!(tip, "{text}");
    }
    assert!(!rendered(&["frobnicate"]).contains("did you mean"));
}

#[test]
fn the_command_is_passed_on_as_it_is() {
    use std::os::unix::ffi::OsStringExt as _;
    let odd = OsString::from_vec(vec![b'-', 0xff]);
    let args: Vec<OsString> = ["sandtable", "run", "--rm", "--", "--rm", "-q"]
        .into_iter()
        .map(Into::into)
        .chain([odd.clone()])
        .collect();
    let cli = parse(&args).expect("well-formed");
    let shown = format!("{:?}", cli.command);
    assert!(shown.contains(&format!("command: [\"--rm\", \"-q\", {odd:?}]")), "{shown}");
}

#[test]
fn help_of_the_program() {
    insta::assert_snapshot!(answer(&["--help"]), @"
    A sandbox for coding agents: run on a private view of your repository, look, then keep or drop

    Usage: sandtable <COMMAND>

    Run:
      run          Run a command in a new sandbox of this repository
      shell        Run your shell in a new sandbox
      exec         Run a command in an existing sandbox
      stop         Stop what runs in a sandbox; its files stay
      rm           Remove sandboxes and their files
      prune        Remove stopped sandboxes that changed nothing

    Inspect:
      ls           List sandboxes
      inspect      Show a sandbox and the result of its last command
      diff         Show the changes between two states
      logs         Show the output of a detached command
      events       Show what happened to sandboxes

    History:
      log          Show the history of a sandbox, a directory or this repository
      snapshot     Record the state of a sandbox or a directory, and print its id
      onboard      Record the first state of a directory, and print its id
      checkout     Write a recorded state into an empty directory
      rollback     Restore a sandbox or a directory to a recorded state
      undo         Undo the last operation: a command, a rollback or a merge
      redo         Redo what was undone
      fork         Create a sandbox from a recorded state, without running a command
      verify       Check a recorded state, or prove what a command does to it
      store        Check and clean up the recorded states

    Merge:
      merge        Merge a sandbox's changes into the current branch as one commit
      apply        Apply a sandbox's changes to your files, uncommitted
      export       Export a sandbox's changes as a branch, a patch or a bundle

    Tools:
      tool         Build tools from recipes and plans, for use in sandboxes

    Setup:
      doctor       Check what this machine can enforce, and how to fix what it cannot
      policy       Show the effective policy and where each setting comes from
      trust        Trust a project's configuration file as it is now
      completions  Print the completion script of a shell
      man          Print a manual page, or write all of them

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Exit codes:
      N      the command's own code
      128+N  the command was killed by signal N
      130    interrupted while something was copied, fetched or recorded; nothing incomplete is kept
      128+N  a state command was interrupted by signal N; everything was put back, or is complete
      127    the command was not found in the sandbox
      126    the command was found and cannot be executed
      124    the time limit (`--timeout`) was reached
      123    the disk budget (`--disk`) was used up
      125    the sandbox could not be started or was lost
      2      wrong usage, configuration or missing consent
      1      a state command could not do what it was asked for
    Codes of Sandtable's own are marked as such in the report (`exit.origin`).
    ");
}

#[test]
fn help_of_run() {
    insta::assert_snapshot!(answer(&["run", "-h"]), @r#"
    Run a command in a new sandbox of this repository

    Usage: sandtable run [OPTIONS] -- <CMD>...

    Arguments:
      <CMD>...  The command and its arguments; no shell interprets them

    Options:
      -h, --help  Print help (see more with '--help')

    Workspace:
          --name <NAME>      Name of the sandbox; generated by default
      -C, --directory <DIR>  Start in DIR; the repository around it is the source
          --mode <MODE>      How changes are kept apart: `auto`, `overlay`, `copy`, `live`
          --base <BASE>      The base of the workspace: `source` or `store`
          --rm               Remove the sandbox and its changes when the command ends

    Visibility:
      -v, --mount <SRC[:DST[:ro|rw|cow]]>  Show a file or directory of the host; read-only by default
          --expose <PATH|NAME>             Show a path, or credentials such as `gcloud`, read-only
          --tool <NAME[@VERSION]>          Show a tool, such as `node` or `ninja@1.13`, on PATH
          --agent-home <NAME|PATH>         Show an agent's settings, such as `claude`, copy-on-write
          --hide <PATTERN>                 Hide files of the workspace: a name, or a path from its top
      -e, --env <NAME[=VALUE]>             Set a variable, or pass on yours by its name
          --ssh-agent <MODE>               Access to your ssh-agent: `auto`, `on`, `off`, `required`
          --git-config <MODE>              Your git configuration: `literal`, `sanitized`, `off`
          --secrets <MODE>                 Files that look like secrets: `warn` or `mask`

    Network:
          --network <NETWORK>      Network access: `none`, `proxied`, `nat`, `host`
      -p, --publish <PORT[:PORT]>  Publish a port of the container on the loopback address

    Limits:
          --cpus <NUMBER>   Processors, such as 2 or 0.5
      -m, --memory <SIZE>   Memory including swap and memory file systems, such as 2g
          --disk <SIZE>     Disk space, such as 20g, or none; default: half of what is free
          --timeout <TIME>  Time, such as 90s or 5m; then the command ends with code 124

    Containers:
          --engine <ENGINE>  Engine: `auto`, `native`, `docker`, `podman`, `seatbelt`
          --image <IMAGE>    Image that the command sees as its system

    Policy:
          --profile <PROFILE>  A set of defaults: `none`, `dev`, `safe`, `tight`, `offline`
          --best-effort        Start even if a control cannot be enforced, and list which
          --dry-run            Print the policy and the plan, and do nothing

    Output:
      -t, --tty            Give the command a terminal even if there is none here
      -d, --detach         Run in the background; print the name and return
          --report <FILE>  Write what was done and what changed to FILE, as JSON
      -q, --quiet          Print only errors and work that was not recorded

    Examples:
      sandtable run -- make test                     run, then list the changes; the source is unchanged
      sandtable run --profile safe -- ./install.sh   no network, masked secrets, filtered git settings
      sandtable run --name try -- sh -c 'a && b'     then: sandtable exec try -- git status

    Each option is also a variable (SANDTABLE_GIT_CONFIG) and a key of ~/.config/sandtable/config.toml
    (`git_config = "off"`). A project's .sandtable.toml can only narrow the policy.
    "#);
    assert!(answer(&["run", "--help"]).contains(exit::TABLE));
}

#[test]
fn every_command_has_help_and_the_program_a_version() {
    for command in [
        &["exec"][..],
        &["shell"],
        &["logs"],
        &["events"],
        &["prune"],
        &["ls"],
        &["inspect"],
        &["stop"],
        &["rm"],
        &["policy"],
        &["policy", "show"],
    ] {
        let words: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        assert!(answer(&words).contains("Usage: sandtable"), "{command:?}");
    }
    for words in [&["help", "run"][..], &["help", "tool", "ls"], &["tool", "help", "ls"]] {
        let command: Vec<&str> = words.iter().copied().filter(|word| *word != "help").collect();
        assert_eq!(answer(words), answer(&[&command[..], &["--help"]].concat()), "{words:?}");
    }
    assert_eq!(answer(&["help"]), answer(&["--help"]));
    assert_eq!(answer(&["--version"]), concat!("sandtable ", env!("CARGO_PKG_VERSION"), "\n"));
}

use clap::CommandFactory as _;

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
        Err(Stop::Answer(text)) => text,
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
    assert_eq!(refused(&["help"]).exit(), exit::Own::Input, "help");
    assert_eq!(refused(&["run", "--base=sauce", "--", "x"]).exit(), exit::Own::Input, "--base");
}

#[test]
fn no_command_is_an_error_that_helps() {
    for words in [&[][..], &["policy"]] {
        let text = rendered(words);
        assert!(
            text.starts_with("sandtable: error: which command?\n") && text.contains("Commands:"),
            "{text}"
        );
    }
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
fn a_flag_that_cannot_be_read_names_the_option() {
    let inside = InsideArgs { mounts: vec!["/a:ro".into()], ..InsideArgs::default() };
    let settings = SettingArgs { inside, ..SettingArgs::default() };
    let error = CliError::from(settings.layer().expect_err("refused"));
    insta::assert_snapshot!(error.rendered(crate::ui::style::Colour::Never), @"
    sandtable: error: option `--mount` has no usable value
      because: mount `/a:ro` has destination `ro`, which is not an absolute path
      try: the mode is the third part: `SRC:DST:ro`
    ");
}

#[test]
fn help_of_the_program() {
    insta::assert_snapshot!(answer(&["--help"]), @"
    A sandbox for coding agents: run on a private view of your repository, look, then keep or drop

    Usage: sandtable <COMMAND>

    Commands:
      run          Run a command in a new sandbox on the repository around the current directory
      shell        Run your shell in a new sandbox, as `run` would
      exec         Run another command in an existing sandbox
      ls           List the sandboxes
      inspect      Show what a sandbox is and what its last command did
      logs         Show what a detached command wrote
      events       Show what happened to sandboxes
      diff         Show what differs between two states
      log          Show what was recorded of a source, a sandbox or a directory, newest first
      snapshot     Record the state of a sandbox or a directory now, and print its id
      onboard      Record the first state of a directory, and print its id
      checkout     Write a recorded state into an empty directory
      rollback     Bring a sandbox or a directory back to a recorded state
      undo         Take back the last operation on a sandbox, a directory or this source: a command, a rollback, a merge
      redo         Do again what was undone
      fork         Make a new sandbox that is in a recorded state; no command runs
      verify       Check a recorded state; prove what a command does on it, or check such a proof
      merge        Merge what a sandbox did into your repository's current branch, as one commit
      apply        Bring what a sandbox did into your files, uncommitted
      export       Hand over what a sandbox did as a branch, a patch or a bundle
      store        Look after what is recorded
      stop         End what runs in a sandbox; its state stays
      rm           Remove sandboxes and everything in them
      prune        Remove sandboxes that do not run and changed nothing
      policy       Show the policy that would hold, and where each line of it comes from
      tool         Make tools from recipes and plans, for sandboxes
      trust        Consent to a project's file as it is now, so that it may widen the policy
      doctor       Find out what can be enforced here, what not, and what mends it
      completions  Print the completions of a shell
      man          Print a manual page, or write all of them

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version

    Exit codes:
      N      the command's own code
      128+N  the command died by signal N
      130    interrupted while the source was copied; nothing ran
      128+N  a state command was ended by signal N, after it put everything back or, too late for that, finished
      127    the command was not found in the sandbox
      126    the command was found and cannot be executed
      124    the command's time (`--timeout`) was up
      123    the sandbox had used up its disk budget (`--disk`)
      125    the machine must change: the sandbox could not be started, or was lost
      2      the input must change: usage, configuration, missing consent
      1      a state command could not do what it was asked for
    A number of Sandtable's own is marked as such in the report (`exit.origin`).
    ");
}

#[test]
fn help_of_run() {
    insta::assert_snapshot!(answer(&["run", "-h"]), @r#"
    Run a command in a new sandbox on the repository around the current directory

    Usage: sandtable run [OPTIONS] -- <CMD>...

    Arguments:
      <CMD>...  The command and its arguments, passed on as they are, never through a shell

    Options:
          --engine <ENGINE>                What runs the sandbox [possible values: auto, native, docker, podman, seatbelt]
          --image <IMAGE>                  What the command sees as its system: an image by the name that docker or podman knows; natively a directory, a tar archive or an OCI layout by its path
          --pull <WHEN>                    Whether the image is fetched [possible values: missing, never, always]
          --build                          Build the image first, from the project's `.sandtable/Dockerfile` or `.llxprt/sandbox.Dockerfile`
      -p, --publish <PORT[:PORT]>          Show a port of the container on this machine's loopback address
          --engine-flags <FLAGS>           Options for docker or podman in one text, such as '--shm-size=1g --ulimit nofile=1024'
          --proxy-command <COMMAND>        The command of a proxy that is the only way out, such as 'node proxy.js': run beside the sandbox, it listens on port 8877
          --dangerously-engine-flags       Allow options for docker or podman that undo the sandbox, like `--privileged`
          --support-url <ADDRESS>          Where to send people whose image cannot be had
          --seatbelt-profile <PROFILE>     With engine `seatbelt`: what is open besides files, and which connections are [possible values: permissive-open, permissive-closed, permissive-proxied, restrictive-open, restrictive-closed, restrictive-proxied]
          --profile <PROFILE>              A named bundle of settings [possible values: none, dev, safe, tight, offline]
          --name <NAME>                    Name of the sandbox instead of one made up
      -C, --directory <DIR>                Start in DIR; the repository around it is the source
          --mode <MODE>                    How the workspace is kept apart from the source [possible values: auto, overlay, copy, live]
          --base <BASE>                    What the workspace stands on: the source, seen as it moves, or its recorded state [possible values: source, store]
      -v, --mount <SRC[:DST[:ro|rw|cow]]>  Show a file or directory of the host inside: read-only, writable, or copy-on-write
          --expose <PATH|NAME>             Show a path, or a bundle of credentials like `gcloud` or `aws`, read-only at its own place
          --tool <NAME[@VERSION]>          Show a tool of ours, like `node` or `ninja@1.13`, with its programs on PATH; made when it is not there yet
          --agent-home <NAME|PATH>         Show an agent's own settings, like `claude` or `codex`, as a private copy-on-write view
          --hide <PATTERN>                 Hide what fits in the workspace: a name at any depth, or a path from its top, with `*` and `**`
      -e, --env <NAME[=VALUE]>             Set a variable for the command, or pass yours on by its name
          --env-file <FILE>                Set the variables that a file lists, one NAME=VALUE per line
          --network <NETWORK>              Which network the command sees [possible values: none, proxied, nat, host]
          --cpus <NUMBER>                  Processors, such as 2 or 0.5
      -m, --memory <SIZE>                  Memory with swap, such as 512m or 2g; everything in memory file systems counts
          --pids <NUMBER>                  Processes and threads
          --disk <SIZE>                    Disk for everything the sandbox writes, such as 500m or 20g, or none; by default half of what is free
          --timeout <TIME>                 End the command after this time, such as 90s or 5m, with exit code 124
          --ssh-agent <WHETHER>            Whether the command may use your ssh-agent [possible values: auto, on, off, required]
          --git-config <HOW>               How much of your git configuration the command sees [possible values: literal, sanitized, off]
          --secrets <HOW>                  What happens to files of the source whose names say secret [possible values: warn, mask]
          --rm                             Keep nothing: the sandbox goes when the command ends
          --best-effort                    Start even if a control cannot be enforced; what is lost is listed
          --dangerously-allow-source       Allow `/`, the home directory or a tree with credentials as the source
          --dry-run                        Show the policy and the plan, and do nothing
          --json                           With --dry-run: as JSON
      -t, --tty                            Give the command a terminal even if you have none here
      -T, --no-tty                         Give the command no terminal
      -d, --detach                         Return at once and print the name; the command goes on in the background
          --report <FILE>                  Write what was done and changed to FILE, as JSON
      -q, --quiet                          Say nothing but errors
      -h, --help                           Print help (see more with '--help')

    Examples:
      sandtable run -- make test                      run, then list what changed; the source stays as it is
      sandtable run --profile safe -- ./install.sh    no network, masked secrets, filtered git configuration
      sandtable run --rm -v ~/data -- ./report        show a directory read-only, keep nothing
      sandtable run --name try -- sh -c 'rm -rf src'  then: sandtable exec try -- git status
      sandtable run --dry-run -- true                 show the policy and the plan, do nothing

    Every option can also be set by a variable (`--git-config` is SANDTABLE_GIT_CONFIG) and in
    ~/.config/sandtable/config.toml (`git_config = "off"`). A project's .sandtable.toml can only narrow.
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
    assert_eq!(answer(&["--version"]), concat!("sandtable ", env!("CARGO_PKG_VERSION"), "\n"));
}

//! Completions that load and manual pages that render.

use sandtable_testkit::env::TestEnv;
use sandtable_testkit::require;

use crate::cli::Unused;

#[test]
fn completions_load_in_their_shells() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let script = |shell: &str| {
        let file = env.root().join(format!("completions.{shell}"));
        env.file(&file, env.sandtable().args(["completions", shell]).ended().expect_code(0).stdout);
        file
    };
    let (bash, zsh, fish) = (script("bash"), script("zsh"), script("fish"));
    let checks = [
        ("bash", "bash -n \"$1\" && . \"$1\" && complete -p sandtable", &bash),
        ("zsh", "autoload -U compinit; compinit -D; . \"$1\"; (( $+functions[_sandtable] ))", &zsh),
        ("fish", "source $argv[2]; complete -c sandtable | string match -q '*doctor*'", &fish),
    ];
    for (shell, check, file) in checks {
        if require::program(shell).is_none() {
            require::say(&format!("no {shell} here; its completions were made and not loaded"));
            continue;
        }
        env.run(shell).args(["-c", check, shell]).arg(file).ended().expect_code(0).unused();
    }
    for file in [&bash, &zsh, &fish] {
        let text = fs_err::read_to_string(file).unwrap();
        let missing: Vec<String> =
            commands(&env).into_iter().filter(|name| !text.contains(name.as_str())).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", file.display());
        assert!(text.contains("best-effort"), "{}", file.display());
    }
    env.sandtable().args(["completions", "tcsh"]).ended().expect_code(2).unused();
}

#[test]
fn completions_of_bash_complete() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if require::program("bash").is_none() {
        return require::skip("completing needs bash");
    }
    let file = env.root().join("completions.bash");
    env.file(&file, env.sandtable().args(["completions", "bash"]).ended().expect_code(0).stdout);
    let script = ". \"$1\"; COMP_WORDS=(sandtable run --netw); COMP_CWORD=2; COMP_LINE='sandtable run --netw'; \
                  _sandtable sandtable --netw run; echo \"${COMPREPLY[*]}\"";
    let ended = env.run("bash").args(["-c", script, "bash"]).arg(&file).ended().expect_code(0);
    assert_eq!(ended.stdout, "--network\n", "{}", ended.stderr);
}

#[test]
fn completions_of_bash_know_names() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    if require::program("bash").is_none() {
        return require::skip("completing needs bash");
    }
    let source = env.repository("r");
    let run = env.sandtable().directory(&source).args(["run", "--name", "tidy-lark", "--", "touch", "new"]);
    run.ended().expect_code(0).unused();
    let file = env.root().join("completions.bash");
    env.file(&file, env.sandtable().args(["completions", "bash"]).ended().expect_code(0).stdout);
    // As bash does it: the function that is registered for the word, with the words before the cursor.
    let script = r#". "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
        function=$(complete -p sandtable | sed 's/.*-F \([^ ]*\).*/\1/'); shopt -s progcomp
        compopt() { :; }; "$function" sandtable "${@: -1}" "${@: -2:1}"; printf '%s\n' "${COMPREPLY[@]}""#;
    let complete = |words: &[&str]| {
        let run = env.run("bash").directory(&source).args(["-c", script, "bash"]).arg(&file);
        let path = format!("{}:/usr/bin:/bin", env.binary().parent().unwrap().display());
        let ended = run.arg("sandtable").args(words).variable("PATH", path).ended().expect_code(0);
        assert_eq!(ended.stderr, "", "{words:?}");
        ended.stdout.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    for words in [&["exec", "ti"][..], &["rm", "-f", "t"], &["merge", "tidy"], &["logs", "--tail", "3", "ti"]]
    {
        assert_eq!(complete(words), ["tidy-lark"], "{words:?}");
    }
    let states = complete(&["diff", ""]);
    assert!(states.len() == 2 && states[0] == "tidy-lark" && states[1].len() == 12, "{states:?}");
    assert_eq!(complete(&["run", "--agent-home", "cla"]), ["claude"]);
    assert_eq!(complete(&["run", "--agent-home", "=", "cla"]), ["claude"]);
    assert_eq!(complete(&["shell", "--profile", "tig"]), ["tight"]);
    assert_eq!(complete(&["exec", "--direct"]), ["--directory"]);
    for words in
        [&["logs", "--tail", "ti"][..], &["exec", "tidy-lark", "--", "ti"], &["run", "--name", "ti"], &["ti"]]
    {
        assert!(!complete(words).contains(&"tidy-lark".to_owned()), "{words:?}");
    }
}

#[test]
fn names_for_a_shell_come_in_silence_and_change_nothing() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    for words in [&["sandboxes"][..], &["states"], &["nonsense"], &[], &["agents", "more"]] {
        let ended = env.sandtable().arg("__complete").args(words).ended().expect_code(0);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""), "{words:?}");
    }
    assert!(!env.home().join(".local/share/sandtable").exists());
    let nowhere =
        env.sandtable().variable("HOME", "relative").variable("XDG_DATA_HOME", "").arg("__complete");
    assert_eq!(nowhere.arg("sandboxes").ended().expect_code(0).stderr, "");
    let help = env.sandtable().arg("--help").ended().expect_code(0).stdout;
    assert!(!help.contains("__complete"), "{help}");
}

#[test]
fn manual_pages_render_and_none_is_missing() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let pages = env.root().join("man");
    env.directory(&pages);
    env.sandtable().arg("man").arg("--directory").arg(&pages).ended().expect_code(0).unused();
    for command in commands(&env) {
        assert!(pages.join(format!("sandtable-{command}.1")).is_file(), "{command}");
    }
    let one = env.sandtable().args(["man", "policy", "why"]).ended().expect_code(0).stdout;
    assert_eq!(one, fs_err::read_to_string(pages.join("sandtable-policy-why.1")).unwrap());
    env.sandtable().args(["man", "nothing"]).ended().expect_code(2).expect_stderr("nothing").unused();
    if require::program("man").is_none() {
        return require::say("no man here; the pages were made and not rendered");
    }
    for entry in fs_err::read_dir(&pages).unwrap() {
        let path = entry.unwrap().path();
        let run = env.run("man").variable("MANWIDTH", "100").variable("MANROFFSEQ", "");
        let ended = run.args(["--warnings", "-l"]).arg(&path).ended().expect_code(0);
        assert_eq!(ended.stderr, "", "{}", path.display());
        assert!(ended.stdout.contains("NAME") && ended.stdout.contains("SYNOPSIS"), "{}", path.display());
    }
}

/// The commands that the help lists.
fn commands(env: &TestEnv) -> Vec<String> {
    let help = env.sandtable().arg("-h").ended().expect_code(0).stdout;
    let command = |line: &str| Some(line.strip_prefix("  ")?.split_whitespace().next()?.to_owned());
    let names: Vec<String> =
        help.lines().take_while(|line| *line != "Options:").filter_map(command).collect();
    assert!(names.len() >= 30, "{help}");
    names
}

//! Commands at a terminal, and commands in pipes.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sandtable_testkit::counts;
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::require;
use sandtable_testkit::tmux::Tmux;

use crate::cli::Unused;
use crate::lifecycle::assert_nothing_runs;

/// Runs a test in a terminal, as whoever runs the tests and as an ordinary user.
fn at_a_terminal(test: impl Fn(&TestEnv, &Tmux<'_>)) {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let Some(tmux) = Tmux::start(&env, &source) else { return };
        test(&env, &tmux);
    }
}

/// The host's shell is there and its terminal is as a shell wants it.
fn assert_the_terminal_works(tmux: &Tmux<'_>) {
    // A word of its own each time, so that nothing older on the screen is taken for it.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let check = "stty -a | grep -ow -e '-echo' -e '-icanon' -e '-opost'";
    tmux.command(&format!("clear; {check} || echo sa''ne {count} e''nd"));
    tmux.shows(&format!("sane {count} end"));
}

#[test]
fn an_editor_follows_the_window_and_stops_and_goes_on() {
    let Some(vim) = ["vim.tiny", "vim"].into_iter().find(|name| require::program(name).is_some()) else {
        return require::skip("no vim");
    };
    at_a_terminal(|_, tmux| {
        tmux.line(&format!("$S run --name edit -- {vim} README"));
        tmux.shows("A sample.");
        tmux.until("a full screen", |screen| screen.lines().filter(|line| *line == "~").count() > 15);
        tmux.resize(60, 12);
        tmux.until("a smaller one", |screen| screen.lines().filter(|line| *line == "~").count() == 10);
        tmux.key("C-z");
        tmux.shows("Stopped");
        tmux.command("clear; echo at ho''me");
        tmux.shows("at home");
        tmux.resize(70, 20);
        tmux.command("fg");
        tmux.until("the new size", |screen| screen.lines().filter(|line| *line == "~").count() == 18);
        tmux.line(":s/sample/changed/");
        tmux.line(":wq");
        tmux.shows("M README");
        tmux.command("clear; $S exec -q edit -- cat README");
        tmux.shows("A changed.");
        assert_the_terminal_works(tmux);
    });
}

#[test]
fn a_pager_and_a_monitor_run() {
    at_a_terminal(|_, tmux| {
        tmux.line("$S run -q --rm -- sh -c 'seq 500 | less'");
        tmux.shows("23");
        tmux.key("G");
        tmux.shows("500");
        tmux.key("q");
        tmux.shows("host>");
        tmux.command("clear; $S run -q --rm -- top");
        tmux.shows("load average");
        tmux.key("q");
        assert_the_terminal_works(tmux);
    });
}

#[test]
fn ctrl_c_ends_the_command_and_not_the_terminal() {
    at_a_terminal(|env, tmux| {
        tmux.line("$S run -q --rm -- sh -c 'echo rea\"\"dy; sleep 71237'; echo en''ded $?");
        tmux.shows("ready");
        tmux.key("C-c");
        tmux.shows("ended 130");
        assert_the_terminal_works(tmux);
        assert_nothing_runs(env, "71237");
    });
}

#[test]
fn ctrl_z_returns_to_the_shell_and_fg_goes_on() {
    at_a_terminal(|_, tmux| {
        tmux.line("$S run -q --rm -- cat; echo en''ded $?");
        std::thread::sleep(Duration::from_millis(500));
        tmux.line("one");
        tmux.until("an echo", |screen| screen.matches("one").count() == 2);
        tmux.key("C-z");
        tmux.shows("Stopped");
        assert_the_terminal_works(tmux);
        tmux.command("clear; fg");
        tmux.shows("$S run");
        tmux.line("two");
        tmux.until("an echo", |screen| screen.matches("two").count() == 2);
        tmux.key("C-d");
        tmux.shows("host>");
        assert_the_terminal_works(tmux);
    });
}

#[test]
fn a_command_in_a_pipe_stops_and_goes_on_too() {
    at_a_terminal(|_, tmux| {
        let script = "while sleep 0.1; do echo tick; done";
        tmux.line(&format!("$S run -q --rm -- sh -c '{script}' | cat > ticks"));
        std::thread::sleep(Duration::from_secs(1));
        tmux.key("C-z");
        tmux.shows("Stopped");
        tmux.command("clear; a=$(wc -l < ticks); sleep 1; test $a = $(wc -l < ticks) && echo st''ill");
        tmux.shows("still");
        tmux.command("clear; fg");
        std::thread::sleep(Duration::from_secs(1));
        tmux.key("C-c");
        tmux.command("clear; test $(wc -l < ticks) -gt $a && echo we''nt on");
        tmux.shows("went on");
    });
}

#[test]
fn a_shell_inside_has_jobs_of_its_own() {
    at_a_terminal(|_, tmux| {
        tmux.line("clear; SHELL=/bin/bash $S shell -q --rm");
        tmux.shows("r$ ".trim_end_matches("$ "));
        tmux.line("PS1='in> '; clear; sleep 71238");
        std::thread::sleep(Duration::from_millis(500));
        tmux.key("C-z");
        tmux.shows("Stopped");
        tmux.line("jobs; stty size; fg");
        tmux.shows("24 80");
        tmux.key("C-c");
        tmux.line("suspend");
        tmux.shows("host>");
        tmux.command("clear; fg");
        tmux.shows("$S shell");
        tmux.line("echo in''side $SANDBOX; exit 5");
        tmux.shows("inside ");
        tmux.command("echo en''ded $?");
        tmux.shows("ended 5");
    });
}

#[test]
fn a_shell_that_is_not_there_inside_is_replaced() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    env.file(&env.home().join("bin/mine"), "#!/bin/sh\necho mine\n");
    for shell in [env.home().join("bin/mine"), "/etc/passwd".into()] {
        let run =
            env.sandtable().directory(&source).variable("SHELL", shell).args(["shell", "-q", "--name", "s"]);
        run.ended().expect_code(0).unused();
        let shown = env.sandtable().args(["inspect", "s"]).ended().expect_code(0).stdout;
        assert!(shown.contains("/bin/sh"), "{shown}");
        env.sandtable().args(["rm", "s"]).ended().expect_code(0).unused();
    }
}

#[test]
fn the_terminal_works_after_everything_was_killed() {
    at_a_terminal(|env, tmux| {
        for what in ["cat", "sh -c \"printf '\\033[?1049h\\033[?25l'; sleep 71239\""] {
            tmux.line(&format!("clear; $S run -q --name gone -- {what}"));
            std::thread::sleep(Duration::from_millis(800));
            // Every process of ours, in one moment.
            let script = "kill -9 $(pgrep -x sandtable | while read p; do \
                [ \"$(readlink /proc/$p/exe)\" = \"$0\" ] && echo $p; done)";
            env.run("sh").args(["-c", script]).arg(env.binary()).ended().unused();
            tmux.shows("Killed");
            // The alternate screen stays until somebody leaves it; that is what `reset` is for.
            tmux.line("reset");
            assert_the_terminal_works(tmux);
            assert_nothing_runs(env, "71239");
            tmux.command("clear; $S rm gone");
            tmux.shows("gone removed");
        }
    });
}

#[test]
fn a_sandbox_that_is_stopped_can_be_ended_from_elsewhere() {
    at_a_terminal(|env, tmux| {
        tmux.line("$S run -q --name held -- sleep 71240");
        std::thread::sleep(Duration::from_millis(800));
        tmux.key("C-z");
        tmux.shows("Stopped");
        let began = Instant::now();
        env.sandtable().args(["stop", "held"]).ended().expect_code(0).unused();
        assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
        assert_the_terminal_works(tmux);
        let shown = env.sandtable().args(["inspect", "held"]).ended().expect_code(0).stdout;
        assert!(shown.contains("exit 143"), "{shown}");
    });
}

#[test]
fn the_clipboard_of_the_host_is_out_of_reach() {
    at_a_terminal(|_, tmux| {
        tmux.call().args(["set-option", "-s", "set-clipboard", "on"]).ended().expect_code(0).unused();
        let buffer = || tmux.call().arg("show-buffer").ended().stdout;
        tmux.line("clear; $S run -q --rm -- printf '\\033]52;c;aW5zaWRl\\007do''ne1'");
        tmux.shows("done1");
        assert_eq!(buffer(), "", "written from inside");
        tmux.command("clear; echo x | $S run -q --rm -- printf '\\033]52;c;aW5zaWRl\\007do''ne2'");
        tmux.shows("done2");
        assert_eq!(buffer(), "", "written from inside, without a terminal there");
        tmux.command("clear; $S run -q --rm -- printf '\\033]5\\033\\033\\1772;c;aW5zaWRl\\007do''ne4'");
        tmux.shows("done4");
        assert_eq!(buffer(), "", "written from inside, in a string that seems to have ended");
        tmux.command("clear; $S run -q --rm -- printf '\\033]0;t\\033\\033\\177'; echo do''ne5");
        tmux.shows("done5");
        tmux.command("clear; printf '\\033]52;c;b3V0c2lkZQ==\\007do''ne3'");
        tmux.shows("done3");
        assert_eq!(buffer(), "outside", "or else this test sees nothing");
    });
}

#[test]
fn modes_that_were_left_on_are_switched_off() {
    at_a_terminal(|_, tmux| {
        tmux.line(
            "clear; $S run -q --rm -- printf '\\033[?1049h\\033[?1000h\\033[?1h\\033[?25l\\033[4hgone'; echo ba''ck",
        );
        tmux.shows("back");
        assert_eq!(tmux.value("alternate_on"), "0");
        assert_eq!(tmux.value("mouse_standard_flag"), "0");
        assert_eq!(tmux.value("insert_flag"), "0");
        assert_eq!(tmux.value("cursor_flag"), "1");
        assert_eq!(tmux.value("keypad_cursor_flag"), "0");
        tmux.command("clear; printf '\\033[?1000h'; echo aga''in");
        tmux.shows("again");
        assert_eq!(tmux.value("mouse_standard_flag"), "1", "or else this test sees nothing");
    });
}

#[test]
fn a_terminal_can_be_forced_and_refused() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let said = |option: &str| {
        let run = env.sandtable().directory(&source);
        run.args(["run", "-q", "--rm", option, "--", "sh", "-c", "tty; cat"]).ended().stdout
    };
    assert!(said("-t").starts_with("/dev/pts/"), "and the end of input arrives as well");
    assert_eq!(said("-T"), "not a tty\n");
    let Some(tmux) = Tmux::start(&env, &source) else { return };
    tmux.line("$S run -q --rm -T -- tty");
    tmux.shows("not a tty");
}

#[test]
fn pipes_are_exact() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let shell = |script: &str| {
            let run = env.run("sh").directory(&source).args(["-c", script]).arg(env.binary());
            run.ended().expect_code(0).stdout.trim().to_owned()
        };
        assert_eq!(shell("printf 'a\\nb' | \"$0\" run -q --rm -- cat | wc -c"), "3");
        // The last thing a command writes before it ends, to pipes and to a terminal.
        assert_eq!(shell("\"$0\" run -q --rm -- seq 200000 | tail -n 1"), "200000");
        assert_eq!(
            shell("\"$0\" run -q --rm -t -- seq 20000 < /dev/null | tail -n 1 | tr -d '\\r'"),
            "20000"
        );
        let bytes = u64::from(counts::of("pipe-megabytes")) << 20;
        // How long that takes is a row of the benchmarks.
        let through = format!("head -c {bytes} /dev/zero | \"$0\" run -q --rm -- cat | wc -c");
        assert_eq!(shell(&through), bytes.to_string());
    }
}

#[test]
fn others_are_waited_for_and_that_is_said() {
    let Some(env) = TestEnv::of_the_executable() else { return };
    let source = env.repository("r");
    let Some(tmux) = Tmux::start(&env, &source) else { return };
    tmux.line("$S run -q --name shared -- cat; echo en''ded $?");
    std::thread::sleep(Duration::from_millis(800));
    let mut other = env.sandtable().args(["exec", "-q", "shared", "--", "sleep", "71241"]).waiting();
    std::thread::sleep(Duration::from_millis(800));
    tmux.key("C-d");
    tmux.shows("waiting for one other command");
    tmux.key("C-c");
    tmux.shows("ended 0");
    other.wait().unwrap();
    assert_nothing_runs(&env, "71241");
    let shown = env.sandtable().args(["ls"]).ended().expect_code(0).stdout;
    assert!(shown.contains("stopped"), "{shown}");
}

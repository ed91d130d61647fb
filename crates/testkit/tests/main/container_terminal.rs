//! Commands in containers at a terminal and in pipes, for real: size, resize, Ctrl-C, signals, and what comes in
//! through a pipe.

use std::io::{Read as _, Write as _};
use std::process::Child;

use sandtable_testkit::container::Contained;
use sandtable_testkit::env::PATH;
use sandtable_testkit::tmux::Tmux;

#[test]
fn a_terminal_follows_the_window_and_ctrl_c_arrives() {
    Contained::each(Contained::new, |world, source| {
        let Some(tmux) = Tmux::start(&world.env, &source) else { return };
        let root = world.env.root().display();
        tmux.command(&format!("export PATH={root}/bin:{PATH} XDG_RUNTIME_DIR={root}/run"));
        tmux.command(&format!("export CONTAINERS_CONF={root}/containers.conf"));
        if let Some(address) = world.docker_address() {
            tmux.command(&format!("export DOCKER_HOST={address}"));
        }
        tmux.command(&format!(
            "R='run -q --rm --engine {} --image {} --'; clear",
            world.kind.word(),
            world.image
        ));
        let script = "trap \"stty size\" WINCH; stty size; while :; do sleep 0.1; done";
        tmux.command(&format!("$S $R sh -c '{script}'; echo en''ded $?"));
        tmux.shows("24 80");
        tmux.resize(70, 20);
        tmux.shows("20 70");
        tmux.key("C-c");
        tmux.shows("ended 130");
        tmux.command("clear; $S $R cat; echo en''ded $?");
        // It is typed again until the command's own terminal has it: earlier it is the host's.
        tmux.until("an echo", |screen| {
            if screen.matches("one").count() < 2 {
                tmux.line("one");
            }
            screen.matches("one").count() >= 2
        });
        tmux.key("C-z");
        tmux.shows("Stopped");
        tmux.command("clear; fg");
        tmux.shows("$S $R cat");
        tmux.line("two");
        tmux.until("an echo", |screen| screen.matches("two").count() >= 2);
        tmux.key("C-d");
        tmux.shows("host>");
        tmux.command("clear; stty -a | grep -ow -e '-echo' -e '-icanon' || echo sa''ne");
        tmux.shows("sane");
    });
}

#[test]
fn signals_reach_the_command() {
    Contained::each(Contained::new, |world, source| {
        let script = "trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
        let mut child = world.starting(&source).args(["-q", "--rm", "--", "sh", "-c", script]).started();
        wait_for(&mut child, "ready\n");
        let pid = child.id().to_string();
        drop(world.run("kill").args(["-TERM", &pid]).ended().expect_code(0));
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(9), &b"got\n"[..]));
    });
}

#[test]
fn a_pipe_is_a_stream_and_its_end_arrives() {
    Contained::each(Contained::new, |world, source| {
        let run = world.starting(&source).args(["-q", "--rm", "--", "sh", "-c", "test -t 0 || wc -c"]);
        let mut child = run.piped();
        let mut stdin = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || stdin.write_all(&vec![b'x'; 3 << 20]));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        assert_eq!(said, (3 << 20).to_string(), "{}", String::from_utf8_lossy(&output.stderr));
    });
}

/// Reads from the child until it has said this.
fn wait_for(child: &mut Child, words: &str) {
    let mut said = vec![0_u8; words.len()];
    child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
    assert_eq!(String::from_utf8_lossy(&said), words);
}

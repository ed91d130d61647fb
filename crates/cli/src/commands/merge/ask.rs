//! Questions on the terminal. Without one nothing is asked.

use std::io::{self, BufRead as _, IsTerminal as _};

use crate::app::App;
use crate::ui::style::Role;

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Answer {
    GoOn,
    Quit,
}

/// Whether somebody is there to answer, and sees the question.
pub(in crate::commands) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks until one of the letters is the answer. The end of input is the last of them, which must mean to stop.
pub(in crate::commands) fn letter(app: &App, question: &str, choices: &[(char, &str)]) -> char {
    let (last, _) = *choices.last().expect("there is a way out");
    let words: Vec<String> = choices.iter().map(|(letter, word)| format!("[{letter}]{word}")).collect();
    loop {
        let line = format!("{question} {}: ", words.join(", "));
        app.ui.write(&app.ui.colour.paint(Role::Name, line));
        let mut answer = String::new();
        match io::stdin().lock().read_line(&mut answer) {
            Ok(0) | Err(_) => {
                app.ui.write("\n");
                return last;
            }
            Ok(_) => {}
        }
        let mut letters = answer.trim().chars();
        if let (Some(letter), None) = (letters.next(), letters.next())
            && choices.iter().any(|(choice, _)| *choice == letter)
        {
            return letter;
        }
    }
}

//! Facts remembered and answered again.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Answer, Facts, Question};

/// One question and what was said to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub question: Question,
    pub answer: Answer,
}

/// Everything that was asked, by question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Asked>", into = "Vec<Asked>")]
pub struct Transcript(BTreeMap<Question, Answer>);

impl Transcript {
    pub fn insert(&mut self, question: Question, answer: Answer) {
        self.0.insert(question, answer);
    }

    pub fn get(&self, question: &Question) -> Option<&Answer> {
        self.0.get(question)
    }

    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.0.keys()
    }
}

impl From<Vec<Asked>> for Transcript {
    fn from(list: Vec<Asked>) -> Self {
        Self(list.into_iter().map(|asked| (asked.question, asked.answer)).collect())
    }
}

impl From<Transcript> for Vec<Asked> {
    fn from(transcript: Transcript) -> Self {
        transcript.0.into_iter().map(|(question, answer)| Asked { question, answer }).collect()
    }
}

/// Asks somebody else and remembers. A question is asked once: the second time the first answer holds, so
/// that one resolution sees one machine.
#[derive(Debug)]
pub struct Recorder<F> {
    inner: F,
    transcript: RefCell<Transcript>,
}

impl<F: Facts> Recorder<F> {
    pub fn new(inner: F) -> Self {
        Self { inner, transcript: RefCell::default() }
    }

    /// What was asked until now.
    pub fn transcript(&self) -> Transcript {
        self.transcript.borrow().clone()
    }
}

impl<F: Facts> Facts for Recorder<F> {
    fn ask(&self, question: &Question) -> Answer {
        if let Some(known) = self.transcript.borrow().get(question) {
            return known.clone();
        }
        let answer = self.inner.ask(question);
        self.transcript.borrow_mut().insert(question.clone(), answer.clone());
        answer
    }
}

/// Answers from a transcript only.
#[derive(Clone, Debug)]
pub struct Replay(pub Transcript);

impl Facts for Replay {
    /// # Panics
    /// If the question is not in the transcript: a test then asks for something it did not record.
    fn ask(&self, question: &Question) -> Answer {
        let answer = self.0.get(question);
        answer.unwrap_or_else(|| panic!("no answer is recorded for {question:?}")).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::MachineFacts;

    #[test]
    fn a_recording_answers_as_the_machine_did() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs_err::write(&path, "first").unwrap();
        let recorder = Recorder::new(MachineFacts);
        let facts: &dyn Facts = &recorder;
        let seen = (facts.kind(&path), facts.read_small(&path, 100), facts.mounts(), facts.kind("/none"));
        fs_err::remove_file(&path).unwrap();
        let text = serde_json::to_string(&recorder.transcript()).unwrap();
        let replay = Replay(serde_json::from_str(&text).unwrap());
        let facts: &dyn Facts = &replay;
        let again = (facts.kind(&path), facts.read_small(&path, 100), facts.mounts(), facts.kind("/none"));
        assert_eq!(seen, again);
        assert_eq!(seen.1, Ok("first".to_owned()));
    }

    #[test]
    fn a_question_is_asked_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs_err::write(&path, "first").unwrap();
        let recorder = Recorder::new(MachineFacts);
        let facts: &dyn Facts = &recorder;
        let first = facts.read_small(&path, 100);
        fs_err::write(&path, "second").unwrap();
        assert_eq!(facts.read_small(&path, 100), first);
        assert_eq!(recorder.transcript().questions().count(), 1);
    }

    #[test]
    #[should_panic(expected = "no answer is recorded for Kernel")]
    fn an_unrecorded_question_is_loud() {
        Replay(Transcript::default()).ask(&Question::Kernel);
    }
}

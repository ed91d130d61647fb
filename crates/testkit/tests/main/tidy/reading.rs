//! Source files as the compiler divides them: which lines are unit tests, and which modules a file names. Read from tokens,
//! so that nested `use` trees, `super::super::` and the insides of macros count like everything else.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// A path into the file's own crate, without the leading `crate`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) line: usize,
    pub(super) path: Vec<String>,
}

/// What is known about one file.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Lines of `#[cfg(test)] mod name { … }` and `#[cfg(test)] mod name;`.
    pub(super) tests: Vec<RangeInclusive<usize>>,
    /// Modules that are in files of their own and for tests only.
    pub(super) test_files: Vec<String>,
    /// Modules of the crate that code outside of the tests names.
    pub(super) named: Vec<Named>,
}

/// Reads a file that is the module `module` of its crate; the root of the crate has no names in it.
///
/// # Panics
/// If the text is no Rust.
pub(super) fn read(text: &str, module: &[&str]) -> Reading {
    let tokens: TokenStream = text.parse().expect("the compiler reads this file");
    let mut reading = Reading::default();
    let mut module: Vec<String> = module.iter().map(|&name| name.to_owned()).collect();
    walk(tokens, &mut module, &mut reading);
    reading
}

fn walk(tokens: TokenStream, module: &mut Vec<String>, reading: &mut Reading) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        at += step(&tokens[at..], module, reading);
    }
}

/// Reads what stands at the beginning; says how many tokens that were.
fn step(tokens: &[TokenTree], module: &mut Vec<String>, reading: &mut Reading) -> usize {
    if let Some(taken) = test_module(tokens, reading) {
        return taken;
    }
    match &tokens[0] {
        TokenTree::Ident(word) if word == "mod" => match tokens {
            [_, TokenTree::Ident(name), TokenTree::Group(body), ..] => {
                module.push(name.to_string());
                walk(body.stream(), module, reading);
                module.pop();
                3
            }
            _ => 1,
        },
        // `pub(super)` says who may see a thing, not what it uses.
        TokenTree::Ident(word) if word == "pub" => {
            1 + usize::from(is_group(tokens.get(1), Delimiter::Parenthesis))
        }
        TokenTree::Ident(word) => path(tokens, word, module, reading),
        TokenTree::Group(group) => {
            walk(group.stream(), module, reading);
            1
        }
        _ => 1,
    }
}

/// `#[cfg(test)] mod name { … }` or `#[cfg(test)] mod name;`, if that is what stands here.
fn test_module(tokens: &[TokenTree], reading: &mut Reading) -> Option<usize> {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), rest @ ..] = tokens else { return None };
    if hash.as_char() != '#' || !is_test_only(attribute) {
        return None;
    }
    let word = |at: usize, text: &str| matches!(rest.get(at), Some(TokenTree::Ident(word)) if word == text);
    let visible = match (word(0, "pub"), is_group(rest.get(1), Delimiter::Parenthesis)) {
        (true, true) => 2,
        (true, false) => 1,
        _ => 0,
    };
    let (TokenTree::Ident(name), end) = (rest.get(visible + 1)?, rest.get(visible + 2)?) else { return None };
    if !word(visible, "mod") {
        return None;
    }
    if matches!(end, TokenTree::Punct(_)) {
        reading.test_files.push(name.to_string());
    }
    reading.tests.push(line(hash.span())..=last_line(end));
    Some(visible + 5)
}

fn is_test_only(attribute: &Group) -> bool {
    attribute.delimiter() == Delimiter::Bracket
        && attribute.stream().to_string().replace(' ', "") == "cfg(test)"
}

fn is_group(token: Option<&TokenTree>, delimiter: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == delimiter)
}

/// A path that begins with `crate`, `super` or `self`, with all branches of a `use`.
fn path(tokens: &[TokenTree], word: &Ident, module: &[String], reading: &mut Reading) -> usize {
    let start: Vec<String> = match word.to_string().as_str() {
        "crate" => Vec::new(),
        "super" => module[..module.len().saturating_sub(1)].to_vec(),
        "self" => module.to_vec(),
        _ => return 1,
    };
    let mut names = Vec::new();
    let taken = 1 + branch(&tokens[1..], start, line(word.span()), &mut names);
    // `crate` and `super` alone name nobody: `self.x`, `in crate`.
    if taken > 1 {
        reading.named.extend(names);
    }
    taken
}

/// What follows a beginning of a path: `::name`, `::super`, `::{ … }`, or its end. Says how many tokens that were.
fn branch(tokens: &[TokenTree], mut so_far: Vec<String>, line: usize, names: &mut Vec<Named>) -> usize {
    if !is_colons(tokens) {
        names.push(Named { line, path: so_far });
        return 0;
    }
    match tokens.get(2) {
        Some(TokenTree::Ident(name)) => {
            match name.to_string().as_str() {
                "super" => drop(so_far.pop()),
                "self" => {}
                name => so_far.push(name.to_owned()),
            }
            3 + branch(&tokens[3..], so_far, line, names)
        }
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            for branch in branches(group) {
                branch_of_tree(&branch, &so_far, names);
            }
            3
        }
        // A glob, or generic arguments.
        _ => {
            names.push(Named { line, path: so_far });
            2
        }
    }
}

fn branch_of_tree(tokens: &[TokenTree], so_far: &[String], names: &mut Vec<Named>) {
    let Some(TokenTree::Ident(name)) = tokens.first() else {
        // A glob names the module around it.
        names.extend(tokens.first().map(|token| Named { line: line(token.span()), path: so_far.to_vec() }));
        return;
    };
    let mut path = so_far.to_vec();
    match name.to_string().as_str() {
        "super" => drop(path.pop()),
        "self" => {}
        other => path.push(other.to_owned()),
    }
    branch(&tokens[1..], path, line(name.span()), names);
}

/// The branches of `{a, b::{c, d}}`.
fn branches(group: &Group) -> Vec<Vec<TokenTree>> {
    let mut branches = vec![Vec::new()];
    for token in group.stream() {
        match &token {
            TokenTree::Punct(comma) if comma.as_char() == ',' => branches.push(Vec::new()),
            _ => branches.last_mut().expect("there is one from the beginning").push(token),
        }
    }
    branches
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    let colon =
        |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(it)) if it.as_char() == ':');
    colon(tokens.first()) && colon(tokens.get(1))
}

fn line(span: Span) -> usize {
    span.start().line
}

fn last_line(token: &TokenTree) -> usize {
    token.span().end().line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str, module: &[&str]) -> Vec<String> {
        read(text, module)
            .named
            .iter()
            .map(|named| format!("{}:{}", named.line, named.path.join("::")))
            .collect()
    }

    #[test]
    fn every_branch_of_a_use_is_seen() {
        let text = "use crate::{engine, session::{self, states::{turn, keep}}};\nuse crate::model::*;";
        let expected =
            ["1:engine", "1:session", "1:session::states::turn", "1:session::states::keep", "2:model"];
        assert_eq!(named(text, &["merge"]), expected);
    }

    #[test]
    fn super_is_followed_upwards() {
        let text = "use super::super::session;\nfn a() { super::b(); mod c { use super::d; } }";
        assert_eq!(named(text, &["merge", "plan"]), ["1:session", "2:merge::b", "2:merge::plan::d"]);
    }

    #[test]
    fn paths_in_bodies_and_macros_are_seen_and_visibility_is_not() {
        let text = "pub(crate) fn a(&self) { self.b(); format!(\"{}\", crate::engine::name()) }\npub(in super::super) struct C;";
        assert_eq!(named(text, &["merge", "plan"]), ["1:engine::name"]);
    }

    #[test]
    fn only_tests_are_left_out() {
        let text = "#[cfg(test)]\nmod tests;\nuse crate::engine;\n#[cfg(test)]\npub(crate) mod samples {\n    use crate::session;\n}\nuse crate::model;\n";
        let reading = read(text, &["merge"]);
        assert_eq!(named(text, &["merge"]), ["3:engine", "8:model"]);
        assert_eq!(reading.tests, [1..=2, 4..=7]);
        assert_eq!(reading.test_files, ["tests"]);
    }
}

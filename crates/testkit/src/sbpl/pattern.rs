//! A small matcher for the patterns in profiles: anchors, sets, groups, alternatives, repetition. It tries every
//! way, so it is for short patterns on short paths.

/// A pattern that was read. It fits where it is found, unless it is anchored.
#[derive(Clone, Debug)]
pub struct Pattern(Node);

#[derive(Clone, Debug)]
enum Node {
    Start,
    End,
    Any,
    One(char),
    Set { members: Vec<(char, char)>, negated: bool },
    Row(Vec<Node>),
    Choice(Vec<Node>),
    Repeat { node: Box<Node>, least: usize, most: usize },
}

impl Pattern {
    /// Reads a pattern, or says what it does not know.
    pub fn new(text: &str) -> Result<Self, String> {
        let characters: Vec<char> = text.chars().collect();
        let mut at = 0;
        let node = choice(&characters, &mut at)?;
        if at == characters.len() { Ok(Self(node)) } else { Err(format!("an unmatched `)` in `{text}`")) }
    }

    pub fn fits(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        (0..=text.len()).any(|start| self.0.ends(&text, start).next().is_some())
    }
}

impl Node {
    /// Every place where it can end when it begins at `at`.
    fn ends<'a>(&'a self, text: &'a [char], at: usize) -> Box<dyn Iterator<Item = usize> + 'a> {
        let here = move |fits: bool| -> Box<dyn Iterator<Item = usize> + 'a> {
            Box::new(fits.then_some(at).into_iter())
        };
        let step = move |fits: bool| -> Box<dyn Iterator<Item = usize> + 'a> {
            Box::new(fits.then_some(at + 1).into_iter())
        };
        match self {
            Self::Start => here(at == 0),
            Self::End => here(at == text.len()),
            Self::Any => step(at < text.len()),
            Self::One(one) => step(text.get(at) == Some(one)),
            Self::Set { members, negated } => step(
                text.get(at)
                    .is_some_and(|c| members.iter().any(|(low, high)| (low..=high).contains(&c)) != *negated),
            ),
            Self::Row(nodes) => row(nodes, text, at),
            Self::Choice(nodes) => Box::new(nodes.iter().flat_map(move |node| node.ends(text, at))),
            Self::Repeat { node, least, most } => {
                let (mut found, mut reached, mut count) = (Vec::new(), vec![at], 0);
                while !reached.is_empty() && count <= *most {
                    if count >= *least {
                        found.extend(reached.iter().copied());
                    }
                    let mut next: Vec<usize> = reached.iter().flat_map(|at| node.ends(text, *at)).collect();
                    next.retain(|end| !found.contains(end));
                    next.sort_unstable();
                    next.dedup();
                    (reached, count) = (next, count + 1);
                }
                Box::new(found.into_iter())
            }
        }
    }
}

fn row<'a>(nodes: &'a [Node], text: &'a [char], at: usize) -> Box<dyn Iterator<Item = usize> + 'a> {
    match nodes.split_first() {
        None => Box::new(std::iter::once(at)),
        Some((first, rest)) => Box::new(first.ends(text, at).flat_map(move |end| row(rest, text, end))),
    }
}

fn choice(text: &[char], at: &mut usize) -> Result<Node, String> {
    let mut choices = vec![Vec::new()];
    while let Some(next) = text.get(*at).copied() {
        if next == ')' {
            break;
        }
        *at += 1;
        let node = match next {
            '|' => {
                choices.push(Vec::new());
                continue;
            }
            '^' => Node::Start,
            '$' => Node::End,
            '.' => Node::Any,
            '(' => {
                let inner = choice(text, at)?;
                if text.get(*at) != Some(&')') {
                    return Err("a group is not closed".to_owned());
                }
                *at += 1;
                inner
            }
            '[' => set(text, at)?,
            '\\' => Node::One(take(text, at)?),
            '*' | '+' | '?' | '{' => return Err(format!("`{next}` repeats nothing, or is not known")),
            plain => Node::One(plain),
        };
        let (least, most) = match text.get(*at) {
            Some('*') => (0, usize::MAX),
            Some('+') => (1, usize::MAX),
            Some('?') => (0, 1),
            _ => {
                choices.last_mut().expect("there is always one").push(node);
                continue;
            }
        };
        *at += 1;
        choices.last_mut().expect("there is always one").push(Node::Repeat {
            node: Box::new(node),
            least,
            most,
        });
    }
    Ok(Node::Choice(choices.into_iter().map(Node::Row).collect()))
}

fn set(text: &[char], at: &mut usize) -> Result<Node, String> {
    let negated = text.get(*at) == Some(&'^');
    *at += usize::from(negated);
    let mut members = Vec::new();
    loop {
        let low = match take(text, at)? {
            ']' if !members.is_empty() => return Ok(Node::Set { members, negated }),
            '\\' => take(text, at)?,
            plain => plain,
        };
        let high = match (text.get(*at), text.get(*at + 1)) {
            (Some('-'), Some(high)) if *high != ']' => {
                *at += 2;
                *high
            }
            _ => low,
        };
        members.push((low, high));
    }
}

fn take(text: &[char], at: &mut usize) -> Result<char, String> {
    let next = text.get(*at).copied().ok_or("a pattern ends too early")?;
    *at += 1;
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_fit_what_they_say() {
        let fits = |pattern: &str, text: &str| Pattern::new(pattern).unwrap().fits(text);
        assert!(fits("^/dev/ttys[0-9]+$", "/dev/ttys012") && !fits("^/dev/ttys[0-9]+$", "/dev/ttys"));
        assert!(fits("^/dev/fd(/[0-9]+)?$", "/dev/fd") && fits("^/dev/fd(/[0-9]+)?$", "/dev/fd/3"));
        assert!(!fits("^/dev/fd(/[0-9]+)?$", "/dev/fd/x"));
        assert!(fits("a|b", "xxb") && !fits("^(a|b)$", "xb"));
        assert!(fits("^/x/[^/]+/T/", "/x/abc/T/y") && !fits("^/x/[^/]+/T/", "/x/a/b/T/y"));
        assert!(fits("\\.sock$", "/a.sock") && !fits("\\.sock$", "/asock"));
        assert!(fits("^(a*)*b$", "aaaaaaaaaaaaab") && !fits("^(a*)*b$", "aaaaaaaaaaaaac"));
        assert!(["(", "a)", "[a", "*", "a{2}", "\\"].iter().all(|bad| Pattern::new(bad).is_err()));
    }
}

//! What follows from what, drawn with characters beside a list: newest first, a column for each line of descent.

use std::hash::Hash;

/// The column of a list of nodes, children before their parents.
#[derive(Debug)]
pub(crate) struct Graph<T> {
    /// What each column waits for.
    columns: Vec<Option<T>>,
}

impl<T: Copy + Eq + Hash> Graph<T> {
    pub(crate) fn new() -> Self {
        Self { columns: Vec::new() }
    }

    /// The lines for the next node: any that bring columns together, then the node's own.
    pub(crate) fn next(&mut self, node: T, parents: &[T]) -> Vec<String> {
        let waiting: Vec<usize> =
            (0..self.columns.len()).filter(|at| self.columns[*at] == Some(node)).collect();
        let (own, others) = match waiting.split_first() {
            Some((own, others)) => (*own, others),
            None => (self.free(), &[][..]),
        };
        let mut lines: Vec<String> = others.iter().map(|other| self.join(own, *other)).collect();
        lines.push(self.row(own));
        self.columns[own] = parents.first().copied();
        for parent in parents.iter().skip(1) {
            let at = self.free();
            self.columns[at] = Some(*parent);
        }
        while self.columns.last() == Some(&None) {
            self.columns.pop();
        }
        lines
    }

    /// A column that waits for nothing.
    fn free(&mut self) -> usize {
        let free = self.columns.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            self.columns.push(None);
            self.columns.len() - 1
        })
    }

    fn row(&self, own: usize) -> String {
        let mark = |(at, column): (usize, &Option<T>)| match column {
            _ if at == own => "*",
            Some(_) => "|",
            None => " ",
        };
        self.columns.iter().enumerate().map(mark).collect::<Vec<_>>().join(" ").trim_end().to_owned()
    }

    /// Leads column `other` over to `own`, which lies left of it.
    fn join(&mut self, own: usize, other: usize) -> String {
        self.columns[other] = None;
        let mut line: Vec<char> = self.row(usize::MAX).chars().collect();
        line.resize(line.len().max(2 * other), ' ');
        for place in &mut line[2 * own + 1..2 * other - 1] {
            if *place == ' ' {
                *place = '_';
            }
        }
        line[2 * other - 1] = '/';
        line.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(nodes: &[(char, &str)]) -> String {
        let mut graph = Graph::new();
        let mut lines = Vec::new();
        for (node, parents) in nodes {
            let parents: Vec<char> = parents.chars().collect();
            let mut rows = graph.next(*node, &parents);
            let last = rows.len() - 1;
            rows[last] = format!("{}  {node}", rows[last]);
            lines.extend(rows);
        }
        lines.join("\n")
    }

    #[test]
    fn lines_of_descent_have_columns_and_come_together() {
        insta::assert_snapshot!(drawn(&[('d', "c"), ('c', "a"), ('b', "a"), ('a', "")]), @r"
        *  d
        *  c
        | *  b
        |/
        *  a
        ");
        insta::assert_snapshot!(drawn(&[('f', "a"), ('e', "c"), ('d', "a"), ('c', "b"), ('b', "a"), ('a', ""), ('z', "")]), @r"
        *  f
        | *  e
        | | *  d
        | * |  c
        | * |  b
        |/  |
        |__/
        *  a
        *  z
        ");
        insta::assert_snapshot!(drawn(&[('c', "ab"), ('b', ""), ('a', "")]), @r"
        *  c
        | *  b
        *  a
        ");
    }
}

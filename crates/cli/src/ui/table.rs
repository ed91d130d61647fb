//! Columns that line up.

/// Rows with their cells padded to the widest of each column, two blanks between, nothing behind the last.
/// Cells are expected to be harmless already.
pub(crate) fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    lines(&rows.iter().map(|row| row.to_vec()).collect::<Vec<_>>())
}

/// The same for as many columns as there are.
pub(crate) fn lines(rows: &[Vec<String>]) -> String {
    let mut widths = vec![0; rows.iter().map(Vec::len).max().unwrap_or_default()];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_characters() {
        let rows = [["NAME", "X"], ["größe", "1"], ["a", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(aligned(&rows), "NAME   X\ngröße  1\na\n");
    }
}

//! Rows of values for request templates: comma-separated, with the names of the columns in the first
//! line (RFC 4180).

#[derive(Clone, Debug, Default)]
pub struct DataTable {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl DataTable {
    /// The error is the end of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut records = records(text)?.into_iter();
        let columns = records.next().unwrap_or_default();
        let rows: Vec<_> = records.collect();
        if columns.is_empty() || rows.is_empty() {
            return Err("it needs a line of column names and a line of values".to_owned());
        }
        for (index, row) in rows.iter().enumerate() {
            let (number, wanted) = (row.len(), columns.len());
            if number != wanted {
                return Err(format!("row {} has {number} values for {wanted} columns", index + 1));
            }
        }
        Ok(Self { columns, rows })
    }

    /// Returns the row of a number; after the last row the first follows.
    #[inline]
    pub fn row(&self, number: usize) -> &[String] {
        if self.rows.is_empty() {
            return &[];
        }
        &self.rows[number % self.rows.len()]
    }
}

fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let (mut records, mut record, mut value) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut begun) = (false, false);
    let mut chars = text.chars().filter(|c| *c != '\r').chain(['\n']).peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                value.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if value.is_empty() => (quoted, begun) = (true, true),
            // The line feed that was added to the text.
            '\n' if quoted && chars.peek().is_none() => {
                return Err("a quotation mark is not closed".to_owned())
            }
            ',' | '\n' if !quoted => {
                if c == ',' || begun || !value.is_empty() || !record.is_empty() {
                    record.push(std::mem::take(&mut value));
                }
                begun = false;
                if c == '\n' && !record.is_empty() {
                    records.push(std::mem::take(&mut record));
                }
            }
            _ => value.push(c),
        }
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_be_quoted() {
        let table = DataTable::parse("id,name\r\n1,a b\n\n2,\"c, \"\"d\"\"\n\"\n,\n").unwrap();
        assert_eq!(table.columns, ["id", "name"]);
        assert_eq!(table.rows, [["1", "a b"], ["2", "c, \"d\"\n"], ["", ""]]);
        assert_eq!(DataTable::parse("a\nx\n\"\"").unwrap().rows, [["x"], [""]]);
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for text in ["", "a,b", "a,b\n1", "a\n1,2", "a\n\"1"] {
            assert!(DataTable::parse(text).is_err(), "{text}");
        }
    }
}

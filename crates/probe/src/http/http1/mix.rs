//! The requests of a trial: one, or several with weights; and the rows that fill them in.
use super::data::DataTable;
use super::request::{is_text, Common, RequestTemplate};

#[derive(Debug)]
pub struct Mix {
    pub requests: Vec<RequestTemplate>,
    /// Method and target of each request, as they were given.
    pub names: Vec<String>,
    /// Sum of the weights up to each request.
    weights: Vec<u64>,
    pub table: DataTable,
}

impl Mix {
    /// lines: each `WEIGHT METHOD TARGET [BODY]`. The error is a sentence.
    pub fn new(lines: &[&str], common: &Common, table: DataTable) -> Result<Self, String> {
        let mut mix = Self { requests: Vec::new(), names: Vec::new(), weights: Vec::new(), table };
        for line in lines {
            let mut words = line.splitn(4, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (weight, method, target, body) = (word(), word(), word(), word());
            let weight = weight.parse::<u32>().ok().filter(|weight| *weight > 0);
            let (Some(weight), false) = (weight, target.is_empty()) else {
                let line: String = line.chars().take(60).collect();
                let line = line.escape_debug();
                return Err(format!(
                    "'{line}' is no request; requests are 'WEIGHT METHOD TARGET [BODY]'."
                ));
            };
            mix.add(u64::from(weight), common, method, target, body)?;
        }
        mix.check_values()?;
        Ok(mix)
    }

    pub fn of_one(
        common: &Common,
        method: &str,
        target: &str,
        body: &str,
        table: DataTable,
    ) -> Result<Self, String> {
        let mut mix = Self::new(&[], common, table)?;
        mix.add(1, common, method, target, body)?;
        Ok(mix)
    }

    fn add(
        &mut self,
        weight: u64,
        common: &Common,
        method: &str,
        target: &str,
        body: &str,
    ) -> Result<(), String> {
        self.requests.push(RequestTemplate::new(common, method, target, body)?);
        self.names.push(format!("{method} {target}"));
        self.weights.push(self.weights.last().unwrap_or(&0) + weight);
        Ok(())
    }

    /// No value may end a header line.
    fn check_values(&self) -> Result<(), String> {
        for (index, row) in self.table.rows.iter().enumerate() {
            if !row.iter().all(|value| value.bytes().all(is_text)) {
                return Err(format!("Row {} of the data has a control character.", index + 1));
            }
        }
        Ok(())
    }

    pub fn total_weight(&self) -> u64 {
        self.weights.last().copied().unwrap_or(0)
    }

    /// Returns the request for a number below the total weight.
    #[inline]
    pub fn pick(&self, number: u64) -> usize {
        self.weights.partition_point(|weight| *weight <= number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::http1::url::Url;

    fn mix(lines: &[&str], data: &str) -> Result<Mix, String> {
        let url = Url::parse("http://a/").unwrap();
        let table = if data.is_empty() { DataTable::default() } else { DataTable::parse(data)? };
        let columns = table.columns.clone();
        let common = Common {
            url: &url,
            headers: &[],
            keeps_alive: true,
            is_http2: false,
            columns: &columns,
        };
        Mix::new(lines, &common, table)
    }

    #[test]
    fn requests_are_picked_by_weight() {
        let mix = mix(&["3 GET /a", "1 POST /b x=1 y", "2 HEAD /c"], "").unwrap();
        let picked: Vec<_> = (0..mix.total_weight()).map(|number| mix.pick(number)).collect();
        assert_eq!(picked, [0, 0, 0, 1, 2, 2]);
        assert_eq!(mix.names[1], "POST /b");
        let mut bytes = Vec::new();
        mix.requests[1].write(&[], "", &mut bytes);
        assert!(bytes.ends_with(b"\r\n\r\nx=1 y"));
    }

    #[test]
    fn what_is_no_mix_is_refused() {
        for line in ["", "GET /", "0 GET /", "1 GET", "1 GET  ", "x GET /", "1 G?T /"] {
            assert!(mix(&[line], "").is_err(), "{line}");
        }
        assert!(mix(&["1 GET /{a}"], "a\n\"x\ny\"").unwrap_err().contains("control character"));
    }
}

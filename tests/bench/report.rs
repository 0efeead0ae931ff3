//! The table that is printed at the end.

use std::fmt;

/// Several readings of one figure.
pub struct Spread(Vec<f64>);

impl Spread {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub fn median(&self) -> f64 {
        let (low, high) = (self.0.len().saturating_sub(1) / 2, self.0.len() / 2);
        (self.at(low) + self.at(high)) / 2.0
    }

    fn at(&self, index: usize) -> f64 {
        self.0.get(index).copied().unwrap_or(f64::NAN)
    }
}

impl From<f64> for Spread {
    fn from(value: f64) -> Self {
        Self(vec![value])
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&digits(self.median()))?;
        match self.0.as_slice() {
            [low, .., high] => write!(formatter, " ({} to {})", digits(*low), digits(*high)),
            _ => Ok(()),
        }
    }
}

/// Three digits, which is more than most of these figures are good for.
fn digits(value: f64) -> String {
    match value.abs() {
        size if size >= 99.95 || size == 0.0 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        size if size >= 0.09995 => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

pub struct Report {
    head: String,
    rows: Vec<[String; 5]>,
    notes: Vec<String>,
}

impl Report {
    pub fn new(head: String) -> Self {
        Self {
            head,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A figure without a bound.
    pub fn row(&mut self, what: &str, figure: impl Into<Spread>, unit: &str, how: &str) {
        self.push(what, figure.into().to_string(), unit, String::new(), how);
    }

    /// A figure that is meant to stay within a bound, in the same unit.
    pub fn bounded(
        &mut self,
        what: &str,
        figure: impl Into<Spread>,
        unit: &str,
        bound: f64,
        how: &str,
    ) {
        let figure = figure.into();
        let verdict = if figure.median() > bound {
            " exceeded"
        } else {
            ""
        };
        self.push(
            what,
            figure.to_string(),
            unit,
            format!("{}{verdict}", digits(bound)),
            how,
        );
    }

    fn push(&mut self, what: &str, figure: String, unit: &str, bound: String, how: &str) {
        eprintln!("bench:   {what}: {figure} {unit}");
        self.rows.push([
            what.to_owned(),
            figure,
            unit.to_owned(),
            bound,
            how.to_owned(),
        ]);
    }

    /// What is missing, or what to know about a figure.
    pub fn note(&mut self, note: String) {
        eprintln!("bench:   {note}");
        self.notes.push(note);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = [
            "what",
            "figure: median (min to max)",
            "unit",
            "bound",
            "how",
        ]
        .map(str::to_owned);
        let rows: Vec<&[String; 5]> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |column: usize| {
            rows.iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..4).map(width).collect();
        writeln!(formatter, "\n{}\n", self.head)?;
        for [what, figure, unit, bound, how] in rows {
            let [a, b, c, d] = [widths[0], widths[1], widths[2], widths[3]];
            writeln!(
                formatter,
                "{what:a$}  {figure:b$}  {unit:c$}  {bound:d$}  {how}"
            )?;
        }
        writeln!(formatter)?;
        self.notes
            .iter()
            .try_for_each(|note| writeln!(formatter, "{note}"))
    }
}

//! What a metric is: declared once, beside the collector that fills it.

use crate::model::view::View;

/// A metric family: its exported name, its meaning, and how to read its series from a view.
#[derive(Debug)]
pub struct Metric {
    /// The name as users see it, suffixes included: `tlbd_cgroup_cpu_seconds_total`.
    pub name: &'static str,
    /// What kind of series it has.
    pub kind: Kind,
    /// One sentence with the meaning and the source, no full stop at its end.
    pub help: &'static str,
    /// Label names.
    pub labels: &'static [&'static str],
    /// Gives each series of the view to [`Series`]; gives none where nothing was measured.
    pub read: fn(&View, &mut Series<'_>),
}

/// The kind of a metric, as OpenMetrics knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A total that only grows; the name ends in `_total`.
    Counter,
    /// A value that goes up and down.
    Gauge,
    /// Facts as labels of a constant 1; the name ends in `_info`.
    Info,
}

/// A series' value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A count.
    Integer(u64),
    /// A measure.
    Real(f64),
}

/// Where a metric's reader puts its series.
pub struct Series<'a> {
    sink: &'a mut dyn FnMut(&[&str], Value),
}

impl<'a> Series<'a> {
    /// Series go to `sink`, each with the values of its labels.
    pub fn new(sink: &'a mut dyn FnMut(&[&str], Value)) -> Self {
        Self { sink }
    }

    /// A series with a count; `labels` are the values, in the order of the metric's names.
    pub fn count(&mut self, labels: &[&str], value: u64) {
        (self.sink)(labels, Value::Integer(value));
    }

    /// A series with a measure.
    pub fn measure(&mut self, labels: &[&str], value: f64) {
        (self.sink)(labels, Value::Real(value));
    }
}

impl Metric {
    /// The base unit in the name (`seconds`, `bytes`, `cycles`, `ratio`), if it has one.
    #[must_use]
    pub fn unit(&self) -> Option<&'static str> {
        let stem = self.stem();
        ["seconds", "bytes", "cycles", "ratio"]
            .into_iter()
            .find(|unit| {
                stem.strip_suffix(unit)
                    .is_some_and(|rest| rest.ends_with('_'))
            })
    }

    /// The name without the suffix that its kind adds.
    #[must_use]
    pub fn stem(&self) -> &'static str {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge => "",
            Kind::Info => "_info",
        };
        self.name.strip_suffix(suffix).unwrap_or(self.name)
    }
}

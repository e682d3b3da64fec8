//! The table of a sweep in memory: its columns and its rows.

use super::axis::{Axis, AxisError};
use super::draw::Draw;
use super::error::SweepError;
use super::quantity::{Quantity, Unit};
use crate::csv;
use crate::metrics::{self, Metric};
use crate::result::{FlowResult, Run};
use crate::scenario::{Flow, FlowKind, Override, Scenario};

/// A column of the table of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name of the column, which ends with the unit of the column's numbers if they have a unit.
    pub name: String,
    /// The type of the column's cells.
    pub kind: ColumnKind,
}

/// The type of the cells of a column, and the name of this type in Arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnKind {
    /// An integer, which is never missing: `uint64`.
    Count,
    /// A string, which may be missing: `string`.
    Text,
    /// A number, which is missing if it was not measured: `double`.
    Number,
}

/// One cell of the table.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Count(u64),
    Text(Option<String>),
    Number(Option<f64>),
}

/// All cells of one column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cells {
    Counts(Vec<u64>),
    Texts(Vec<Option<String>>),
    Numbers(Vec<Option<f64>>),
}

/// The rows of a sweep's table. Each row is one flow of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    columns: Vec<Column>,
    cells: Vec<Cells>,
    rows: usize,
}

pub(super) type Row = Vec<Cell>;

/// Prefix of the names of columns whose metrics cover all media of a run.
const OF_ALL_MEDIA: &str = "media_";

const FIRST: [(&str, ColumnKind); 7] = [
    ("run", ColumnKind::Count),
    ("point", ColumnKind::Count),
    ("seed", ColumnKind::Count),
    ("scenario", ColumnKind::Text),
    ("flow", ColumnKind::Text),
    ("kind", ColumnKind::Text),
    ("controller", ColumnKind::Text),
];

/// The run to which a row belongs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key<'a> {
    pub(super) run: u64,
    pub(super) point: u64,
    pub(super) seed: u64,
    pub(super) scenario: &'a str,
}

/// Returns the columns of a sweep's table: the run and the flow, the varied and the drawn keys, the metrics of every
/// kind of flow, and the metrics of all media together.
///
/// # Errors
/// [`AxisError::Column`] if the column of a key would have the same name as another column. The error comes with the
/// index of this key. The index counts the varied keys first, then the drawn keys.
pub(super) fn columns(axes: &[Axis], draws: &[Draw]) -> Result<Vec<Column>, (usize, AxisError)> {
    let first = FIRST.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind });
    let metrics = metrics::keys().into_iter().map(str::to_owned);
    let of_all = metrics::RUN.iter().map(|metric| format!("{OF_ALL_MEDIA}{}", metric.key));
    let numbers = metrics.chain(of_all).map(|name| Column { name, kind: ColumnKind::Number });
    let mut columns: Vec<_> = first.chain(numbers).collect();
    let keys = axes.iter().map(|axis| (&axis.path, axis.unit()));
    let keys = keys.chain(draws.iter().map(|draw| (&draw.path, draw.unit())));
    for (place, (path, unit)) in keys.enumerate() {
        let column = Column {
            name: format!("{path}{}", unit.map_or("", Unit::suffix)),
            kind: if unit.is_some() { ColumnKind::Number } else { ColumnKind::Text },
        };
        if columns.iter().any(|other| other.name == column.name) {
            return Err((place, AxisError::Column { key: path.clone() }));
        }
        columns.insert(FIRST.len() + place, column);
    }
    Ok(columns)
}

/// Returns the cells of the varied and drawn keys, each with the type of its column.
pub(super) fn key_cells(columns: &[Column], changes: &[Override]) -> Row {
    let cell = |(column, change): (&Column, &Override)| match column.kind {
        ColumnKind::Number => Cell::Number(change.value().and_then(Quantity::of).map(|quantity| quantity.number)),
        ColumnKind::Text | ColumnKind::Count => Cell::Text(change.value().map(|value| match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        })),
    };
    columns.iter().skip(FIRST.len()).zip(changes).map(cell).collect()
}

/// Whether a flow has a row. All flows except background traffic have one.
pub(super) const fn has_row(flow: &Flow) -> bool {
    !matches!(flow.kind, FlowKind::Background { .. })
}

/// Returns the rows of a run, one for each flow except background traffic, in the scenario's order.
pub(super) fn rows(key: Key<'_>, keys: &Row, scenario: &Scenario, run: &Run) -> Vec<Row> {
    let flows = scenario.flows.iter().zip(&run.flows).filter(|(flow, _)| has_row(flow));
    let of_all = |metric: &Metric<_>| run.media.as_ref().and_then(|media| metric.of(media));
    let of_all: Vec<_> = metrics::RUN.iter().map(of_all).map(number).collect();
    let all = metrics::keys();
    let row = |(_, result): (&Flow, &FlowResult)| {
        let Key { run, point, seed, scenario } = key;
        let text = |text: &str| Cell::Text(Some(text.to_owned()));
        let first = [
            Cell::Count(run),
            Cell::Count(point),
            Cell::Count(seed),
            text(scenario),
            text(&result.name),
            text(metrics::kind_name(result)),
            Cell::Text(result.controller.clone()),
        ];
        let own = metrics::of(result);
        let metrics = all.iter().map(|&key| {
            let listed = own.iter().find(|metric| metric.key == key).and_then(|metric| metric.of(result));
            let delivered = || metrics::DELIVERED.of(result).filter(|_| key == metrics::DELIVERED.key);
            number(listed.or_else(delivered))
        });
        first.into_iter().chain(keys.iter().cloned()).chain(metrics).chain(of_all.iter().cloned()).collect()
    };
    flows.map(row).collect()
}

/// Returns a cell. If the value is NaN or infinite, the cell has no value, as for a value that was not measured.
fn number(value: Option<f64>) -> Cell {
    Cell::Number(value.filter(|value| value.is_finite()))
}

impl Table {
    /// Returns a table without rows.
    pub(super) fn new(columns: &[Column]) -> Self {
        let cells = columns.iter().map(|column| match column.kind {
            ColumnKind::Count => Cells::Counts(Vec::new()),
            ColumnKind::Text => Cells::Texts(Vec::new()),
            ColumnKind::Number => Cells::Numbers(Vec::new()),
        });
        Self { cells: cells.collect(), columns: columns.to_vec(), rows: 0 }
    }

    /// Returns a table of cells that were read from a file; `None` if the cells do not match the columns.
    pub(super) fn of_cells(columns: &[Column], cells: Vec<Cells>) -> Option<Self> {
        let rows = cells.first().map_or(0, Cells::len);
        let fits = |(column, cells): (&Column, &Cells)| cells.kind() == column.kind && cells.len() == rows;
        let is_whole = cells.len() == columns.len() && columns.iter().zip(&cells).all(fits);
        is_whole.then(|| Self { columns: columns.to_vec(), cells, rows })
    }

    /// Returns the columns of the table.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the cells of a column of numbers or counts; `None` for a column of strings or an unknown name. A cell is
    /// `None` if the value was not measured.
    pub fn numbers(&self, name: &str) -> Option<Vec<Option<f64>>> {
        match self.find(name)? {
            Cells::Counts(counts) => Some(counts.iter().map(|count| Some(*count as f64)).collect()),
            Cells::Numbers(numbers) => Some(numbers.clone()),
            Cells::Texts(_) => None,
        }
    }

    /// Returns the strings of the column with this name; `None` for a column of numbers or an unknown name.
    pub fn texts(&self, name: &str) -> Option<Vec<Option<&str>>> {
        match self.find(name)? {
            Cells::Texts(texts) => Some(texts.iter().map(Option::as_deref).collect()),
            Cells::Counts(_) | Cells::Numbers(_) => None,
        }
    }

    fn find(&self, name: &str) -> Option<&Cells> {
        let place = self.columns.iter().position(|column| column.name == name)?;
        self.cells.get(place)
    }

    pub(super) fn cells(&self) -> &[Cells] {
        &self.cells
    }

    /// Returns the column `run`, which contains the number of each row's run.
    pub(super) fn runs(&self) -> &[u64] {
        match self.cells.first() {
            Some(Cells::Counts(runs)) => runs,
            _ => &[],
        }
    }

    /// Adds a row. If this returns an error, the table must be discarded.
    ///
    /// # Errors
    /// [`SweepError::Row`] if the cells of the row do not match the columns.
    pub(super) fn push(&mut self, row: Row) -> Result<(), SweepError> {
        self.check_length(row.len())?;
        for ((column, cells), cell) in self.columns.iter().zip(&mut self.cells).zip(row) {
            match (cells, cell) {
                (Cells::Counts(cells), Cell::Count(cell)) => cells.push(cell),
                (Cells::Texts(cells), Cell::Text(cell)) => cells.push(cell),
                (Cells::Numbers(cells), Cell::Number(cell)) => cells.push(cell),
                _ => return Err(SweepError::Row { column: column.name.clone() }),
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// Adds the rows of a table with the same columns. If this returns an error, the table must be discarded.
    ///
    /// # Errors
    /// [`SweepError::Row`] if the other table has more columns, fewer columns, or columns of other types.
    pub(super) fn append(&mut self, other: Self) -> Result<(), SweepError> {
        self.check_length(other.cells.len())?;
        for ((column, cells), more) in self.columns.iter().zip(&mut self.cells).zip(other.cells) {
            match (cells, more) {
                (Cells::Counts(cells), Cells::Counts(more)) => cells.extend(more),
                (Cells::Texts(cells), Cells::Texts(more)) => cells.extend(more),
                (Cells::Numbers(cells), Cells::Numbers(more)) => cells.extend(more),
                _ => return Err(SweepError::Row { column: column.name.clone() }),
            }
        }
        self.rows += other.rows;
        Ok(())
    }

    /// Refuses a row that has more or fewer cells than the table has columns. The error names the column of the first
    /// missing cell, or contains the number of cells if there are too many.
    fn check_length(&self, cells: usize) -> Result<(), SweepError> {
        if cells == self.columns.len() {
            return Ok(());
        }
        let column = self.columns.get(cells).map_or_else(|| format!("number {cells}"), |column| column.name.clone());
        Err(SweepError::Row { column })
    }

    /// Removes the first `rows` rows, or all rows if there are fewer, and returns them.
    pub(super) fn take(&mut self, rows: usize) -> Self {
        let rows = rows.min(self.rows);
        let take = |cells: &mut Cells| match cells {
            Cells::Counts(cells) => Cells::Counts(cells.drain(..rows).collect()),
            Cells::Texts(cells) => Cells::Texts(cells.drain(..rows).collect()),
            Cells::Numbers(cells) => Cells::Numbers(cells.drain(..rows).collect()),
        };
        self.rows -= rows;
        Self { columns: self.columns.clone(), cells: self.cells.iter_mut().map(take).collect(), rows }
    }

    /// Returns the names of the columns as a line of CSV.
    pub(super) fn csv_head(columns: &[Column]) -> String {
        let mut text = String::new();
        columns.iter().fold(csv::Row::after(&mut text), |row, column| row.text(&column.name)).end();
        text
    }

    /// Returns the rows as lines of CSV.
    pub(super) fn csv_rows(&self) -> String {
        let mut text = String::new();
        for row in 0..self.rows {
            self.cells.iter().fold(csv::Row::after(&mut text), |line, cells| cells.written(line, row)).end();
        }
        text
    }
}

impl Cells {
    const fn kind(&self) -> ColumnKind {
        match self {
            Self::Counts(_) => ColumnKind::Count,
            Self::Texts(_) => ColumnKind::Text,
            Self::Numbers(_) => ColumnKind::Number,
        }
    }

    const fn len(&self) -> usize {
        match self {
            Self::Counts(cells) => cells.len(),
            Self::Texts(cells) => cells.len(),
            Self::Numbers(cells) => cells.len(),
        }
    }

    /// Adds a cell to a line of CSV. A number is written so that parsing returns the same value; a missing value is
    /// empty.
    fn written<'a>(&self, line: csv::Row<'a>, row: usize) -> csv::Row<'a> {
        match self {
            Self::Counts(cells) => line.measured(cells.get(row)),
            Self::Texts(cells) => line.text(cells.get(row).and_then(Option::as_deref).unwrap_or_default()),
            Self::Numbers(cells) => line.measured(cells.get(row).copied().flatten()),
        }
    }
}

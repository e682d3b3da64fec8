//! Reads and writes tables as Apache Parquet files.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::error::SweepError;
use super::table::{Cells, Column, ColumnKind, Table};

/// Appends tables to one Parquet file. Each table becomes one row group.
pub(super) struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> Writer<W> {
    /// Starts a file with these columns. The text `about` is stored as metadata under `key`.
    pub(super) fn new(out: W, columns: &[Column], (key, about): (&str, &str)) -> Result<Self, ParquetError> {
        let about = KeyValue::new(key.to_owned(), about.to_owned());
        let properties = WriterProperties::builder()
            // The metadata must not depend on the time, the machine or the number of processes.
            .set_created_by(format!("equipoise {}", crate::VERSION))
            .set_key_value_metadata(Some(vec![about]))
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .build();
        Ok(Self { file: SerializedFileWriter::new(out, schema(columns)?, Arc::new(properties))? })
    }

    /// Appends a table, which must have the columns of the file.
    pub(super) fn write(&mut self, table: &Table) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for cells in table.cells() {
            let Some(mut column) = group.next_column()? else { break };
            match cells {
                Cells::Counts(counts) => {
                    let values: Vec<_> = counts.iter().map(|count| count.cast_signed()).collect();
                    column.typed::<Int64Type>().write_batch(&values, None, None)?;
                }
                Cells::Texts(texts) => {
                    let values: Vec<_> =
                        texts.iter().flatten().map(|text| ByteArray::from(text.as_bytes().to_vec())).collect();
                    column.typed::<ByteArrayType>().write_batch(&values, Some(&present(texts)), None)?;
                }
                Cells::Numbers(numbers) => {
                    let values: Vec<_> = numbers.iter().flatten().copied().collect();
                    column.typed::<DoubleType>().write_batch(&values, Some(&present(numbers)), None)?;
                }
            }
            column.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the footer of the file, and returns the underlying writer.
    pub(super) fn finish(self) -> Result<W, ParquetError> {
        self.file.into_inner()
    }
}

/// Returns Parquet's definition levels: 1 for each cell that has a value, 0 for each missing value.
fn present<T>(cells: &[Option<T>]) -> Vec<i16> {
    cells.iter().map(|cell| i16::from(cell.is_some())).collect()
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let field = |column: &Column| {
        let (physical, logical, repetition) = match column.kind {
            ColumnKind::Count => {
                let unsigned = LogicalType::integer(64, false);
                (Physical::INT64, Some(unsigned), Repetition::REQUIRED)
            }
            ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::OPTIONAL),
            ColumnKind::Number => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        };
        let builder = Type::primitive_type_builder(&column.name, physical).with_repetition(repetition);
        builder.with_logical_type(logical).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("sweep").with_fields(fields).build().map(Arc::new)
}

/// A Parquet file that is open for reading.
pub(super) struct Reader {
    file: SerializedFileReader<File>,
}

impl Reader {
    /// Opens a file and reads its footer. Fails if the file is incomplete, because the footer is at the end.
    pub(super) fn new(file: File) -> Result<Self, ParquetError> {
        Ok(Self { file: SerializedFileReader::new(file)? })
    }

    /// Returns the value of this key in the file's metadata; `None` if the metadata has no value for the key.
    pub(super) fn about(&self, key: &str) -> Option<&str> {
        let all = self.file.metadata().file_metadata().key_value_metadata()?;
        all.iter().find(|found| found.key == key)?.value.as_deref()
    }

    /// Reads all rows of the file; `None` if the columns of the file are not `columns`.
    pub(super) fn read(&self, columns: &[Column]) -> Result<Option<Table>, SweepError> {
        let schema = self.file.metadata().file_metadata().schema_descr();
        let names = schema.columns().iter().map(|column| column.name());
        if !names.eq(columns.iter().map(|column| column.name.as_str())) {
            return Ok(None);
        }
        let mut table = Table::new(columns);
        for number in 0..self.file.num_row_groups() {
            let group = self.file.get_row_group(number)?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let cells = (0..columns.len()).map(|column| cells(group.get_column_reader(column)?, rows));
            let cells = cells.collect::<Result<Option<Vec<_>>, ParquetError>>()?;
            let Some(group) = cells.and_then(|cells| Table::of_cells(columns, cells)) else { return Ok(None) };
            table.append(group)?;
        }
        Ok(Some(table))
    }
}

/// Reads the cells of a column; `None` if the column has a type that the columns of a sweep never have.
fn cells(reader: ColumnReader, rows: usize) -> Result<Option<Cells>, ParquetError> {
    let mut levels = Vec::new();
    Ok(match reader {
        ColumnReader::Int64ColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(rows, None, None, &mut values)?;
            Some(Cells::Counts(values.into_iter().map(i64::cast_unsigned).collect()))
        }
        ColumnReader::ByteArrayColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(rows, Some(&mut levels), None, &mut values)?;
            let texts = values.iter().map(|bytes| String::from_utf8_lossy(bytes.data()).into_owned());
            Some(Cells::Texts(spread(&levels, texts)))
        }
        ColumnReader::DoubleColumnReader(mut reader) => {
            let mut values = Vec::new();
            reader.read_records(rows, Some(&mut levels), None, &mut values)?;
            Some(Cells::Numbers(spread(&levels, values.into_iter())))
        }
        _ => None,
    })
}

/// Combines definition levels and values into cells: a value for each cell that has one, `None` for each missing value.
fn spread<T>(levels: &[i16], mut values: impl Iterator<Item = T>) -> Vec<Option<T>> {
    levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect()
}

//! Taking rows out of files that count.

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use futures::TryStreamExt;
use tidelake_model::{DataFile, Error, ErrorKind, Result, TakenOut};

use crate::lake::TableLake;
use crate::parquet::{FileExtent, TableWriter};

/// Which rows of a batch stay.
pub type Keep<'a> = dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync + 'a;

/// The cursor's extent in a batch.
pub type ExtentOf<'a> = dyn Fn(&RecordBatch) -> Result<FileExtent> + Send + Sync + 'a;

impl TableLake {
    /// Writes the rows of a file that stay anew, and says what is gone. The file
    /// itself stays until the manifest that takes it out is committed and
    /// [`clean`](Self::clean) deletes it.
    pub async fn take_out(
        &self,
        file: &DataFile,
        keep: &Keep<'_>,
        writer: &mut TableWriter,
        extent: &ExtentOf<'_>,
    ) -> Result<TakenOut> {
        let mut rows = self.rows(vec![file.clone()], writer.schema());
        let mut gone = 0_u64;
        let mut seen = 0_u64;
        while let Some(batch) = rows.try_next().await? {
            let stays = keep(&batch)?;
            let kept = filter_record_batch(&batch, &stays).map_err(|error| {
                self.name(Error::new(ErrorKind::Internal, "rows cannot be filtered"))
                    .with_source(error)
            })?;
            seen = seen.saturating_add(count(batch.num_rows()));
            gone = gone.saturating_add(count(batch.num_rows() - kept.num_rows()));
            if kept.num_rows() > 0 {
                let extent = extent(&kept)?;
                writer.write(&kept, extent).await?;
            }
        }
        if seen != file.rows {
            let message = format!(
                "{} holds {seen} rows, its manifest says {}",
                self.file_location(&file.key),
                file.rows
            );
            return Err(self.name(Error::new(ErrorKind::Mismatch, message)));
        }
        Ok(TakenOut { key: file.key.clone(), rows: gone })
    }
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

//! Batches that a query can't hold in memory. DataFusion writes them to temporary files; here these files have no name
//! and are encrypted with a key that only this process has.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use binlogz_archive::Scratch;
use bytes::Bytes;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::spill_file::{SpillFile, SpillWriter, TempFileFactory};
use futures_util::{Stream, stream};

/// Bytes that are read at once, of each of the files that are merged.
const CHUNK: usize = 128 << 10;

/// The environment of queries that may hold this many bytes, in addition to those that reading takes; the rest goes to
/// temporary files.
pub(crate) fn runtime_env(
    counted: usize,
    temporary: &Path,
) -> std::result::Result<Arc<RuntimeEnv>, DataFusionError> {
    let spills = Arc::new(Spills { folder: temporary.to_owned() });
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(counted)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_temp_file_factory(spills))
        .build_arc()
}

/// Makes temporary files in a folder.
#[derive(Debug)]
pub(crate) struct Spills {
    pub(crate) folder: PathBuf,
}

impl TempFileFactory for Spills {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let scratch = Scratch::new_in(&self.folder).map_err(DataFusionError::IoError)?;
        Ok(Arc::new(Spill { file: Arc::new(AppendedFile { scratch, size: AtomicU64::new(0) }) }))
    }
}

struct Spill {
    file: Arc<AppendedFile>,
}

/// A file that grows at its end alone, and can be read meanwhile.
struct AppendedFile {
    scratch: Scratch,
    size: AtomicU64,
}

impl SpillFile for Spill {
    fn size(&self) -> Option<u64> {
        Some(self.file.size.load(Ordering::Acquire))
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let begin = (Arc::clone(&self.file), 0);
        Ok(Box::pin(stream::try_unfold(begin, |(file, offset)| async move {
            // It may wait for the disk.
            let read = tokio::task::spawn_blocking(move || file.chunk(offset).map(|chunk| (chunk, file)));
            let read = read.await.map_err(|error| DataFusionError::External(Box::new(error)))?;
            let (chunk, file) = read.map_err(DataFusionError::IoError)?;
            let next = offset + chunk.len() as u64;
            Ok((!chunk.is_empty()).then_some((chunk, (file, next))))
        })))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        Ok(Box::new(Writer { file: Arc::clone(&self.file) }))
    }
}

impl AppendedFile {
    /// The bytes at an offset; none at the end.
    fn chunk(&self, offset: u64) -> io::Result<Bytes> {
        let left = self.size.load(Ordering::Acquire).saturating_sub(offset);
        let mut chunk = vec![0; usize::try_from(left).unwrap_or(CHUNK).min(CHUNK)];
        self.scratch.read_exact_at(&mut chunk, offset)?;
        Ok(chunk.into())
    }
}

struct Writer {
    file: Arc<AppendedFile>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = self.file.size.load(Ordering::Acquire);
        self.file.scratch.write_all_at(bytes, end)?;
        self.file.size.store(end + bytes.len() as u64, Ordering::Release);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

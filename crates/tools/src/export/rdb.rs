//! An RDB file: what `redis-server` writes by SAVE and loads when it starts.
//!
//! The format is that of Redis 7.0's `rdb.c`: a header, databases with their keys, an end, and a
//! checksum of all that. A value lies in it as in the payload of DUMP.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use bytes::Bytes;

use quoin_rdb::{
    Checksum, DumpError, HEADER, LibrariesError, OPCODE_END, OPCODE_EXPIRE_AT_MS, OPCODE_SELECT,
};

/// A file in the making.
pub(super) struct RdbFile {
    out: BufWriter<File>,
    checksum: Checksum,
    bytes: u64,
}

impl RdbFile {
    pub(super) fn begin(out: BufWriter<File>) -> io::Result<Self> {
        let mut file = Self {
            out,
            checksum: Checksum::begin(),
            bytes: 0,
        };
        file.write(HEADER)?;
        file.write(format!("{:04}", quoin_rdb::VERSION_WRITTEN).as_bytes())?;
        Ok(file)
    }

    /// Writes libraries of functions, of a payload of FUNCTION DUMP.
    pub(super) fn libraries(&mut self, payload: &Bytes) -> io::Result<Result<u64, LibrariesError>> {
        let codes = match quoin_rdb::read_libraries(payload) {
            Ok(codes) => codes,
            Err(error) => return Ok(Err(error)),
        };
        for code in &codes {
            let mut bytes = vec![quoin_rdb::LIBRARY];
            quoin_rdb::put_string(&mut bytes, code);
            self.write(&bytes)?;
        }
        Ok(Ok(codes.len() as u64))
    }

    /// The keys after this are of that database.
    pub(super) fn select(&mut self, database: u32) -> io::Result<()> {
        let mut bytes = vec![OPCODE_SELECT];
        quoin_rdb::put_length(&mut bytes, database.into());
        self.write(&bytes)
    }

    /// Writes a key, unless its payload has been damaged on its way.
    pub(super) fn key(
        &mut self,
        name: &[u8],
        expire_at_ms: Option<i64>,
        payload: Vec<u8>,
    ) -> io::Result<Result<(), DumpError>> {
        let value = match quoin_rdb::open(&Bytes::from(payload)) {
            Ok(value) if value.version() <= quoin_rdb::VERSION_WRITTEN => value,
            Ok(_) => return Ok(Err(DumpError::VersionOrChecksum)),
            Err(error) => return Ok(Err(error)),
        };
        let mut bytes = Vec::with_capacity(name.len() + 16);
        if let Some(expire_at_ms) = expire_at_ms {
            bytes.push(OPCODE_EXPIRE_AT_MS);
            bytes.extend(expire_at_ms.to_le_bytes());
        }
        bytes.push(value.rdb_type());
        quoin_rdb::put_string(&mut bytes, name);
        self.write(&bytes)?;
        self.write(&value.bytes())?;
        Ok(Ok(()))
    }

    /// Ends the file, makes it durable, and answers its length.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.write(&[OPCODE_END])?;
        let sum = self.checksum.value().to_le_bytes();
        self.out.write_all(&sum)?;
        self.out.flush()?;
        self.out.get_ref().sync_all()?;
        Ok(self.bytes + sum.len() as u64)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.checksum.add(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

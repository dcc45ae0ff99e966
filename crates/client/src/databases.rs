//! The databases and keys of a server that a tool reads, and their options on the command line.

use clap::Arg;

use super::{Address, Client, ClientError};

/// The error text of SELECT if the database does not exist.
const OUT_OF_RANGE: &str = "DB index is out of range";

/// Which databases to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Databases {
    /// Databases that have keys.
    All,
    /// These, in ascending order.
    Some(Vec<u32>),
}

impl Databases {
    /// Parses `all`, or numbers separated by commas. Without either, uses the database of the
    /// address.
    ///
    /// # Errors
    /// What is wrong, in words for people.
    pub fn parse(text: Option<&str>, from: &Address) -> Result<Self, String> {
        match text {
            None => Ok(Self::Some(vec![from.database.unwrap_or(0)])),
            Some("all") => Ok(Self::All),
            Some(list) => numbers(list).map(Self::Some),
        }
    }
}

fn numbers(list: &str) -> Result<Vec<u32>, String> {
    let number = |text: &str| {
        let number = text.trim().parse();
        number.map_err(|_| format!("not the number of a database: {text}"))
    };
    let mut numbers: Vec<u32> = list.split(',').map(number).collect::<Result<_, _>>()?;
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

impl Client {
    /// The databases that have keys.
    pub fn databases(&mut self) -> Result<Vec<u32>, ClientError> {
        let text = self.info("keyspace")?;
        let mut databases: Vec<u32> = text
            .lines()
            .filter_map(|line| line.strip_prefix("db")?.split_once(':')?.0.parse().ok())
            .collect();
        databases.sort_unstable();
        Ok(databases)
    }

    /// Selects a database. False if the server does not have it.
    pub fn select(&mut self, database: u32) -> Result<bool, ClientError> {
        let reply = self.call(&["SELECT", &database.to_string()])?;
        match reply.error_text() {
            None if reply.is_ok() => Ok(true),
            Some(line) if line.contains(OUT_OF_RANGE) => Ok(false),
            _ => Err(self.unexpected(&reply)),
        }
    }

    /// Selects a database to read from.
    pub fn select_existing(&mut self, database: u32) -> Result<(), ClientError> {
        match self.select(database)? {
            true => Ok(()),
            false => Err(self.refused(format!("there is no database {database}"))),
        }
    }

    /// Keys in the selected database.
    pub fn size(&mut self) -> Result<u64, ClientError> {
        let reply = self.call(&["DBSIZE"])?;
        let size = reply.integer().and_then(|size| u64::try_from(size).ok());
        size.ok_or_else(|| self.unexpected(&reply))
    }
}

/// `--databases`.
pub fn databases_argument(help: &'static str) -> Arg {
    Arg::new("databases")
        .long("databases")
        .value_name("all|N,…")
        .help(help)
}

/// `--match`.
pub fn match_argument(help: &'static str) -> Arg {
    Arg::new("match")
        .long("match")
        .value_name("PATTERN")
        .help(help)
}

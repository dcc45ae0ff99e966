use super::*;

fn header() -> Header {
    Header {
        store: StoreId::from_bytes(*b"store of a test."),
        commit: 42,
        time_ms: 1_795_328_173_123,
    }
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Rows that fill several blocks, one of them a single large row.
fn pairs() -> Pairs {
    let mut pairs: Pairs = (0..700_u32)
        .map(|number| {
            let value = vec![number.to_le_bytes()[0]; number as usize];
            (number.to_be_bytes().to_vec(), value)
        })
        .collect();
    pairs.push((b"large".to_vec(), vec![7; 3 * BLOCK_BYTES]));
    pairs.push((b"last".to_vec(), Vec::new()));
    pairs
}

fn encoded(pairs: &Pairs) -> (Vec<u8>, Totals) {
    let mut encoder = Encoder::begin(Vec::new(), &header()).unwrap();
    for (key, value) in pairs {
        encoder.push(key, value).unwrap();
    }
    encoder.finish().unwrap()
}

fn decoded(file: &[u8]) -> Result<(Header, Pairs, Totals), Damage> {
    let mut decoder = Decoder::begin(file)?;
    let mut pairs = Pairs::new();
    while let Some(rows) = decoder.next_block()? {
        pairs.extend(rows.map(|(key, value)| (key.to_vec(), value.to_vec())));
    }
    Ok((decoder.header(), pairs, decoder.totals()))
}

#[test]
fn what_was_written_is_read() {
    for pairs in [pairs(), Pairs::new()] {
        let (file, totals) = encoded(&pairs);
        assert_eq!(totals.rows, pairs.len() as u64);
        assert_eq!(totals.file_bytes, file.len() as u64);
        assert_eq!(decoded(&file).unwrap(), (header(), pairs, totals));
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let pairs = vec![
        (b"a".to_vec(), b"one".to_vec()),
        (b"b".to_vec(), b"two".to_vec()),
    ];
    let (file, _) = encoded(&pairs);
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << bit;
            assert!(decoded(&damaged).is_err(), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn every_lost_end_is_found_and_so_is_more() {
    let pairs = vec![(b"a".to_vec(), b"one".to_vec())];
    let (mut file, _) = encoded(&pairs);
    for length in 0..file.len() {
        let error = decoded(&file[..length]).unwrap_err();
        assert!(
            matches!(error, Damage::Short { at } if at == length as u64),
            "{length}: {error}"
        );
    }
    file.push(0);
    assert!(decoded(&file).is_err());
}

#[test]
fn blocks_that_changed_places_are_found() {
    let value = vec![0; BLOCK_BYTES];
    let pairs = vec![(b"a".to_vec(), value.clone()), (b"b".to_vec(), value)];
    let (file, _) = encoded(&pairs);
    let block_bytes = BLOCK_HEADER_BYTES + ROW_HEADER_BYTES + 1 + BLOCK_BYTES;
    let (header, rest) = file.split_at(HEADER_BYTES);
    let (first, rest) = rest.split_at(block_bytes);
    let (second, trailer) = rest.split_at(block_bytes);
    let swapped = [header, second, first, trailer].concat();
    assert!(matches!(
        decoded(&swapped),
        Err(Damage::Wrong { at, .. }) if at == HEADER_BYTES as u64
    ));
}

#[test]
fn rows_out_of_order_are_found() {
    let pairs = vec![(b"b".to_vec(), Vec::new()), (b"a".to_vec(), Vec::new())];
    let (file, _) = encoded(&pairs);
    assert!(decoded(&file).unwrap_err().to_string().contains("order"));
}

#[test]
fn what_is_no_backup_is_told_from_what_is_newer() {
    for other in [&b""[..], b"REDIS0011", &[0; 200]] {
        let error = decoded(other).unwrap_err();
        let is_empty = other.is_empty() && matches!(error, Damage::Short { at: 0 });
        assert!(is_empty || matches!(error, Damage::NotABackup), "{error}");
    }
    let (mut file, _) = encoded(&Pairs::new());
    file[16] = 9;
    let error = decoded(&file).unwrap_err().to_string();
    assert!(
        error.contains("format 9") && error.contains("newer Quoin"),
        "{error}"
    );
}

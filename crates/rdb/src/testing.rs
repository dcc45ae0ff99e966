//! Payloads of RESTORE in encodings that current Redis versions do not write.

/// Makes a payload of a value, which begins with its type.
pub fn sealed(version: u16, value: &[u8]) -> Vec<u8> {
    let mut payload = value.to_vec();
    payload.extend(version.to_le_bytes());
    payload.extend(crc64(&payload).to_le_bytes());
    payload
}

/// Redis's CRC-64, bit by bit.
pub fn crc64(bytes: &[u8]) -> u64 {
    let mut sum = 0_u64;
    for byte in bytes {
        sum ^= u64::from(*byte);
        for _ in 0..8 {
            let has_one = sum & 1 == 1;
            sum >>= 1;
            if has_one {
                // 0xad93d23594c935a9 with its bits reversed.
                sum ^= 0x95ac_9329_ac4b_c9b5;
            }
        }
    }
    sum
}

/// A length as RDB writes it.
pub fn length(number: usize) -> Vec<u8> {
    match number {
        0..64 => vec![number as u8],
        64..16_384 => vec![0x40 | (number >> 8) as u8, number as u8],
        _ => [vec![0x80], (number as u32).to_be_bytes().to_vec()].concat(),
    }
}

/// A string with its length, neither packed nor as a number.
pub fn string(bytes: &[u8]) -> Vec<u8> {
    [length(bytes.len()), bytes.to_vec()].concat()
}

/// A string in each of its encodings, with a name.
pub fn strings(value: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    // An empty value cannot be packed.
    let value = if value.is_empty() { b"a" } else { value };
    let mut packed = Vec::new();
    for run in value.chunks(32) {
        packed.push((run.len() - 1) as u8);
        packed.extend(run);
    }
    let packed = [
        vec![0xc3],
        length(packed.len()),
        length(value.len()),
        packed,
    ];
    let forms = [
        ("plain", string(value)),
        ("packed", packed.concat()),
        ("8 bits", vec![0xc0, 0x85]),
        ("16 bits", vec![0xc1, 0x39, 0x30]),
        ("32 bits", vec![0xc2, 0xff, 0xff, 0xff, 0x7f]),
    ];
    let sealed = |form: Vec<u8>| sealed(10, &[vec![0], form].concat());
    forms.map(|(name, form)| (name, sealed(form))).into()
}

/// A ziplist, integers in the shortest of its encodings.
pub fn ziplist(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut previous = 0;
    let mut last_offset = 10;
    for entry in entries {
        let start = body.len();
        last_offset = 10 + start;
        if previous < 254 {
            body.push(previous as u8);
        } else {
            body.push(254);
            body.extend((previous as u32).to_le_bytes());
        }
        body.extend(ziplist_value(entry));
        previous = body.len() - start;
    }
    let total = 10 + body.len() + 1;
    let count = u16::try_from(entries.len()).unwrap_or(u16::MAX);
    let mut blob = (total as u32).to_le_bytes().to_vec();
    blob.extend((last_offset as u32).to_le_bytes());
    blob.extend(count.to_le_bytes());
    blob.extend(body);
    blob.push(0xff);
    blob
}

fn ziplist_value(entry: &[u8]) -> Vec<u8> {
    let integer = std::str::from_utf8(entry)
        .ok()
        .and_then(|text| text.parse::<i64>().ok())
        .filter(|integer| integer.to_string().as_bytes() == entry);
    let little = integer.unwrap_or(0).to_le_bytes();
    let with =
        |first: u8, count: usize| [&[first], little.get(..count).unwrap_or_default()].concat();
    match (integer, entry.len()) {
        (Some(small @ 0..13), _) => vec![0xf1 + small as u8],
        (Some(-128..128), _) => with(0xfe, 1),
        (Some(-32_768..32_768), _) => with(0xc0, 2),
        (Some(-8_388_608..8_388_608), _) => with(0xf0, 3),
        (Some(-2_147_483_648..2_147_483_648), _) => with(0xd0, 4),
        (Some(_), _) => with(0xe0, 8),
        (None, 0..64) => [&[entry.len() as u8], entry].concat(),
        (None, 64..16_384) => {
            let header = [0x40 | (entry.len() >> 8) as u8, entry.len() as u8];
            [&header, entry].concat()
        }
        (None, long) => {
            let mut value = vec![0x80];
            value.extend((long as u32).to_be_bytes());
            value.extend(entry);
            value
        }
    }
}

/// A list in every encoding that Redis before 7.0 has written.
pub fn old_lists(elements: &[Vec<u8>]) -> Vec<(&'static str, Vec<u8>)> {
    let strings: Vec<u8> = elements.iter().flat_map(|one| string(one)).collect();
    let nodes: Vec<u8> = elements
        .chunks(3)
        .flat_map(|some| string(&ziplist(some)))
        .collect();
    let node_count = elements.len().div_ceil(3);
    vec![
        (
            "strings",
            sealed(6, &[vec![1], length(elements.len()), strings].concat()),
        ),
        (
            "one ziplist",
            sealed(6, &[vec![10], string(&ziplist(elements))].concat()),
        ),
        (
            "ziplists",
            sealed(9, &[vec![14], length(node_count), nodes].concat()),
        ),
    ]
}

/// A sorted set in every encoding that Redis before 7.0 has written.
pub fn old_sets(members: &[(Vec<u8>, f64)]) -> Vec<(&'static str, Vec<u8>)> {
    let text = |score: f64| format!("{score:e}").into_bytes();
    let with_text: Vec<u8> = members
        .iter()
        .flat_map(|(member, score)| {
            let score = match *score {
                f64::INFINITY => vec![254],
                f64::NEG_INFINITY => vec![255],
                score => [vec![text(score).len() as u8], text(score)].concat(),
            };
            [string(member), score].concat()
        })
        .collect();
    let with_bits: Vec<u8> = members
        .iter()
        .flat_map(|(member, score)| [string(member), score.to_le_bytes().to_vec()].concat())
        .collect();
    let entries: Vec<Vec<u8>> = members
        .iter()
        .flat_map(|(member, score)| [member.clone(), text(*score)])
        .collect();
    let count = length(members.len());
    vec![
        (
            "text scores",
            sealed(6, &[vec![3], count.clone(), with_text].concat()),
        ),
        (
            "binary scores",
            sealed(8, &[vec![5], count, with_bits].concat()),
        ),
        (
            "ziplist",
            sealed(9, &[vec![12], string(&ziplist(&entries))].concat()),
        ),
    ]
}

/// A listpack, integers as text: as no Redis writes them, and each reads them.
pub fn listpack(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    for entry in entries {
        let mut one = match entry.len() {
            short @ 0..64 => vec![0x80 | short as u8],
            middle @ 64..4_096 => vec![0xe0 | (middle >> 8) as u8, middle as u8],
            long => [vec![0xf0], (long as u32).to_le_bytes().to_vec()].concat(),
        };
        one.extend(entry);
        // Its length from the back, seven bits a byte.
        let mut back = vec![(one.len() & 0x7f) as u8];
        let mut rest = one.len() >> 7;
        while rest > 0 {
            if let Some(last) = back.last_mut() {
                *last |= 0x80;
            }
            back.push((rest & 0x7f) as u8);
            rest >>= 7;
        }
        let back: Vec<u8> = back.into_iter().rev().collect();
        body.extend(one);
        body.extend(back);
    }
    let total = 6 + body.len() + 1;
    let count = u16::try_from(entries.len()).unwrap_or(u16::MAX);
    let mut blob = (total as u32).to_le_bytes().to_vec();
    blob.extend(count.to_le_bytes());
    blob.extend(body);
    blob.push(0xff);
    blob
}

/// A zipmap, with free bytes after some of the values.
pub fn zipmap(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let length = |part: &[u8]| match part.len() {
        short @ 0..254 => vec![short as u8],
        long => [vec![254], (long as u32).to_le_bytes().to_vec()].concat(),
    };
    let mut blob = vec![u8::try_from(fields.len()).unwrap_or(254).min(254)];
    for (at, (field, value)) in fields.iter().enumerate() {
        let free = at % 3;
        blob.extend(
            [
                length(field),
                field.clone(),
                length(value),
                vec![free as u8],
            ]
            .concat(),
        );
        blob.extend(value);
        blob.extend(vec![b'?'; free]);
    }
    blob.push(0xff);
    blob
}

/// An intset of ascending numbers, with `number_bytes` bytes each.
pub fn intset(numbers: &[i64], number_bytes: usize) -> Vec<u8> {
    let mut blob = (number_bytes as u32).to_le_bytes().to_vec();
    blob.extend((numbers.len() as u32).to_le_bytes());
    for number in numbers {
        blob.extend(number.to_le_bytes().iter().take(number_bytes));
    }
    blob
}

/// A hash in every encoding that a Redis has written.
pub fn hashes(fields: &[(Vec<u8>, Vec<u8>)]) -> Vec<(&'static str, Vec<u8>)> {
    let parts = fields.iter().flat_map(|(field, value)| [field, value]);
    let parts: Vec<Vec<u8>> = parts.cloned().collect();
    let strings: Vec<u8> = parts.iter().flat_map(|part| string(part)).collect();
    let packed = |rdb_type: u8, version, blob: Vec<u8>| {
        sealed(version, &[vec![rdb_type], string(&blob)].concat())
    };
    vec![
        (
            "strings",
            sealed(6, &[vec![4], length(fields.len()), strings].concat()),
        ),
        ("zipmap", packed(9, 3, zipmap(fields))),
        ("ziplist", packed(13, 9, ziplist(&parts))),
        ("listpack", packed(16, 10, listpack(&parts))),
    ]
}

/// A set in every encoding that a Redis has written; the last is of 7.2. Not as numbers.
pub fn sets(members: &[Vec<u8>]) -> Vec<(&'static str, Vec<u8>)> {
    let strings: Vec<u8> = members.iter().flat_map(|one| string(one)).collect();
    vec![
        (
            "strings",
            sealed(6, &[vec![2], length(members.len()), strings].concat()),
        ),
        (
            "listpack",
            sealed(11, &[vec![20], string(&listpack(members))].concat()),
        ),
    ]
}

/// A set of numbers in every width that holds them. They ascend.
pub fn number_sets(numbers: &[i64]) -> Vec<(&'static str, Vec<u8>)> {
    let widths = [("16 bits", 2), ("32 bits", 4), ("64 bits", 8)];
    let fitting = widths.into_iter().filter(|(_, bytes)| {
        let unused_bits = 64 - 8 * bytes;
        let fits = |number: &i64| (number << unused_bits) >> unused_bits == *number;
        numbers.iter().all(fits)
    });
    let payload = |bytes| sealed(6, &[vec![11], string(&intset(numbers, bytes))].concat());
    fitting
        .map(|(name, bytes)| (name, payload(bytes)))
        .collect()
}

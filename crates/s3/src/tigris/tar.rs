//! The headers of a tar archive (POSIX.1-2001, *pax Interchange Format*), for names of any length and bytes.

/// The unit of an archive, in bytes.
const BLOCK: usize = 512;
/// The longest name that fits in a plain header, in bytes.
const NAME: usize = 100;
/// The largest number that eleven octal digits hold.
const OCTAL: u64 = 0o777_7777_7777;

/// Returns the header of a file, with an extended one before it where the plain one cannot say everything.
pub(super) fn header(name: &[u8], size: u64, seconds: u64) -> Vec<u8> {
    let mut records = Vec::new();
    let plain = name.len() <= NAME && name.is_ascii() && !name.contains(&0);
    if !plain {
        record(&mut records, "path", name);
    }
    if size > OCTAL {
        record(&mut records, "size", size.to_string().as_bytes());
    }
    let mut all = Vec::new();
    if !records.is_empty() {
        all.extend(block(b"pax", records.len() as u64, seconds, b'x'));
        let fill = padding(records.len() as u64);
        all.append(&mut records);
        all.resize(all.len() + fill, 0);
    }
    let short: Vec<u8> = name.iter().copied().filter(u8::is_ascii_graphic).take(NAME).collect();
    all.extend(block(if plain { name } else { &short }, size.min(OCTAL), seconds, b'0'));
    all
}

/// Returns how many zeros follow `size` bytes of content.
pub(super) fn padding(size: u64) -> usize {
    (size.wrapping_neg() % BLOCK as u64) as usize
}

/// Returns what ends an archive.
pub(super) fn end() -> Vec<u8> {
    vec![0; 2 * BLOCK]
}

/// Appends an extended record: its length, counted in itself, its keyword and its value.
fn record(records: &mut Vec<u8>, keyword: &str, value: &[u8]) {
    let rest = keyword.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    records.extend_from_slice(format!("{length} {keyword}=").as_bytes());
    records.extend_from_slice(value);
    records.push(b'\n');
}

fn block(name: &[u8], size: u64, seconds: u64, kind: u8) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    let mut set = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    set(0, &name[..name.len().min(NAME)]);
    set(100, b"0000644\0");
    set(108, b"0000000\0");
    set(116, b"0000000\0");
    set(124, format!("{size:011o}\0").as_bytes());
    set(136, format!("{:011o}\0", seconds.min(OCTAL)).as_bytes());
    set(148, b"        ");
    set(156, &[kind]);
    set(257, b"ustar\x0000");
    let sum: u64 = block.iter().map(|b| u64::from(*b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    //! The forms; that archives are read by others is shown over HTTP.

    use super::*;

    #[test]
    fn a_record_counts_itself() {
        for length in [1, 84, 85, 86, 90, 900, 980, 990, 1024] {
            let mut records = Vec::new();
            record(&mut records, "path", &vec![b'x'; length]);
            let text = String::from_utf8(records).unwrap();
            assert_eq!(text.split_once(' ').unwrap().0.parse::<usize>().unwrap(), text.len());
        }
    }

    #[test]
    fn blocks_are_whole() {
        for (name, blocks) in [("a", 1), (&"x".repeat(100), 1), (&"x".repeat(101), 3), ("ü", 3), (&"y".repeat(600), 4)]
        {
            assert_eq!(header(name.as_bytes(), 7, 0).len(), blocks * BLOCK, "{name}");
        }
        assert_eq!(header(b"big", OCTAL + 1, 0).len(), 3 * BLOCK);
        assert_eq!((padding(0), padding(1), padding(512), padding(513)), (0, 511, 0, 511));
    }
}

//! A tar with exactly one possible form: regular files with known names, in order, each with its only possible header.
//! Everything else is refused, with the best matching reason.

use super::ArchiveRefusal;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use tar::{EntryType, Header};

const BLOCK: usize = 512;

/// Limits for reading.
pub(super) struct Caps {
    /// One file, bytes.
    pub file: u64,
    /// All files, bytes.
    pub whole: u64,
    /// How many.
    pub files: usize,
}

/// Writes `files` in their order.
pub(super) fn write_tar(files: &BTreeMap<String, Bytes>, to: &mut dyn Write) -> io::Result<()> {
    for (name, bytes) in files {
        to.write_all(make_header(name, bytes.len() as u64)?.as_bytes())?;
        to.write_all(bytes)?;
        to.write_all(&[0; BLOCK][..count_padding(bytes.len())])?;
    }
    to.write_all(&[0; 2 * BLOCK])
}

/// The header of a file, without owner and time.
fn make_header(name: &str, size: u64) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(name)?;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_entry_type(EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

fn count_padding(size: usize) -> usize {
    (BLOCK - size % BLOCK) % BLOCK
}

/// Reads an archive of [`write`]. Memory is allocated only for bytes that were read, not for a stated size.
pub(super) fn read_tar(
    from: &mut dyn Read,
    is_name: &dyn Fn(&str) -> bool,
    caps: &Caps,
) -> Result<BTreeMap<String, Bytes>, ArchiveRefusal> {
    let mut files: BTreeMap<String, Bytes> = BTreeMap::new();
    let mut left = caps.whole;
    loop {
        let block = read_block(from, files.is_empty())?;
        if block == [0; BLOCK] {
            check_end(from)?;
            return Ok(files);
        }
        let found = Header::from_byte_slice(&block);
        let (name, size) = read_entry(found, files.is_empty())?;
        let quoted = crate::evidence::envelope::clip_text(&name);
        let refuse = |why: String| Err(ArchiveRefusal::Content(format!("{quoted:?} {why}")));
        match found.entry_type() {
            EntryType::Regular => {}
            EntryType::Link | EntryType::Symlink => {
                return refuse("is a link, which is not allowed".into());
            }
            EntryType::Directory => return refuse("is a folder, which is not allowed".into()),
            _ => return refuse("is not a regular file".into()),
        }
        if name.starts_with('/') || name.split('/').any(|part| part == "..") {
            return refuse("is outside the folder of the archive".into());
        }
        if !is_name(&name) {
            return refuse("is not a file of an evidence bundle".into());
        }
        if let Some(last) = files.keys().next_back() {
            match name.as_str().cmp(last) {
                std::cmp::Ordering::Greater => {}
                std::cmp::Ordering::Equal => return refuse("occurs twice".into()),
                std::cmp::Ordering::Less => return refuse("occurs twice, or is not in its place".into()),
            }
        }
        if size > caps.file || size > left {
            return refuse(format!("has a stated size of {size} bytes, which is more than is read"));
        }
        if files.len() == caps.files {
            return refuse(format!("comes after {} files, and no more are read", caps.files));
        }
        if found.as_bytes() != make_header(&name, size)?.as_bytes() {
            return refuse("has a header that an evidence bundle does not have".into());
        }
        left -= size;
        let bytes = read_content(from, size, &quoted)?;
        files.insert(name, bytes);
    }
}

fn read_entry(found: &Header, first: bool) -> Result<(String, u64), ArchiveRefusal> {
    let wrong = |why: &str| ArchiveRefusal::Content(why.to_owned());
    let damaged = || match first {
        true => wrong("it is not a tar archive"),
        false => wrong("a header in it is damaged"),
    };
    let mut summed = found.clone();
    summed.set_cksum();
    if found.cksum().ok() != summed.cksum().ok() {
        return Err(damaged());
    }
    let size = found.entry_size().map_err(|_| damaged())?;
    let path = found.path_bytes();
    let name = std::str::from_utf8(&path).map_err(|_| wrong("a name in it is not UTF-8"))?;
    Ok((name.to_owned(), size))
}

/// The next block; without one, the archive was cut off.
fn read_block(from: &mut dyn Read, first: bool) -> Result<[u8; BLOCK], ArchiveRefusal> {
    let mut block = [0; BLOCK];
    let read = fill_buffer(from, &mut block)?;
    if first && block.starts_with(&[0x1f, 0x8b]) {
        return Err(ArchiveRefusal::Content("it is compressed; an evidence bundle is a plain tar".into()));
    }
    match read {
        BLOCK => Ok(block),
        _ if first => Err(ArchiveRefusal::Content("it is not a tar archive".into())),
        _ => Err(ArchiveRefusal::Content("it is cut off".into())),
    }
}

fn fill_buffer(from: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// After the first empty block there must be exactly one more and then the end.
fn check_end(from: &mut dyn Read) -> Result<(), ArchiveRefusal> {
    let mut rest = Vec::new();
    from.take(2 * BLOCK as u64).read_to_end(&mut rest)?;
    match rest == [0; BLOCK] {
        true => Ok(()),
        false if rest.len() < BLOCK => Err(ArchiveRefusal::Content("it is cut off".into())),
        false => Err(ArchiveRefusal::Content("there is data after its end".into())),
    }
}

fn read_content(from: &mut dyn Read, size: u64, name: &str) -> Result<Bytes, ArchiveRefusal> {
    let mut bytes = BytesMut::new();
    let mut piece = [0; 1 << 14];
    let mut left = size;
    while left > 0 {
        let want = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
        match fill_buffer(from, &mut piece[..want])? {
            n if n == want => bytes.extend_from_slice(&piece[..n]),
            _ => return Err(ArchiveRefusal::Content(format!("{name:?} is cut off"))),
        }
        left -= want as u64;
    }
    let mut rest = [0; BLOCK];
    let rest = &mut rest[..count_padding(bytes.len())];
    if fill_buffer(from, rest)? != rest.len() {
        return Err(ArchiveRefusal::Content(format!("{name:?} is cut off")));
    }
    if rest.iter().any(|b| *b != 0) {
        return Err(ArchiveRefusal::Content(format!("there is data between {name:?} and the next file")));
    }
    Ok(bytes.freeze())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    const CAPS: Caps = Caps { file: 2000, whole: 3000, files: 4 };

    fn files() -> BTreeMap<String, Bytes> {
        let file = |name: &str, text: &'static str| (name.to_owned(), Bytes::from(text));
        [file("a", "one"), file("b/c", ""), file("d", "three")].into()
    }

    fn written() -> Vec<u8> {
        let mut bytes = Vec::new();
        write_tar(&files(), &mut bytes).unwrap();
        bytes
    }

    fn any(_: &str) -> bool {
        true
    }

    #[track_caller]
    fn why(bytes: &[u8]) -> String {
        match read_tar(&mut &bytes[..], &any, &CAPS) {
            Err(ArchiveRefusal::Content(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    /// A tar as other tools write it.
    fn by_hand(entries: &[(&str, EntryType, u64, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, kind, size, content) in entries {
            let mut header = make_header("x", *size).unwrap();
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_cksum();
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(content);
            bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        }
        bytes.extend_from_slice(&[0; 2 * BLOCK]);
        bytes
    }

    #[test]
    fn what_is_written_is_read_and_other_tars_read_it_too() {
        let bytes = written();
        assert_eq!(bytes, written());
        assert_eq!(read_tar(&mut &bytes[..], &any, &CAPS).unwrap(), files());
        let mut archive = tar::Archive::new(&bytes[..]);
        let names = archive.entries().unwrap().map(|e| e.unwrap().path().unwrap().display().to_string());
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b/c", "d"]);
    }

    #[test]
    fn no_byte_outside_of_a_content_can_be_another() {
        let good = written();
        let contents = [BLOCK..BLOCK + 3, 4 * BLOCK..4 * BLOCK + 5];
        for at in (0..good.len()).filter(|at| !contents.iter().any(|c| c.contains(at))) {
            for bit in [0, 5] {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                why(&bytes);
            }
        }
        for cut in [0, 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK, good.len() - 1] {
            why(&good[..cut]);
        }
        assert!(why(&[&good[..], b"x"].concat()).contains("data after its end"));
        assert!(why(&[&good[..], &[0; BLOCK]].concat()).contains("data after its end"));
    }

    #[test]
    fn hostile_entries_are_refused_by_name() {
        let regular = EntryType::Regular;
        for (entries, part) in [
            (vec![("../a", regular, 0, &b""[..])], "is outside the folder"),
            (vec![("/a", regular, 0, b"")], "is outside the folder"),
            (vec![("a/../../b", regular, 0, b"")], "is outside the folder"),
            (vec![("a", EntryType::Symlink, 0, b"")], "is a link"),
            (vec![("a", EntryType::Link, 0, b"")], "is a link"),
            (vec![("a", EntryType::Directory, 0, b"")], "is a folder"),
            (vec![("a", EntryType::Char, 0, b"")], "not a regular file"),
            (vec![("a", EntryType::Fifo, 0, b"")], "not a regular file"),
            (vec![("a", EntryType::GNUSparse, 0, b"")], "not a regular file"),
            (vec![("a", EntryType::GNULongName, 1, b"b")], "not a regular file"),
            (vec![("a", EntryType::XHeader, 1, b"b")], "not a regular file"),
            (vec![("a", regular, 1, b"x"), ("a", regular, 1, b"x")], "occurs twice"),
            (vec![("b", regular, 1, b"x"), ("a", regular, 1, b"x")], "not in its place"),
            (vec![("a", regular, 2001, b"")], "more than is read"),
            (vec![("a", regular, 1 << 33, b"")], "more than is read"),
            (vec![("a", regular, 1800, &[7; 1800]), ("b", regular, 1800, &[7; 1800])], "more than is read"),
            (vec![("a", regular, 1900, b"x")], "is cut off"),
        ] {
            let found = why(&by_hand(&entries));
            assert!(found.contains(part), "{part}: {found}");
        }
        let many: Vec<_> = ["a", "b", "c", "d", "e"].map(|n| (n, regular, 0, &b""[..])).into();
        assert!(why(&by_hand(&many)).contains("after 4 files"));
        assert!(why(b"").contains("not a tar archive"));
        assert!(why(&[7; 4 * BLOCK]).contains("not a tar archive"));
        assert!(why(&[&[0x1f, 0x8b][..], &[0; BLOCK]].concat()).contains("compressed"));
        let bytes = by_hand(&[("a", regular, 0, b"")]);
        let named = |name: &str| name != "a";
        assert!(
            matches!(read_tar(&mut &bytes[..], &named, &CAPS), Err(ArchiveRefusal::Content(w)) if w.contains("not a file of"))
        );
    }
}

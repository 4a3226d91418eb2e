//! `SQLite` files, as far as whether a table has rows (the file format as published by `SQLite`).

use super::cursor::Cursor;
use super::rules::Rules;
use super::{Material, Sign};

const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER: usize = 100;

/// Most pages that are looked at.
const MOST_PAGES: usize = 2000;

/// One credential for each of the tables in question that has rows, or for each mark in the file.
pub(super) fn read(bytes: &[u8], rules: &Rules) -> Vec<Material> {
    let spoilt = || vec![Material::new(rules.kind, Sign::unreadable("it is no SQLite file, or not whole"))];
    if !bytes.starts_with(MAGIC) {
        return spoilt();
    }
    let marks = rules.marks.iter().filter(|(mark, _)| memchr::memmem::find(bytes, mark.as_bytes()).is_some());
    let mut out: Vec<Material> = marks.map(|(_, sign)| Material::new(rules.kind, sign.clone())).collect();
    out.truncate(1);
    let Some(file) = File::open(bytes) else { return spoilt() };
    for (table, root) in file.tables() {
        if rules.rows.iter().any(|name| name.eq_ignore_ascii_case(&table)) {
            let sign = rules.holds.clone().unwrap_or(Sign::Live);
            match file.has_rows(root) {
                Some(true) => out.push(Material { label: Some(table), ..Material::new(rules.kind, sign) }),
                Some(false) => {}
                None => return spoilt(),
            }
        }
    }
    out
}

struct File<'a> {
    bytes: &'a [u8],
    page: usize,
}

impl<'a> File<'a> {
    fn open(bytes: &'a [u8]) -> Option<Self> {
        let size = Cursor(bytes.get(16..)?).number(2)?;
        let page = if size == 1 { 65_536 } else { usize::try_from(size).ok()? };
        (page >= 512 && page.is_power_of_two()).then_some(File { bytes, page })
    }

    /// A page from its own start, and where its header begins.
    fn page(&self, number: usize) -> Option<(&'a [u8], usize)> {
        let from = number.checked_sub(1)?.checked_mul(self.page)?;
        let rest = self.bytes.get(from..)?;
        Some((rest.get(..self.page).unwrap_or(rest), if number == 1 { HEADER } else { 0 }))
    }

    /// Type and cell count of a page.
    fn header(&self, number: usize) -> Option<(u8, usize)> {
        let (page, at) = self.page(number)?;
        let mut header = Cursor(page.get(at..)?);
        let kind = header.u8()?;
        header.take(2)?;
        Some((kind, usize::try_from(header.number(2)?).ok()?))
    }

    /// Whether a table has rows: its root is not a leaf, or a leaf with cells.
    fn has_rows(&self, root: usize) -> Option<bool> {
        match self.header(root)? {
            (0x0d | 0x0a, cells) => Some(cells > 0),
            (0x05 | 0x02, _) => Some(true),
            _ => None,
        }
    }

    /// Names and root pages of the tables.
    fn tables(&self) -> Vec<(String, usize)> {
        let mut out = Vec::new();
        let mut todo = vec![1];
        let mut seen = std::collections::BTreeSet::new();
        while let Some(number) = todo.pop().filter(|_| seen.len() < MOST_PAGES) {
            if !seen.insert(number) {
                continue;
            }
            let Some((page, at)) = self.page(number) else { continue };
            let Some((kind, cells)) = self.header(number) else { continue };
            let head = if kind == 0x05 { 12 } else { 8 };
            if kind == 0x05 {
                todo.extend(page.get(at + 8..).and_then(|rest| pointer(rest, 4)));
            }
            let pointers = (0..cells).filter_map(|n| pointer(page.get(at + head + 2 * n..)?, 2));
            let cells: Vec<&[u8]> = pointers.filter_map(|cell| page.get(cell..)).collect();
            match kind {
                0x05 => todo.extend(cells.iter().filter_map(|cell| pointer(cell, 4))),
                0x0d => out.extend(cells.iter().filter_map(|cell| row(cell))),
                _ => {}
            }
        }
        out
    }
}

fn pointer(bytes: &[u8], count: usize) -> Option<usize> {
    usize::try_from(Cursor(bytes).number(count)?).ok()
}

/// A number of up to nine bytes, seven bits in each but the last.
fn varint(at: &mut Cursor<'_>) -> Option<u64> {
    let mut sum: u64 = 0;
    for n in 0..9 {
        let byte = at.u8()?;
        if n == 8 {
            return Some((sum << 8) | u64::from(byte));
        }
        sum = (sum << 7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(sum)
}

/// Name and root page of one row of the schema: type, name, table name, root page, text.
fn row(cell: &[u8]) -> Option<(String, usize)> {
    let mut at = Cursor(cell);
    varint(&mut at)?;
    varint(&mut at)?;
    let before = at.0.len();
    let length = usize::try_from(varint(&mut at)?).ok()?;
    let width = before - at.0.len();
    let mut header = Cursor(at.take(length.checked_sub(width)?)?);
    let mut size = || {
        let serial = varint(&mut header)?;
        Some(match serial {
            0..=4 => usize::try_from(serial).ok()?,
            5 => 6,
            6 | 7 => 8,
            8..=11 => 0,
            _ => usize::try_from((serial - 12) / 2).ok()?,
        })
    };
    let kind = at.take(size()?)?;
    let name = at.take(size()?)?;
    at.take(size()?)?;
    let width = size().filter(|width| *width <= 8)?;
    let root = usize::try_from(at.number(width)?).ok()?;
    (kind == b"table").then(|| (String::from_utf8_lossy(name).into_owned(), root))
}

//! All names of series in memory: insert, remove, rename, look up, list.
//!
//! Path of a name: `Catalog::insert` -> `name::parse` -> its components in the tree, or its tags in `TagIndex` -> an id.
//! A component, tag or value is stored once. A name costs some 60 bytes beside its own text; `catalog_speed` measures it.
//! Not here: globs (`search`), expressions over tags (`tags`), bytes of a saved catalog (`saved`), files.
//! Invariant: a name has one id, an id has one name; a node without series and children is removed.

use std::fmt;

use super::SeriesId;
use super::name::{BadName, LEVELS_MAX, NAME_BYTES_MAX, Name, Tagged, parse};
use super::store::{NO_SERIES, Pages, ROOT, TEXT_BYTES_MAX, Texts, Tree};
use super::tagged::{TagIndex, release};

/// Most names of any catalog: the ids of series have 30 bits.
pub const NAMES_MAX: u32 = 1 << 30;

/// A tag takes at least four bytes of a name, and four of a key.
const _: () = assert!(8 + NAME_BYTES_MAX <= TEXT_BYTES_MAX, "texts and keys of all names can be stored");

/// Keys of at most so many numbers are built without an allocation.
const FEW_NUMBERS: usize = 16;

/// Most memory that a table takes for an entry, with its unused places.
const TABLE_ENTRY_BYTES_MAX: usize = 12;

/// In the array of series: the number of a key, not of a node.
const TAGGED: u32 = 1 << 31;
/// In the array of series: not in use; the other bits are the next such id.
const VACANT: u32 = 1 << 30;
const LAST: u32 = VACANT | (VACANT - 1);

/// Limits of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogLimits {
    /// Most names; at most [`NAMES_MAX`].
    pub names_max: u32,
    /// Most bytes of memory. A name is refused when they are used; the last one may exceed them by a page of each array
    /// and one sixty-fourth of the hash tables.
    pub bytes_max: usize,
}

/// A name that was not inserted, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It cannot be a name.
    Name(BadName),
    /// The catalog has as many names as it may.
    TooManyNames {
        /// The limit.
        names_max: u32,
    },
    /// The catalog uses as much memory as it may.
    TooManyBytes {
        /// The limit.
        bytes_max: usize,
    },
    /// Another series has the name (only when renaming).
    Exists(SeriesId),
    /// No series has the old name (only when renaming).
    Unknown,
}

impl fmt::Display for Refused {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Name(why) => why.fmt(to),
            Refused::TooManyNames { names_max } => write!(to, "the catalog has {names_max} names, its limit"),
            Refused::TooManyBytes { bytes_max } => {
                write!(to, "the catalog uses {bytes_max} bytes of memory, its limit")
            }
            Refused::Exists(_) => to.write_str("another series has the name"),
            Refused::Unknown => to.write_str("no series has the name"),
        }
    }
}

impl std::error::Error for Refused {}

/// A name that is in the catalog after an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It was not there before.
    New(SeriesId),
    /// It was there.
    Known(SeriesId),
}

impl Inserted {
    /// The id in either case.
    pub fn id(self) -> SeriesId {
        match self {
            Inserted::New(id) | Inserted::Known(id) => id,
        }
    }
}

/// Where a name is stored.
#[derive(Clone, Copy, Debug)]
pub(super) enum StoredAs {
    Node(u32),
    Key(u32),
}

/// A name, and what of it is in the catalog.
enum LookedUp<'a> {
    /// The deepest node of the path, and the components below it.
    Path { node: u32, rest: &'a [u8] },
    /// The parts of the key that are known.
    Tagged { name: &'a Tagged<'a>, key: Vec<Option<u32>> },
}

/// The first component, and what follows its dot.
fn split_component(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().position(|byte| *byte == b'.') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (path, b""),
    }
}

/// The names of all series.
#[derive(Debug)]
pub struct Catalog {
    limits: CatalogLimits,
    /// Components, tags, values and metrics. Note: number of users.
    pub(super) texts: Texts,
    pub(super) tree: Tree,
    pub(super) tags: TagIndex,
    /// By id: a node, [`TAGGED`] and a key, or [`VACANT`] and the next one.
    series: Pages<u32>,
    first_vacant: u32,
    names: u32,
    tagged: u32,
    /// The key that was stored last, unless a series with tags was removed since: all its numbers are in use.
    key: Vec<u8>,
}

impl Catalog {
    /// An empty catalog, whose hashes have a seed that nobody outside knows.
    pub fn new(limits: CatalogLimits, seed: u64) -> Catalog {
        Catalog {
            limits: CatalogLimits { names_max: limits.names_max.min(NAMES_MAX), ..limits },
            texts: Texts::new(seed),
            tree: Tree::new(seed),
            tags: TagIndex::new(seed),
            series: Pages::default(),
            first_vacant: LAST,
            names: 0,
            tagged: 0,
            key: Vec::new(),
        }
    }

    /// Its limits.
    pub fn limits(&self) -> CatalogLimits {
        self.limits
    }

    /// Number of names, with and without tags.
    pub fn len(&self) -> u32 {
        self.names
    }

    /// True without any name.
    pub fn is_empty(&self) -> bool {
        self.names == 0
    }

    /// Number of names with tags.
    pub fn tagged(&self) -> u32 {
        self.tagged
    }

    /// Memory in use, in constant time.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Catalog>()
            + self.texts.memory_bytes()
            + self.tree.memory_bytes()
            + self.tags.memory_bytes()
            + self.series.memory_bytes()
            + self.key.capacity()
    }

    /// The series of a name, in any form that [`super::normal_name`] accepts.
    pub fn find(&self, name: &[u8]) -> Option<SeriesId> {
        self.find_name(&parse(name).ok()?)
    }

    fn find_name(&self, name: &Name<'_>) -> Option<SeriesId> {
        self.found(&self.look_up(name))
    }

    /// What of a name is there.
    fn look_up<'a>(&self, name: &'a Name<'a>) -> LookedUp<'a> {
        match name {
            Name::Path(path) => {
                let (mut node, mut rest) = (ROOT, *path);
                while !rest.is_empty() {
                    let (component, after) = split_component(rest);
                    let text = self.texts.find(component);
                    let Some(child) = text.and_then(|text| self.tree.child(node, text)) else { break };
                    (node, rest) = (child, after);
                }
                LookedUp::Path { node, rest }
            }
            Name::Tagged(tagged) => {
                let mut key = Vec::with_capacity(2 + tagged.tags.len());
                key.push(self.texts.find(tagged.metric));
                let first = (b"name".as_slice(), tagged.name_value());
                let others = tagged.tags.iter().map(|(tag, value)| (*tag, &**value));
                let last = self.key.as_chunks::<4>().0;
                for (at, (tag, value)) in [first].into_iter().chain(others).enumerate() {
                    key.push(match last.get(1 + at) {
                        Some(like) => {
                            self.tags.value_like(&self.texts, u32::from_le_bytes(*like), tag, value)
                        }
                        None => self.tags.value(&self.texts, tag, value),
                    });
                }
                LookedUp::Tagged { name: tagged, key }
            }
        }
    }

    fn found(&self, looked_up: &LookedUp<'_>) -> Option<SeriesId> {
        match looked_up {
            LookedUp::Path { node, rest: [] } => {
                Some(self.tree.series(*node)).filter(|series| *series != NO_SERIES).map(SeriesId)
            }
            LookedUp::Path { .. } => None,
            LookedUp::Tagged { key, .. } => {
                let (mut few, mut many) = ([0; 4 * FEW_NUMBERS], Vec::new());
                let bytes = if key.len() <= FEW_NUMBERS {
                    &mut few[..4 * key.len()]
                } else {
                    many.resize(4 * key.len(), 0);
                    &mut many[..]
                };
                for (place, number) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(key) {
                    *place = (*number)?.to_le_bytes();
                }
                self.tags.find(bytes)
            }
        }
    }

    /// Appends the name of a series in its normal form. False when there is no such series.
    pub fn name(&self, id: SeriesId, out: &mut Vec<u8>) -> bool {
        match self.place(id) {
            None => return false,
            Some(StoredAs::Node(node)) => self.path(node, out),
            Some(StoredAs::Key(key)) => {
                let mut numbers = self.tags.key(key);
                if let Some(metric) = numbers.next() {
                    out.extend_from_slice(self.texts.get(metric));
                }
                // The first value is that of `name`, which the metric has.
                for value in numbers.skip(1) {
                    out.push(b';');
                    out.extend_from_slice(self.texts.get(self.tags.tree.text(self.tags.tree.parent(value))));
                    out.push(b'=');
                    out.extend_from_slice(self.texts.get(self.tags.tree.text(value)));
                }
            }
        }
        true
    }

    fn path(&self, mut node: u32, out: &mut Vec<u8>) {
        let (mut texts, mut levels) = ([0; LEVELS_MAX], 0);
        while node != ROOT {
            texts[levels] = self.tree.text(node);
            levels += 1;
            node = self.tree.parent(node);
        }
        for (at, text) in texts[..levels].iter().rev().enumerate() {
            if at > 0 {
                out.push(b'.');
            }
            out.extend_from_slice(self.texts.get(*text));
        }
    }

    pub(super) fn place(&self, id: SeriesId) -> Option<StoredAs> {
        match *self.series.get(id.0)? {
            key if key & TAGGED != 0 => Some(StoredAs::Key(key & !TAGGED)),
            vacant if vacant & VACANT != 0 => None,
            node => Some(StoredAs::Node(node)),
        }
    }

    /// The first series whose id is at least `from`. A listing that continues behind the last id finds each series that
    /// exists all the time exactly once, however the catalog changes in between.
    pub fn next(&self, from: u32) -> Option<SeriesId> {
        (from..self.series.len()).map(SeriesId).find(|id| self.place(*id).is_some())
    }

    /// One more than the largest id in use, or more: the end of a listing by ids.
    pub fn ids_end(&self) -> u32 {
        self.series.len()
    }

    /// Adds a name in any form that [`super::normal_name`] accepts.
    ///
    /// # Errors
    /// [`Refused`]: it cannot be a name, or a limit is reached. Nothing was changed.
    pub fn insert(&mut self, name: &[u8]) -> Result<Inserted, Refused> {
        let name = parse(name).map_err(Refused::Name)?;
        let looked_up = self.look_up(&name);
        if let Some(id) = self.found(&looked_up) {
            return Ok(Inserted::Known(id));
        }
        self.check_room(0)?;
        let id = match self.first_vacant {
            LAST => SeriesId(self.series.push(LAST)),
            id => {
                let id = id & !VACANT;
                self.first_vacant = self.series[id];
                SeriesId(id)
            }
        };
        self.store(looked_up, id);
        Ok(Inserted::New(id))
    }

    /// `leaving`: names that make room for it.
    fn check_room(&self, leaving: u32) -> Result<(), Refused> {
        let CatalogLimits { names_max, bytes_max } = self.limits;
        if self.names - leaving >= names_max {
            return Err(Refused::TooManyNames { names_max });
        }
        let has_room = self.texts.has_room() && self.tree.has_room() && self.tags.has_room();
        if self.memory_bytes() >= bytes_max || !has_room {
            return Err(Refused::TooManyBytes { bytes_max });
        }
        Ok(())
    }

    /// Stores what [`Catalog::look_up`] gave, if nothing was removed since.
    fn store(&mut self, name: LookedUp<'_>, id: SeriesId) {
        self.series[id.0] = match name {
            LookedUp::Path { mut node, mut rest } => {
                while !rest.is_empty() {
                    let (component, after) = split_component(rest);
                    let text = self.texts.intern(component);
                    *self.texts.note_mut(text) += 1;
                    node = self.tree.add(node, text);
                    rest = after;
                }
                self.tree.set_series(node, id.0);
                node
            }
            LookedUp::Tagged { name, key } => self.store_tagged(name, &key, id) | TAGGED,
        };
        self.names += 1;
    }

    fn store_tagged(&mut self, name: &Tagged<'_>, known: &[Option<u32>], id: SeriesId) -> u32 {
        let Catalog { texts, tags, key, .. } = self;
        key.clear();
        let metric = known[0].unwrap_or_else(|| texts.intern(name.metric));
        *texts.note_mut(metric) += 1;
        key.extend_from_slice(&metric.to_le_bytes());
        let first = (b"name".as_slice(), name.name_value());
        let others = name.tags.iter().map(|(tag, value)| (*tag, &**value));
        for ((tag, value), known) in [first].into_iter().chain(others).zip(&known[1..]) {
            let value = known.unwrap_or_else(|| tags.value_or_new(texts, tag, value));
            key.extend_from_slice(&value.to_le_bytes());
        }
        self.tagged += 1;
        tags.insert(key, id)
    }

    /// Removes a name; its id, if it was there.
    pub fn remove(&mut self, name: &[u8]) -> Option<SeriesId> {
        let id = self.find(name)?;
        self.remove_id(id);
        Some(id)
    }

    /// Removes a series. False when there is no such series.
    pub fn remove_id(&mut self, id: SeriesId) -> bool {
        let Some(place) = self.place(id) else { return false };
        self.forget(place, id);
        self.series[id.0] = self.first_vacant;
        self.first_vacant = id.0 | VACANT;
        true
    }

    fn forget(&mut self, place: StoredAs, id: SeriesId) {
        self.names -= 1;
        let mut node = match place {
            StoredAs::Key(key) => {
                self.tagged -= 1;
                self.key.clear();
                return self.tags.remove(&mut self.texts, key, id);
            }
            StoredAs::Node(node) => node,
        };
        self.tree.set_series(node, NO_SERIES);
        while node != ROOT && !self.tree.has_children(node) && self.tree.series(node) == NO_SERIES {
            let (parent, text) = (self.tree.parent(node), self.tree.text(node));
            self.tree.remove(node);
            release(&mut self.texts, text);
            node = parent;
        }
    }

    /// Gives a series another name. Its id stays.
    ///
    /// # Errors
    /// [`Refused`]: one of the names is invalid, the old one is unknown, another series has the new one, or the memory is
    /// used up. Nothing was changed.
    pub fn rename(&mut self, old: &[u8], new: &[u8]) -> Result<SeriesId, Refused> {
        let (old, new) = (parse(old).map_err(Refused::Name)?, parse(new).map_err(Refused::Name)?);
        let id = self.find_name(&old).ok_or(Refused::Unknown)?;
        match self.find_name(&new) {
            Some(same) if same == id => return Ok(id),
            Some(other) => return Err(Refused::Exists(other)),
            None => self.check_room(1)?,
        }
        let place = self.place(id).expect("the series was found");
        self.forget(place, id);
        self.store(self.look_up(&new), id);
        Ok(id)
    }

    /// Gives an id a name, as a saved catalog does: the id loses another name, the name another id.
    /// [`Catalog::link_vacant`] must follow before the next insertion.
    pub(super) fn put(&mut self, id: SeriesId, name: &[u8]) -> Result<(), Refused> {
        let name = parse(name).map_err(Refused::Name)?;
        let mut looked_up = self.look_up(&name);
        let other = self.found(&looked_up);
        if other == Some(id) {
            return Ok(());
        }
        let went = self.remove_id(id);
        if other.is_some_and(|other| self.remove_id(other)) || went {
            looked_up = self.look_up(&name);
        }
        if id.0 >= self.limits.names_max {
            return Err(Refused::TooManyNames { names_max: self.limits.names_max });
        }
        self.check_room(0)?;
        let ids_bytes = (id.0.saturating_sub(self.series.len()) as usize).saturating_mul(size_of::<u32>());
        if self.memory_bytes().saturating_add(ids_bytes) >= self.limits.bytes_max {
            return Err(Refused::TooManyBytes { bytes_max: self.limits.bytes_max });
        }
        while self.series.len() <= id.0 {
            self.series.push(LAST);
        }
        self.store(looked_up, id);
        Ok(())
    }

    /// Numbers of texts, of nodes of paths, of tags and values, and of names with tags: what [`Catalog::reserve`] takes.
    pub(super) fn sizes(&self) -> [u32; 4] {
        let sizes = [self.texts.len(), self.tree.len(), self.tags.tree.len(), self.tagged as usize];
        sizes.map(|size| u32::try_from(size).unwrap_or(u32::MAX))
    }

    /// Makes room for names that are about to be [put](Catalog::put) into an empty catalog. The numbers may be wrong: at
    /// most a quarter of the memory is taken.
    pub(super) fn reserve(&mut self, sizes: [u32; 4]) {
        if self.series.len() > 0 {
            return;
        }
        let most = self.limits.bytes_max / 16 / TABLE_ENTRY_BYTES_MAX;
        let [texts, nodes, tag_nodes, tagged] = sizes.map(|size| most.min(size as usize));
        self.texts.reserve(texts);
        self.tree.reserve(nodes);
        self.tags.reserve(tag_nodes, tagged);
    }

    /// Links the ids that are not in use, after [`Catalog::put`].
    pub(super) fn link_vacant(&mut self) {
        self.first_vacant = LAST;
        for id in (0..self.series.len()).rev() {
            let entry = &mut self.series[id];
            if *entry & (TAGGED | VACANT) == VACANT {
                *entry = self.first_vacant;
                self.first_vacant = id | VACANT;
            }
        }
    }

    /// Checks the invariants, for tests.
    #[cfg(any(test, feature = "promises"))]
    pub fn check(&self) {
        let mut name = Vec::new();
        let ids = (0..self.series.len()).map(SeriesId).filter(|id| self.place(*id).is_some());
        let mut count = 0;
        for id in ids {
            name.clear();
            assert!(self.name(id, &mut name));
            assert_eq!(self.find(&name), Some(id), "{}", String::from_utf8_lossy(&name));
            count += 1;
        }
        assert_eq!(count, self.names);
        let (mut vacant, mut next) = (0, self.first_vacant);
        while next != LAST {
            assert!(self.place(SeriesId(next & !VACANT)).is_none());
            vacant += 1;
            next = self.series[next & !VACANT];
        }
        assert_eq!(vacant + self.names, self.series.len(), "each id is in use or linked");
        assert!(self.names > 0 || !self.tree.has_children(ROOT) && !self.tags.tree.has_children(ROOT));
    }
}

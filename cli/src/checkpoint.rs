//! The state of work that was not finished, in a file that `--resume` goes on from.

use covary::data::{Choice, Table};
use covary::file::Draft;
use covary::fit::Link;
use covary::forecast::{Forecast, Outcome};
use covary::optim::State;
use covary::plot::Band;
use covary::{Dataset, Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::BufWriter;
use std::path::Path;

/// What a checkpoint file is called inside.
const FORMAT: &str = "covary checkpoint 3";

/// All that is needed to go on with the same work on the same data.
#[derive(Clone, Serialize, Deserialize)]
pub struct Checkpoint {
    format: String,
    /// What is done, in words: only the same work can go on.
    task: String,
    kernel: String,
    seed: u64,
    restarts: usize,
    data: String,
    /// The optimiser of each restart, by the link it works under.
    states: BTreeMap<String, Vec<Option<State>>>,
    /// Series that are done.
    pub done: Vec<Done>,
}

/// A series that is done, with its forecast in few pieces of memory: there may be very many.
#[derive(Clone, Serialize, Deserialize)]
pub struct Done {
    outcome: Outcome,
    /// One on each line.
    times: String,
    levels: Vec<f64>,
    /// Times as numbers, means, deviations, then both ends for each level.
    values: Vec<f64>,
}

impl Done {
    /// Nothing where a number is not finite: it would not survive the file.
    fn new(outcome: &Outcome) -> Option<Self> {
        let f = &outcome.forecast;
        let ends = f.bands.iter().flat_map(|b| [&b.lower, &b.upper]);
        let values = [&f.numbers, &f.mean, &f.sd].into_iter().chain(ends).flatten().copied().collect::<Vec<f64>>();
        values.iter().all(|v| v.is_finite()).then(|| Self {
            outcome: Outcome { forecast: Forecast::default(), ..outcome.clone() },
            times: f.times.join("\n"),
            levels: f.bands.iter().map(|b| b.level).collect(),
            values,
        })
    }

    pub fn id(&self) -> &str {
        &self.outcome.id
    }

    /// The outcome as it was.
    pub fn restore(&self) -> Outcome {
        let times: Vec<String> = self.times.lines().map(String::from).collect();
        let mut lists = self.values.chunks(times.len().max(1)).map(<[f64]>::to_vec);
        let mut next = || lists.next().unwrap_or_default();
        let (numbers, mean, sd) = (next(), next(), next());
        let bands = self.levels.iter().map(|&level| Band { level, lower: next(), upper: next() }).collect();
        Outcome { forecast: Forecast { times, numbers, mean, sd, bands }, ..self.outcome.clone() }
    }
}

impl Checkpoint {
    pub fn new(task: &str, kernel: &str, seed: u64, restarts: usize, data: String) -> Self {
        let (states, done) = (BTreeMap::new(), Vec::new());
        Self { format: FORMAT.into(), task: task.into(), kernel: kernel.into(), seed, restarts, data, states, done }
    }

    /// Reads a checkpoint, and refuses one of other work.
    pub fn open(path: &Path, like: &Checkpoint) -> Result<Self> {
        let refuse = |reason: String, hint: &str| {
            Error::new(ErrorKind::ModelFile { path: path.into(), reason }).with_hint(hint)
        };
        let bytes = std::fs::read(path).map_err(|source| Error::from(ErrorKind::Io { path: path.into(), source }))?;
        let found: Checkpoint = serde_json::from_slice(&bytes)
            .map_err(|e| refuse(format!("not a covary checkpoint: {e}"), "`--checkpoint FILE` writes one"))?;
        let same = "resume with the data, options and seed it was made with";
        for (what, a, b) in [
            ("format", &found.format, &like.format),
            ("task", &found.task, &like.task),
            ("kernel", &found.kernel, &like.kernel),
            ("data", &found.data, &like.data),
        ] {
            if a != b {
                return Err(refuse(format!("a checkpoint of another {what}: {a}, not {b}"), same));
            }
        }
        let sizes = found.states.values().all(|s| s.len() == found.restarts);
        if (found.seed, found.restarts) != (like.seed, like.restarts) || !sizes {
            let reason = format!("a checkpoint of seed {} and {} starts", found.seed, found.restarts);
            return Err(refuse(reason, same));
        }
        Ok(found)
    }

    pub fn save(&self, path: &Path) -> Result<()> {
        let failed = |source| Error::from(ErrorKind::Io { path: path.into(), source });
        let mut to = BufWriter::new(Draft::new(path)?);
        serde_json::to_writer(&mut to, self).map_err(|e| failed(e.into()))?;
        to.into_inner().map_err(|e| failed(e.into_error()))?.finish()
    }

    /// Whether nothing would be lost without it.
    pub fn is_empty(&self) -> bool {
        self.done.is_empty() && self.states.values().flatten().all(Option::is_none)
    }

    /// What the states of a fit under this link are kept under.
    pub fn stage(link: Link) -> String {
        serde_json::to_value(link).ok().and_then(|v| Some(v.as_str()?.to_string())).unwrap_or_default()
    }

    /// The states of a fit under this link.
    pub fn states(&self, link: Link) -> Vec<Option<State>> {
        self.states.get(&Self::stage(link)).cloned().unwrap_or_default()
    }

    /// Where a restart stands.
    pub fn set(&mut self, stage: String, restart: usize, state: Option<&State>) {
        let slots = self.states.entry(stage).or_insert_with(|| vec![None; self.restarts]);
        if let (Some(slot), Some(state)) = (slots.get_mut(restart), state) {
            *slot = Some(state.clone());
        }
    }

    /// A series is done; comes back where it cannot be kept, and is to be done again when the work is resumed.
    pub fn done(&mut self, outcome: Outcome) -> Option<Outcome> {
        match Done::new(&outcome) {
            Some(done) => self.done.push(done),
            None => return Some(outcome),
        }
        None
    }
}

/// FNV-1a.
struct Hash(u64);

impl Hash {
    const NEW: Self = Self(0xcbf2_9ce4_8422_2325);

    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// Sizes and a hash of the numbers.
pub fn fingerprint(data: &Dataset) -> String {
    let mut hash = Hash::NEW;
    data.x().values().iter().chain(data.y()).for_each(|v| hash.add(&v.to_bits().to_le_bytes()));
    format!("{}x{}-{:016x}", data.n(), data.d(), hash.0)
}

/// Sizes and a hash of the columns of many series.
pub fn fingerprint_of(table: &Table, choice: &Choice, id: &str) -> Result<String> {
    let mut hash = Hash::NEW;
    for name in choice.inputs.iter().chain([&choice.target]).map(String::as_str).chain([id]) {
        let column = table.column(name)?;
        (0..table.n()).for_each(|row| {
            hash.add(column.text(row).as_bytes());
            hash.add(b"\n");
        });
    }
    Ok(format!("{} rows-{:016x}", table.n(), hash.0))
}

//! The model file: one line that says what it is, its version and checksum, then JSON. Nothing in it is executed.
//! Every older version stays readable; damaged, foreign and newer files are refused with a reason.

use super::account::Account;
use super::levels::Levels;
use super::link::Link;
use super::member::{Member, Parts};
use super::model::Model;
use super::reach::Reach;
use crate::data::{Encoding, Points, Scaling};
use crate::error::{Error, ErrorKind, Result};
use crate::gp::{IterativePosterior, Process, Repeats, SparsePosterior, Summary};
use crate::kernel::Kernel;
use crate::program::Program;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version this build writes.
const VERSION: u32 = 7;
const MAGIC: &str = "covary model";

/// Versions 4 to 7: everything a model is, on standardised data. Since version 5 transforms may have a reach, since version 6 steps
/// of the level come again, since version 7 members count less where they are less sure.
#[derive(Serialize, Deserialize)]
struct Body {
    encoding: Encoding,
    target: String,
    rows: usize,
    inputs: Vec<f64>,
    members: Vec<StoredMember>,
    widening: f64,
    account: Account,
}

#[derive(Serialize, Deserialize)]
struct StoredMember {
    weight: f64,
    kernel: String,
    noise: f64,
    link: Link,
    scaling: Scaling,
    targets: Vec<f64>,
    known_noise: Option<Vec<f64>>,
    /// Targets of rows that were merged, group after group, and where each group begins.
    merged: Option<(Vec<usize>, Vec<f64>)>,
    /// What a sparse process has kept of its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sparse: Option<Summary>,
    /// Weights of the rows, where they were found iteratively; the sparse process then is that of the variances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weights: Option<Vec<f64>>,
    /// The largest prior variance at a row; since version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reach: Option<f64>,
    /// Does its share follow from what a few rows say, too? Since version 7.
    #[serde(default, skip_serializing_if = "is_false")]
    few: bool,
    /// Steps of the level that were taken out; since version 4.
    #[serde(default, skip_serializing_if = "Levels::is_empty")]
    levels: Levels,
}

fn is_false(v: &bool) -> bool {
    !v
}

/// Version 1: a single member.
#[derive(Deserialize)]
struct Body1 {
    kernel: String,
    noise: f64,
    scaling: Scaling,
    encoding: Encoding,
    target: String,
    rows: usize,
    inputs: Vec<f64>,
    targets: Vec<f64>,
    known_noise: Option<Vec<f64>>,
    account: Account,
    #[serde(default)]
    link: Link,
}

impl From<Body1> for Body {
    fn from(b: Body1) -> Self {
        let member = StoredMember {
            weight: 1.0,
            kernel: b.kernel,
            noise: b.noise,
            link: b.link,
            scaling: b.scaling,
            targets: b.targets,
            known_noise: b.known_noise,
            merged: None,
            sparse: None,
            weights: None,
            reach: None,
            few: false,
            levels: Levels::default(),
        };
        let (encoding, target, rows, inputs) = (b.encoding, b.target, b.rows, b.inputs);
        Self { encoding, target, rows, inputs, members: vec![member], widening: 1.0, account: b.account }
    }
}

impl Model {
    /// Writes the model to a file, whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written; one that was there is unchanged.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        crate::file::write_atomically(path, &self.to_bytes()?)
    }

    /// The bytes of the model file.
    ///
    /// # Errors
    /// When a number of the model cannot be written (it is not finite).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let member = |m: &Member| StoredMember {
            weight: m.weight,
            kernel: m.kernel.to_string(),
            noise: m.noise,
            link: m.link,
            scaling: m.scaling.clone(),
            targets: m.y.clone(),
            known_noise: m.known.clone(),
            merged: m.repeats.as_ref().map(|r| (r.first().to_vec(), r.targets().to_vec())),
            sparse: match &m.process {
                Process::Sparse(p) => Some(p.summary()),
                Process::Iterative(p) => Some(p.spread().summary()),
                Process::Exact(_) => None,
            },
            weights: match &m.process {
                Process::Iterative(p) => Some(p.alpha().to_vec()),
                _ => None,
            },
            reach: m.reach.as_ref().map(|r| r.prior),
            few: m.has_looked(),
            levels: m.levels.clone(),
        };
        let body = Body {
            encoding: self.encoding.clone(),
            target: self.target.clone(),
            rows: self.x.n(),
            inputs: self.x.values().to_vec(),
            members: self.members.iter().map(member).collect(),
            widening: self.widening,
            account: self.account.clone(),
        };
        let body = serde_json::to_vec(&body).map_err(|e| Error::option("model", e.to_string()))?;
        // A number that is not finite is written as nothing: what cannot be read again is not written.
        let again = serde_json::from_slice::<Body>(&body);
        again.map_err(|e| Error::option("model", format!("it holds what no file can: {e}")))?;
        let mut bytes = format!("{MAGIC} {VERSION} {:08x} {}\n", crc32fast::hash(&body), body.len()).into_bytes();
        bytes.extend(body);
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads a model from a file.
    ///
    /// # Errors
    /// When the file cannot be read, is not a model file, is damaged, or was written by a newer version.
    pub fn open(path: impl AsRef<Path>) -> Result<Model> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|source| ErrorKind::Io { path: path.to_path_buf(), source })?;
        Self::from_bytes(&bytes, path)
    }

    /// Reads a model from bytes; `path` is for messages.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Model> {
        let refuse = |reason: String, hint: &str| {
            Error::new(ErrorKind::ModelFile { path: path.to_path_buf(), reason }).with_hint(hint)
        };
        let foreign = || refuse("not a covary model file".into(), "`covary fit … -o MODEL` writes one");
        let end = bytes.iter().take(80).position(|&b| b == b'\n').ok_or_else(foreign)?;
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| foreign())?;
        let words: Vec<&str> = head.strip_prefix(MAGIC).ok_or_else(foreign)?.split_whitespace().collect();
        let [version, checksum, length] = words[..] else { return Err(foreign()) };
        let version: u32 = version.parse().map_err(|_| foreign())?;
        if version > VERSION {
            let reason = format!("written by a newer version: format {version}, this one reads up to {VERSION}");
            return Err(refuse(reason, "install a newer covary"));
        }
        let copy = "the file is incomplete or damaged: copy or fit it again";
        let length: usize = length.parse().map_err(|_| refuse("damaged first line".into(), copy))?;
        let body = bytes.get(end + 1..).unwrap_or(&[]);
        if body.len() < length {
            let reason = format!("truncated: {} of {length} bytes are there", body.len());
            return Err(refuse(reason, copy));
        }
        if body[length..] != *b"\n" {
            return Err(refuse("something follows the end of the model".into(), copy));
        }
        let body = &body[..length];
        if format!("{:08x}", crc32fast::hash(body)) != checksum {
            return Err(refuse("damaged: the checksum does not fit the content".into(), copy));
        }
        let body: Body = match version {
            1 => serde_json::from_slice::<Body1>(body).map(Body::from),
            _ => serde_json::from_slice(body),
        }
        .map_err(|e| refuse(format!("damaged: {e}"), copy))?;
        body.into_model().map_err(|e| refuse(format!("the content does not make a model: {e}"), copy))
    }
}

impl Body {
    fn into_model(self) -> Result<Model> {
        let Some(first) = self.members.first() else {
            return Err(Error::option("model", "it has no members"));
        };
        let d = first.scaling.d();
        let x = Points::from_values(self.rows, d, self.inputs)?;
        let members = self.members.into_iter().map(|m| m.into_member(&x)).collect::<Result<_>>()?;
        if !(self.widening > 0.0 && self.widening.is_finite()) {
            return Err(Error::option("model", "its widening is not a positive number"));
        }
        let (widening, account) = (self.widening, self.account);
        Ok(Model { encoding: self.encoding, target: self.target, x, members, widening, account })
    }
}

impl StoredMember {
    fn into_member(self, x: &Points) -> Result<Member> {
        if self.scaling.d() != x.d() || !(self.weight > 0.0 && self.weight <= 1.0) {
            return Err(Error::option("model", "a member does not fit the others"));
        }
        if self.reach.is_some_and(|r| !(r > 0.0 && r.is_finite())) {
            return Err(Error::option("model", "a member's reach is not a positive number"));
        }
        if !self.levels.is_finite() {
            return Err(Error::option("model", "a member's steps of the level are not finite"));
        }
        let (few, levels) = (self.few, self.levels);
        let reach = self.reach.map(|prior| Reach { prior, few: None });
        let kernel = self.kernel.parse::<Kernel>()?.bind_to(x.d())?;
        if let Some(summary) = self.sparse {
            let program = Program::compile(&kernel, x.d())?;
            let theta = kernel.values();
            let sparse = SparsePosterior::from_summary(program.clone(), theta.clone(), self.noise, summary)?;
            let process = match self.weights {
                None => Process::Sparse(Box::new(sparse)),
                Some(alpha) => {
                    let whole = IterativePosterior::from_weights(program, theta, x, alpha, sparse)?;
                    Process::Iterative(Box::new(whole))
                }
            };
            let member = Member::of(self.weight, kernel, self.noise, self.scaling, process);
            return Ok(Member { link: self.link, reach, levels, ..member });
        }
        let repeats = self.merged.map(|(first, targets)| {
            let ascending = first.windows(2).all(|w| w[0] < w[1]);
            let fits = first.len() == x.n() + 1 && first.first() == Some(&0) && first.last() == Some(&targets.len());
            match ascending && fits {
                true => Ok(Repeats::new(first, targets)),
                false => Err(Error::option("model", "merged rows do not fit the rows")),
            }
        });
        let parts = Parts {
            weight: self.weight,
            kernel,
            noise: self.noise,
            link: self.link,
            scaling: self.scaling,
            y: self.targets,
            known: self.known_noise,
            repeats: repeats.transpose()?,
        };
        let mut member = Member { reach, levels, ..Member::new(parts, x)? };
        if few {
            member.look(x)?;
        }
        Ok(member)
    }
}

//! The model file: one line that says what it is, its version and checksum, then JSON. Nothing in it is executed.
//! Every older version stays readable; damaged, foreign and newer files are refused with a reason.

use super::account::Account;
use super::link::Link;
use super::model::Model;
use crate::data::{Encoding, Points, Scaling};
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::Kernel;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The version this build writes.
const VERSION: u32 = 1;
const MAGIC: &str = "covary model";

/// Version 1: everything a model is, on standardised data.
#[derive(Serialize, Deserialize)]
struct Body {
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
        let body = Body {
            kernel: self.kernel.to_string(),
            noise: self.noise,
            scaling: self.scaling.clone(),
            encoding: self.encoding.clone(),
            target: self.target.clone(),
            rows: self.x.n(),
            inputs: self.x.values().to_vec(),
            targets: self.y.clone(),
            known_noise: self.known.clone(),
            account: self.account.clone(),
            link: self.link,
        };
        let body = serde_json::to_vec(&body).map_err(|e| Error::option("model", e.to_string()))?;
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
        let body: Body = serde_json::from_slice(body).map_err(|e| refuse(format!("damaged: {e}"), copy))?;
        body.into_model().map_err(|e| refuse(format!("the content does not make a model: {e}"), copy))
    }
}

impl Body {
    fn into_model(self) -> Result<Model> {
        let d = self.scaling.d();
        let x = Points::from_values(self.rows, d, self.inputs)?;
        let kernel: Kernel = self.kernel.parse::<Kernel>()?.bind_to(d)?;
        let posterior = Model::condition(&kernel, self.noise, &x, &self.targets, self.known_noise.as_deref())?;
        Ok(Model {
            kernel,
            noise: self.noise,
            scaling: self.scaling,
            encoding: self.encoding,
            target: self.target,
            x,
            y: self.targets,
            known: self.known_noise,
            posterior,
            account: self.account,
            link: self.link,
        })
    }
}

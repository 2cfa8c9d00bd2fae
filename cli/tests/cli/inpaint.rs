//! `covary inpaint` on small pictures, good and bad.

use crate::kit::*;
use covary::data::Picture;
use std::fs;
use std::path::Path;

const FAST: [&str; 6] = ["--kernel", "RBF", "--restarts", "1", "--iterations", "15"];

/// A smooth picture of 24 × 30 pixels, grey and coloured, and masks.
fn pictures(dir: &Path) {
    let wave =
        |i: usize, shift: f64| 0.5 + 0.4 * ((i / 30) as f64 / 4.0 + shift).sin() * ((i % 30) as f64 / 5.0).cos();
    let channel = |shift: f64| (0..720).map(|i| wave(i, shift)).collect::<Vec<f64>>();
    let save = |name: &str, picture: Picture| fs::write(dir.join(name), picture.to_png().unwrap()).unwrap();
    save("grey.png", Picture::new(24, 30, vec![channel(0.0)]).unwrap());
    save("colour.png", Picture::new(24, 30, vec![channel(0.0), channel(0.5), channel(1.0)]).unwrap());
    let mask = (0..720).map(|i| f64::from((8..12).contains(&(i / 30)) && (8..14).contains(&(i % 30)))).collect();
    save("mask.png", Picture::new(24, 30, vec![mask]).unwrap());
    save("small.png", Picture::new(10, 10, vec![vec![0.5; 100]]).unwrap());
    fs::write(dir.join("text.png"), "hello").unwrap();
}

#[test]
fn holes_are_filled_and_nothing_else_is_touched() {
    let dir = tempfile::tempdir().unwrap();
    pictures(dir.path());
    for (image, hole) in [("grey.png", ["--hole", "8,8,4,6"]), ("colour.png", ["--mask", "mask.png"])] {
        let args = ["inpaint", image, "-o", "out.png", "--sd", "sd.png", "--truth", image, "--json"];
        let said = json(&covary(dir.path(), &[&args[..], &hole, &FAST].concat()));
        assert_eq!((said["observed"].as_u64(), said["missing"].as_u64()), (Some(696), Some(24)));
        assert!(said["smse"].as_f64().unwrap() < 0.05, "{said}");
        assert!(said["psnr"].as_f64().unwrap() > 30.0, "{said}");
        assert!(said["iterations"].as_u64().unwrap() > 0 && said["seconds"].as_f64().unwrap() > 0.0);
        assert!(said["log_marginal_likelihood"].as_f64().unwrap().is_finite());
        assert_eq!(said["deviations"], "exact");
        let read = |name: &str| Picture::read(dir.path().join(name)).unwrap();
        let (before, after, sd) = (read(image), read("out.png"), read("sd.png"));
        let inside = |i: usize| (8..12).contains(&(i / 30)) && (8..14).contains(&(i % 30));
        for (a, b) in before.channels().iter().zip(after.channels()) {
            assert!((0..720).filter(|&i| !inside(i)).all(|i| a[i] == b[i]));
        }
        assert!((0..720).all(|i| inside(i) || sd.channels()[0][i] == 0.0));
    }
    // Kernels for rows and for columns.
    let args = ["inpaint", "grey.png", "-o", "out.png", "--hole", "1,1,2,2", "--kernel", "MAT52"];
    let said = covary(dir.path(), &[&args[..], &FAST].concat());
    assert_eq!(said.status.code(), Some(0), "{}", err(&said));
    assert!(out(&said).contains("4 pixels filled from 716"), "{}", out(&said));
}

#[test]
fn bad_pictures_holes_and_masks_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    pictures(dir.path());
    for (args, code, words) in [
        (&["grey.png", "--hole", "0,0,24,30"][..], 3, "no cell is observed"),
        (&["grey.png", "--hole", "3,0,1,30"], 3, "row, place 4 of 24 (at 3): no observed cell"),
        (&["grey.png", "--hole", "20,20,5,5"], 2, "lies outside the picture of 24 rows and 30 columns"),
        (&["grey.png", "--hole", "1,2,3"], 2, "ROW,COL,HEIGHT,WIDTH expected: 1,2,3"),
        (&["grey.png", "--mask", "small.png"], 3, "small.png: 10 rows and 10 columns, the picture has 24 and 30"),
        (&["grey.png", "--hole", "1,1,2,2", "--truth", "small.png"], 3, "small.png: 10 rows and 10 columns"),
        (&["grey.png"], 3, "the picture has no hole"),
        (&["text.png", "--hole", "1,1,2,2"], 3, "text.png: not a PNG picture"),
        (&["nowhere.png", "--hole", "1,1,2,2"], 3, "nowhere.png"),
        (&["grey.png", "--hole", "1,1,2,2", "--kernel", "XYZ"], 2, "kernel text"),
        (&["grey.png", "--hole", "1,1,2,2", "--kernel", "RBF", "--kernel", "RBF", "--kernel", "RBF"], 2, "3 given"),
    ] {
        let said = covary(dir.path(), &[&["inpaint", "-o", "out.png"], args].concat());
        assert_eq!(said.status.code(), Some(code), "{args:?}: {}", err(&said));
        assert!(err(&said).contains(words), "{args:?}: {}", err(&said));
        assert!(!dir.path().join("out.png").exists() && strays(dir.path()).is_empty(), "{args:?}");
    }
}

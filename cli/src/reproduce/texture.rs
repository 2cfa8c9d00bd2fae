//! The paper's textures: a hole of 60 × 80 pixels in a picture of 224 × 224, filled by a kernel for rows times a kernel
//! for columns.

use super::Setup;
use super::report::{Report, cell};
use crate::commands::inpaint::smse;
use crate::failure::Failure;
use crate::output::write_file;
use covary::Kernel;
use covary::data::{Hole, Picture};
use covary::fit::{Deviations, GridFit};
use covary::kernel::Task;

const HOLE: Hole = Hole { row: 60, column: 80, height: 60, width: 80 };
/// SMSE in the hole, measured from the pictures that the paper's authors published for their network.
const REFERENCE: [(&str, f64); 2] = [("plate", 0.217), ("pave", 0.841)];

pub fn run(setup: &Setup, name: &str) -> Result<Report, Failure> {
    let picture = name.trim_start_matches("texture-");
    let whole = Picture::read(setup.file(&format!("texture/{picture}.png"))?).map_err(Failure::data)?.to_grey();
    let (height, width) = (whole.height(), whole.width());
    let mut hidden = vec![false; height * width];
    HOLE.mark(height, width, &mut hidden)?;
    let grid = whole.grid(&hidden).map_err(Failure::data)?;
    let truth = &whole.channels()[0];
    let cells: Vec<usize> = (0..hidden.len()).filter(|&i| hidden[i]).collect();
    let mut report =
        Report::new(name, &["kernel", "smse", "psnr", "reference smse", "trial smse", "noise", "seconds"]);
    let blank: Vec<f64> = truth.iter().zip(&hidden).map(|(v, h)| if *h { 1.0 } else { *v }).collect();
    let mut sheet = vec![blank, truth.clone()];
    let reference = REFERENCE.iter().find(|r| r.0 == picture).map(|r| r.1);
    let kernels = [
        ("NKN-4", Kernel::default_network(Task::Axis)),
        ("RBF", Kernel::rbf()),
        ("PER", Kernel::per()),
        ("SM-10", Kernel::spectral_mixture(10)),
    ];
    for (label, kernel) in kernels {
        if !Setup::takes(setup.kernels, label) {
            continue;
        }
        let mut fit = GridFit::new(kernel).seed(setup.seed).deviations(Deviations::None);
        if setup.quick {
            fit = fit.starts(1).iterations(5).noise_floors(vec![1.0, 0.2]);
        }
        let model = fit.run(&grid)?;
        let filled: Vec<f64> =
            (0..truth.len()).map(|i| if hidden[i] { model.mean[0][i] } else { truth[i] }).collect();
        let (share, psnr) = smse(truth, &filled, &cells);
        let theirs = reference.filter(|_| label == "NKN-4");
        let best = &model.restarts[model.best];
        report.rows.push(vec![
            label.into(),
            cell(Some(share), 3),
            cell(Some(psnr), 2),
            cell(theirs, 3),
            cell(best.trial, 3),
            cell(Some(model.noise), 4),
            cell(Some(model.seconds), 1),
        ]);
        let file = setup.out.join(format!("{name}-{}.png", label.to_lowercase()));
        write_file(&file, &Picture::new(height, width, vec![filled.clone()])?.to_png()?)?;
        sheet.push(filled);
    }
    write_file(&setup.out.join(format!("{name}.png")), &beside(&sheet, height, width)?.to_png()?)?;
    report.remarks.push(format!(
        "{name}.png shows the hole, the truth, and the hole filled by each kernel in this order. smse: mean squared error \
         over the variance of the true hole, on grey in [0, 1]; reference: measured from the authors' pictures; trial: the \
         same in holes made elsewhere, by which fits were weighed, of the fit that counts most"
    ));
    Ok(report)
}

/// Pictures of one size beside each other, with a white line between.
fn beside(pictures: &[Vec<f64>], height: usize, width: usize) -> Result<Picture, Failure> {
    const GAP: usize = 4;
    let all = pictures.len() * (width + GAP) - GAP;
    let mut sheet = vec![1.0; height * all];
    for (p, picture) in pictures.iter().enumerate() {
        for r in 0..height {
            let at = r * all + p * (width + GAP);
            sheet[at..at + width].copy_from_slice(&picture[r * width..(r + 1) * width]);
        }
    }
    Ok(Picture::new(height, all, vec![sheet])?)
}

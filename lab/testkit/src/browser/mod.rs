//! A real headless Chromium, for tests of HTML pages.
//!
//! [`assert_readable`] looks at a page as a person would: on a phone, a tablet and a desktop, light and dark.

use std::fs;
use std::path::Path;

use crate::tool::InstalledTool;
use crate::{Error, IoContext, Result};

const PROBE: &str = include_str!("probe.js");

/// A phone, a tablet, a desktop.
const WIDTHS: [u32; 3] = [390, 768, 1440];
/// The zone of the browser.
const READERS_ZONE: &str = "America/New_York";
/// Size of the browser's window, which nobody sees: the frames are of any height.
const WINDOW: (u32, u32) = (1600, 1200);

/// The result of loading a page.
#[derive(Debug)]
pub struct RenderedPage {
    /// The document as it is once its scripts have run.
    pub dom: String,
    /// The output on the browser's console.
    pub console: Vec<String>,
}

/// The findings about a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PageFindings {
    /// Texts and bars that can't be read or seen, at which width.
    pub faults: Vec<String>,
    /// Pieces of text, at all widths.
    pub texts: usize,
    /// Bars, dots and lines that stand for values.
    pub shapes: usize,
    /// Tables that are wider than the screen and say so.
    pub hints: usize,
}

/// Opens a file in a window of this size, without any network.
///
/// # Errors
/// A browser that can't be started, or fails.
pub fn render(chromium: &InstalledTool, page: &Path, width: u32, height: u32) -> Result<RenderedPage> {
    render_in(chromium, page, (width, height), false)
}

fn render_in(
    chromium: &InstalledTool,
    page: &Path,
    (width, height): (u32, u32),
    dark: bool,
) -> Result<RenderedPage> {
    let home = tempfile::tempdir().at("make a folder below", &std::env::temp_dir())?;
    let output = chromium
        .command("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args(["--enable-logging=stderr", "--v=0", "--virtual-time-budget=10000", "--dump-dom"])
        // Not UTC, so that pages show times of both.
        .env("TZ", READERS_ZONE)
        // No name resolves: anything the page requests would fail, and show on the console.
        .arg("--host-resolver-rules=MAP * ~NOTFOUND")
        .arg(format!("--blink-settings=preferredColorScheme={}", u8::from(!dark)))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--user-data-dir={}", home.path().display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .at("start", &chromium.prefix().join("bin/chromium"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Error::Unavailable(format!("chromium failed: {log}")));
    }
    let console = log.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    Ok(RenderedPage { dom: String::from_utf8_lossy(&output.stdout).into_owned(), console })
}

/// Looks at pages, as they are, in frames of all widths.
///
/// # Errors
/// A browser that can't be started, or fails, or does not come to an end.
pub fn look(chromium: &InstalledTool, pages: &[&str], dark: bool) -> Result<Vec<PageFindings>> {
    let home = tempfile::tempdir().at("make a folder below", &std::env::temp_dir())?;
    let path = home.path().join("frames.html");
    let mut frames = format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><body data-dark=\"{dark}\"><pre id=\"told\"></pre>\n<script>{PROBE}</script>\n"
    );
    for page in pages {
        let page = page.replace('&', "&amp;").replace('"', "&quot;");
        for width in WIDTHS {
            frames += &format!(
                "<iframe style=\"border:0;width:{width}px;height:800px\" srcdoc=\"{page}\"></iframe>\n"
            );
        }
    }
    fs::write(&path, frames).at("write", &path)?;
    let rendered = render_in(chromium, &path, WINDOW, dark)?;
    if !rendered.console.is_empty() {
        return Err(Error::Unavailable(format!("the browser complains: {:?}", rendered.console)));
    }
    let told = rendered.dom.split_once("<pre id=\"told\">").and_then(|(_, told)| told.split_once("</pre>"));
    let Some((told, _)) = told.filter(|(told, _)| !told.is_empty()) else {
        return Err(Error::Unavailable("the browser has not looked at the page".to_owned()));
    };
    let mut looked = vec![PageFindings::default(); pages.len()];
    let mut frames = 0;
    for line in told.lines().map(decoded) {
        let (what, said) = line.split_once(' ').unwrap_or((&line, ""));
        if what == "frame" {
            frames += 1;
            continue;
        }
        let count = || said.parse::<usize>().unwrap_or(0);
        let Some(of_page) = looked.get_mut((frames - 1) / WIDTHS.len()) else { continue };
        match what {
            "fault" => of_page.faults.push(said.to_owned()),
            "texts" => of_page.texts += count(),
            "shapes" => of_page.shapes += count(),
            _ => of_page.hints += count(),
        }
    }
    Ok(looked)
}

/// Text as encodeURIComponent gives it.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16)).unwrap_or(0) as u8;
        bytes.push(if byte == b'%' { digit() << 4 | digit() } else { byte });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Asserts that nothing on pages is clipped, of too little contrast, or too small to be seen: at all widths, light and
/// dark. Says how much of each it looked at. Each has a name; if `BINLOGZ_PAGES` names a folder, it stays there under that, for
/// `scripts/make-screenshots.sh`.
///
/// # Panics
/// If something is, or the browser fails.
#[track_caller]
pub fn assert_readable(chromium: &InstalledTool, pages: &[(&str, String)]) -> Vec<PageFindings> {
    if let Some(folder) = std::env::var_os("BINLOGZ_PAGES") {
        for (name, html) in pages {
            let path = Path::new(&folder).join(format!("{name}.html"));
            fs::write(&path, html).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
    let texts: Vec<&str> = pages.iter().map(|(_, html)| html.as_str()).collect();
    let [light, dark] =
        [false, true].map(|dark| look(chromium, &texts, dark).unwrap_or_else(|error| panic!("{error}")));
    let both = pages.iter().zip(light.into_iter().zip(dark)).map(|((name, _), (light, dark))| {
        let faults: Vec<String> = light.faults.into_iter().chain(dark.faults).collect();
        assert!(faults.is_empty(), "{name}: {} faults:\n{}", faults.len(), faults.join("\n"));
        assert!(light.texts > 0 && dark.texts > 0, "{name}: no text was seen");
        PageFindings {
            faults,
            texts: light.texts + dark.texts,
            shapes: light.shapes + dark.shapes,
            hints: light.hints + dark.hints,
        }
    });
    both.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tool, require_tool};

    #[test]
    fn what_cannot_be_read_is_found() {
        let chromium = require_tool!(Tool::Chromium);
        let page = |body: &str| {
            format!(
                "<!DOCTYPE html><style>:root {{ color-scheme: light dark }} body {{ margin: 0; background: #fff; color: #000 }}</style>\
                 <body>{body}"
            )
        };
        let long = "word".repeat(300);
        let faulty = [
            (format!("<p>{long}</p>"), "text sticks out: p"),
            (format!("<div style=\"overflow: hidden\">{long}</div>"), "clipped: div"),
            (
                format!("<div><div style=\"overflow-x: auto\">{long}</div></div>"),
                "scrolls without a hint: div",
            ),
            ("<p style=\"color: #888\">pale</p>".to_owned(), "contrast 3.54: p \"pale\""),
            (
                "<p>x <i data-value=\"7\" style=\"display: block; width: 1px; height: 9px\"></i></p>"
                    .to_owned(),
                "a value of 7 is 1 × 9 px: i",
            ),
            (
                "<p class=\"under\"><b>1</b><b style=\"margin-left: -4px\">2</b></p>".to_owned(),
                "texts of an axis touch: p.under",
            ),
            (
                "<p class=\"under\"><b>17:01</b> <b style=\"margin-left: 40px\">17:01</b></p>".to_owned(),
                "an axis says \"17:01\" twice: p.under",
            ),
            (
                "<div class=\"tiles\" style=\"display: grid; grid-template-columns: 50px 50px\"><div>1</div><div>2</div><div>3</div></div>"
                    .to_owned(),
                "a line of tiles is not full: div.tiles",
            ),
            (
                "<p>x</p><svg><path class=\"curve\" d=\"M0 1L9 1\"/><path class=\"curve\" d=\"M0 1L9 1\"/></svg>".to_owned(),
                "a line lies under another: path.curve",
            ),
            ("<p style=\"width: 1em; overflow-wrap: anywhere\">orders-primary</p>".to_owned(), "letters stand below each other: p"),
            ("<time data-at=\"0\">00:00</time>".to_owned(), "a time is in UTC alone: time"),
            (
                "<p style=\"width: 8em; word-break: break-all\">s3://<wbr>backup/<wbr>production/<wbr>orders</p>".to_owned(),
                "a name is broken: p",
            ),
        ];
        let well = format!(
            "<p>text</p><div><p class=\"hint\">scroll</p><div style=\"overflow-x: auto\">{long}</div></div>\
             <i data-value=\"7\" style=\"display: block; width: 9px; height: 9px\"></i><i data-value=\"0\"></i>"
        );
        let dark = "<style>@media (prefers-color-scheme: dark) { body { background: #fff; color: #eee } }</style>dark";
        let bodies = faulty.iter().map(|(body, _)| body.as_str()).chain([well.as_str(), dark]);
        let pages: Vec<String> = bodies.map(page).collect();
        let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
        let looked = look(chromium, &pages, false).unwrap();
        for ((_, fault), looked) in faulty.iter().zip(&looked) {
            let found = |width: &str| {
                looked.faults.iter().any(|found| found.starts_with(width) && found.contains(fault))
            };
            assert!(["390 px", "768 px", "1440 px"].iter().all(|width| found(width)), "{fault}: {looked:?}");
        }
        let well = faulty.len();
        assert_eq!(looked[well], PageFindings { faults: Vec::new(), texts: 9, shapes: 3, hints: 3 });
        assert_eq!(looked[well + 1], PageFindings { faults: Vec::new(), texts: 3, shapes: 0, hints: 0 });
        // The other scheme is another one.
        let looked = look(chromium, &[pages[well + 1]], true).unwrap();
        assert!(looked[0].faults[0].starts_with("390 px dark: contrast"), "{looked:?}");
    }
}

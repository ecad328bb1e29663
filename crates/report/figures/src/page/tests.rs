//! A page shows whatever names it is given.

use serde_json::Value;

use super::*;

/// A name that somebody gave a table to get at who reads about it.
const EVIL: &str = "</script></title></style><script>alert(1)</script><img src=x onerror=alert(1)>&\"'";

fn evil_page() -> String {
    let section = Section { name: "tables", title: EVIL, columns: &["table"], rows: vec![vec![EVIL.into()]] };
    let series = vec![Series::new(EVIL, Paint::First), Series::new(EVIL, Paint::Second)];
    let bars = Bars {
        unit: FigureUnit::Count,
        series: series.clone(),
        rows: vec![BarRow {
            label: EVIL.to_owned(),
            detail: EVIL.to_owned(),
            is_chosen: true,
            bars: vec![Bar { more: EVIL.to_owned(), interval: Some((0.5, 2.0)), ..Bar::new(0, 1.0) }],
        }],
        full: 0.0,
    };
    let dots = Dots {
        unit: FigureUnit::Seconds,
        series: series.clone(),
        rows: vec![DotRow { label: EVIL.to_owned(), is_chosen: false, values: vec![Some(0.001), None] }],
    };
    let line = ChartLine { series: Series::new(EVIL, Paint::First), values: vec![Some(1.0)] };
    let lines = LineChart {
        unit: FigureUnit::Bytes,
        at: ChartAxis::Names(vec![EVIL.to_owned()]),
        lines: vec![line.clone(), line],
        is_filled: true,
        has_dots: true,
        full: 0.0,
    };
    let sparks = Sparks {
        of: EVIL.to_owned(),
        rows: vec![SparkRow {
            label: EVIL.to_owned(),
            detail: EVIL.to_owned(),
            tone: Tone::Bad,
            word: EVIL.to_owned(),
            now: EVIL.to_owned(),
            more: EVIL.to_owned(),
            values: vec![Some(1.0)],
        }],
        ..Sparks::default()
    };
    let none = Sparks { none: EVIL.to_owned(), ..Sparks::default() };
    let charts = [
        Chart::Bars(bars),
        Chart::Dots(dots),
        Chart::Lines(lines),
        Chart::Sparks(sparks),
        Chart::Sparks(none),
    ];
    let card = |chart| Card { title: EVIL.to_owned(), note: EVIL.to_owned(), is_wide: false, chart };
    let charts: Vec<_> = charts.into_iter().map(card).collect();
    let page = Page {
        title: EVIL,
        subtitle: EVIL,
        as_of: None,
        state: Some((Tone::Good, EVIL)),
        lead: EVIL,
        reasons: &[EVIL.to_owned()],
        steps: &[PageStep { what: EVIL.to_owned(), paste: EVIL.to_owned() }],
        tiles: &[Tile::new(EVIL, EVIL)],
        charts: &charts,
        tables: std::slice::from_ref(&section),
        figures: std::slice::from_ref(&section),
    };
    let mut out = Vec::new();
    page.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn no_name_leaves_its_place() {
    let html = evil_page();
    // As often as it was given, in text and in attributes; never as it is.
    assert!(html.matches("&lt;/script&gt;").count() > 20);
    assert!(!html.contains("<img") && !html.contains("<script>"), "{html}");
    for end in ["</script>", "</style>", "</body>"] {
        assert_eq!(html.matches(end).count(), 1, "{end}");
    }
    let (_, figures) = html.split_once("id=\"figures\">").unwrap();
    let (figures, _) = figures.split_once("</script>").unwrap();
    let figures: Value = serde_json::from_str(figures).unwrap();
    assert_eq!(figures["tables"][0]["table"], EVIL);
}

#[test]
fn nothing_runs_and_nothing_is_fetched() {
    let html = evil_page();
    let (_, policy) = html.split_once("Content-Security-Policy\" content=\"").unwrap();
    let policy = policy.split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("script"), "{policy}");
    let scripts: Vec<_> = html.split("<script").skip(1).collect();
    assert!(scripts.iter().all(|script| script.starts_with(" type=\"application/json\"")), "{html}");
    for fetched in ["src=\"", "href=", "@import", "url("] {
        assert!(!html.contains(fetched), "{fetched}");
    }
}

#[test]
fn a_bar_is_as_long_as_its_value() {
    let bars = Bars {
        unit: FigureUnit::Percent,
        series: vec![Series::new("saved", Paint::First)],
        rows: [50.0, 0.0, 0.001]
            .map(|value| BarRow {
                label: String::new(),
                detail: String::new(),
                is_chosen: false,
                bars: vec![Bar { interval: Some((40.0, 60.0)), ..Bar::new(0, value) }],
            })
            .into(),
        full: 100.0,
    };
    let mut out = Vec::new();
    bars.write(&mut out).unwrap();
    let html = String::from_utf8(out).unwrap();
    let bars: Vec<_> =
        html.split("class=\"bar ").skip(1).map(|bar| bar.split(" title").next().unwrap()).collect();
    assert_eq!(bars[0], "p1 some\" style=\"width:50.00%\" data-value=\"50\"");
    assert_eq!(bars[1], "p1\" style=\"width:0.00%\" data-value=\"0\"");
    // However small, it is seen.
    assert_eq!(bars[2], "p1 some\" style=\"width:0.00%\" data-value=\"0.001\"");
    assert!(html.contains("class=\"interval\" style=\"left:40.00%;width:20.00%\""), "{html}");
}

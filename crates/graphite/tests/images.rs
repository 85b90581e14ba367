//! The pictures of docs/images.md are what the code draws. `UPDATE=1 cargo test -p graphite --test images` writes them anew.

use std::fs;
use std::path::Path;

use graphite::draw::{Faces, Options, View, draw};
use graphite::query::{
    Ask, Compat, Fetch, FetchError, Fetched, Limits, Range, Request, Room, Stop, TimeZone, render,
};

/// A Sunday evening, UTC.
const UNTIL: i64 = 1_710_100_800;
const HOURS: i64 = 6;

/// Waves, with a gap in one of them.
struct Waves;

impl Fetch for Waves {
    fn fetch(&mut self, asks: &[Ask], _room: Room) -> Result<Vec<Vec<Fetched>>, FetchError> {
        let wave = |name: &str, phase: f64, height: f64, gap: std::ops::Range<usize>| {
            let value = |at: usize| {
                let rough = ((at * 7_919) % 101) as f64 / 101.0;
                let smooth = 1.0 + (at as f64 / 60.0 + phase).sin();
                if gap.contains(&at) {
                    f64::NAN
                } else {
                    ((smooth + rough / 5.0) * height * 100.0).round() / 100.0
                }
            };
            let values: Vec<f64> = (0..HOURS as usize * 60).map(value).collect();
            Fetched { name: name.to_owned(), start: UNTIL - HOURS * 3_600, end: UNTIL, step: 60, values }
        };
        let found = |ask: &Ask| match format!("{:?}", ask.selector) {
            text if text.contains("bytes") => vec![wave("net.bytes", 2.0, 2e6, 0..0)],
            text if text.contains('*') => vec![
                wave("servers.web1.cpu", 0.0, 30.0, 0..0),
                wave("servers.web2.cpu", 1.5, 20.0, 0..0),
                wave("servers.web3.cpu", 3.0, 25.0, 100..160),
            ],
            _ => vec![wave("servers.web1.cpu", 0.0, 30.0, 0..0)],
        };
        Ok(asks.iter().map(found).collect())
    }

    fn keep_going(&mut self) -> Result<(), Stop> {
        Ok(())
    }
}

/// Name of the picture, targets, and options.
const PICTURES: [(&str, &[&str], &str); 4] = [
    (
        "stacked",
        &["aliasByNode(servers.*.cpu,1)"],
        "title=CPU of web servers&vtitle=percent&areaMode=stacked&width=560&height=260",
    ),
    (
        "two-axes",
        &[
            "alias(servers.web1.cpu,'cpu')",
            "alias(secondYAxis(net.bytes),'traffic')",
            "threshold(50,'limit','red')",
        ],
        "vtitle=percent&vtitleRight=bytes&width=560&height=260&template=noc",
    ),
    (
        "staircase",
        &["alias(summarize(servers.web1.cpu,'30min','max'),'highest of half an hour')"],
        "lineMode=staircase&areaMode=first&areaAlpha=0.3&width=560&height=200",
    ),
    ("pie", &["aliasByNode(servers.*.cpu,1)"], "graphType=pie&width=400&height=240"),
];

fn picture(targets: &[&str], query: &str) -> String {
    let range = Range { from: UNTIL - HOURS * 3_600, until: UNTIL };
    let request = Request {
        range,
        now: UNTIL,
        zone: &TimeZone::UTC,
        x_files_factor: None,
        template: &[],
        compat: Compat::default(),
        limits: Limits { series_max: 100, points_max: 1_000_000, steps_max: 100_000_000 },
        seed: 1,
    };
    let series = render(targets, &request, &mut Waves).expect("right targets");
    let value = |name: &str| {
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(other, _)| *other == name).map(|(_, value)| value.to_owned()).next_back()
    };
    let options = Options::read(&value).expect("right options");
    let view = View { from: range.from, until: range.until, zone: &TimeZone::UTC };
    let svg = draw(&series, &options, &view, Faces::All, &mut || Ok(())).expect("few series").svg();
    // The data for tools is of no use in a document.
    match (svg.find("<script"), svg.find("</script>")) {
        (Some(start), Some(end)) => svg[..start].to_owned() + svg[end + "</script>".len()..].trim_start(),
        _ => svg,
    }
}

#[test]
fn the_pictures_of_the_docs_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    let page = fs::read_to_string(folder.with_extension("md")).expect("the page is there");
    for (name, targets, query) in PICTURES {
        let path = folder.join(format!("{name}.svg"));
        let drawn = picture(targets, query);
        if std::env::var_os("UPDATE").is_some() {
            fs::create_dir_all(&folder).expect("docs can be written");
            fs::write(&path, &drawn).expect("docs can be written");
        }
        let known = fs::read_to_string(&path).unwrap_or_default();
        assert!(known == drawn, "{} differs: run with UPDATE=1 and look at it", path.display());
        assert!(page.contains(&format!("(images/{name}.svg)")), "docs/images.md shows {name}");
        let shown = query.replace(' ', "%20");
        assert!(page.contains(&shown), "docs/images.md has the options of {name}: {shown}");
    }
}
